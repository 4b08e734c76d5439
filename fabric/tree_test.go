package fabric

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/sim"
)

// spinDis has the figures of sPIN'17 §4: 20 ps/B, 33.4 ns of wire, 50 ns a switch.
func spinDis() Spec {
	return Spec{Kind: FatTree, Radix: 36, Rate: sim.NewRate(20, 1), Wire: 33400, Switch: 50000, MTU: 4096}
}

type arrival struct {
	at   sim.Time
	p    Packet
	kind sim.Kind
}

// sink is every node of a fabric: it injects the packets of a test and keeps
// the packets that arrive.
type sink struct {
	eng   *sim.Engine
	f     Fabric
	first sim.ID
	ports []Port
	held  [][Classes][]Packet // a node sends them when its port is ready
	keep  bool                // packets that arrive stay in the buffer
	got   []arrival
	ready []sim.Time
}

const kindInject sim.Kind = 7 // B: bytes and sequence, as in an arrival

func (s *sink) Handle(e *sim.Event) {
	switch e.Kind {
	case KindReady:
		s.ready = append(s.ready, e.Time)
		if s.held != nil {
			s.sendHeld(int(e.Dst-s.first), Class(e.A))
		}
	case kindInject:
		p := Unpack(e)
		s.ports[p.Src].Send(p)
	default:
		p := Unpack(e)
		s.got = append(s.got, arrival{e.Time, p, e.Kind})
		if !s.keep {
			s.ports[p.Dst].Release(p)
		}
	}
}

// inject makes the source inject p at time at.
func (s *sink) inject(at sim.Time, p Packet) {
	a, b := p.words()
	src := s.first + sim.ID(p.Src)
	s.eng.Post(at, src, src, kindInject, a, b, p.Ref)
}

func (s *sink) run(t require.TestingT) []arrival {
	require.NoError(t, s.eng.Run())
	return s.got
}

// build returns the nodes of a new fabric; around, if not nil, decorates it.
func build(t require.TestingT, spec Spec, nodes int, around func(*sim.Engine, Fabric) Fabric) *sink {
	return buildOn(t, func(eng *sim.Engine) (Fabric, error) {
		f, err := New(eng, spec, nodes)
		if around != nil {
			f = around(eng, f)
		}
		return f, err
	})
}

// buildOn returns the nodes of a fabric.
func buildOn(t require.TestingT, network func(*sim.Engine) (Fabric, error)) *sink {
	s := &sink{eng: sim.New(1)}
	var err error
	s.f, err = network(s.eng)
	require.NoError(t, err)
	s.first = s.eng.AddGroup(s.f.Nodes(), func(i int) string { return fmt.Sprintf("Node[%d]", i) }, s)
	for i := range s.f.Nodes() {
		s.ports = append(s.ports, s.f.Attach(i, s.first+sim.ID(i)))
	}
	return s
}

// A radix-4 tree of 4 levels holds 4·2³ = 32 nodes; nodes below one switch of
// level l share x / 2^(l+1).
var pairs = []struct{ src, dst, hops int }{
	{0, 0, 1}, {0, 1, 1}, {0, 2, 3}, {3, 1, 3}, {0, 4, 5}, {7, 0, 5}, {0, 8, 7}, {0, 31, 7}, {31, 5, 7},
}

// hops·switch + (hops+1)·wire + bytes·G, and n packets at the rate of the link.
func TestLatencyIsTheClosedForm(t *testing.T) {
	spec := spinDis()
	spec.Radix, spec.Header = 4, 16
	for _, c := range pairs {
		for _, bytes := range []int32{0, 1, 256, 4096} {
			const n = 5
			s := build(t, spec, 32, nil)
			for range n {
				s.ports[int32(c.src)].Send(Packet{Src: int32(c.src), Dst: int32(c.dst), Bytes: bytes})
			}
			length := sim.Time(bytes+16) * 20
			want := sim.Time(c.hops)*50000 + sim.Time(c.hops+1)*33400 + length
			got := s.run(t)
			require.Len(t, got, n)
			for i := range n {
				require.Equal(t, want+sim.Time(i)*length, got[i].at, "%d to %d", c.src, c.dst)
			}
			require.Equal(t, want, s.f.Latency(c.src, c.dst, bytes))
			require.Len(t, s.f.Path(c.src, c.dst), c.hops+1)
		}
	}
}

// Every switch waits for the tail: one serialisation for each link.
func TestStoreAndForward(t *testing.T) {
	spec := spinDis()
	spec.Radix, spec.StoreAndForward, spec.SwitchRate = 4, true, sim.NewRate(5, 1)
	for _, c := range pairs {
		s := build(t, spec, 32, nil)
		s.ports[int32(c.src)].Send(Packet{Src: int32(c.src), Dst: int32(c.dst), Bytes: 1000})
		want := sim.Time(c.hops)*50000 + sim.Time(c.hops+1)*33400 + 2*20000 + sim.Time(c.hops-1)*5000
		require.Equal(t, want, s.run(t)[0].at)
		require.Equal(t, want, s.f.Latency(c.src, c.dst, 1000))
	}
}

// The gap keeps a node's packets apart and delays none. Of n small packets,
// each 20 ns long and sent 100 ns after the one before, the i-th arrives i gaps
// after the first, and the first arrives as on an empty network.
func TestStoreAndForwardDoesNotAddTheGap(t *testing.T) {
	for _, gap := range []sim.Time{0, 10000, 20000, 100000} {
		spec := spinDis()
		spec.Radix, spec.StoreAndForward, spec.Gap = 4, true, gap
		for _, c := range pairs {
			s := build(t, spec, 32, nil)
			for range 5 {
				s.ports[int32(c.src)].Send(Packet{Src: int32(c.src), Dst: int32(c.dst), Bytes: 1000})
			}
			first := sim.Time(c.hops)*50000 + sim.Time(c.hops+1)*33400 + sim.Time(c.hops+1)*20000
			for i, a := range s.run(t) {
				require.Equal(t, first+sim.Time(i)*max(gap, 20000), a.at)
			}
			require.Equal(t, first, s.f.Latency(c.src, c.dst, 1000))
		}
	}
}

// Links between switches are 4 times slower or 4 times faster than the nodes',
// 1000 B over 3 switches. Slower: the last link may start when it will not run
// out of bytes, 80 − 20 ns after the head; it ends 20 ns later. Faster: the
// first link between switches waits 20 − 5 ns, and the last takes 20.
func TestFasterLinkWaitsForSlower(t *testing.T) {
	for rate, extra := range map[sim.Rate]sim.Time{
		sim.NewRate(80, 1): 60000 + 20000,
		sim.NewRate(5, 1):  15000 + 20000,
	} {
		spec := spinDis()
		spec.Radix, spec.SwitchRate = 4, rate
		s := build(t, spec, 32, nil)
		s.ports[0].Send(Packet{Src: 0, Dst: 2, Bytes: 1000})
		want := 3*sim.Time(50000) + 4*33400 + extra
		require.Equal(t, want, s.run(t)[0].at)
		require.Equal(t, want, s.f.Latency(0, 2, 1000))
	}
}

// Two nodes send to a third at full rate: packets take turns, each flow gets
// half, and the link is never idle.
func TestTwoFlowsShareALink(t *testing.T) {
	for _, kind := range []string{FatTree, Crossbar} {
		spec := spinDis()
		if spec.Kind = kind; kind == Crossbar {
			spec.Radix = 0
		}
		const n = 100
		s := build(t, spec, 3, nil)
		for i := range uint32(n) {
			s.ports[0].Send(Packet{Src: 0, Dst: 2, Bytes: 4096, Seq: i})
			s.ports[1].Send(Packet{Src: 1, Dst: 2, Bytes: 4096, Seq: i})
		}
		first := s.f.Latency(0, 2, 4096)
		for i, a := range s.run(t) {
			require.Equal(t, arrival{first + sim.Time(i)*81920, Packet{Src: int32(i % 2), Dst: 2, Bytes: 4096, Seq: uint32(i / 2)}, KindArrive}, a)
		}
		links := s.f.Links()
		require.Len(t, links, 3)
		// The last packet finds as many ahead of it as its own flow has sent: 100.
		require.Equal(t, LinkStats{
			Name: "Switch[0][0].Down[2]", Packets: 200, Bytes: 200 * 4096,
			Busy: 200 * 81920, MaxWait: 100 * 81920, MaxQueue: 100 * 4096,
		}, links[2])
		require.Equal(t, LinkStats{
			Name: "Node[1].Tx", Packets: 100, Bytes: 100 * 4096,
			Busy: 100 * 81920, MaxWait: 99 * 81920, MaxQueue: 99 * 4096,
		}, links[1])
	}
}

// D-mod-k: with a shift by whole switches, every node sends and no link has two
// flows.
func TestShiftPermutationIsFreeOfContention(t *testing.T) {
	spec := spinDis()
	spec.Radix = 8 // 4·8 = 32 nodes on two levels
	s := build(t, spec, 32, nil)
	for i := range int32(32) {
		s.ports[i].Send(Packet{Src: i, Dst: (i + 12) % 32, Bytes: 4096})
	}
	want := s.f.Latency(0, 12, 4096)
	for _, a := range s.run(t) {
		require.Equal(t, want, a.at)
	}
	for _, l := range s.f.Links() {
		require.Equal(t, int64(1), l.Packets, l.Name)
		require.Zero(t, l.MaxWait)
	}
}

// The smallest tree that holds the nodes: 36, 648, 11,664 and 209,952 of radix
// 36.
func TestTreeIsNoHigherThanNeeded(t *testing.T) {
	for nodes, links := range map[int]int{1: 2, 36: 2, 37: 4, 648: 4, 649: 6, 11664: 6, 11665: 8, 209952: 8, 209953: 10} {
		f, err := New(sim.New(0), spinDis(), nodes)
		require.NoError(t, err)
		require.Equal(t, nodes, f.Nodes())
		require.Len(t, f.Path(0, nodes-1), links, "%d nodes", nodes)
	}
}

// Every path of trees of one to four levels follows the cables: port Up[j] of the
// switch (level l, high·mˡ + low) leads to the switch (l+1, high/m·mˡ⁺¹ + j·mˡ + low),
// whose port Down[high mod m] leads back.
func TestPathsFollowTheCables(t *testing.T) {
	for _, c := range []struct{ radix, nodes int }{{4, 3}, {4, 8}, {4, 16}, {4, 32}, {4, 27}, {6, 54}, {8, 100}} {
		spec := spinDis()
		spec.Radix = c.radix
		s := build(t, spec, c.nodes, nil)
		top := len(s.f.Path(0, c.nodes-1))/2 - 1
		for src := range c.nodes {
			for dst := range c.nodes {
				walk(t, s.f.Path(src, dst), src, dst, c.radix/2, top)
			}
		}
	}
}

func walk(t *testing.T, path []Hop, src, dst, m, top int) {
	require.Equal(t, fmt.Sprintf("Node[%d].Tx", src), path[0].Link)
	power := func(l int) (p int) {
		p = 1
		for range l {
			p *= m
		}
		return p
	}
	level, at := 0, src/m
	if top == 0 {
		at = 0
	}
	down := false
	for i, hop := range path[1:] {
		var l, s, port int
		name := strings.NewReplacer(".Up", ".U", ".Down", ".D").Replace(hop.Link)
		var direction rune
		_, err := fmt.Sscanf(name, "Switch[%d][%d].%c[%d]", &l, &s, &direction, &port)
		require.NoError(t, err)
		require.Equal(t, []int{level, at}, []int{l, s}, "%d to %d, hop %d", src, dst, i)
		high, low := at/power(level), at%power(level)
		if direction == 'U' {
			require.False(t, down, "no way up after one down")
			require.True(t, level < top && port < m)
			at = high/m*power(level+1) + port*power(level) + low
			if level+1 == top {
				at = port*power(level) + low
			}
			level++
			continue
		}
		down = true
		if level == 0 {
			node := at*m + port
			require.Equal(t, dst, node, "from %d", src)
			require.Equal(t, len(path)-2, i)
			return
		}
		child := high*m + port
		at = child*power(level-1) + low%power(level-1)
		level--
	}
	t.Fatalf("the path from %d to %d ends inside", src, dst)
}

func TestInjectBuffer(t *testing.T) {
	spec := spinDis()
	spec.MTU, spec.InjectBuffer = 1000, 2500 // room for 2.5 packets of 20 ns
	s := build(t, spec, 2, nil)
	p := Packet{Src: 0, Dst: 1, Bytes: 1000}
	require.True(t, s.ports[0].Ready(Requests))
	s.ports[0].Send(p)
	require.True(t, s.ports[0].Ready(Requests), "1000 B of 2500 are in use")
	s.ports[0].Send(p)
	require.False(t, s.ports[0].Ready(Requests), "2000 B are in use")
	require.False(t, s.ports[0].Ready(Requests), "asking twice brings one event")
	require.True(t, s.ports[1].Ready(Requests))
	require.NoError(t, s.eng.RunUntil(9999))
	require.False(t, s.ports[0].Ready(Requests))
	require.Empty(t, s.ready)
	require.NoError(t, s.eng.RunUntil(10000))
	require.Equal(t, []sim.Time{10000}, s.ready, "500 B are sent, 1500 in use: 1000 fit")
	require.True(t, s.ports[0].Ready(Requests))
	require.Len(t, s.run(t), 2)
	require.Equal(t, []sim.Time{10000}, s.ready)
}

func TestMisuse(t *testing.T) {
	s := build(t, spinDis(), 2, nil)
	require.Panics(t, func() { s.f.Attach(0, s.first) })
	require.Panics(t, func() { s.ports[0].Send(Packet{Bytes: 4097}) })
	require.Panics(t, func() { s.ports[0].Send(Packet{Bytes: -1}) })
	require.Panics(t, func() { s.ports[0].Send(Packet{Dst: 2}) })
	bare, err := New(sim.New(0), spinDis(), 2)
	require.NoError(t, err)
	port := bare.Attach(0, 0)
	require.PanicsWithValue(t, "fabric: packet of 1 B (MTU 4096, class 0) from node 0 to 1 by the port of 0: too long, or an end is not attached",
		func() { port.Send(Packet{Dst: 1, Bytes: 1}) })
	require.Panics(t, func() { s.ports[0].Send(Packet{Src: 1}) }, "the port of another node")
	require.Panics(t, func() { s.ports[0].Send(Packet{Class: Classes}) })
}

func TestPacketsAllocateNothing(t *testing.T) {
	for _, kind := range []string{FatTree, Crossbar} {
		spec := spinDis()
		if spec.Kind = kind; kind == Crossbar {
			spec.Radix = 0
		}
		p := newPump(t, spec, 40)
		require.Zero(t, testing.AllocsPerRun(20, func() { p.run(t, 1000) }), kind)
		spec.Header, spec.Queue, spec.AnswersFirst, spec.Trim, spec.MarkTo = 64, 3*(4096+64), true, TrimEither, 4096
		p = newPump(t, spec, 40)
		p.run(t, 10_000)
		require.Zero(t, testing.AllocsPerRun(20, func() { p.run(t, 1000) }), "ports of %s", kind)
	}
}

// Simplifications of message-level simulators, one at a time. Four nodes at one
// switch: two links, one switch.
func TestMessageLevelSimplifications(t *testing.T) {
	arrivals := func(change func(*Spec), packets ...Packet) (times []sim.Time) {
		spec := spinDis()
		spec.Gap = 6700
		change(&spec)
		s := build(t, spec, 4, nil)
		for _, p := range packets {
			s.ports[p.Src].Send(p)
		}
		for _, a := range s.run(t) {
			times = append(times, a.at)
		}
		if len(packets) == 1 {
			require.Equal(t, times[0], s.f.Latency(int(packets[0].Src), int(packets[0].Dst), packets[0].Bytes))
			sum := sim.Time(0)
			for _, h := range s.f.Path(int(packets[0].Src), int(packets[0].Dst)) {
				sum += h.Wait + h.Wire
			}
			require.Less(t, times[0]-sum, 82*sim.Nanosecond, "what the path does not say is serialisation")
		}
		return times
	}
	const net = 2*33_400 + 50_000
	short := Packet{Src: 0, Dst: 1, Bytes: 8}
	require.Equal(t, []sim.Time{net + 160}, arrivals(func(*Spec) {}, short))
	require.Equal(t, []sim.Time{net + 50_000 + 160}, arrivals(func(s *Spec) { s.SwitchPerLink = true }, short), "two links, two switches")
	require.Equal(t, []sim.Time{net + 81_920}, arrivals(func(s *Spec) { s.WholePackets = true }, short), "4,096 B of 20 ps")
	require.Equal(t, []sim.Time{net + 140}, arrivals(func(s *Spec) { s.AddGap = true }, short), "7 B of 20 ps")

	// Two messages of one packet: the second begins g = 6.7 ns after the first
	// has begun, or has ended.
	require.Equal(t, []sim.Time{net + 160, net + 6700 + 160}, arrivals(func(*Spec) {}, short, short))
	require.Equal(t, []sim.Time{net + 140, net + 140 + 6700 + 140}, arrivals(func(s *Spec) { s.AddGap = true }, short, short))
	// Padding delays, but does not occupy.
	require.Equal(t, []sim.Time{net + 81_920, net + 6700 + 81_920}, arrivals(func(s *Spec) { s.WholePackets = true }, short, short))
	// Packets of one message have no gap between them.
	first, second := Packet{Src: 0, Dst: 1, Bytes: 4096}, Packet{Src: 0, Dst: 1, Bytes: 4096, Inner: true}
	require.Equal(t, []sim.Time{net + 81_900, net + 2*81_900}, arrivals(func(s *Spec) { s.AddGap = true }, first, second))

	// Two nodes to a third: the link to it takes one packet after the other, or
	// both at once.
	a, b := Packet{Src: 0, Dst: 2, Bytes: 4096}, Packet{Src: 1, Dst: 2, Bytes: 4096}
	require.Equal(t, []sim.Time{net + 81_920, net + 2*81_920}, arrivals(func(*Spec) {}, a, b))
	require.Equal(t, []sim.Time{net + 81_920, net + 81_920}, arrivals(func(s *Spec) { s.NoContention = true }, a, b))
}

// Five packets of 4,096 B come to the port of one node at a time, a header of 16
// each. A queue of 12,336 B has room for the one that leaves and two more. The
// fourth and fifth are dropped.
func TestTailDrop(t *testing.T) {
	spec := spinDis()
	spec.Kind, spec.Header, spec.Queue = Crossbar, 16, 3*(4096+16)
	s := build(t, spec, 6, nil)
	for i := range int32(5) {
		s.ports[i+1].Send(Packet{Src: i + 1, Dst: 0, Bytes: 4096, Seq: uint32(i)})
	}
	got := s.run(t)
	require.Len(t, got, 3)
	for i, a := range got {
		require.EqualValues(t, i, a.p.Seq)
		require.Equal(t, s.f.Latency(1, 0, 4096)+sim.Time(i)*spec.Serial(4096), a.at)
	}
	losses, n := s.f.Losses()
	require.Equal(t, 2, n)
	require.Equal(t, Loss{At: 33400 + 50000, Link: "Switch[0][0].Down[0]", Cause: QueueFull, Packet: losses[0].Packet}, losses[0])
	b, exact := BalanceOf(s.f)
	require.True(t, exact)
	require.Equal(t, Balance{Lost: Tally{2, 2 * 4096}}, b)
	require.True(t, HasFaults(s.f))
}

// By flow, all ways up carry about as many of the flows between all pairs, and
// those to one node arrive by different ways; by destination they share one.
func TestPathsByFlow(t *testing.T) {
	const nodes, ways = 128, 4
	for _, paths := range []string{ByDestination, ByFlow} {
		spec := spinDis()
		spec.Kind, spec.Radix, spec.Paths = FatTree, 2*ways, paths
		require.NoError(t, spec.Validate())
		topo, err := spec.checked(nodes)
		require.NoError(t, err)
		require.NoError(t, CheckRoutes(topo, nodes, true))
		up, into := map[string]int{}, map[int]map[int]bool{}
		crossing := 0
		for src := range nodes {
			for dst := range nodes {
				last := -1
				if src/ways != dst/ways {
					crossing++
				}
				along(topo, src, dst, func(link int) {
					if name := topo.LinkName(link); strings.HasPrefix(name, "Switch[0]") && strings.Contains(name, "Up") {
						up[name[strings.Index(name, "Up"):]]++
					} else if strings.HasPrefix(name, "Switch[1]") && strings.Contains(name, "Down") {
						last = link
					}
				})
				if last >= 0 {
					if into[dst] == nil {
						into[dst] = map[int]bool{}
					}
					into[dst][last] = true
				}
			}
		}
		require.Len(t, up, ways)
		for _, n := range up { //lint:maporder each by itself
			require.InEpsilon(t, crossing/ways, n, 0.05, paths)
		}
		for _, links := range into { //lint:maporder each by itself
			require.Len(t, links, map[string]int{ByDestination: 1, ByFlow: ways}[paths])
		}
	}
}
