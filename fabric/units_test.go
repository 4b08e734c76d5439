package fabric

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

func (s *sink) isUnit(node int32) bool {
	u := UnitsOf(s.f)
	if u == nil {
		return false
	}
	first, _ := u.Nodes()
	return int(node) >= first
}

// drawUnits gives some networks units.
func drawUnits(t *rapid.T, spec *Spec) {
	spec.Units.At = rapid.SampledFrom([]string{"", UnitsAtLeaves, UnitsAtAll}).Draw(t, "units")
	if spec.Units.At != "" {
		spec.Units.Rate = sim.NewRate(sim.Time(rapid.IntRange(1, 40).Draw(t, "units' ps")), rapid.Int64Range(1, 64).Draw(t, "units' per"))
		spec.Units.Wire = sim.Time(rapid.IntRange(1, 3000).Draw(t, "units' wire"))
	}
}

// Every node has a way to every unit and back, on every kind of network.
// Between units of switches with nodes it is the way of those nodes; else none
// is shorter.
func TestRoutesOfUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, nodes := drawSpec(t)
		plain, err := spec.checked(nodes)
		require.NoError(t, err)
		drawUnits(t, &spec)
		topo, err := spec.checked(nodes)
		require.NoError(t, err)
		all := nodesOf(topo, nodes)
		require.NoError(t, CheckRoutes(topo, all, false))
		if spec.Units.At == "" {
			require.Equal(t, nodes, all)
			return
		}
		u := topo.(*united)
		for src := range all {
			for dst := range all {
				length := 0
				along(topo, src, dst, func(int) { length++ })
				a, b := int(u.host[topo.Home(src)]), int(u.host[topo.Home(dst)])
				if src < nodes {
					a = src
				}
				if dst < nodes {
					b = dst
				}
				if a < 0 || b < 0 {
					continue
				}
				want := 0
				along(plain, a, b, func(int) { want++ })
				require.Equal(t, want, length)
			}
		}
	})
}

// From a spine's unit a leaf's unit is one link away, and a node too; from
// another spine's unit two.
func TestUnitsOfSpines(t *testing.T) {
	spec := spinDis()
	spec.Kind, spec.LeafNodes, spec.Spines = LeafSpine, 4, 2
	spec.Units = UnitSpec{At: UnitsAtAll, Rate: sim.NewRate(1, 8), Wire: 1}
	spec.Buffer = Buffers{1 << 16} // no circle
	s := build(t, spec, 12, nil)
	u := UnitsOf(s.f)
	first, behind := u.Nodes()
	require.Equal(t, []int{12, 17}, []int{first, behind})
	unit, ok := u.Of(5)
	require.True(t, ok)
	require.Equal(t, []int{13, 15, 12}, []int{unit, u.Toward(unit, 15), u.Toward(15, 12)})
	require.Equal(t, 16, u.Toward(14, 16))
	require.Equal(t, "Leaf[1]", u.Switch(unit))
	names := func(src, dst int) (list []string) {
		for _, h := range s.f.Path(src, dst) {
			list = append(list, h.Link)
		}
		return list
	}
	require.Equal(t, []string{"Node[13].Tx", "Leaf[1].Up[0]", "Spine[0].Unit"}, names(13, 15))
	require.Equal(t, []string{"Node[15].Tx", "Spine[0].Down[2]", "Leaf[2].Down[0]"}, names(15, 8))
	require.Equal(t, []string{"Node[15].Tx", "Spine[0].Down[2]", "Leaf[2].Up[1]", "Spine[1].Unit"}, names(15, 16))
	require.Equal(t, []string{"Node[5].Tx", "Leaf[1].Unit"}, names(5, 13))
}

// Eight nodes of a switch send n packets each to its unit, and the unit sends
// one to each. With a unit's link of eight times the rate, the last packet comes
// n·B·G after the first has left, as if each node had a unit; with the nodes'
// rate the unit's link is the bottleneck. The answers leave one after the other,
// without the nodes' gap.
func TestTimesOfUnits(t *testing.T) {
	const nodes, packets, times = 8, 10, 8
	for i := range 4 {
		same, bounded := i%2 > 0, i/2 > 0
		spec := spinDis()
		if bounded { // and never full
			spec.Buffer = Buffers{1 << 20}
		}
		spec.Kind, spec.Gap, spec.Units = Crossbar, 6700, UnitSpec{At: UnitsAtLeaves, Rate: sim.NewRate(20, times), Wire: 7}
		if same {
			spec.Units.Rate = spec.Rate
		}
		long, short := spec.Serial(4096), spec.Units.Rate.Time(4096)
		s := build(t, spec, nodes, nil)
		for src := range int32(nodes) {
			for range packets {
				s.ports[src].Send(Packet{Src: src, Dst: nodes, Bytes: 4096})
			}
		}
		up := spec.Wire + spec.Switch + spec.Units.Wire
		last := sim.Time(0)
		for _, a := range s.run(t) {
			last = max(last, a.at)
		}
		// all heads come at once; the unit's link begins so late that no byte is missing
		require.Equal(t, up+(long-short)+nodes*packets*short, last, "same %t", same)
		now := s.eng.Now()
		s.got = nil
		for dst := range int32(nodes) {
			s.ports[nodes].Send(Packet{Src: nodes, Dst: dst, Bytes: 64})
		}
		for i, a := range s.run(t) {
			require.Equal(t, now+sim.Time(i)*spec.Units.Rate.Time(64)+spec.Units.Wire+spec.Switch+spec.Serial(64)+spec.Wire, a.at)
		}
		for _, l := range s.f.Links() {
			if l.Name == "Node[8].Tx" {
				require.Equal(t, nodes*spec.Units.Rate.Time(64), l.Busy)
			}
		}
	}
}

// A circle of packets that wait for room is an error that names the choice.
func TestUnitsCouldDeadlock(t *testing.T) {
	spec := spinDis()
	spec.Radix, spec.Buffer = 4, Buffers{1 << 16}
	spec.Units = UnitSpec{At: UnitsAtLeaves, Rate: spec.Rate, Wire: 1}
	_, err := New(sim.New(1), spec, 16)
	require.NoError(t, err)
	spec.Units.At = UnitsAtAll
	_, err = New(sim.New(1), spec, 16)
	require.ErrorContains(t, err, "fabric: units.at: all: buffer: packets could wait for each other in a circle: Switch[")
}

// Packets to units are sprayed over all spines, as to nodes, and each comes.
func TestUnitsByPacket(t *testing.T) {
	spec := spinDis()
	spec.Kind, spec.LeafNodes, spec.Spines, spec.Paths = LeafSpine, 4, 3, ByPacket
	plain, err := spec.checked(8)
	require.NoError(t, err)
	spec.Units = UnitSpec{At: UnitsAtAll, Rate: spec.Rate, Wire: 1}
	topo, err := spec.checked(8)
	require.NoError(t, err)
	all := nodesOf(topo, 8)
	require.Equal(t, 13, all)
	for src := range all {
		for dst := range all {
			first := map[int]bool{}
			for path := range uint32(50) {
				at, hops := topo.Home(src), 0
				for ; hops < 4; hops++ {
					link := topo.(pathed).routeBy(at, src, dst, path)
					if hops == 0 {
						first[link] = true
					}
					if src < 8 && dst < 8 {
						require.Equal(t, plain.(pathed).routeBy(at, src, dst, path), link)
					}
					l := topo.Link(link)
					if l.Node {
						require.Equal(t, dst, l.To)
						break
					}
					at = l.To
				}
				require.Less(t, hops, 4)
			}
			if a, b := topo.Home(src), topo.Home(dst); a != b && a < 2 && b < 2 {
				require.Len(t, first, spec.Spines)
			}
		}
	}
	spec.Buffer = Buffers{1 << 16}
	_, err = spec.checked(8)
	require.ErrorContains(t, err, "units.at: all: with buffer and paths: packet ways to switches without nodes")
}

func TestValidateUnits(t *testing.T) {
	for want, spoil := range map[string]func(*Spec){
		`units.at: want leaves or all, got "roots"`: func(s *Spec) { s.Units.At = "roots" },
		"units.rate: given, but no switch has a unit: want units.at, too\nunits.wire: given, but no switch has a unit: want units.at, too": func(s *Spec) { s.Units.At = "" },
		"units.rate: want a rate such as 3200Gb/s":                                func(s *Spec) { s.Units.Rate = sim.Rate{} },
		"units.rate: 1000000001ps/B is slower than 1 ms for a byte":               func(s *Spec) { s.Units.Rate = sim.NewRate(1e9+1, 1) },
		"units.wire: want 1 ps to 1 s, got 0 s: nodes may not meet without delay": func(s *Spec) { s.Units.Wire = 0 },
		"units: switch_per_link, whole_packets, add_gap and no_contention are simplifications of networks whose switches only forward: want either them or units": func(s *Spec) { s.AddGap = true },
	} {
		spec := spinDis()
		spec.Units = UnitSpec{At: UnitsAtLeaves, Rate: spec.Rate, Wire: 1}
		spoil(&spec)
		require.EqualError(t, spec.Validate(), want)
	}
	spec := spinDis()
	spec.Radix, spec.Units = 4, UnitSpec{At: UnitsAtAll, Rate: spec.Rate, Wire: 1}
	_, err := New(sim.New(1), spec, 16<<8)
	require.ErrorContains(t, err, "fabric: units.at: all: 21504 switches, want at most 2048 where switches without nodes have units; leaves has no such bound")
}
