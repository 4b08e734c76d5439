package nic

import (
	"cmp"
	"slices"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// inbound is what the receiver knows of a message, from its first packet to its end.
type inbound struct {
	mark poison.Mark
	delivered

	// These are empty when a message begins and when it ends.
	held     []int32    // packets that came before the header packet
	waiting  []int32    // packets that wait for the end of the header handler
	barriers []barrier  // what waits for writes
	line     host.Order // its own line, of a reply

	// Of few messages:
	lost loss
	open *pending // an operation of a handler completes the message
}

// delivered is what begins anew with each message.
type delivered struct {
	// What every packet needs, side by side:
	frame *Frame
	// of the message among those that have come to the node, from 1: the msg_id
	// of handlers' records (docs/abi.md)
	number   uint64
	matchAt  sim.Time // when the search for the header ends
	started  sim.Time // when the header packet came
	d        *portals.Delivery
	iface    *Interface
	order    *host.Order // the line of its accesses to memory; nil where none is ever late
	handlers *installed  // of the matched entry; nil: it has none
	skip     int32       // bytes of the user header that are not deposited
	settled  uint32      // bytes that have a fate, modulo 2^32
	dropped  uint64      // bytes
	arrived  int32       // packets
	// packets that have not been dealt with, or are not on their way to host
	// memory
	left int32
	writes
	flow      int32 // its number among the messages that handlers see at the same time
	piece     int32 // of memory of its own
	phase     phase
	fate      fate // why packets are dropped, in phaseDiscard
	header    bool // the header packet has arrived
	completes bool // a completion handler is to run
	// the handler that ended last has waited for its data to land, and for
	// nothing since
	landed       bool
	spoiled      bool // a datagram: its payload is damaged
	cut          bool // the rest of it will never come; its source may still be writing the frame
	flowCtl      bool
	lostFirst    bool // the header packet's payload was dropped for want of room
	lostLast     bool // the last packet was dropped, or will never come
	pending      bool // the entry is not completed by this message
	acknowledged bool // a handler has
	fail         portals.FailType
	kind         portals.OpKind
	lossy        bool // lost says what the message has lost
	opened       bool // open is set
}

// phase is what happens to the packets of a message.
type phase uint8

const (
	phaseSearch   phase = iota // the header has not been matched
	phaseHeader                // packets wait for the header handler
	phaseHandlers              // packets go to payload handlers
	phaseDeposit               // packets go to host memory
	phaseAnswer                // packets go to HPU memory, where a handler waits for them
	phaseDiscard               // packets are dropped
	phaseComplete              // all packets are dealt with
)

// discards has the packets of a message dropped.
func (in *inbound) discards(why fate) { in.phase, in.fate = phaseDiscard, why }

// receive is where packets become messages: a header packet is searched for in
// the match lists, any other is found in the CAM, but not before its header
// (sPIN'17 §4.1).
type receive struct {
	*env
	next  matching
	begun uint64   // messages so far
	found sim.Time // when those that are looked up in the CAM have been found
	// when the packets that have arrived have been taken, if they are taken one
	// at a time
	free   sim.Time
	open   map[uint64]*inbound // messages of which more packets are to come, by Frame.Flow
	latest *inbound            // of them
}

// matching is what receive gives packets to when they have been found.
type matching interface {
	matched(in *inbound)
	packet(in *inbound, i int)
	// missing ends a message whose packets from i on will never come.
	missing(in *inbound, i int)
}

// The events of receive.
const (
	kindMatched sim.Kind = kindsOfReceive + iota // *inbound: the header has been searched for
	// packet, *inbound: a further packet has been found in the CAM
	kindPacket
	// packet, *inbound: the source has given the message up, of which so many
	// packets have come
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

// inboundOf finds what is known of a packet's message.
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

// begin is the first packet of a message.
func (r *receive) begin(f *Frame) *inbound {
	in := r.core.inbound(f)
	r.begun++
	in.number, in.arrived = r.begun, 1
	return in
}

// packetArrived is the last byte of packet i at the NIC.
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
	// where the CAM is slower than the lists: behind the data of requests
	// before it
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

// taken is when packet i, which has just arrived, has been found.
func (r *receive) taken(f *Frame, i int, match sim.Time) sim.Time {
	if r.spec.Receive == Pipelined {
		return r.now() + match
	}
	from, to := f.Span(i)
	r.free = max(r.now(), r.free) + r.fabric.Serial(to-from) + match
	return r.free
}

// abandoned ends the messages of a node of which packets are missing: it has
// given them up. A transport that says so hands packets on in the order of
// sending, so that the header of each is there.
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
