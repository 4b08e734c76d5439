package fabric

import (
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// tree is a k-ary n-tree of radix-k switches, m = k/2. Levels count from 0 at the
// nodes; the switches of the top level have k ports down, the others m down and m
// up. A crossbar is a tree of one level whose radix is the number of nodes.
//
// Written in digits, node x is (d[n-1] … d[1] d[0]), base m but for d[n-1], base
// k. A switch of level l is named by the digits above l of the nodes below it and
// by the l choices made on the way up to it. The choice at level l is d[l] of the
// destination (D-mod-k): packets to one node share one path down, and
// packets to different nodes below one edge switch come down different ones.
type tree struct {
	eng        *sim.Engine
	spec       Spec
	switchRate sim.Rate
	oneRate    bool
	half       uint32   // m; for a crossbar without meaning
	span       []uint32 // [l] is the number of nodes below a switch of level l-1
	levels     []level
	nodes      []node
	ports      []port
	slack      sim.Time // backlog at which a node is still ready
	behind     sim.Time // with Spec.SwitchPerLink: traversal of the switch counted with the last link
}

// level is the switches of one level that have a node below them.
type level struct {
	count     int
	first     sim.ID
	firstPort int
	width     int // ports of each switch; at the top only those with a node below
}

// node is a node's side of its link into the fabric; it belongs to the node.
type node struct {
	id       sim.ID
	attached bool
	readyAt  sim.Time // of the KindReady event posted last
	message  sim.Time // with Spec.AddGap: the next message leaves no earlier
	tx       port
}

// port is the sending side of a link.
type port struct {
	free    sim.Time
	maxWait sim.Time
	packets int64
	bytes   int64
}

// send occupies the link for a packet that is there at at and takes length, not
// before earliest. It returns when the head leaves.
func (p *port) send(at, earliest, length sim.Time, bytes int64) sim.Time {
	start := max(earliest, p.free)
	p.maxWait = max(p.maxWait, p.free-at)
	p.free = start.Later(length)
	p.packets++
	p.bytes += bytes
	return start
}

func newTree(eng *sim.Engine, spec Spec, count int) *tree {
	t := &tree{eng: eng, spec: spec, switchRate: spec.SwitchRate, nodes: make([]node, count)}
	if t.switchRate.IsZero() {
		t.switchRate = spec.Rate
	}
	t.oneRate = t.switchRate == spec.Rate
	radix := spec.Radix
	if spec.Kind == Crossbar {
		radix = count
	}
	t.half = uint32(radix / 2)
	ways := 1 // m^l: nodes below a port down, and ways up to a switch, of level l
	t.span = []uint32{1}
	for ; ways*radix < count; ways *= radix / 2 {
		t.addLevel(ways, ways*radix/2, radix)
	}
	t.addLevel(ways, ways*radix, (count+ways-1)/ways)

	total, ports := 0, 0
	for _, l := range t.levels {
		total += l.count
		ports += l.count * l.width
	}
	t.ports = make([]port, ports)
	base := eng.AddGroup(total, t.switchName, t)
	for l := range t.levels {
		t.levels[l].first += base
	}
	if spec.InjectBuffer > 0 {
		t.slack = spec.Rate.Time(spec.InjectBuffer - int64(spec.MTU) - int64(spec.Header))
	}
	if spec.SwitchPerLink {
		t.behind = spec.Switch
	}
	return t
}

// addLevel adds the switches of the next level, each of which has below nodes
// below it.
func (t *tree) addLevel(ways, below, width int) {
	next := level{count: (len(t.nodes) + below - 1) / below * ways, width: width}
	if n := len(t.levels); n > 0 {
		last := &t.levels[n-1]
		next.first = last.first + sim.ID(last.count)
		next.firstPort = last.firstPort + last.count*last.width
	}
	t.span = append(t.span, uint32(below))
	t.levels = append(t.levels, next)
}

func (t *tree) Nodes() int { return len(t.nodes) }

func (t *tree) Attach(n int, id sim.ID) {
	if t.nodes[n].attached {
		panic(fmt.Sprintf("fabric: node %d is attached twice", n))
	}
	t.nodes[n].id, t.nodes[n].attached = id, true
}

func (t *tree) Ready(n int) bool {
	if t.spec.InjectBuffer == 0 {
		return true
	}
	node, now := &t.nodes[n], t.eng.Now()
	at := node.tx.free - t.slack
	if at <= now {
		return true
	}
	if node.readyAt < at {
		node.readyAt = at
		t.eng.Post(at, node.id, node.id, KindReady, 0, 0, nil)
	}
	return false
}

func (t *tree) Inject(p Packet) sim.Time {
	node := &t.nodes[p.Src]
	if !node.attached || !t.nodes[p.Dst].attached || uint32(p.Bytes) > uint32(t.spec.MTU) {
		panic(fmt.Sprintf("fabric: packet of %d B (MTU %d) from node %d to %d: too long, or an end is not attached",
			p.Bytes, t.spec.MTU, p.Src, p.Dst))
	}
	now := t.eng.Now()
	bytes := int64(p.Bytes) + int64(t.spec.Header)
	length, earliest := t.spec.bits(t.spec.Rate, bytes), now
	if t.spec.AddGap && p.Seq == 0 {
		earliest = max(now, node.message)
	}
	start := node.tx.send(now, earliest, length, bytes)
	there := start
	if t.spec.StoreAndForward {
		there = node.tx.free // the tail; the gap keeps back the node's next packet, not this one
	}
	if t.spec.AddGap {
		node.message = node.tx.free.Later(t.spec.Gap)
	} else {
		node.tx.free = max(node.tx.free, start.Later(t.spec.Gap))
	}
	src, dst := uint32(p.Src), uint32(p.Dst)
	turn := t.turn(src, dst)
	a, b := p.words()
	t.eng.Post(there+t.spec.Wire+t.spec.Switch, t.at(0, src, dst), node.id, sim.Kind(turn)<<8, a, b, p.Ref)
	return node.tx.free
}

// turn returns the lowest level with a switch above both nodes: where the path
// turns down.
func (t *tree) turn(src, dst uint32) int {
	l := 0
	for src/t.span[l+1] != dst/t.span[l+1] {
		l++
	}
	return l
}

// at returns the switch of level l that is above node x and on the way to dst.
func (t *tree) at(l int, x, dst uint32) sim.ID {
	ways := t.span[l]
	return t.levels[l].first + sim.ID(x/t.span[l+1]*ways+dst%ways)
}

// route returns the level and the output port of the hop-th switch on the way to
// dst, for a path that turns at level turn, and whether that port leads up. Ports
// up come after those down.
func (t *tree) route(turn, hop int, dst uint32) (level int, port uint32, up bool) {
	if hop < turn {
		return hop, t.half + dst/t.span[hop]%t.half, true
	}
	level = 2*turn - hop
	return level, dst % t.span[level+1] / t.span[level], false
}

// Handle passes a packet on whose head is at the output port: Kind holds the
// level at which its path turns and how many switches it has passed.
func (t *tree) Handle(e *sim.Event) {
	src, dst := uint32(e.A>>32), uint32(e.A)
	bytes := int64(e.B>>32) + int64(t.spec.Header)
	turn, hop := int(e.Kind>>8), int(e.Kind&0xff)
	level, out, up := t.route(turn, hop, dst)
	last := hop == 2*turn

	length, earliest := t.spec.bits(t.switchRate, bytes), e.Time
	if !t.oneRate {
		in := length
		if hop == 0 {
			in = t.spec.bits(t.spec.Rate, bytes)
		}
		if last {
			length = t.spec.bits(t.spec.Rate, bytes)
		}
		if !t.spec.StoreAndForward {
			// A faster link waits, lest it run out of bytes.
			earliest += max(0, in-length)
		}
	}
	link := t.port(level, e.Dst, out)
	if t.spec.NoContention {
		link.free = 0
	}
	leave := link.send(e.Time, earliest, length, bytes)
	if last {
		t.eng.Post(link.free+t.spec.Wire+t.behind+t.padding(bytes), t.nodes[dst].id, e.Dst, KindArrive, e.A, e.B, e.P)
		return
	}
	if t.spec.StoreAndForward {
		leave = link.free
	}
	from, to := dst, level-1
	if up {
		from, to = src, level+1
	}
	t.eng.Post(leave+t.spec.Wire+t.spec.Switch, t.at(to, from, dst), e.Dst, e.Kind+1, e.A, e.B, e.P)
}

// padding is how much later a packet arrives for being counted as a whole one.
func (t *tree) padding(bytes int64) sim.Time {
	if !t.spec.WholePackets {
		return 0
	}
	return t.spec.Serial(int(t.spec.MTU)) - t.spec.bits(t.spec.Rate, bytes)
}

func (t *tree) port(level int, id sim.ID, out uint32) *port {
	l := &t.levels[level]
	return &t.ports[l.firstPort+int(id-l.first)*l.width+int(out)]
}
