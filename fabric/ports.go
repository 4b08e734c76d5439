package fabric

import "github.com/spinsim/spinsim/sim"

// Ports with two queues. A port that leaves a switch has a queue for packets of
// class Answers and for the headers of trimmed packets, which goes first, and
// one for all others. A packet that has begun to leave is not interrupted.
// Which packet leaves next is known only when the link is free, so a packet that
// waits costs one event more. Without Spec.AnswersFirst a port has one queue,
// and the link's backlog tells all that there is to know of it.

// outbox is the packets that wait for a link that leaves a switch.
type outbox struct {
	queues [Classes]queue // by class
	counts [Classes]int
	bytes  [Classes]int64 // headers included
	served bool           // there is an event for the time when the link is free
}

// Values of Spec.Trim.
const (
	TrimArriving = "arriving" // the packet that finds no room
	// it, or the one that came last before it, with the same chance: without that,
	// of two sources in step one has all its packets trimmed (NDP, SIGCOMM 2017 §3.1)
	TrimEither = "either"
)

// kindServe lets a link of a switch send its next packet. A is the link.
const kindServe = kindReturn - 1

// handlePorts is Handle with Spec.AnswersFirst.
func (t *part) handlePorts(e *sim.Event) {
	n := t.network
	if e.Kind == kindServe {
		t.serve(e.Dst, int(e.A))
		return
	}
	if n.pauses != nil && t.handlePause(e) {
		return
	}
	i, _ := n.route(e.Dst, e.A, e.B, e.Time)
	l, q := &n.links[i], &n.outboxes[i]
	w := waiting{e.Time, e.A, e.B, e.P, e.Kind, e.Src}
	if n.meters != nil {
		n.passes(i, q, &w)
	}
	class := classOf(w.b)
	if class == Requests && n.spec.Trim != "" && !n.fits(i, q, class, &w) {
		n.trim(i, q, &w)
		class = Answers
	}
	if !n.fits(i, q, class, &w) {
		n.damage.note(n, i, w.a, w.b, w.ref, w.at, QueueFull, false)
		return
	}
	if n.pauses != nil && class == Requests {
		t.came(e.Dst, &w)
	}
	held := n.held(i, class)
	if l.free <= w.at && !q.served && !held {
		t.leave(e.Dst, i, q, &w)
		return
	}
	q.push(class, w, n.bytesOf(w.b))
	if !q.served && !held {
		q.served = true
		t.eng.Post(l.free, e.Dst, e.Dst, kindServe, uint64(i), 0, nil)
	}
}

// trim makes w the header of a packet: its own or, with TrimEither, that of the
// last packet of the queue, whose place it takes.
func (n *network) trim(link int, q *outbox, w *waiting) {
	l := &q.queues[Requests]
	if k := q.counts[Requests]; k > 0 && n.spec.Trim == TrimEither && mixed(uint32(link), uint32(n.damage.links[link].trimmed), 1)&1 == 1 {
		last := &l.ring[(l.head+k-1)&(len(l.ring)-1)]
		if n.bytesOf(w.b) <= n.bytesOf(last.b) {
			q.bytes[Requests] += n.bytesOf(w.b) - n.bytesOf(last.b)
			*last, *w = *w, *last
		}
	}
	n.damage.trimmed(link, w.b)
	w.b = w.b&^(lengthMask<<32|1<<classShift) | uint64(Answers)<<classShift | trimBit
}

// push puts a packet at the end of a queue.
func (q *outbox) push(class Class, w waiting, bytes int64) {
	q.queues[class].push(w, q.counts[class])
	q.counts[class]++
	q.bytes[class] += bytes
}

// fits reports whether a packet has room in its queue. The rest of the packet
// that is leaving counts with the requests.
func (n *network) fits(link int, q *outbox, class Class, w *waiting) bool {
	if n.spec.Queue == 0 {
		return true
	}
	room := n.spec.Queue - q.bytes[class] - n.bytesOf(w.b)
	if class == Answers {
		return room >= 0
	}
	wiring := &n.wirings[n.kinds[link]]
	return wiring.rate.Time(max(0, room)) >= n.links[link].free-w.at && room >= 0
}

// serve sends the first packet of the first queue that has one.
func (t *part) serve(at sim.ID, link int) {
	q := &t.outboxes[link]
	class := Answers
	if q.counts[class] == 0 {
		if class = Requests; t.held(link, class) {
			q.served = false
			return
		}
	}
	w := q.queues[class].pop()
	q.counts[class]--
	q.bytes[class] -= t.bytesOf(w.b)
	t.leave(at, link, q, &w)
	if q.served = t.waits(link, q); q.served {
		t.eng.Post(t.links[link].free, at, at, kindServe, uint64(link), 0, nil)
	}
}

// leave puts a packet on a free link. It is marked if many bytes wait behind it.
func (t *part) leave(at sim.ID, link int, q *outbox, w *waiting) {
	n, l := t.network, &t.links[link]
	bytes, now := n.bytesOf(w.b), t.eng.Now()
	length, earliest := n.pace(link, t.wiringBy(w.from), w.at, bytes)
	l.maxWait = max(l.maxWait, now-w.at)
	leave := l.send(now, max(now, earliest), length, bytes)
	if n.pauses != nil && classOf(w.b) == Requests {
		t.eng.Post(l.free, at, at, kindLeft, uint64(w.from), uint64(bytes), nil)
	}
	if l.packets == 0 {
		n.wraps[link]++
	}
	if classOf(w.b) == Requests && n.marks(link, q.bytes[Requests]) {
		w.b |= markBit
	}
	if n.capture != nil {
		n.capture.see(link, w.a, w.b, w.ref, leave, l.free)
	}
	if w.a&fateMask != 0 || l.broken() {
		var lost bool
		if w.a, lost = n.damage.pass(n, link, w.a, w.b, w.ref, leave, l.free); lost {
			n.follow(link, bytes)
			return
		}
	}
	t.forward(at, link, t.kindOf(link)|t.paceOf(w), leave, w.a, w.b, w.ref)
	n.follow(link, bytes)
}

// marks decides whether a packet is marked that leaves bytes bytes behind (RED
// on departure): never up to MarkFrom, always from MarkTo, in between with a
// chance that grows linearly. The draw depends on the link and on how many
// packets it has sent.
func (n *network) marks(link int, bytes int64) bool {
	from, to := n.spec.MarkFrom, n.spec.MarkTo
	switch {
	case to == 0:
		return false
	case bytes >= to:
		return true
	case bytes <= from:
		return false
	}
	draw := mixed(uint32(link), n.links[link].packets, 0)
	return int64(draw)*(to-from) < (bytes-from)<<32
}
