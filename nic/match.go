package nic

import (
	"fmt"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/portals"
)

// match lets package portals decide what a message means.
type match struct {
	*env
	handlers handling
	next     delivery
	own      owners
	answers  answering
	out      answerer
	dropped  int64 // packets for processes that do not exist
	_        [32]byte
}

// handling takes messages to entries with handlers.
type handling interface {
	begin(in *inbound)
	packet(in *inbound, i int)
	missing(in *inbound, i int)
}

// delivery takes messages that need no handler, or no more handlers.
type delivery interface {
	packet(in *inbound, i int)
	missing(in *inbound, i int)
	complete(in *inbound)
}

// answering finds the handlers that wait for replies.
type answering interface {
	awaited(cookie uint64) bool
}

// owners finds the interface a header is for.
type owners interface {
	interfaceOf(h *portals.Header) *Interface
}

// answerer sends headers without an operation of an interface.
type answerer interface {
	answer(h *portals.Header)
}

// matched runs at the end of the search for a header. Package portals decides
// what the message means.
func (m *match) matched(in *inbound) {
	h := &in.frame.Header
	in.iface = m.own.interfaceOf(h)
	m.trace.match(in, in.started, m.now())
	m.trace.found(in, 0)
	switch {
	case in.iface == nil:
		in.discards(nobody)
		m.unknownProcess(in.frame)
	case h.Kind == portals.OpAck:
		m.writeRecord(in.iface, m, 0, 0, in, nil, false)
		return
	case h.Kind == portals.OpReply:
		in.d = in.iface.Port.ReplyTo(h)
		in.line = host.Order{}
		in.order = &in.line
		in.phase = phaseDeposit
		switch {
		case in.d.Cookie() != 0 && m.answers.awaited(in.d.Cookie()):
			in.phase = phaseAnswer
		// of a swap whose initiator does not want the old values
		case in.d.Region().Length == 0:
			in.discards(unwanted)
		}
	default:
		in.d, in.order = in.iface.Port.Receive(h), in.iface.lineOf(forArrivals, in.frame.Source)
		switch {
		case !in.d.Matched():
			in.discards(refused)
		case in.d.Spin == nil && in.spoiled:
			in.discard()
		case in.d.Spin == nil:
			in.phase = phaseDeposit
		default:
			m.handlers.begin(in)
		}
	}
	m.packet(in, 0)
}

// packet passes on a packet of a message whose header has been matched.
func (m *match) packet(in *inbound, i int) {
	if i > 0 {
		m.trace.found(in, i)
	}
	if !in.frame.carries(i) { // its source could not read it, and has reported why
		in.failed(portals.NISegv)
		m.without(in, i, unreadable)
		return
	}
	if in.phase == phaseHeader || in.phase == phaseHandlers {
		m.handlers.packet(in, i)
		return
	}
	m.next.packet(in, i)
}

// missing ends a message whose packets from i on will never come.
func (m *match) missing(in *inbound, i int) {
	in.failed(portals.NIUndeliverable)
	// after the last packet the message may be gone
	for rest := in.frame.Packets; i < rest; i++ {
		from, to := in.frame.Span(i)
		m.account.absent += int64(to - from)
		m.without(in, i, undelivered)
	}
}

// without handles packet i of a message, whose data is missing for the reason
// why.
func (m *match) without(in *inbound, i int, why fate) {
	m.settle(in, why, in.undealt(i))
	if in.phase == phaseHeader || in.phase == phaseHandlers {
		m.handlers.missing(in, i)
	} else {
		m.next.missing(in, i)
	}
}

// Reached implements host.Client; match makes no atomics.
func (m *match) Reached(*host.Access) {}

// Begun implements host.Client.
func (m *match) Begun(a *host.Access) { a.Ref.(*inbound).iface.written(a) }

// Ended implements host.Client: the record of an acknowledgement has landed.
func (m *match) Ended(a *host.Access, _ int, _ host.Status) {
	in := a.Ref.(*inbound)
	m.core.releaseAccess(a)
	in.iface.Port.Acked(&in.frame.Header)
	m.trace.done(in.frame)
	m.over(in)
}

// unknownProcess drops a message for a process or an interface that does not
// exist here. If the initiator of a request waits for an answer, it gets one.
func (m *match) unknownProcess(f *Frame) {
	h := f.Header
	m.dropped += int64(f.Packets)
	switch h.Kind {
	case portals.OpAck, portals.OpReply: // of a process that has gone: nobody waits for it
		return
	}
	m.report.lost(m.env, &h, &LostMessage{
		At: m.now(), Number: f.Number, Packets: f.Packets, Of: f.Packets, Bytes: h.RLength, Length: h.RLength,
		Cause: fmt.Sprintf("there is no process %d with such an interface", h.Target.PID),
	})
	kind := portals.OpReply
	switch h.Kind {
	case portals.OpPut, portals.OpAtomic:
		if h.AckReq == portals.NoAck {
			return
		}
		kind = portals.OpAck
	}
	h.Kind, h.Fail = kind, portals.NIUndeliverable
	h.Initiator, h.Target = h.Target, h.Initiator
	m.out.answer(&h)
}
