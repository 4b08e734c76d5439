package fabric

import (
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// network gives a topology time. It is the actor of all switches and has the
// ports of all nodes. A packet that crosses a switch is one event there, when
// its head is at the output port. With bounded buffers a second event returns
// the credit (see credit.go).
type network struct {
	eng    *sim.Engine
	spec   Spec
	topo   Topology
	tree   *tree  // topo, if it is a tree
	pathed pathed // topo, if packets of a pair take different ways
	first  sim.ID // of the switches
	ports  []port // of the nodes
	absent int    // nodes that are not attached
	links  []link // they leave switches
	// the fast path: links have one rate and wire, buffers are unbounded, and
	// there are no simplifications
	plain   bool
	header  int64 // from Spec, like rate, wire and hop: the fast path needs no more
	rate    sim.Rate
	wire    sim.Time
	hop     sim.Time // wire and switch
	wirings []wiring // the different ones; 0 is for the nodes' links
	kinds   []uint8  // wiring of each link
	wraps   []uint16 // of the packet counter of each link, then of each node
	uniform bool     // links have one rate and wire
	pending []pending
	slack   sim.Time // largest backlog at which a node is still ready
	// first of the IDs from which ports post KindSent, before everything that a
	// node posts for the same time
	sourceID sim.ID
	watch    func(p Packet, from, to sim.Time)
	capture  *capture // nil: no capture

	bounded bool
	// with bounded buffers: of each link in order, then of each node's, one for
	// every class and channel
	lanes    []lane
	shift    int // a link has 1<<shift lanes, the last ones perhaps unused
	channels int
	sizes    [Classes]int64 // of buffers
	outboxes []outbox       // with Spec.AnswersFirst, of each link that leaves a switch
	pauses   *pauses        // nil: without Spec.PauseFrom
	meters   []Meter        // with Spec.Rates, likewise
	damage   *damage        // from a Faulty; nil: none

	parts   []part  // by domain
	domains []uint8 // of switches
}

// link is the sending side of a link. It has half a cache line, because a large
// network has hundreds of thousands of them. It belongs to the switch that it
// leaves, or to the node.
type link struct {
	free    sim.Time
	maxWait sim.Time
	bytes   int64
	packets uint32 // in addition to network.wraps times 2^32
	// number of a switch or, with lastBit, of a node; with brokenBit the link is
	// down at times
	to uint32
}

const (
	lastBit   = 1 << 31
	brokenBit = 1 << 30
	abroadBit = 1 << 29 // it leads to a switch of another domain
	toMask    = abroadBit - 1
)

func (l *link) last() bool   { return l.to&lastBit != 0 }
func (l *link) broken() bool { return l.to&brokenBit != 0 }
func (l *link) end() int     { return int(l.to & toMask) }

// port is a node's side of its links, one cache line. It belongs to the node.
type port struct {
	link // into the fabric, to the node's home
	*part
	id       sim.ID
	node     int32
	down     int32 // link that leads to the node
	attached bool
	waits    uint8 // bounded: classes for which a KindReady is due
	kind     uint8 // wiring of the link
	unit     bool  // the node is a unit
}

// pending is a port's state for InjectBuffer and AddGap.
type pending struct {
	readyAt [Classes]sim.Time // of the KindReady event posted last, by class
	message sim.Time          // with Spec.AddGap: the next message leaves no earlier
}

// send occupies the link for length, for a packet that arrived at at, not
// before earliest. It returns when the head leaves.
func (l *link) send(at, earliest, length sim.Time, bytes int64) sim.Time {
	start := max(earliest, l.free)
	l.maxWait = max(l.maxWait, l.free-at)
	l.free = start.Later(length)
	l.packets++
	l.bytes += bytes
	return start
}

func newNetwork(eng *sim.Engine, spec Spec, nodes int, topo Topology) (*network, error) {
	switches, links := topo.Size()
	if spec.PauseFrom > 0 {
		spec.InjectBuffer = spec.full()
	}
	n := &network{
		eng: eng, spec: spec, topo: topo,
		ports: make([]port, nodes), absent: nodes, links: make([]link, links), wirings: []wiring{spec.wiring(Link{Node: true})}, kinds: make([]uint8, links),
		wraps: make([]uint16, links+nodes), pending: make([]pending, nodes), header: int64(spec.Header), rate: spec.Rate, wire: spec.Wire, hop: spec.Wire + spec.Switch,
	}
	n.tree, _ = topo.(*tree)
	for i := range n.links {
		l := topo.Link(i)
		if l.To == nowhere {
			continue
		}
		w, err := n.wiringOf(l)
		if err != nil {
			return nil, err
		}
		n.links[i].to, n.kinds[i] = uint32(l.To), w
		if l.Node {
			n.links[i].to |= lastBit
			n.ports[l.To].down = int32(i)
		}
	}
	if err := n.ownLinks(); err != nil {
		return nil, err
	}
	n.uniform = len(n.wirings) == 1
	n.plain = n.uniform && len(spec.Buffer) == 0 && spec.Queue == 0 &&
		!spec.StoreAndForward && !spec.SwitchPerLink && !spec.WholePackets && !spec.AddGap && !spec.NoContention && !spec.AnswersFirst
	if spec.InjectBuffer > 0 {
		n.slack = spec.Rate.Time(spec.InjectBuffer - spec.full())
	}
	n.store(nodes, links)
	n.meter()
	n.pathed, _ = topo.(pathed)
	if !spec.spread() {
		n.pathed = nil
	}
	n.divide()
	n.first = eng.AddGroup(switches, topo.SwitchName, &n.parts[0])
	n.sourceID = eng.AddGroup(nodes, func(i int) string { return fmt.Sprintf("Node[%d].Port", i) }, nil)
	for i, d := range n.domains {
		if d > 0 {
			eng.Wrap(n.first+sim.ID(i), func(sim.Actor) sim.Actor { return &n.parts[d] })
		}
	}
	for i := range n.ports {
		p, home := &n.ports[i], topo.Home(i)
		p.part, p.node, p.to = &n.parts[n.domains[home]], int32(i), uint32(home)
	}
	return n, nil
}

// store gives links what holds packets, and what loses them.
func (n *network) store(nodes, links int) {
	if len(n.spec.Buffer) > 0 {
		n.bound()
	}
	if n.spec.Queue > 0 {
		n.damage = newDamage(nodes + links)
	}
	if n.spec.AnswersFirst {
		n.outboxes = make([]outbox, links)
	}
	if n.spec.PauseFrom > 0 {
		n.pauses = &pauses{make([]ingress, nodes+links), make([]brake, nodes+links)}
		n.eng.Watch(deadlocks{n})
	}
}

func (n *network) Nodes() int { return len(n.ports) }

func (n *network) Watch(f func(p Packet, from, to sim.Time)) { n.watch = f }

func (n *network) Attach(node int, id sim.ID) Port {
	p := &n.ports[node]
	if p.attached {
		panic(fmt.Sprintf("fabric: node %d is attached twice", node))
	}
	p.id, p.attached = id, true
	n.absent--
	if n.bounded {
		n.eng.Wrap(id, func(a sim.Actor) sim.Actor { return &credited{actor: a, port: p} })
	}
	if n.pauses != nil {
		n.eng.Wrap(id, func(a sim.Actor) sim.Actor { return &pausable{actor: a, port: p} })
	}
	return p
}

// Ready reports whether the node's buffer and, with bounded buffers, the one at
// the first switch have room for a packet.
func (p *port) Ready(c Class) bool {
	n := p.network
	if n.bounded && !n.laneOf(p, c).room(n.spec.full(), n.sizes[c]) {
		p.waits |= 1 << c
		return false
	}
	if n.spec.InjectBuffer == 0 {
		return true
	}
	if n.pauses != nil && p.halted(c) {
		return false
	}
	r := &n.pending[p.node]
	slack := n.slack
	if p.kind > 0 {
		slack = n.wirings[p.kind].rate.Time(n.spec.InjectBuffer - n.spec.full())
	}
	at := p.free - slack
	if at <= p.eng.Now() {
		return true
	}
	if r.readyAt[c] < at {
		r.readyAt[c] = at
		p.eng.Post(at, p.id, p.id, KindReady, uint64(c), 0, nil)
	}
	return false
}

// Send posts the packet's event at the first switch.
func (p *port) Send(pk Packet) {
	n := p.network
	if !p.attached || pk.Src != p.node || !n.reaches(pk.Dst) || uint32(pk.Bytes) > uint32(n.spec.MTU) || pk.Class >= Classes {
		panic(fmt.Sprintf("fabric: packet of %d B (MTU %d, class %d) from node %d to %d by the port of %d: too long, or an end is not attached",
			pk.Bytes, n.spec.MTU, pk.Class, pk.Src, pk.Dst, p.node))
	}
	now := p.eng.Now()
	bytes := int64(pk.Bytes) + n.header
	a, b := pk.words()
	var start, there sim.Time
	if n.plain {
		start = p.send(now, now, n.rate.Time(bytes), bytes)
		there = start
	} else {
		start, there = p.begin(now, bytes, pk.Inner)
	}
	if p.packets == 0 {
		n.wraps[len(n.links)+int(p.node)]++
	}
	end := p.free
	if !n.spec.AddGap && !p.unit {
		p.free = max(p.free, start.Later(n.spec.Gap))
	}
	if pk.Notify {
		p.eng.Post(start, p.id, n.sourceID+sim.ID(p.node), KindSent, a, b, pk.Ref)
	}
	if n.capture != nil {
		n.capture.see(len(n.links)+int(p.node), a, b, pk.Ref, start, end)
	}
	if n.watch != nil {
		n.watch(pk, start, p.free)
	}
	if pk.fate != 0 || p.broken() {
		var lost bool
		if a, lost = n.damage.pass(n, int(p.node)+len(n.links), a, b, pk.Ref, start, end); lost {
			return
		}
	}
	kind, hop := sim.Kind(p.kind)|sim.Kind(pk.Pace)<<paceShift, n.hop
	if p.kind > 0 {
		hop = n.wirings[p.kind].hop
	}
	switch {
	case n.bounded:
		kind = n.take(p, pk.Class, bytes)
	case n.pauses != nil:
		kind = sim.Kind(len(n.links) + int(p.node))
	}
	p.eng.Post(there+hop, n.first+sim.ID(p.end()), p.id, kind, a, b, pk.Ref)
}

// reaches reports whether a node is attached. If all are, it does not look at
// the port, which is in another node's cache.
func (n *network) reaches(node int32) bool {
	return uint(node) < uint(len(n.ports)) && (n.absent == 0 || n.ports[node].attached)
}

// begin puts a packet on a node's link if there are simplifications. It returns
// when the head leaves and when it begins to travel.
func (p *port) begin(now sim.Time, bytes int64, inner bool) (start, there sim.Time) {
	n := p.network
	length, earliest := n.spec.bits(n.wirings[p.kind].rate, bytes), now
	if n.spec.AddGap && !inner {
		earliest = max(now, n.pending[p.node].message)
	}
	start = p.send(now, earliest, length, bytes)
	if n.spec.AddGap {
		n.pending[p.node].message = p.free.Later(n.spec.Gap)
	}
	if n.spec.StoreAndForward {
		return start, p.free // the tail; the gap delays the node's next packet, not this one
	}
	return start, start
}

// Release returns the credit of a packet.
func (p *port) Release(pk Packet) {
	if p.bounded {
		p.giveBack(&pk)
	}
}

// pathed is a topology whose packets of a pair may take different ways.
type pathed interface {
	// routeBy is Route for a packet with a Path.
	routeBy(at, src, dst int, path uint32) int
}

// route is the topology's Route, with a direct call for trees.
func (n *network) route(at sim.ID, a, b uint64, now sim.Time) (out, channel int) {
	s, src, dst := int(at-n.first), int(a>>32&nodeMask), int(a&nodeMask)
	if n.pathed != nil {
		if n.spec.Paths == ByLoad {
			return n.lightest(s, src, dst, b, now), 0
		}
		return n.pathed.routeBy(s, src, dst, uint32(b>>pathShift)), 0
	}
	if n.tree != nil {
		return n.tree.route(uint32(s), uint32(src), uint32(dst), 0), 0
	}
	return n.topo.Route(s, src, dst)
}

// Handle passes on a packet whose head is at the output port. Kind is the
// wiring of the link it came by or, with bounded buffers, its lane.
func (t *part) Handle(e *sim.Event) {
	if t.bounded {
		t.handleBounded(e)
		return
	}
	n := t.network
	if n.outboxes != nil {
		t.handlePorts(e)
		return
	}
	i, _ := n.route(e.Dst, e.A, e.B, e.Time)
	bytes := int64(e.B>>32&lengthMask) + n.header
	l := &n.links[i]
	a, kind := e.A, sim.Kind(0)
	var leave sim.Time
	if n.plain {
		leave = l.send(e.Time, e.Time, n.rate.Time(bytes), bytes)
	} else {
		length, earliest := n.pace(i, uint8(e.Kind), e.Time, bytes)
		if n.spec.NoContention {
			l.free = 0
		}
		if n.spec.Queue > 0 && l.free-e.Time > n.wirings[n.kinds[i]].queue-length {
			n.damage.note(n, i, a, e.B, e.P, e.Time, QueueFull, false)
			return
		}
		leave = l.send(e.Time, earliest, length, bytes)
		kind = sim.Kind(n.kinds[i])
	}
	if n.capture != nil {
		n.capture.see(i, a, e.B, e.P, leave, l.free)
	}
	if l.packets == 0 {
		n.wraps[i]++
	}
	if a&fateMask != 0 || l.broken() {
		var lost bool
		if a, lost = n.damage.pass(n, i, a, e.B, e.P, leave, l.free); lost {
			n.follow(i, bytes)
			return
		}
	}
	switch {
	case !n.plain:
		t.forward(e.Dst, i, kind, leave, a, e.B, e.P)
		n.follow(i, bytes)
	case l.last():
		t.eng.Post(l.free+n.wire, n.ports[l.end()].id, e.Dst, KindArrive, a, e.B, e.P)
	case l.to&abroadBit != 0:
		t.eng.PostTo(n.engineOf(l.end()), leave+n.hop, n.first+sim.ID(l.end()), e.Dst, 0, a, e.B, e.P)
	default:
		t.eng.Post(leave+n.hop, n.first+sim.ID(l.end()), e.Dst, 0, a, e.B, e.P)
	}
}

// pace returns how long a packet takes on a link, and the earliest time at
// which it may begin. The packet came by a link of wiring in, with its head at
// the port at at. A faster link waits, so that it does not run out of bytes.
func (n *network) pace(link int, in uint8, at sim.Time, bytes int64) (length, earliest sim.Time) {
	if n.uniform {
		return n.spec.bits(n.rate, bytes), at
	}
	length = n.spec.bits(n.wirings[n.kinds[link]].rate, bytes)
	if n.spec.StoreAndForward {
		return length, at
	}
	return length, at + max(0, n.spec.bits(n.wirings[in].rate, bytes)-length)
}

// forward posts the event at the end of a link. The packet's head leaves switch
// at at leave, and its tail when the link becomes free.
func (t *part) forward(at sim.ID, link int, kind sim.Kind, leave sim.Time, a, b uint64, ref any) {
	n := t.network
	l, w := &n.links[link], &n.wirings[n.kinds[link]]
	if l.last() {
		t.eng.Post(l.free+w.wire+n.spec.behind()+n.spec.padding(int64(b>>32&lengthMask)), n.ports[l.end()].id, at, KindArrive, a, b, ref)
		return
	}
	if n.spec.StoreAndForward {
		leave = l.free
	}
	to := t.eng
	if l.to&abroadBit != 0 {
		to = n.engineOf(l.end())
	}
	t.eng.PostTo(to, leave+w.hop, n.first+sim.ID(l.end()), at, kind, a, b, ref)
}

// follow occupies a link with the control bytes after a packet of bytes bytes.
func (n *network) follow(link int, bytes int64) {
	w := &n.wirings[n.kinds[link]]
	control, idle := w.control, w.idle
	if w.word > 0 {
		const word = 16
		control += (bytes + word - 1) / word * w.word
		idle = n.spec.bits(w.rate, control)
	}
	if control > 0 {
		l := &n.links[link]
		l.free = l.free.Later(idle)
		l.bytes += control
	}
}

// behind returns, with SwitchPerLink, the traversal of a switch that counts
// with the last link.
func (s *Spec) behind() sim.Time {
	if s.SwitchPerLink {
		return s.Switch
	}
	return 0
}

// padding returns the delay of a packet of bytes bytes that counts as a whole
// one.
func (s *Spec) padding(bytes int64) sim.Time {
	if !s.WholePackets {
		return 0
	}
	return s.Serial(int(s.MTU)) - s.bits(s.Rate, bytes+int64(s.Header))
}
