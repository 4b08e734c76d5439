package runtime

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// receive is what a message is at its receiver.
type receive struct {
	ni           *NI
	d            *portals.Delivery
	handlers     installed // of the matched entry
	phase        phase
	arrived      bool     // the header packet has
	matchAt      sim.Time // when the search for the header ends
	left         int      // packets not yet dealt with
	held         []int32  // packets that came before the header packet
	waiting      []int32  // packets that wait for the end of the header handler
	skip         int      // bytes of the user header that are not deposited
	dropped      uint64   // bytes
	flowCtl      bool
	lostFirst    bool // the header packet's payload was dropped for want of room
	lost         loss
	pending      bool // the entry is not completed by this message
	completes    bool // a completion handler is to run
	fail         portals.FailType
	acknowledged bool        // a handler has
	lands        sim.Time    // when what has been written of the message so far is in host memory
	landed       bool        // the handler that ended last has waited for its data to land, and for nothing since
	open         *unfinished // an operation of a handler completes the message
	started      sim.Time
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

// arrive is the last byte of packet i at the NIC. A header packet is searched for in the match lists, any other is found in
// the CAM, but not before its header (sPIN'17 §4.1).
func (n *Node) arrive(m *message, i int) {
	n.stats.PacketsReceived++
	r := &m.rx
	now := n.now()
	if i > 0 {
		if !r.arrived {
			r.held = append(r.held, int32(i))
			return
		}
		n.post(max(n.taken(m, i, n.profile.NIC.MatchPacket), r.matchAt), kindPacket, uint64(i), m)
		return
	}
	r.arrived = true
	r.started = now
	r.left = m.packets
	match := n.profile.NIC.MatchHeader
	if m.hdr.Kind == portals.OpAck || m.hdr.Kind == portals.OpReply {
		match = n.profile.NIC.MatchPacket
	}
	r.matchAt = n.taken(m, 0, match)
	n.post(r.matchAt, kindMatched, 0, m)
	for _, k := range r.held {
		n.post(r.matchAt, kindPacket, uint64(k), m)
	}
	r.held = r.held[:0]
}

// taken is when the receive side has found packet i, which has just arrived.
func (n *Node) taken(m *message, i int, match sim.Time) sim.Time {
	if n.profile.NIC.Receive == nic.Pipelined {
		return n.now() + match
	}
	from, to := m.span(i)
	n.received = max(n.now(), n.received) + n.profile.Fabric.Serial(to-from) + match
	return n.received
}

// matched lets portals decide what the header packet's message means, and deals with the packet.
func (n *Node) matched(m *message) {
	r := &m.rx
	h := &m.hdr
	r.ni = n.netifOf(h)
	n.trace.match(m, r.started, n.now())
	switch {
	case r.ni == nil:
		r.phase = phaseDiscard
		n.unknownProcess(m)
	case h.Kind == portals.OpAck:
		n.post(n.dma.write(n.now(), n.profile.DMA.EventBytes), kindAcked, 0, m)
		return
	case h.Kind == portals.OpReply:
		r.d = r.ni.port.ReplyTo(h)
		r.phase = phaseDeposit
		switch {
		case r.d.Cookie != 0 && n.answers[r.d.Cookie-1].run != nil:
			r.phase = phaseAnswer
		case r.d.Region().Length == 0: // of a swap whose initiator does not want the values before it
			r.phase = phaseDiscard
		}
	default:
		r.d = r.ni.port.Receive(h)
		n.begin(m)
	}
	n.packet(m, 0)
}

// unknownProcess drops a message for a process or an interface that is not here, and tells the initiator of a request, if it waits
// for an answer.
func (n *Node) unknownProcess(m *message) {
	h := &m.hdr
	n.stats.PacketsDropped += int64(m.packets)
	answer := portals.OpReply
	switch h.Kind {
	case portals.OpAck, portals.OpReply: // of a process that has gone: nobody waits for it
		return
	}
	n.messageLost(h, &LostMessage{
		At: n.now(), Packets: m.packets, Of: m.packets, Bytes: h.RLength, Length: h.RLength,
		Cause: fmt.Sprintf("there is no process %d with such an interface", h.Target.PID),
	})
	switch h.Kind {
	case portals.OpPut, portals.OpAtomic:
		if h.AckReq == portals.NoAck {
			return
		}
		answer = portals.OpAck
	}
	a := n.pool().get(0, int(n.profile.Fabric.MTU))
	a.hdr = *h
	a.hdr.Kind, a.hdr.Fail = answer, portals.NIUndeliverable
	a.hdr.Initiator, a.hdr.Target = h.Target, h.Initiator
	a.target = int32(h.Initiator.NID)
	a.flow = n.cluster.nextFlow()
	n.enqueue(a, 0)
}

// netifOf is the interface that a header is for, nil if the process or the interface does not exist. The newest is meant where
// a process has closed an interface and opened it again.
func (n *Node) netifOf(h *portals.Header) *NI {
	for _, ni := range slices.Backward(n.nis) {
		if ni.own.PID == h.Target.PID && ni.Kind() == h.NI {
			return ni
		}
	}
	return nil
}

// begin chooses what becomes of the packets of a matched message.
func (n *Node) begin(m *message) {
	r := &m.rx
	switch {
	case !r.d.Matched():
		r.phase = phaseDiscard
		return
	case r.d.Spin == nil:
		r.phase = phaseDeposit
		return
	}
	if h := n.memories[r.d.Spin.HPUMem-1]; h.freed {
		n.cluster.handlerFailed(HandlerError{
			Rank: int(n.rank), At: n.now(), Program: h.name, Handler: headerHandler.String(), Err: errors.New("its HPU memory was freed"),
		})
		r.phase, r.dropped, r.fail = phaseDiscard, r.d.MLength, portals.NIDropped
		return
	}
	if n.queueFull() {
		n.lose(m, handlersWaiting, m.packets, r.d.MLength)
		n.triggerFlowControl(m)
		r.phase = phaseDiscard
		return
	}
	r.handlers = n.handlersOf(r.d.Spin)
	r.handlers.memory.uses++
	n.watch.arrived(m)
	r.skip = int(min(r.d.Spin.UserHdrLen, r.d.MLength))
	if r.handlers.header.Valid() {
		r.phase = phaseHeader
		n.queueTask(task{m: m, kind: headerHandler})
		return
	}
	n.processData(m)
}

// packet deals with a packet of a message whose header has been matched.
func (n *Node) packet(m *message, i int) {
	r := &m.rx
	switch r.phase {
	case phaseHeader:
		if n.admit(m, i) {
			r.waiting = append(r.waiting, int32(i))
		}
	case phaseHandlers:
		if r.payloadBytes(m, i) == 0 {
			n.dealt(m)
		} else if n.admit(m, i) {
			n.queueTask(task{m: m, kind: payloadHandler, packet: int32(i)})
		}
	case phaseDeposit:
		n.deposit(m, i)
	case phaseAnswer:
		n.answered(m, i)
	case phaseDiscard:
		n.dealt(m)
	}
}

// dealt counts a packet as dealt with; after the last one the message goes on to its completion.
func (n *Node) dealt(m *message) {
	r := &m.rx
	r.left--
	if r.left > 0 || r.phase == phaseHeader {
		return
	}
	if r.completes {
		r.completes = false
		r.phase = phaseComplete
		n.queueTask(task{m: m, kind: completionHandler})
		return
	}
	n.complete(m)
}

// complete sends the record of the message's end to host memory, behind its data.
func (n *Node) complete(m *message) {
	m.rx.phase = phaseComplete
	if m.rx.d == nil {
		n.pool().put(m)
		return
	}
	if cookie := m.rx.d.Cookie; cookie != 0 {
		n.answerThere(&n.answers[cookie-1], m.rx.d.Fail)
	}
	if m.hdr.Kind == portals.OpGet || !m.rx.d.Matched() { // nothing to land: the reply or the refusal leaves at once
		n.finish(m)
		return
	}
	before := n.dma.landed
	at := n.dma.write(n.now(), n.profile.DMA.EventBytes)
	if m.rx.landed {
		// That its data has landed is known to its handler, and to the host, at the same moment: the record has crossed with the data.
		at = max(n.now(), before, at-n.dma.latency)
	}
	n.post(at, kindFinish, 0, m)
}

// finish has the record in host memory: events and counters follow, and what they set off.
func (n *Node) finish(m *message) {
	r := &m.rx
	out := portals.Outcome{Delivered: r.d.MLength - min(r.dropped, r.d.MLength), Fail: r.fail, Pending: r.pending}
	if r.damaged() {
		if out.Fail == portals.NIOK {
			out.Fail = portals.NIDropped
		}
		n.messageLost(&m.hdr, &LostMessage{
			At: r.lost.at, Packets: r.lost.packets, Of: m.packets, Bytes: r.lost.bytes, Length: r.d.MLength, Cause: n.describe(r.lost.cause),
		})
	}
	cookie, fail := r.d.Cookie, r.d.Fail
	if h := r.handlers.memory; h != nil {
		h.uses--
	}
	r.ni.port.Finish(r.d, out)
	if r.pending && r.open != nil {
		r.open.messageEnded(out)
	}
	if cookie != 0 {
		n.replied(cookie, out.Delivered, fail)
	}
	n.trace.finished(m, n.now())
	n.pool().put(m)
}

// acked delivers an acknowledgement to the initiator.
func (n *Node) acked(m *message) {
	m.rx.ni.port.Acked(&m.hdr)
	n.pool().put(m)
}

// deposit takes the default action for a packet: its bytes go to the place in the entry that matching decided.
func (n *Node) deposit(m *message, i int) {
	r := &m.rx
	from, to := m.span(i)
	from, to = max(from, r.skip), min(to, int(r.d.MLength))
	if from < to {
		landed := n.dma.write(n.now(), to-from)
		r.lands = landed
		n.trace.transfer(&n.dma, true, m.flow, landed-n.dma.latency, to-from)
		n.post(landed, kindDeposited, uint64(i), m)
	}
	n.dealt(m)
}

// deposited has the bytes of a packet in host memory.
func (n *Node) deposited(m *message, i int) {
	r := &m.rx
	from, to := m.span(i)
	from, to = max(from, r.skip), min(to, int(r.d.MLength))
	r.ni.port.Write(r.d, uint64(from-r.skip), m.data[from:to])
}
