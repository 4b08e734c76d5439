package fabric

import (
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// Bounded buffers. Each link has, at its far end, a buffer of its own for every class and virtual channel: a lane. Its sender knows how many
// bytes are free there, its credit; a packet whose next buffer has no room for all of it stays in the one it is in, and what comes behind
// it on the same lane of the same link stays behind it. When the tail of a packet has left the buffer, the credit travels back: one event at
// the sender, the wire's time later.

// lane is what the sender of a link knows of one buffer at its end, and the packets that wait for room there.
type lane struct {
	credit int64 // bytes that are free
	low    int64 // the least that was
	size   int64
	owner  sim.ID // the sender: a switch or a node
	head   int
	count  int
	ring   []waiting // a power of two
}

// waiting is a packet whose head is at the output port.
type waiting struct {
	at   sim.Time
	a, b uint64
	ref  any
	from sim.Kind // the lane it came by
}

// kindReturn brings a switch the credit of a packet that has left the buffer at the end of one of its links: A is the lane, B bytes.
const kindReturn = sim.KindShared - 1

// bound gives every link its lanes.
func (n *network) bound() {
	n.channels = n.topo.Channels()
	n.perLink = Classes * n.channels
	n.lanes = make([]lane, (len(n.links)+len(n.ports))*n.perLink)
	for i := range n.lanes {
		l := &n.lanes[i]
		l.size = n.spec.bufferOf(Class(i % n.perLink / n.channels))
		l.credit, l.low = l.size, l.size
		if k := i / n.perLink; k < len(n.links) {
			l.owner = n.first + sim.ID(n.topo.Link(k).From)
		}
	}
}

// laneOf returns the lane of a class of a node's link into the fabric.
func (n *network) laneOf(p *port, c Class) *lane { return &n.lanes[n.ownLane(p, c)] }

func (n *network) ownLane(p *port, c Class) int {
	return (len(n.links)+int(p.node))*n.perLink + int(c)*n.channels
}

// take uses credit of a node's link.
func (n *network) take(p *port, c Class, bytes int64) sim.Kind {
	i := n.ownLane(p, c)
	n.lanes[i].owner = p.id
	n.lanes[i].take(bytes)
	return sim.Kind(i)
}

func (l *lane) take(bytes int64) {
	l.credit -= bytes
	l.low = min(l.low, l.credit)
	if l.credit < 0 {
		panic(fmt.Sprintf("fabric: a packet of %d B was sent into a buffer that has room for %d: its sender was not ready", bytes, l.credit+bytes))
	}
}

func (l *lane) give(bytes int64) {
	l.credit += bytes
	if l.credit > l.size {
		panic(fmt.Sprintf("fabric: %d B of a buffer of %d are free: a packet was released twice", l.credit, l.size))
	}
}

// giveBack returns the credit of a packet that has arrived at a node.
func (n *network) giveBack(p *port, pk *Packet) {
	if bytes := int64(pk.Bytes) + int64(n.spec.Header); bytes > 0 {
		i := int(p.down)*n.perLink + int(pk.Class)*n.channels
		n.eng.Post(n.eng.Now()+n.wirings[n.kinds[p.down]].wire, n.lanes[i].owner, p.id, kindReturn, uint64(i), uint64(bytes), nil)
	}
}

// credited stands before a node and takes the credits of its link.
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
	n, p := c.port.net, c.port
	class := Class(int(e.A) % n.perLink / n.channels)
	l := n.laneOf(p, class)
	l.give(int64(e.B))
	if bit := uint8(1) << class; p.waits&bit != 0 && l.credit >= n.spec.full() {
		p.waits &^= bit
		c.ready = *e
		c.ready.Kind, c.ready.A, c.ready.B = KindReady, uint64(class), 0
		c.actor.Handle(&c.ready)
	}
}

// handleBounded is Handle with bounded buffers.
func (n *network) handleBounded(e *sim.Event) {
	if e.Kind == kindReturn {
		l := &n.lanes[e.A]
		l.give(int64(e.B))
		for l.count > 0 && l.credit >= n.bytesOf(l.ring[l.head].b) {
			n.cross(e.Dst, int(e.A), l.pop())
		}
		return
	}
	i, channel := n.route(e.Dst, e.A)
	k := i*n.perLink + int(e.B>>classShift&3)*n.channels + channel
	w := waiting{e.Time, e.A, e.B, e.P, e.Kind}
	if l := &n.lanes[k]; l.count > 0 || l.credit < n.bytesOf(e.B) {
		l.push(w)
		return
	}
	n.cross(e.Dst, k, w)
}

func (n *network) bytesOf(b uint64) int64 { return int64(b>>32&lengthMask) + int64(n.spec.Header) }

// cross sends a packet on, for which there is room at the end of lane k, and returns the credit of the buffer it leaves.
func (n *network) cross(at sim.ID, k int, w waiting) {
	l, bytes, now := &n.links[k/n.perLink], n.bytesOf(w.b), n.eng.Now()
	in := n.wirings[0]
	from := uint8(0)
	if i := int(w.from) / n.perLink; i < len(n.links) {
		from = n.kinds[i]
		in = n.wirings[from]
	}
	length, earliest := n.pace(k/n.perLink, from, w.at, bytes)
	l.maxWait = max(l.maxWait, now-w.at)
	leave := l.send(w.at, max(earliest, now), length, bytes)
	if l.packets == 0 {
		n.wraps[k/n.perLink]++
	}
	if bytes > 0 {
		owner, kind := n.lanes[w.from].owner, kindReturn
		if int(w.from) >= len(n.links)*n.perLink {
			kind = kindCredit
		}
		n.eng.Post(l.free+in.wire, owner, at, kind, uint64(w.from), uint64(bytes), nil)
	}
	if w.a&fateMask != 0 || l.broken() {
		var lost bool
		if w.a, lost = n.damage.pass(n, k/n.perLink, w.a, w.b, w.ref, leave, l.free); lost {
			n.follow(k / n.perLink)
			return // nothing of it reaches the buffer
		}
	}
	n.lanes[k].take(bytes)
	n.forward(at, k/n.perLink, sim.Kind(k), leave, w.a, w.b, w.ref)
	n.follow(k / n.perLink)
}

func (l *lane) push(w waiting) {
	if l.count == len(l.ring) {
		ring := make([]waiting, max(4, 2*len(l.ring)))
		for i := range l.count {
			ring[i] = l.ring[(l.head+i)%len(l.ring)]
		}
		l.ring, l.head = ring, 0
	}
	l.ring[(l.head+l.count)&(len(l.ring)-1)] = w
	l.count++
}

func (l *lane) pop() waiting {
	w := l.ring[l.head]
	l.ring[l.head] = waiting{}
	l.head = (l.head + 1) & (len(l.ring) - 1)
	l.count--
	return w
}
