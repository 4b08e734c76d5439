package fabric

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// drawDragonfly draws a network, not always with all its groups.
func drawDragonfly(t *rapid.T) (s Spec, nodes int) {
	s = spinDis()
	s.Kind, s.LeafNodes, s.Group, s.Globals = Dragonfly, rapid.IntRange(1, 4).Draw(t, "nodes of a router"), rapid.IntRange(1, 5).Draw(t, "group"), rapid.IntRange(1, 4).Draw(t, "globals")
	s.GlobalWire = 300 * sim.Nanosecond
	s.Paths = rapid.SampledFrom([]string{"", ByFlow, ByPacket}).Draw(t, "paths")
	return s, rapid.IntRange(1, min(120, s.Most())).Draw(t, "nodes")
}

// Every pair has a way of at most one link between groups, and of two over a group
// by chance, with the links of groups that go with them, and no packets wait for
// each other in a circle. Every cable has its way back, and two groups are joined by
// as many as the links allow.
func TestDragonflyRoutes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, nodes := drawDragonfly(t)
		topo, err := s.checked(nodes)
		require.NoError(t, err)
		require.NoError(t, CheckRoutes(topo, nodes, s.Paths != ByPacket))
		d := topo.(*dragonfly)
		for src := range nodes {
			for dst := range nodes {
				local, global := 0, 0
				along(topo, src, dst, func(link int) {
					switch l := topo.Link(link); {
					case l.Node:
					case l.Wire > 0:
						global++
					default:
						local++
					}
				})
				from, to := src/s.LeafNodes/s.Group, dst/s.LeafNodes/s.Group
				switch {
				case from == to:
					require.Zero(t, global)
					require.Equal(t, map[bool]int{true: 0, false: 1}[src/s.LeafNodes == dst/s.LeafNodes], local)
				case s.Paths != ByFlow: // path 0
					require.Equal(t, 1, global)
					require.LessOrEqual(t, local, 2)
				default:
					require.GreaterOrEqual(t, global, 1)
					require.LessOrEqual(t, global, 2)
					require.LessOrEqual(t, local, global+1)
				}
			}
		}
		cables := map[[2]int]int{} // between groups
		_, links := d.Size()
		for i := range links {
			l := d.Link(i)
			if l.Wire == 0 || l.To == nowhere {
				continue
			}
			a, b := l.From/s.Group, l.To/s.Group
			require.NotEqual(t, a, b)
			cables[[2]int{a, b}]++
		}
		for a := range d.groups {
			for b := range d.groups {
				if a != b {
					require.Equal(t, s.Group*s.Globals/(d.groups-1), cables[[2]int{a, b}])
				}
			}
		}
	})
}

// All nodes of a group send to the next group: by the shortest way over one link,
// so the last packet takes as long as they all on it; over groups by chance several
// times faster. Kim et al., ISCA 2008 §4: the worst case of the shortest way.
func TestDragonflyWorstCase(t *testing.T) {
	const packets = 40
	s := spinDis()
	s.Kind, s.LeafNodes, s.Group, s.Globals, s.Header = Dragonfly, 2, 4, 2, 0
	of := s.LeafNodes * s.Group
	last := map[string]sim.Time{}
	for _, paths := range []string{ByDestination, ByFlow, ByPacket} {
		s.Paths = paths
		n := build(t, s, s.Most(), nil)
		for src := range int32(of) {
			for k := range packets {
				n.ports[src].Send(Packet{Src: src, Dst: int32(of) + src, Bytes: s.MTU, Path: uint16(k)})
			}
		}
		for _, a := range n.run(t) {
			last[paths] = max(last[paths], a.at)
		}
		if paths == ByDestination {
			longest := sim.Time(0)
			for src := range of {
				longest = max(longest, n.f.Latency(src, of+src, s.MTU))
			}
			require.InDelta(t, float64(longest+sim.Time(of*packets-1)*s.Serial(int(s.MTU))), float64(last[paths]), float64(longest))
		}
	}
	require.Greater(t, float64(last[ByDestination]), 2*float64(last[ByFlow]))
	require.Greater(t, float64(last[ByDestination]), 4*float64(last[ByPacket]))
}

// What cannot be routed is an error that names the field.
func TestDragonflyFields(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"leaf_nodes: want 1 to 4096, got 0":                                                        func(s *Spec) { s.LeafNodes = 0 },
		"group: want 1 to 256 routers, got 0":                                                      func(s *Spec) { s.Group = 0 },
		"globals: want 1 to 256 links, got -1":                                                     func(s *Spec) { s.Globals = -1 },
		"paths: want destination, flow or packet with kind dragonfly, got \"load\"":                func(s *Spec) { s.Paths, s.Choices = ByLoad, 2 },
		"paths: with bounded buffers want destination or flow with kind dragonfly, got \"packet\"": func(s *Spec) { s.Paths, s.Buffer = ByPacket, Buffers{1 << 20} },
		"global_wire: want 0 (as switch_wire) to 1 s, got -1 ps":                                   func(s *Spec) { s.GlobalWire = -1 },
		"rails: 2 has no meaning with kind dragonfly, want kind leaf-spine":                        func(s *Spec) { s.Rails = 2 },
		"leaf_nodes, group, globals: a dragonfly of 9 groups has 72 nodes, too few for 73":         nil,
	} {
		s := spinDis()
		s.Kind, s.LeafNodes, s.Group, s.Globals = Dragonfly, 2, 4, 2
		nodes := 73
		if change != nil {
			change(&s)
			nodes = 2
		}
		_, err := s.checked(nodes)
		require.ErrorContains(t, err, want)
	}
}

// A packet that is to be lost is lost on a link of its own way, however long that
// is.
func TestDragonflyLoses(t *testing.T) {
	const packets = 50
	s := spinDis()
	s.Kind, s.LeafNodes, s.Group, s.Globals, s.Paths = Dragonfly, 1, 4, 2, ByPacket
	n := build(t, s, s.Most(), func(eng *sim.Engine, inner Fabric) Fabric {
		f, err := NewFaulty(eng, inner, FaultSpec{Loss: 1})
		require.NoError(t, err)
		return f
	})
	for k := range packets {
		for dst := range int32(s.Most()) {
			n.ports[0].Send(Packet{Src: 0, Dst: dst, Bytes: 100, Path: uint16(k)})
		}
	}
	require.Empty(t, n.run(t))
	_, lost := n.f.Losses()
	require.Equal(t, packets*s.Most(), lost)
}
