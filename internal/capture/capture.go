// Package capture writes pcapng files of the links of a simulated network, for
// Wireshark and similar programs.
//
// Each direction of a link is an interface of its own. Its packets are of
// LINKTYPE_USER0: a header of [HeaderBytes] bytes, numbers in network byte
// order, and the payload.
//
//	 0  u16  magic 0x7350
//	 2  u8   version 1
//	 3  u8   kind: 1 packet of a message, 2 acknowledgement of the end-to-end transport, 3 other
//	 4  u32  source node
//	 8  u32  destination node
//	12  u8   class: 0 requests, 1 answers
//	13  u8   flags: 1 first of its message, 2 last, 4 sent by the end-to-end transport, 8 a datagram (a cell, or another packet that is a message of its own), 16 without its data
//	14  u16  bytes of this header
//	16  u64  when its first byte is put onto the link, picoseconds
//	24  u64  when its last byte is, picoseconds
//	32  u32  payload bytes, without the header that the profile's fabric.header adds
//	36  u32  reserved, 0
//	40  u64  number of the packet between its nodes, with the end-to-end transport; of an acknowledgement of the first that is missing
//	48  u64  number of the message at its source
//	56  u32  index of the packet in its message
//	60  u32  packets of the message
//	64  u8   operation of Portals: 0 put, 1 get, 2 atomic, 3 fetch-atomic, 4 swap, 5 ack, 6 reply
//	65  u8   acknowledgement that is asked for
//	66  u8   failure that an answer tells of
//	67  u8   list in which an answer's request matched
//	68  u32  index of the portal table
//	72  u32  process of the initiator
//	76  u32  process of the target
//	80  u64  match bits
//	88  u64  header data
//	96  u64  bytes requested
//	104 u64  remote offset
//	112 u64  bytes manipulated, of answers
//	120 u64  offset of the payload in the data of the message
//
// A payload that begins with an IPv4 header with a correct checksum appears
// once more, on an interface of LINKTYPE_RAW.
package capture

import (
	_ "embed" // the dissector
	"encoding/binary"
	"maps"
	"slices"

	"github.com/spinsim/spinsim/internal/memory"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/trace"
)

// HeaderBytes is the length of the header before a payload.
const HeaderBytes = 128

// Magic and version of the header, and kinds of packets.
const (
	Magic   = 0x7350
	Version = 1

	KindMessage = 1
	KindAck     = 2
	KindOther   = 3
)

// Flags of a packet.
const (
	FlagFirst = 1 << iota
	FlagLast
	FlagReliable
	FlagDatagram
	FlagNoData
)

// Capture collects packets of a run.
type Capture struct {
	where   Places
	packets []captured
	held    int64  // memory of packets, bytes, about
	limit   int64  // of held; 0: none
	full    func() // called once when held exceeds limit
}

// captured is a packet on a link.
type captured struct {
	line *fabric.Line
	at   sim.Time
	data []byte
}

// New returns a capture at places.
func New(where Places) *Capture { return &Capture{where: where} }

// Attach is for runtime.Config.Capture. If it is called for several networks,
// one after the other, only packets of the last remain. It returns a
// *PlaceError if the network lacks one of the places, or does not show its
// links.
func (c *Capture) Attach(f fabric.Fabric) error {
	shows := fabric.FindCapturer(f)
	if shows == nil {
		return &PlaceError{"this network shows nothing of its links"}
	}
	c.packets, c.held = nil, 0
	left := c.where.list()
	shows.Capture(func(l fabric.Line) bool {
		for place := range left { //lint:maporder each by itself
			if one, err := ParsePlaces([]string{place}); err == nil && one.has(l) {
				delete(left, place)
			}
		}
		return c.where.has(l)
	}, c.see)
	for _, place := range slices.Sorted(maps.Keys(left)) {
		return &PlaceError{place + ": the network has no such link"}
	}
	return nil
}

// Limit bounds the memory of packets, in bytes, to more than 0. When packets
// take more, the capture drops all of them and calls full, once.
func (c *Capture) Limit(bytes int64, full func()) { c.limit, c.full = bytes, full }

// overhead is about what a packet takes besides its bytes: its place in a list
// that doubles, and in the copy of that list.
const overhead = 96

// Packets returns the number of packets.
func (c *Capture) Packets() int { return len(c.packets) }

// see copies a packet, because its memory is used again.
func (c *Capture) see(l *fabric.Line, p fabric.Packet, from, to sim.Time) {
	if c.limit > 0 && c.held > c.limit {
		return
	}
	w := nic.OnWire(&p)
	payload := w.Data()
	if c.held += int64(HeaderBytes + len(payload) + overhead); c.limit > 0 && c.held > c.limit {
		c.packets = nil
		c.full()
		return
	}
	data := memory.Make[byte](HeaderBytes + len(payload))[:HeaderBytes]
	header(data, &p, &w, from, to)
	c.packets = memory.Append(c.packets, captured{l, from, append(data, payload...)})
}

// header writes the header of a packet.
func header(h []byte, p *fabric.Packet, w *nic.WirePacket, from, to sim.Time) {
	be := binary.BigEndian
	be.PutUint16(h, Magic)
	h[2], h[12] = Version, byte(p.Class)
	be.PutUint32(h[4:], uint32(p.Src)) //nolint:gosec // nodes and times are not negative
	be.PutUint32(h[8:], uint32(p.Dst)) //nolint:gosec // likewise
	be.PutUint16(h[14:], HeaderBytes)
	be.PutUint64(h[16:], uint64(from))    //nolint:gosec // likewise
	be.PutUint64(h[24:], uint64(to))      //nolint:gosec // likewise
	be.PutUint32(h[32:], uint32(p.Bytes)) //nolint:gosec // likewise
	if w.Reliable {
		h[13] |= FlagReliable
		be.PutUint64(h[40:], w.Number)
	}
	f := w.Frame
	switch {
	case f != nil:
		h[3] = KindMessage
	case w.Reliable:
		h[3] = KindAck
		return
	default:
		h[3] = KindOther
		return
	}
	message(h, f, w)
}

// message writes the fields of a packet's message.
func message(h []byte, f *nic.Frame, w *nic.WirePacket) {
	be := binary.BigEndian
	var offset int
	switch {
	case f.Datagram:
		h[13] |= FlagFirst | FlagLast | FlagDatagram
		offset = f.At
	default:
		offset, _ = f.Span(w.Index)
		if w.Index == 0 {
			h[13] |= FlagFirst
		}
		if w.Index == f.Packets-1 {
			h[13] |= FlagLast
		}
	}
	if w.Data() == nil && f.Length > 0 {
		h[13] |= FlagNoData
	}
	be.PutUint64(h[48:], f.Number)
	be.PutUint32(h[56:], uint32(w.Index))   //nolint:gosec // not negative
	be.PutUint32(h[60:], uint32(f.Packets)) //nolint:gosec // not negative
	p := &f.Header
	h[64], h[65], h[66], h[67] = byte(p.Kind), byte(p.AckReq), byte(p.Fail), byte(p.List)
	be.PutUint32(h[68:], p.PT)
	be.PutUint32(h[72:], p.Initiator.PID)
	be.PutUint32(h[76:], p.Target.PID)
	be.PutUint64(h[80:], p.MatchBits)
	be.PutUint64(h[88:], p.HdrData)
	be.PutUint64(h[96:], p.RLength)
	be.PutUint64(h[104:], p.RemoteOffset)
	be.PutUint64(h[112:], p.MLength)
	be.PutUint64(h[120:], uint64(offset)) //nolint:gosec // not negative
}

// Write writes the packets in the order of their times, and closes out.
func (c *Capture) Write(out *trace.Pcapng) error {
	slices.SortStableFunc(c.packets, func(a, b captured) int { return int(min(max(a.at-b.at, -1), 1)) })
	numbers := map[string]int{}
	of := func(name string, kind uint16) int {
		n, known := numbers[name]
		if !known {
			n = out.Interface(name, kind)
			numbers[name] = n
		}
		return n
	}
	for i := range c.packets { // interfaces come before packets, in their order
		p := &c.packets[i]
		of(p.line.Name, trace.LinkUser0)
		if ip(p.data[HeaderBytes:]) != nil {
			of(p.line.Name+" IP", trace.LinkRaw)
		}
	}
	for i := range c.packets {
		p := &c.packets[i]
		d := trace.Unknown
		switch {
		case p.line.From >= 0:
			d = trace.Outbound
		case p.line.To >= 0:
			d = trace.Inbound
		}
		out.Packet(of(p.line.Name, trace.LinkUser0), p.at, d, p.data)
		if packet := ip(p.data[HeaderBytes:]); packet != nil {
			out.Packet(of(p.line.Name+" IP", trace.LinkRaw), p.at, d, packet)
		}
	}
	return out.Close()
}

// ip returns the packet of IPv4 that begins a payload (RFC 791 §3.1), or nil.
func ip(data []byte) []byte {
	const least, most = 20, 60
	if len(data) < least || data[0]>>4 != 4 {
		return nil
	}
	words := int(data[0]&15) * 4
	length := int(binary.BigEndian.Uint16(data[2:]))
	if words < least || words > most || words > len(data) || length < words || length > len(data) {
		return nil
	}
	sum := uint32(0)
	for i := 0; i < words; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(data[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	if sum != 0xffff {
		return nil
	}
	return data[:length]
}

// Dissector is a program in Lua with which Wireshark reads such files.
//
//go:embed spinsim.lua
var Dissector string
