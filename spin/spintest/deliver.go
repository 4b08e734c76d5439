package spintest

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/spin"
)

// Handlers are the handlers of one match entry; each may be nil (sPIN'17 §3).
type Handlers[S any] struct {
	Header     func(*spin.Header, *S) spin.Code
	Payload    func(*spin.Payload, *S) spin.Code
	Completion func(*spin.Completion, *S) spin.Code
}

// Message is a message that arrives.
type Message struct {
	Type spin.MessageType
	Data []byte // user header included
	// bytes at the beginning of Data that are the user header; they fit the
	// first packet
	UserHdrLen int
	MLength    int    // bytes of Data that the entry takes; 0: all
	Offset     uint64 // where in the entry the message would be deposited
	SourceNID  uint32
	SourcePID  uint32
	MatchBits  uint64
	HdrData    uint64
	Flags      spin.HeaderFlags
	AtomicOp   spin.AtomicOp
	Datatype   spin.Datatype
	Order      []int // packets in the order in which their handlers run, each once; nil: as sent
	Lost       []int // packets that flow control drops
	// FirstPacket and LastPacket are options of the entry. With FirstPacket its
	// header handler sees the first packet. With LastPacket its completion
	// handler sees the last packet (docs/abi.md, Whole packets).
	FirstPacket, LastPacket bool
}

// Outcome is the result of a message.
type Outcome struct {
	Header     spin.Code   // ProcessData if there is no header handler
	Payloads   []spin.Code // one per packet, in the order sent; nil if none ran
	Completion spin.Code   // Success if none ran
	Deposited  bool        // the default action was taken
	Pending    bool        // the message did not complete the entry
	Failed     bool        // a handler failed
	// bytes of packets that were lost, or whose handler dropped them or failed
	Dropped uint64
	Traps   []string // causes of Segv
}

// Deliver runs the handlers of a message that arrives at d, as a device does.
// The header handler comes first, then one payload handler per packet with
// payload, then the completion handler. If the header handler drops the
// message, fails or returns Proceed, no other handler runs. Handlers take turns
// on the HPUs. The message is deposited in Host after Proceed, or if there is
// no payload handler.
func Deliver[S any](d *Device, h Handlers[S], state *S, m Message) Outcome {
	d.tb.Helper()
	r := &reception{d: d, m: &m, body: m.Data}
	if m.MLength > 0 {
		r.body = m.Data[:m.MLength]
	}
	d.messages++
	d.own = 0
	d.acked, d.message, d.traps = false, true, nil
	defer func() { d.message = false }()
	r.out.Header = spin.ProcessData
	if h.Header != nil {
		r.out.Header = r.check("header", Run(d, h.Header, r.header(), state), spin.Drop, spin.DropPending,
			spin.ProcessData, spin.ProcessDataPending, spin.Proceed, spin.ProceedPending)
	}
	r.out.Pending = r.out.Header == spin.DropPending || r.out.Header == spin.ProcessDataPending ||
		r.out.Header == spin.ProceedPending
	switch r.out.Header {
	case spin.ProcessData, spin.ProcessDataPending:
		runPayloads(r, h.Payload, state)
		if h.Completion != nil {
			d.turn()
			r.out.Completion = r.check("completion", Run(d, h.Completion, r.completion(), state),
				spin.Success, spin.SuccessPending)
			r.out.Pending = r.out.Pending || r.out.Completion == spin.SuccessPending
		}
	case spin.Proceed, spin.ProceedPending:
		r.deposit(m.Offset, r.body)
	default:
		r.out.Dropped = uint64(len(r.body))
	}
	r.out.Traps = d.traps
	return r.out
}

// reception is a message on its way through the handlers.
type reception struct {
	d    *Device
	m    *Message
	body []byte // after truncation
	out  Outcome
}

// turn selects the next HPU.
func (d *Device) turn() { d.HPU = (d.HPU + 1) % d.config.HPUs }

// check returns code if handlers of this kind may return it, otherwise Fail.
func (r *reception) check(kind string, code spin.Code, allowed ...spin.Code) spin.Code {
	if code == spin.Fail || code == spin.Segv {
		r.out.Failed = true
		return code
	}
	if !slices.Contains(allowed, code) {
		r.d.tb.Logf("spintest: a %s handler returned %d, which counts as Fail", kind, code)
		r.out.Failed = true
		return spin.Fail
	}
	return code
}

func (r *reception) header() *spin.Header {
	user, at := r.d.Memory(min(r.m.UserHdrLen, len(r.body)))
	copy(user, r.body)
	h := &spin.Header{
		Type: r.m.Type, UserHdr: at, UserHdrLen: uint32(len(user)),
		Length: uint64(len(r.m.Data)), MLength: uint64(len(r.body)),
		SourceNID: r.m.SourceNID, SourcePID: r.m.SourcePID,
		TargetNID: r.d.config.NID, TargetPID: r.d.config.PID,
		MatchBits: r.m.MatchBits, Offset: r.m.Offset, HdrData: r.m.HdrData, MsgID: r.d.messages,
		Flags: r.m.Flags, AtomicOp: r.m.AtomicOp, Datatype: r.m.Datatype,
	}
	if r.m.FirstPacket {
		h.Packet, h.PacketLen = r.whole(r.body[:min(r.d.config.MTU, len(r.body))])
	}
	return h
}

// whole copies a packet, user header included, to memory for a handler.
func (r *reception) whole(packet []byte) (at spin.Ptr, n uint32) {
	if len(packet) == 0 {
		return 0, 0
	}
	buffer, at := r.d.Memory(len(packet))
	return at, uint32(copy(buffer, packet))
}

// packets returns the payload of each packet, without the user header.
func (r *reception) packets() [][]byte {
	mtu := r.d.config.MTU
	if r.m.UserHdrLen > mtu {
		panic(fmt.Sprintf("spintest: a user header of %d bytes does not fit a packet of %d", r.m.UserHdrLen, mtu))
	}
	skip := min(r.m.UserHdrLen, len(r.body))
	var packets [][]byte
	for at := 0; at < len(r.body); at += mtu {
		end := min(at+mtu, len(r.body))
		if first := max(at, skip); first < end {
			packets = append(packets, r.body[first:end])
		}
	}
	return packets
}

// runPayloads runs the payload handlers of a message.
func runPayloads[S any](r *reception, handler func(*spin.Payload, *S) spin.Code, state *S) {
	packets := r.packets()
	offsets := make([]uint64, len(packets))
	for i := 1; i < len(packets); i++ {
		offsets[i] = offsets[i-1] + uint64(len(packets[i-1]))
	}
	order := make([]int, len(packets))
	for i := range order {
		order[i] = i
	}
	if r.m.Order != nil {
		if !slices.Equal(slices.Sorted(slices.Values(r.m.Order)), order) {
			panic(fmt.Sprintf("spintest: Order %v does not name each of %d packets once", r.m.Order, len(packets)))
		}
		order = r.m.Order
	}
	if handler != nil && len(packets) > 0 {
		r.out.Payloads = make([]spin.Code, len(packets))
	}
	for _, i := range order {
		r.d.turn()
		switch {
		case slices.Contains(r.m.Lost, i):
			r.out.Dropped += uint64(len(packets[i]))
		case handler == nil:
			r.deposit(r.m.Offset+offsets[i], packets[i])
		default:
			code := r.check("payload", Run(r.d, handler, r.payload(packets[i], offsets[i]), state), spin.Success, spin.Drop)
			if code != spin.Success {
				r.out.Dropped += uint64(len(packets[i]))
			}
			r.out.Payloads[i] = code
		}
	}
}

func (r *reception) payload(packet []byte, offset uint64) *spin.Payload {
	buffer, at := r.d.Memory(len(packet))
	copy(buffer, packet)
	return &spin.Payload{
		Base: at, Length: uint32(len(packet)), Offset: offset, MsgID: r.d.messages,
		SourceNID: r.m.SourceNID, SourcePID: r.m.SourcePID,
		HdrData: r.m.HdrData, MatchBits: r.m.MatchBits,
		HostOffset: r.m.Offset + offset, MLength: uint64(len(r.body)),
	}
}

func (r *reception) completion() *spin.Completion {
	c := &spin.Completion{
		DroppedBytes: r.out.Dropped, MsgID: r.d.messages,
		SourceNID: r.m.SourceNID, SourcePID: r.m.SourcePID,
		HdrData: r.m.HdrData, MatchBits: r.m.MatchBits,
		Offset: r.m.Offset, MLength: uint64(len(r.body)),
	}
	if len(r.m.Lost) > 0 {
		c.FlowControl = 1
	}
	if last := len(r.packets()) - 1; r.m.LastPacket && !slices.Contains(r.m.Lost, last) {
		mtu := r.d.config.MTU
		c.Packet, c.PacketLen = r.whole(r.body[(max(len(r.body), 1)-1)/mtu*mtu:])
	}
	if r.out.Failed {
		c.Failed = 1
	}
	return c
}

// deposit takes the default action.
func (r *reception) deposit(offset uint64, b []byte) {
	host, result := r.d.host(spin.MEHostMem, offset, uint64(len(b)))
	if result.Failed() {
		panic(fmt.Sprintf("spintest: %d bytes at offset %d do not fit HostMem of %d", len(b), offset, len(r.d.Host)))
	}
	copy(host, b)
	r.out.Deposited = true
}
