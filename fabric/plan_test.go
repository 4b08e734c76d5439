package fabric

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/sim"
)

// square is four switches in a ring with two nodes each. A second cable joins
// the first two.
func square() Plan {
	return Plan{
		Switches: []PlanSwitch{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d", Ports: 4}},
		Nodes:    []PlanNodes{{At: "a", Count: 2}, {At: "b", Count: 2}, {At: "c"}, {At: "c"}, {At: "d", Count: 2}},
		Links: []PlanLink{
			{From: "a", To: "b"}, {From: "a", To: "b"}, {From: "b", To: "c", Rate: sim.NewRate(40, 1)}, {From: "c", To: "d", Wire: 10000}, {From: "d", To: "a"},
		},
	}
}

func planSpec(p Plan) Spec {
	spec := spinDis()
	spec.Kind, spec.Radix, spec.Topology = File, 0, p
	return spec
}

// Paths are shortest. Of equally short paths each destination has its own.
// Every cable has its own rate and length.
func TestPlanTakesShortestPaths(t *testing.T) {
	s := build(t, planSpec(square()), 8, nil)
	for _, c := range []struct {
		src, dst int
		links    []string
		latency  sim.Time // without the wires of 33.4 ns of the ends and 50 ns a switch
	}{
		{0, 1, []string{"a->Node[1]"}, 20000},
		{0, 2, []string{"a->b", "b->Node[2]"}, 33400 + 20000},
		{0, 3, []string{"a->b[1]", "b->Node[3]"}, 33400 + 20000},
		// the last link waits until the slow one before has sent enough
		{2, 4, []string{"b->c", "c->Node[4]"}, 33400 + 20000 + 20000},
		{5, 7, []string{"c->d", "d->Node[7]"}, 10000 + 20000},
		{0, 4, []string{"a->b[1]", "b->c", "c->Node[4]"}, 2*33400 + 20000 + 20000},
		{0, 5, []string{"a->d", "d->c", "c->Node[5]"}, 33400 + 10000 + 20000},
		{4, 0, []string{"c->b", "b->a", "a->Node[0]"}, 2*33400 + 40000},
		{4, 1, []string{"c->d", "d->a", "a->Node[1]"}, 10000 + 33400 + 20000},
	} {
		var links []string
		for _, h := range s.f.Path(c.src, c.dst)[1:] {
			links = append(links, h.Link)
		}
		require.Equal(t, c.links, links, "%d to %d", c.src, c.dst)
		require.Equal(t, c.latency+2*33400+sim.Time(len(links))*50000, s.f.Latency(c.src, c.dst, 1000), "%d to %d", c.src, c.dst)
	}
}

// A ring of five switches needs a second channel with bounded buffers, and gets
// it. Without bounds, and on trees, one is enough.
func TestPlanHasTheChannelsItNeeds(t *testing.T) {
	ring := Plan{}
	names := []string{"a", "b", "c", "d", "e"}
	for i, name := range names {
		ring.Switches = append(ring.Switches, PlanSwitch{Name: name})
		ring.Nodes = append(ring.Nodes, PlanNodes{At: name})
		ring.Links = append(ring.Links, PlanLink{From: name, To: names[(i+1)%5]})
	}
	for _, c := range []struct {
		cables, channels int
		bounded          bool
	}{{5, 2, true}, {5, 1, false}, {4, 1, true}} {
		p := ring
		p.Links = ring.Links[:c.cables]
		topo, err := newPlanned(&p, 5, c.bounded)
		require.NoError(t, err)
		require.Equal(t, c.channels, topo.Channels())
		require.NoError(t, CheckRoutes(topo, 5, c.bounded))
	}
}

// One mistake at a time, each named by its field.
func TestPlanNamesTheField(t *testing.T) {
	for want, spoil := range map[string]func(*Plan){
		"topology.switches: want 1 to 2048, got 0":                                  func(p *Plan) { *p = Plan{Nodes: []PlanNodes{}} },
		`topology.switches[2].name: "a" is the name of switches[0], too`:            func(p *Plan) { p.Switches[2].Name = "a" },
		"topology.switches[1].name: want a name":                                    func(p *Plan) { p.Switches[1].Name = "" },
		"topology.switches[0].ports: want a number of cables, or 0 for any, got -1": func(p *Plan) { p.Switches[0].Ports = -1 },
		"topology.switches[3].ports: d has 3 ports, and 4 cables lead to it":        func(p *Plan) { p.Switches[3].Ports = 3 },
		`topology.links[1].to: there is no switch "x"`:                              func(p *Plan) { p.Links[1].To = "x" },
		`topology.links[1].to: "a" is the end that it comes from`:                   func(p *Plan) { p.Links[1].To = "a" },
		`topology.nodes[0].at: there is no switch "y"`:                              func(p *Plan) { p.Nodes[0].At = "y" },
		"topology.nodes[0].count: want 1 to 4194304, got -2":                        func(p *Plan) { p.Nodes[0].Count = -2 },
		"topology.nodes: want 1 to 4194304, got 0":                                  func(p *Plan) { p.Nodes = nil },
		"topology.links[0].wire: want 1 ps to 1 s, got -1 ps":                       func(p *Plan) { p.Links[0].Wire = -1 },
		"topology.links[0].rate: 2000000000ps/B is slower than 1 ms for a byte":     func(p *Plan) { p.Links[0].Rate = sim.NewRate(2e9, 1) },
		`topology.links: no path leads from switch "b", which has nodes, to "a"`:    func(p *Plan) { p.Links = p.Links[:2]; p.Links[0].OneWay, p.Links[1].OneWay = true, true },
		`topology.links: no path leads from switch "c", which has nodes, to "a"`:    func(p *Plan) { p.Links = p.Links[:2] },
	} {
		p := square()
		spoil(&p)
		spec := planSpec(p)
		require.ErrorContains(t, spec.Validate(), want)
		_, err := New(sim.New(0), spec, 2)
		require.ErrorContains(t, err, "fabric: ")
	}
	_, err := New(sim.New(0), planSpec(square()), 9)
	require.EqualError(t, err, "fabric: topology.nodes: the file has 8 nodes, too few for 9")
	_, err = New(sim.New(0), torusSpec(2, 2), 5)
	require.EqualError(t, err, "fabric: dims: a torus of [2 2] has 4 nodes, too few for 5")
}

// A user's own topology is checked before it runs.
func TestNewNetworkChecksTheTopology(t *testing.T) {
	for want, topo := range map[string]Topology{
		"fabric: link 3 leads from switch 1 to number 9: there are 3 switches and 3 nodes":                                      nowhereLink{newTorus([]int{3}, 3)},
		"fabric: the route from node 0 to node 0 leads to link 1, channel 0, of Switch[0] after 3 switches: it does not arrive": goesRound{newTorus([]int{3}, 3)},
	} {
		_, err := NewNetwork(sim.New(0), spinDis(), 3, topo)
		require.EqualError(t, err, want)
	}
	f, err := NewNetwork(sim.New(0), spinDis(), 3, whole{newTorus([]int{3}, 3)})
	require.NoError(t, err)
	require.Len(t, f.Path(0, 1), 3)
	spec := spinDis()
	spec.Buffer = Buffers{4096}
	_, err = NewNetwork(sim.New(0), spec, 5, oneChannel{newTorus([]int{5}, 5)})
	require.ErrorContains(t, err, "fabric: buffer: packets could wait for each other in a circle: Switch[0].Plus[0] (channel 0), Switch[1].Plus[0] (channel 0), ")
}

type whole struct{ *torus }

type nowhereLink struct{ *torus }

func (n nowhereLink) Link(i int) Link {
	if i == 3 {
		return Link{From: 1, To: 9, Node: true}
	}
	return n.torus.Link(i)
}

type goesRound struct{ *torus }

func (g goesRound) Route(at, _, _ int) (link, channel int) { return at*3 + 1, 0 }
