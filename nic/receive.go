package nic

import (
	"cmp"
	"slices"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// inbound is the receiver's state of a message, from its first packet to its
// end.
type inbound struct {
	mark poison.Mark
	delivered

	// These are empty when a message begins and when it ends.
	held     []int32    // that came before the header packet
	waiting  []int32    // that wait for the end of the header handler
	barriers []barrier  // that wait for writes
	line     host.Order // of a reply: its own line
	turns    int32      // writes that tenants' turns keep from the bus
	record   bool       // the record of the end waits for them

	// For few messages:
	lost loss
	open *pending // if an operation of a handler completes the message
}

// delivered is the part that is reset for each message.
type delivered struct {
	// Every packet needs these, so they lie side by side:
	frame *Frame
	// number of the message among those that have come to the node, from 1: the
	// msg_id of handlers' records (docs/abi.md)
	number   uint64
	matchAt  sim.Time // when the search for the header ends
	started  sim.Time // when the header packet came
	d        *portals.Delivery
	iface    *Interface
	order    *host.Order // line of its accesses to memory; nil: no access is ever late
	handlers *installed  // of the matched entry; nil: there are none
	skip     int32       // bytes of the user header that are not deposited
	settled  uint32      // bytes that have a fate, modulo 2^32
	dropped  uint64      // bytes
	arrived  int32       // packets
	// packets that have not been handled and are not on their way to host
	// memory
	left int32
	writes
	flow      int32 // number among the messages that handlers see at the same time
	piece     int32 // number of its own memory
	phase     phase
	fate      fate // in phaseDiscard: why packets are dropped
	header    bool // the header packet has arrived
	completes bool // a completion handler is to run
	// in its last suspension, the handler that ended last waited for its data
	// to land
	landed       bool
	spoiled      bool // a datagram with a damaged payload
	cut          bool // the rest will never come; its source may still be writing the frame
	flowCtl      bool
	lostFirst    bool // the payload of the header packet was dropped for lack of room
	lostLast     bool // the last packet was dropped, or will never come
	pending      bool // this message does not complete the entry
	acknowledged bool // a handler has sent the acknowledgement
	fail         portals.FailType
	kind         portals.OpKind
	lossy        bool // lost is set
	opened       bool // open is set
}

// phase is the present treatment of a message's packets.
type phase uint8

const (
	phaseSearch   phase = iota // the header has not been matched
	phaseHeader                // packets wait for the header handler
	phaseHandlers              // payload handlers get the packets
	phaseDeposit               // packets go to host memory
	phaseAnswer                // packets go to HPU memory, where a handler waits for them
	phaseDiscard               // packets are dropped
	phaseComplete              // all packets have been handled
)

// discards drops the further packets of the message.
func (in *inbound) discards(why fate) { in.phase, in.fate = phaseDiscard, why }

// receive turns packets into messages. It searches the match lists for a header
// packet. It finds any other packet in the CAM, but not before its header
// (sPIN'17 §4.1).
type receive struct {
	*env
	next  matching
	begun uint64   // messages so far
	found sim.Time // when the last packet of the CAM look-ups has been found
	// when all packets that have arrived have been taken, if they are taken one
	// at a time
	free   sim.Time
	open   map[uint64]*inbound // messages with more packets to come, by Frame.Flow
	latest *inbound            // in open, or nil
}

// matching takes packets whose message has been found.
type matching interface {
	matched(in *inbound)
	packet(in *inbound, i int)
	// missing ends a message whose packets from i on will never come.
	missing(in *inbound, i int)
}

// The events of receive.
const (
	kindMatched sim.Kind = kindsOfReceive + iota // *inbound: the header has been searched for
	// packet, *inbound: a later packet has been found in the CAM
	kindPacket
	// packet, *inbound: the source has given the message up; so many packets
	// have come
	kindMissing
)

func (r *receive) handle(e *sim.Event) {
	switch e.Kind {
	case kindMatched:
		r.next.matched(e.P.(*inbound))
	case kindPacket:
		r.next.packet(e.P.(*inbound), int(e.A))
	case kindMissing:
		r.next.missing(e.P.(*inbound), int(e.A))
	default:
		unknown("receive", e)
	}
}

// inboundOf finds the state of a packet's message.
func (r *receive) inboundOf(f *Frame) *inbound {
	if f.Packets == 1 {
		return r.begin(f)
	}
	in := r.latest
	if in != nil && in.frame == f {
		in.arrived++
	} else if in = r.open[f.Flow()]; in != nil {
		in.arrived++
	} else {
		in = r.begin(f)
		r.open[f.Flow()] = in
	}
	r.latest = in
	if int(in.arrived) == f.Packets {
		delete(r.open, f.Flow())
		r.latest = nil
	}
	return in
}

// begin makes the state of a message at its first packet.
func (r *receive) begin(f *Frame) *inbound {
	in := r.core.inbound(f)
	r.begun++
	in.number, in.arrived = r.begun, 1
	return in
}

// packetArrived takes packet i when its last byte is at the NIC.
func (r *receive) packetArrived(f *Frame, i int, damaged bool) {
	r.trace.arrived(f, i)
	from, to := f.Span(i)
	r.account.came += int64(to - from)
	in := r.inboundOf(f)
	in.spoiled = damaged
	now := r.now()
	if i > 0 {
		if !in.header {
			in.held = append(in.held, int32(i))
			return
		}
		at := max(r.taken(f, i, r.spec.MatchPacket), in.matchAt)
		r.found = max(r.found, at)
		r.post(at, kindPacket, uint64(i), in)
		return
	}
	in.header = true
	in.started = now
	match := r.spec.MatchHeader
	if f.Header.Kind == portals.OpAck || f.Header.Kind == portals.OpReply {
		match = r.spec.MatchPacket
	}
	in.matchAt = r.taken(f, 0, match)
	// The CAM may be slower than the lists. A request then waits for the data
	// of earlier requests.
	if f.Header.Kind <= portals.OpSwap {
		in.matchAt = max(in.matchAt, r.found)
	}
	r.post(in.matchAt, kindMatched, 0, in)
	if in.arrived > 1 {
		for _, k := range in.held {
			r.post(in.matchAt, kindPacket, uint64(k), in)
		}
		in.held = in.held[:0]
	}
}

// taken is the time when packet i, which has just arrived, has been found.
func (r *receive) taken(f *Frame, i int, match sim.Time) sim.Time {
	if r.spec.Receive == Pipelined {
		return r.now() + match
	}
	from, to := f.Span(i)
	r.free = max(r.now(), r.free) + r.fabric.Serial(to-from) + match
	return r.free
}

// abandoned ends the incomplete messages of a node, which has given them up. A
// transport that reports this delivers packets in the order of sending, so the
// header packet of each message has come.
func (r *receive) abandoned(source int32) {
	var cut []*inbound
	for _, in := range r.open { //lint:maporder they are sorted
		if in.frame.Source == source {
			cut = append(cut, in)
		}
	}
	slices.SortFunc(cut, func(a, b *inbound) int { return cmp.Compare(a.number, b.number) })
	for _, in := range cut {
		delete(r.open, in.frame.Flow())
		in.cut = true
		r.post(max(r.now(), in.matchAt, r.free), kindMissing, uint64(in.arrived), in)
	}
	r.latest = nil
}
