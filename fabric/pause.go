package fabric

import (
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// Pause frames (PFC, IEEE 802.1Qbb) for class Requests. A switch counts, for each
// link that leads to it, the bytes that have come and not left: a packet counts
// from when its head is at the output port until its tail has left the switch.
// With more than PauseFrom it tells the sender of the link to pause, and at
// PauseUntil to resume. The sender learns it the wire's time later, ends the
// packet that is leaving, and sends no more requests: a switch keeps them in
// their queue, a node is not Ready. Answers go on. A pause frame has no bytes, and
// does not wait for the packet before it on the way back.

// pauses is the state of a network with Spec.PauseFrom, by link: of links that
// leave switches in order, then of the nodes' links.
type pauses struct {
	in  []ingress
	out []brake
}

// ingress is a link at the switch to which it leads, and belongs to that switch.
type ingress struct {
	bytes  int64 // of requests that have come by it and not left the switch
	most   int64
	sender sim.ID
	paused bool // the sender was told so last
}

// brake is a link at its sender, and belongs to it.
type brake struct {
	paused bool
	waits  bool // the node gets a KindReady when it may send again
	since  sim.Time
	total  sim.Time // of the pauses that have ended
	count  int64
}

// kindLeft reports that the tail of a request has left a switch. A is the link it
// came by, B the bytes.
const kindLeft = kindServe - 1

// turn pauses or resumes.
func (b *brake) turn(stop bool, now sim.Time) {
	if b.paused = stop; stop {
		b.since = now
		b.count++
	} else {
		b.total += now - b.since
	}
}

// length is how long the link was paused until now.
func (b *brake) length(now sim.Time) sim.Time {
	if b.paused {
		return b.total + now - b.since
	}
	return b.total
}

// held reports whether a link may not send packets of a class now.
func (n *network) held(link int, class Class) bool {
	return n.pauses != nil && class == Requests && n.pauses.out[link].paused
}

// waits reports whether a packet waits for a link that may send it.
func (t *part) waits(link int, q *outbox) bool {
	return q.counts[Answers] > 0 || q.counts[Requests] > 0 && !t.held(link, Requests)
}

// kindOf is the kind of the event at the end of a link: its wiring or, with
// pauses, its number.
func (t *part) kindOf(link int) sim.Kind {
	if t.pauses != nil {
		return sim.Kind(link)
	}
	return sim.Kind(t.kinds[link])
}

// wiringBy returns the number of the wiring of the link that an event of a kind
// came by.
func (t *part) wiringBy(kind sim.Kind) uint8 {
	switch {
	case t.pauses == nil:
		return uint8(kind)
	case int(kind) < len(t.links):
		return t.kinds[kind]
	}
	return t.ports[int(kind)-len(t.links)].kind
}

// came counts a request that has come to a switch.
func (t *part) came(at sim.ID, w *waiting) {
	i := &t.pauses.in[w.from]
	i.bytes += t.bytesOf(w.b)
	i.most = max(i.most, i.bytes)
	if i.bytes > t.spec.PauseFrom && !i.paused {
		i.paused, i.sender = true, w.src
		t.tell(at, int(w.from))
	}
}

// tell sends the sender of a link a pause frame.
func (t *part) tell(at sim.ID, link int) {
	n, i := t.network, &t.pauses.in[link]
	to, stop := t.eng, uint64(0)
	if link < len(n.links) && n.links[link].to&abroadBit != 0 {
		to = n.engineOf(int(i.sender - n.first))
	}
	if i.paused {
		stop = 1
	}
	wire := n.wirings[t.wiringBy(sim.Kind(link))].wire
	t.eng.PostTo(to, t.eng.Now()+wire, i.sender, at, kindPause, uint64(link), stop, nil)
}

// handlePause handles the events of pauses at a switch. It reports whether e is
// one.
func (t *part) handlePause(e *sim.Event) bool {
	link := int(e.A)
	switch e.Kind {
	case kindLeft:
		i := &t.pauses.in[link]
		i.bytes -= int64(e.B)
		if i.paused && i.bytes <= t.spec.PauseUntil {
			i.paused = false
			t.tell(e.Dst, link)
		}
	case kindPause:
		t.pauses.out[link].turn(e.B != 0, e.Time)
		if q := &t.outboxes[link]; !q.served && t.waits(link, q) {
			q.served = true
			t.eng.Post(max(e.Time, t.links[link].free), e.Dst, e.Dst, kindServe, uint64(link), 0, nil)
		}
	default:
		return false
	}
	return true
}

// pausable is an actor in front of a node. It takes the pause frames for its
// link.
type pausable struct {
	actor sim.Actor
	port  *port
	ready sim.Event
}

func (p *pausable) Handle(e *sim.Event) {
	if e.Kind != kindPause {
		p.actor.Handle(e)
		return
	}
	b := &p.port.pauses.out[e.A]
	if b.turn(e.B != 0, e.Time); !b.paused && b.waits {
		b.waits = false
		p.ready = *e
		p.ready.Kind, p.ready.A, p.ready.B = KindReady, uint64(Requests), 0
		p.actor.Handle(&p.ready)
	}
}

// halted reports whether a node may not send packets of a class because of a
// pause. Its end brings a KindReady.
func (p *port) halted(c Class) bool {
	link := len(p.links) + int(p.node)
	if !p.held(link, c) {
		return false
	}
	p.pauses.out[link].waits = true
	return true
}

// headroom is the most bytes that come by a link of a rate and length after
// those that are one too many: until the pause is there, and the rest of a packet.
func (s *Spec) headroom(rate sim.Rate, wire sim.Time) int64 {
	packets := int64(2)
	if s.StoreAndForward {
		packets = 3 // the first of them counts from its tail on
	}
	return rate.Bytes(2*wire+s.Switch) + packets*s.full()
}

// checkPauses checks the fields of pauses.
func (s *Spec) checkPauses() (errs []error) {
	wrong := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
	}
	if s.PauseFrom < 0 || s.PauseFrom > maxInject {
		wrong("pause_from", "want 0 (no pauses) to %d bytes, got %d", maxInject, s.PauseFrom)
	}
	if s.PauseFrom >= 0 && (s.PauseUntil < 0 || s.PauseUntil > s.PauseFrom) {
		wrong("pause_until", "want 0 to pause_from, %d bytes, got %d", s.PauseFrom, s.PauseUntil)
	}
	if len(errs) > 0 || s.PauseFrom == 0 {
		return errs
	}
	if !s.AnswersFirst {
		wrong("pause_from", "requests pause and answers do not: want answers_first")
	}
	if s.Trim != "" {
		wrong("pause_from", "with trim packets are cut where others pause: want one of both")
	}
	if s.InjectBuffer > s.full() {
		wrong("inject_buffer", "with pause_from a node chooses its next packet when its link is free: want 0 or mtu + header = %d, got %d", s.full(), s.InjectBuffer)
	}
	between := s.wiring(Link{})
	need := s.PauseFrom + max(s.headroom(s.Rate, s.Wire), s.headroom(between.rate, between.wire))
	if s.Queue != 0 && s.Queue < need {
		wrong("queue", "without room for pause_from, and for what one link brings until a pause is at its sender, packets are dropped: want 0 or at least %d bytes, got %d", need, s.Queue)
	}
	return errs
}
