package fabric

import (
	"fmt"
	"math/bits"

	"github.com/spinsim/spinsim/sim"
)

// Bounded buffers. Each link has, at its far end, a separate buffer for every
// class and virtual channel: a lane. The sender of the link keeps count of the
// free bytes there, its credit. A packet stays in its buffer until the next
// buffer has room for all of it. The packets behind it on the same lane of the
// same link stay behind it. When the tail of a packet has left the buffer, the
// credit travels back: one event at the sender, the wire's time later.

// lane is the sender's state of one buffer at the end of its link. The lanes of
// a link stand side by side, in one cache line or little more.
type lane struct {
	used  int32 // bytes in use
	most  int32 // the most so far
	count int32 // packets that wait for room
	queue int32 // number of their queue, from 1; 0: none yet
}

// queue holds the packets that wait for room in a lane.
type queue struct {
	head int
	ring []waiting // a power of two
}

// waiting is a packet whose head is at the output port.
type waiting struct {
	at   sim.Time
	a, b uint64
	ref  any
	from sim.Kind // the lane it came by
	src  sim.ID   // the sender of its event
}

// kindReturn brings a switch the credit of a packet that has left the buffer at
// the end of one of its links. A is the lane, B the bytes.
const kindReturn = sim.KindShared - 1

// bound gives every link its lanes: channels of the first class, then of the
// second. A link has room for a power of two of them.
func (n *network) bound() {
	n.channels = n.topo.Channels()
	n.bounded, n.shift = true, bits.Len(uint(Classes*n.channels-1))
	n.lanes = make([]lane, (len(n.links)+len(n.ports))<<n.shift)
	for c := range n.sizes {
		n.sizes[c] = n.spec.bufferOf(Class(c))
	}
}

// laneOf returns the lane of a class of a node's link into the fabric.
func (n *network) laneOf(p *port, c Class) *lane { return &n.lanes[n.ownLane(p, c)] }

func (n *network) ownLane(p *port, c Class) int {
	return (len(n.links)+int(p.node))<<n.shift + int(c)*n.channels
}

// take uses credit of a node's link.
func (n *network) take(p *port, c Class, bytes int64) sim.Kind {
	i := n.ownLane(p, c)
	n.lanes[i].take(bytes, n.sizes[c])
	return sim.Kind(i)
}

// room reports whether bytes fit into a buffer of a size.
func (l *lane) room(bytes, size int64) bool { return int64(l.used)+bytes <= size }

func (l *lane) take(bytes, size int64) {
	if !l.room(bytes, size) {
		panic(fmt.Sprintf("fabric: a packet of %d B was sent into a buffer that has room for %d: its sender was not ready", bytes, size-int64(l.used)))
	}
	l.used += int32(bytes)
	l.most = max(l.most, l.used)
}

func (l *lane) give(bytes int64) {
	if l.used -= int32(bytes); l.used < 0 {
		panic(fmt.Sprintf("fabric: %d B more of a buffer are free than it has: a packet was released twice", -l.used))
	}
}

// giveBack returns the credit of a packet that has arrived at a node.
func (p *port) giveBack(pk *Packet) {
	n := p.network
	if bytes := int64(pk.Bytes) + int64(n.spec.Header); bytes > 0 {
		i := int(p.down)<<n.shift + int(pk.Class)*n.channels
		p.eng.Post(p.eng.Now()+n.wirings[n.kinds[p.down]].wire, n.first+sim.ID(p.end()), p.id, kindReturn, uint64(i), uint64(bytes), nil)
	}
}

// credited is an actor in front of a node. It takes the credits of its link.
type credited struct {
	actor sim.Actor
	port  *port
	ready sim.Event
}

func (c *credited) Handle(e *sim.Event) {
	if e.Kind != kindCredit {
		c.actor.Handle(e)
		return
	}
	n, p := c.port.network, c.port
	class := Class(int(e.A) & (1<<n.shift - 1) / n.channels)
	l := n.laneOf(p, class)
	l.give(int64(e.B))
	if bit := uint8(1) << class; p.waits&bit != 0 && l.room(n.spec.full(), n.sizes[class]) {
		p.waits &^= bit
		c.ready = *e
		c.ready.Kind, c.ready.A, c.ready.B = KindReady, uint64(class), 0
		c.actor.Handle(&c.ready)
	}
}

// handleBounded is Handle with bounded buffers.
func (t *part) handleBounded(e *sim.Event) {
	n := t.network
	if e.Kind == kindReturn {
		l := &n.lanes[e.A]
		l.give(int64(e.B))
		for l.count > 0 {
			q := &t.queues[l.queue]
			if w := &q.ring[q.head]; !l.room(n.bytesOf(w.b), n.sizes[classOf(w.b)]) {
				break
			}
			l.count--
			t.cross(e.Dst, int(e.A), q.pop())
		}
		return
	}
	i, channel := n.route(e.Dst, e.A, e.B, e.Time)
	class := classOf(e.B)
	k := i<<n.shift + int(class)*n.channels + channel
	w := waiting{e.Time, e.A, e.B, e.P, e.Kind, e.Src}
	if l := &n.lanes[k]; l.count > 0 || !l.room(n.bytesOf(e.B), n.sizes[class]) {
		t.push(l, w)
		return
	}
	t.cross(e.Dst, k, w)
}

func classOf(b uint64) Class { return Class(b >> classShift & 1) }

func (n *network) bytesOf(b uint64) int64 { return int64(b>>32&lengthMask) + int64(n.spec.Header) }

// cross sends a packet on. There is room for it at the end of lane k. It also
// returns the credit of the buffer that the packet leaves.
func (t *part) cross(at sim.ID, k int, w waiting) {
	n, out := t.network, k>>t.shift
	l, bytes, now := &n.links[out], n.bytesOf(w.b), t.eng.Now()
	var from uint8
	back, sender := kindCredit, t.eng
	if i := int(w.from) >> n.shift; i < len(n.links) {
		from, back = n.kinds[i], kindReturn
		// the link is in cache lines of another switch
		if len(n.parts) > 1 && n.links[i].to&abroadBit != 0 {
			sender = n.engineOf(int(w.src - n.first))
		}
	} else {
		from = n.ports[i-len(n.links)].kind
	}
	length, earliest := n.pace(out, from, w.at, bytes)
	l.maxWait = max(l.maxWait, now-w.at)
	leave := l.send(w.at, max(earliest, now), length, bytes)
	if n.capture != nil {
		n.capture.see(out, w.a, w.b, w.ref, leave, l.free)
	}
	if l.packets == 0 {
		n.wraps[out]++
	}
	if bytes > 0 {
		t.eng.PostTo(sender, l.free+n.wirings[from].wire, w.src, at, back, uint64(w.from), uint64(bytes), nil)
	}
	if w.a&fateMask != 0 || l.broken() {
		var lost bool
		if w.a, lost = n.damage.pass(n, out, w.a, w.b, w.ref, leave, l.free); lost {
			n.follow(out, bytes)
			return // nothing of it reaches the buffer
		}
	}
	n.lanes[k].take(bytes, n.sizes[classOf(w.b)])
	t.forward(at, out, sim.Kind(k), leave, w.a, w.b, w.ref)
	n.follow(out, bytes)
}

// push puts a packet at the end of a lane's queue.
func (t *part) push(l *lane, w waiting) {
	if l.queue == 0 {
		l.queue = int32(len(t.queues))
		t.queues = append(t.queues, queue{})
	}
	t.queues[l.queue].push(w, int(l.count))
	l.count++
}

// push puts a packet behind the count packets that wait.
func (q *queue) push(w waiting, count int) {
	if count == len(q.ring) {
		ring := make([]waiting, max(4, 2*count))
		for i := range count {
			ring[i] = q.ring[(q.head+i)%count]
		}
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+count)&(len(q.ring)-1)] = w
}

// pop takes the first packet.
func (q *queue) pop() waiting {
	w := q.ring[q.head]
	q.ring[q.head] = waiting{}
	q.head = (q.head + 1) & (len(q.ring) - 1)
	return w
}
