package spin

import "structs"

// Header is the record of a header handler: the matched first packet of a
// message (docs/abi.md, Header record; sPIN'17 §3).
type Header struct {
	_          structs.HostLayout
	Type       MessageType
	UserHdrLen uint32 // bytes at UserHdr
	Length     uint64 // requested length of the message, bytes, user header included
	MLength    uint64 // length after truncation, bytes, user header included
	SourceNID  uint32 // physical node of the initiator, or its rank on a logical interface
	SourcePID  uint32 // process at the initiator; 0 on a logical interface
	TargetNID  uint32 // this process, likewise
	TargetPID  uint32
	MatchBits  uint64 // of the request
	Offset     uint64 // where in the entry the message would be deposited, bytes
	HdrData    uint64 // 64 bits of the initiator
	MsgID      uint64 // the same in all handlers of one message; unique on the device
	UserHdr    Ptr    // the user header: the first bytes of the message
	Flags      HeaderFlags
	AtomicOp   AtomicOp // of atomics, fetching atomics and swaps
	Datatype   Datatype // of atomics, fetching atomics and swaps
	Packet     Ptr      // the first packet, user header included; may be written
	PacketLen  uint32   // bytes at Packet; 0 unless the entry's header handler sees the packet
}

// PacketBytes returns the first packet, which is valid until the handler returns.
func (h *Header) PacketBytes() []byte { return h.Packet.Bytes(h.PacketLen) }

// UserHeader returns the user header's bytes, which are valid until the handler returns.
func (h *Header) UserHeader() []byte { return h.UserHdr.Bytes(h.UserHdrLen) }

// Payload is the record of a payload handler: one packet (docs/abi.md, Payload
// record; sPIN'17 §3).
type Payload struct {
	_          structs.HostLayout
	Base       Ptr    // the packet's payload, in the context's packet buffer; may be written
	Length     uint32 // bytes at Base
	Offset     uint64 // of these bytes in the message, bytes, counted after the user header
	MsgID      uint64
	SourceNID  uint32
	SourcePID  uint32
	HdrData    uint64
	MatchBits  uint64
	HostOffset uint64 // where in the entry these bytes would be deposited: the entry's offset + Offset
	MLength    uint64 // length of the message after truncation, bytes, user header included
}

// Bytes returns the packet's payload, which is valid, and may be written, until
// the handler returns.
func (p *Payload) Bytes() []byte { return p.Base.Bytes(p.Length) }

// Completion is the record of a completion handler, which runs after the last
// payload handler of a message (docs/abi.md, Completion record; sPIN'17 §3).
type Completion struct {
	_            structs.HostLayout
	DroppedBytes uint64 // by payload handlers and flow control
	FlowControl  uint32 // 1 if flow control triggered within the message
	Failed       uint32 // 1 if a handler of this message failed before
	MsgID        uint64
	SourceNID    uint32
	SourcePID    uint32
	HdrData      uint64
	MatchBits    uint64
	Offset       uint64 // where in the entry the message would be deposited, bytes
	MLength      uint64 // length after truncation, bytes, user header included
	Packet       Ptr    // the last packet; may be written
	// bytes at Packet; 0 unless the entry's completion handler sees the packet,
	// or if it was dropped
	PacketLen uint32
}

// PacketBytes returns the last packet, which is valid until the handler returns.
func (c *Completion) PacketBytes() []byte { return c.Packet.Bytes(c.PacketLen) }

// Op describes a put, get, atomic or timer (docs/abi.md, Operation record). Local, Operand, Fetch
// and UserHdr name HPU memory: use [Payload.Base], [Addr] or [AddrOf].
type Op struct {
	_            structs.HostLayout
	Local        Ptr    // HPU memory: source of *FromDevice, destination of GetFromDevice
	Space        Space  // host memory of Offset and FetchOffset
	Offset       uint64 // in that host memory: source of *FromHost, destination of GetFromHost, bytes
	Length       uint64 // bytes
	TargetNID    uint32
	TargetPID    uint32
	PTIndex      uint32
	AckReq       AckReq
	MatchBits    uint64
	RemoteOffset uint64 // bytes
	HdrData      uint64
	UserPtr      uint64 // returned in the initiator's events
	// memory descriptor whose queue and counter get the initiator's events; 0:
	// none
	MD          uint32
	Options     OpOptions
	AtomicOp    AtomicOp
	Datatype    Datatype
	Operand     Ptr    // operand of an OpCSwap or OpMSwap
	Fetch       Ptr    // from device: destination of a fetching atomic's result; 0: does not fetch
	FetchOffset uint64 // from host: destination of a fetching atomic's result, bytes in Space
	UserHdr     Ptr    // PutFromDevice, Timer, ToSelf: bytes to send before the payload
	UserHdrLen  uint32 // how many; 0: none
}
