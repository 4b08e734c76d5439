package fabric

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

func torusSpec(dims ...int) Spec {
	spec := spinDis()
	spec.Kind, spec.Radix, spec.Dims = Torus, 0, dims
	return spec
}

// ringDistance is the shorter way round.
func ringDistance(a, b, length int) int {
	d := (b - a + length) % length
	return min(d, length-d)
}

var tori = [][]int{{1}, {2}, {3}, {4}, {5}, {6}, {9}, {1, 1}, {2, 2}, {2, 3}, {4, 5}, {2, 2, 2}, {3, 4, 2}, {5, 1, 3}, {2, 2, 2, 2}}

// A lone packet passes one switch more than the sum of the distances in each
// dimension: (h+1)·switch + (h+2)·wire + bytes·G.
func TestTorusLatencyIsTheClosedForm(t *testing.T) {
	for _, dims := range tori {
		nodes := newTorus(dims, 1).count
		for src := range nodes {
			s := build(t, torusSpec(dims...), nodes, nil)
			for dst := range nodes {
				h, a, b := 0, src, dst
				for _, d := range dims {
					h += ringDistance(a%d, b%d, d)
					a, b = a/d, b/d
				}
				want := sim.Time(h+1)*50000 + sim.Time(h+2)*33400 + 1000*20
				require.Equal(t, want, s.f.Latency(src, dst, 1000), "%v: %d to %d", dims, src, dst)
				require.Len(t, s.f.Path(src, dst), h+2)
			}
			s.ports[src].Send(Packet{Src: int32(src), Dst: int32(nodes - 1), Bytes: 1000})
			require.Equal(t, s.f.Latency(src, nodes-1, 1000), s.run(t)[0].at)
		}
	}
}

// On a ring of n every node sends one packet to every other. By symmetry links
// in one direction carry the same number: the sum of the distances of one
// node's packets in that direction. Halfway round, even coordinates go up and
// odd ones down.
func TestTorusLoads(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5, 8} {
		s := build(t, torusSpec(n), n, nil)
		for src := range n {
			for dst := range n {
				s.ports[src].Send(Packet{Src: int32(src), Dst: int32(dst), Bytes: 100})
			}
		}
		require.Len(t, s.run(t), n*n)
		load := map[string]int64{}
		for _, l := range s.f.Links() {
			load[l.Name] = l.Packets
		}
		short := int64(0) // packets over a link by paths shorter than half
		for d := 1; 2*d < n; d++ {
			short += int64(d)
		}
		for c := range n {
			plus, minus := short, short
			// half the nodes, every second one, send half the ring up: over each link a
			// quarter of the ring
			if n%2 == 0 && n > 2 {
				for from := range n {
					if up := (c - from + n) % n; from%2 == 0 && up < n/2 {
						plus++
					}
					if down := (from - c + n) % n; from%2 == 1 && down < n/2 {
						minus++
					}
				}
			}
			if n == 2 {
				plus = 1
			}
			require.Equal(t, plus, load[fmt.Sprintf("Switch[%d].Plus[0]", c)], "ring of %d, switch %d", n, c)
			require.Equal(t, minus, load[fmt.Sprintf("Switch[%d].Minus[0]", c)], "ring of %d, switch %d", n, c)
			require.Equal(t, int64(n), load[fmt.Sprintf("Switch[%d].Node", c)])
		}
	}
}

// No buffer waits for itself, directly or through others. With one channel
// less, buffers on rings of five or more would (paths on shorter rings do not
// follow each other all round).
func TestTorusRoutesHaveNoCircle(t *testing.T) {
	for _, dims := range append(tori, []int{8, 8}, []int{16}, []int{5, 5, 5}) {
		topo := newTorus(dims, newTorus(dims, 1).count)
		require.NoError(t, CheckRoutes(topo, topo.count, true), "%v", dims)
		most := 0
		for _, d := range dims {
			most = max(most, d)
		}
		err := CheckRoutes(oneChannel{topo}, topo.count, true)
		if most >= 5 {
			require.ErrorContains(t, err, "packets could wait for each other in a circle: ", "%v", dims)
		} else {
			require.NoError(t, err, "%v", dims)
		}
	}
	for _, nodes := range []int{1, 7, 16, 27, 32} {
		require.NoError(t, CheckRoutes(newTree(4, nodes), nodes, true))
		require.NoError(t, CheckRoutes(newTree(nodes, nodes), nodes, true))
	}
}

// oneChannel is a topology whose packets are all on one channel.
type oneChannel struct{ Topology }

func (oneChannel) Channels() int { return 1 }

func (o oneChannel) Route(at, src, dst int) (link, channel int) {
	link, _ = o.Topology.Route(at, src, dst)
	return link, 0
}

// flood makes every node send rounds packets to every node, with buffers that
// hold one packet or little more. It checks that all arrive, in order for each
// pair, that no buffer overflows, and that the load of the links agrees with
// routing.
func flood(t require.TestingT, spec Spec, nodes, rounds int) {
	s := build(t, spec, nodes, nil)
	s.held = make([][Classes][]Packet, nodes)
	predicted := map[string]int64{}
	for src := range nodes {
		for i := range rounds {
			for k := range nodes {
				dst := (src + k) % nodes
				p := Packet{Src: int32(src), Dst: int32(dst), Bytes: int32(64 + (i*37+k*11)%1000), Seq: uint32(i), Class: Class((i + k) % Classes), Ref: s}
				s.held[src][p.Class] = append(s.held[src][p.Class], p)
				for _, hop := range s.f.Path(src, dst) {
					predicted[hop.Link]++
				}
			}
		}
		for c := range Class(Classes) {
			s.sendHeld(src, c)
		}
	}
	require.NoError(t, s.eng.Run())
	checkFlood(t, s, spec, nodes*nodes*rounds)
	for _, l := range s.f.Links() {
		require.Equal(t, predicted[l.Name], l.Packets, l.Name)
	}
}

func checkFlood(t require.TestingT, s *sink, spec Spec, packets int) {
	require.Len(t, s.got, packets, "every packet arrives")
	last := map[[3]int32]uint32{}
	for _, a := range s.got {
		key := [3]int32{a.p.Src, a.p.Dst, int32(a.p.Class)}
		require.LessOrEqual(t, last[key], a.p.Seq+1, "order of a pair")
		last[key] = a.p.Seq + 1
	}
	most := int64(0)
	for _, b := range spec.Buffer {
		most = max(most, b)
	}
	for _, l := range s.f.Links() {
		require.LessOrEqual(t, l.MaxBuffer, most, l.Name)
		require.Positive(t, l.MaxBuffer)
	}
	for i := range networkOf(s.f).lanes {
		l := &networkOf(s.f).lanes[i]
		require.Zero(t, l.used, "all credits have come back")
		require.Zero(t, l.count)
	}
}

// All to all with buffers of one packet: rings of every length, grids, trees,
// drawn networks. A circle of buffers would leave packets behind.
func TestFloodsDoNotDeadlock(t *testing.T) {
	spec := torusSpec(1)
	spec.MTU, spec.Header = 1100, 16
	spec.Buffer = Buffers{1116}
	for _, dims := range [][]int{{2}, {3}, {4}, {5}, {8}, {3, 3}, {4, 4}, {2, 4, 5}, {5, 5}} {
		spec.Dims = dims
		flood(t, spec, newTorus(dims, 1).count, 6)
	}
	spec.StoreAndForward = true
	spec.Dims = []int{5, 3}
	flood(t, spec, 15, 6)
	spec.StoreAndForward, spec.Kind, spec.Radix, spec.Dims = false, FatTree, 4, nil
	flood(t, spec, 30, 6)
	spec.Kind = Crossbar
	flood(t, spec, 20, 6)
}

// The test above can fail: with all packets of a ring on one channel, nodes
// that send to the third switch further on end up waiting for each other.
func TestFloodWithoutChannelsDeadlocks(t *testing.T) {
	for _, one := range []bool{false, true} {
		const nodes, each = 8, 20
		spec := torusSpec(nodes)
		spec.Buffer = Buffers{4096}
		topo := Topology(newTorus([]int{nodes}, nodes))
		if one {
			topo = oneChannel{topo}
		}
		s := buildOn(t, func(eng *sim.Engine) (Fabric, error) { return newFabric(eng, spec, nodes, topo) })
		s.held = make([][Classes][]Packet, nodes)
		for i := range nodes {
			for k := range uint32(each) {
				s.held[i][Requests] = append(s.held[i][Requests], Packet{Src: int32(i), Dst: int32((i + 3) % nodes), Bytes: 4096, Seq: k})
			}
			s.sendHeld(i, Requests)
		}
		s.run(t)
		if !one {
			checkFlood(t, s, spec, nodes*each)
			continue
		}
		require.Less(t, len(s.got), nodes*each)
		waiting := 0
		for i := range networkOf(s.f).lanes {
			waiting += int(networkOf(s.f).lanes[i].count)
		}
		require.GreaterOrEqual(t, waiting, nodes)
	}
}

func TestFloodsOfDrawnNetworks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := torusSpec(1)
		spec.MTU, spec.Kind, spec.Dims = 1100, File, nil
		spec.Buffer = Buffers{rapid.Int64Range(1100, 3000).Draw(t, "buffer"), 1200}
		nodes := rapid.IntRange(2, 12).Draw(t, "nodes")
		spec.Topology = drawPlan(t, nodes)
		flood(t, spec, nodes, 3)
		n := networkOf(build(t, spec, nodes, nil).f)
		require.NoError(t, CheckRoutes(n.topo, nodes, true))
	})
}
