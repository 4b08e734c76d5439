-- Wireshark dissector of captures that spinsim writes with --pcap: tshark -X lua_script:spinsim.lua -r x.pcapng, or in the folder of personal Lua plugins.
-- The layout is that of package internal/capture of spinsim, version 1 (LINKTYPE_USER0).
local spinsim = Proto("spinsim", "spinsim NIC packet")

local kinds = { [1] = "message", [2] = "transport acknowledgement", [3] = "other" }
local classes = { [0] = "requests", [1] = "answers" }
local operations = { [0] = "put", [1] = "get", [2] = "atomic", [3] = "fetch-atomic", [4] = "swap", [5] = "ack", [6] = "reply" }

local f = {
  version = ProtoField.uint8("spinsim.version", "Version"),
  kind = ProtoField.uint8("spinsim.kind", "Kind", base.DEC, kinds),
  src = ProtoField.uint32("spinsim.src", "Source node"),
  dst = ProtoField.uint32("spinsim.dst", "Destination node"),
  class = ProtoField.uint8("spinsim.class", "Class", base.DEC, classes),
  flags = ProtoField.uint8("spinsim.flags", "Flags", base.HEX),
  first = ProtoField.bool("spinsim.flags.first", "First of its message", 8, nil, 1),
  last = ProtoField.bool("spinsim.flags.last", "Last of its message", 8, nil, 2),
  reliable = ProtoField.bool("spinsim.flags.reliable", "End-to-end transport", 8, nil, 4),
  datagram = ProtoField.bool("spinsim.flags.datagram", "Datagram", 8, nil, 8),
  nodata = ProtoField.bool("spinsim.flags.nodata", "Without its data", 8, nil, 16),
  header = ProtoField.uint16("spinsim.header_bytes", "Header bytes"),
  from = ProtoField.uint64("spinsim.time_ps", "First byte onto the link (ps)"),
  to = ProtoField.uint64("spinsim.end_ps", "Last byte onto the link (ps)"),
  bytes = ProtoField.uint32("spinsim.bytes", "Payload bytes"),
  number = ProtoField.uint64("spinsim.number", "Packet number of the transport"),
  message = ProtoField.uint64("spinsim.message", "Message number"),
  index = ProtoField.uint32("spinsim.packet", "Packet of the message"),
  packets = ProtoField.uint32("spinsim.packets", "Packets of the message"),
  op = ProtoField.uint8("spinsim.portals.op", "Operation", base.DEC, operations),
  ackreq = ProtoField.uint8("spinsim.portals.ack_req", "Acknowledgement asked for"),
  fail = ProtoField.uint8("spinsim.portals.fail", "Failure"),
  list = ProtoField.uint8("spinsim.portals.list", "List"),
  pt = ProtoField.uint32("spinsim.portals.pt", "Portal table index"),
  ipid = ProtoField.uint32("spinsim.portals.initiator", "Initiator process"),
  tpid = ProtoField.uint32("spinsim.portals.target", "Target process"),
  bits = ProtoField.uint64("spinsim.portals.match_bits", "Match bits", base.HEX),
  hdr = ProtoField.uint64("spinsim.portals.hdr_data", "Header data", base.HEX),
  rlength = ProtoField.uint64("spinsim.portals.rlength", "Bytes requested"),
  roffset = ProtoField.uint64("spinsim.portals.remote_offset", "Remote offset"),
  mlength = ProtoField.uint64("spinsim.portals.mlength", "Bytes manipulated"),
  offset = ProtoField.uint64("spinsim.offset", "Offset in the message"),
  data = ProtoField.bytes("spinsim.data", "Data"),
  record = ProtoField.uint32("spinsim.ip.bytes", "IP over ExaNet: packet that ends here, bytes"),
}
spinsim.fields = f

local where = {
  { f.version, 2, 1 }, { f.kind, 3, 1 }, { f.src, 4, 4 }, { f.dst, 8, 4 }, { f.class, 12, 1 }, { f.header, 14, 2 }, { f.from, 16, 8 }, { f.to, 24, 8 },
  { f.bytes, 32, 4 }, { f.number, 40, 8 },
}
local ofMessage = {
  { f.message, 48, 8 }, { f.index, 56, 4 }, { f.packets, 60, 4 }, { f.op, 64, 1 }, { f.ackreq, 65, 1 }, { f.fail, 66, 1 }, { f.list, 67, 1 }, { f.pt, 68, 4 },
  { f.ipid, 72, 4 }, { f.tpid, 76, 4 }, { f.bits, 80, 8 }, { f.hdr, 88, 8 }, { f.rlength, 96, 8 }, { f.roffset, 104, 8 }, { f.mlength, 112, 8 }, { f.offset, 120, 8 },
}

-- IP over ExaNet (package exanet/ip): a transfer of RDMA writes records into the ring of the other node, one behind the other: 4 bytes of length, least significant
-- first, the packet, and zeros up to a multiple of 16. Its cells carry 256 bytes each, and those of two blocks may be mixed: they are put together by their addresses.
local ofIP = Dissector.get("ip")
local granule, rdmaCells, rdmaData = 16, 1, 1
local streams, ends = {}, {} -- by source and destination; packets that end in a frame, by its number

function spinsim.init() streams, ends = {}, {} end

-- record is how long the packet is of which a record begins with these bytes; nil: it is none of IPv4.
local function record(bytes, at)
  if bytes:len() - at < 8 or bytes:get_index(at + 4) < 0x45 or bytes:get_index(at + 4) > 0x4f then return nil end
  local function byte(i) return bytes:get_index(at + i) end
  local length = byte(0) + 256 * byte(1) + 65536 * byte(2) + 16777216 * byte(3)
  if length < 20 or length ~= 256 * byte(6) + byte(7) then return nil end
  return length
end

-- packets takes the packets out of a stream that are complete.
local function packets(s)
  local list, at = {}, 0
  while true do
    local length = record(s.bytes, at)
    if not length or at + 4 + length > s.bytes:len() then break end
    list[#list + 1] = s.bytes:subset(at + 4, length)
    at = at + math.ceil((4 + length) / granule) * granule
  end
  if at >= s.bytes:len() then s.bytes = ByteArray.new() elseif at > 0 then s.bytes = s.bytes:subset(at, s.bytes:len() - at) end
  return list
end

-- cell puts a cell of RDMA where it belongs, and returns the packets that it completes. Of several transfers that are under way each is a stream.
local function cell(key, address, data)
  local c = streams[key] or { open = {}, waiting = {} } -- streams by where they go on; cells that none has reached
  streams[key] = c
  local s = c.open[address]
  c.open[address] = nil
  if not s and record(data, 0) then s = { bytes = ByteArray.new() } end
  if not s then
    c.waiting[address] = data
    return {}
  end
  while data do
    s.bytes:append(data)
    address = address + data:len()
    data, c.waiting[address] = c.waiting[address], nil
  end
  local list = packets(s)
  if s.bytes:len() > 0 then c.open[address] = s end
  return list
end

-- carried shows the packets of IP that end in a cell.
local function carried(buffer, length, pinfo, tree, sub)
  if not pinfo.visited then
    ends[pinfo.number] = nil
    if buffer(68, 4):uint() == rdmaCells and buffer(87, 1):uint() % 16 == rdmaData and buffer:len() > length then
      local key = buffer(4, 4):uint() .. ">" .. buffer(8, 4):uint()
      ends[pinfo.number] = cell(key, buffer(104, 8):uint64():tonumber(), buffer(length):bytes())
    end
  end
  for _, packet in ipairs(ends[pinfo.number] or {}) do
    sub:add(f.record, packet:len())
    ofIP:call(packet:tvb("IP over ExaNet"), pinfo, tree)
  end
end

function spinsim.dissector(buffer, pinfo, tree)
  if buffer:len() < 128 or buffer(0, 2):uint() ~= 0x7350 or buffer(2, 1):uint() ~= 1 then return 0 end
  local kind, length = buffer(3, 1):uint(), buffer(14, 2):uint()
  local sub = tree:add(spinsim, buffer(0, length))
  for _, w in ipairs(where) do sub:add(w[1], buffer(w[2], w[3])) end
  local flags = sub:add(f.flags, buffer(13, 1))
  for _, one in ipairs({ f.first, f.last, f.reliable, f.datagram, f.nodata }) do flags:add(one, buffer(13, 1)) end
  pinfo.cols.protocol = "spinsim"
  pinfo.cols.src = "node " .. buffer(4, 4):uint()
  pinfo.cols.dst = "node " .. buffer(8, 4):uint()
  local info = kinds[kind] or "?"
  if kind == 1 then
    for _, w in ipairs(ofMessage) do sub:add(w[1], buffer(w[2], w[3])) end
    info = string.format("%s, message %s, packet %d of %d, match bits 0x%s", operations[buffer(64, 1):uint()] or "?", tostring(buffer(48, 8):uint64()),
      buffer(56, 4):uint() + 1, buffer(60, 4):uint(), tostring(buffer(80, 8):bytes()))
  end
  pinfo.cols.info = info .. ", " .. buffer(32, 4):uint() .. " B"
  if buffer:len() > length then tree:add(f.data, buffer(length)) end
  if kind == 1 then carried(buffer, length, pinfo, tree, sub) end
  return buffer:len()
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, spinsim)
