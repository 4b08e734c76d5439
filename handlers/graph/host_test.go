package graph

import (
	"context"
	"flag"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

// search runs a search on a cluster, and checks the whole result: the distances
// equal the reference's, the tree satisfies the rules of Graph500, and nothing
// is left over.
func search(t require.TestingT, device string, nodes int, o Options, set ...string) (all Counts) {
	p, err := profile.Load(device, set...)
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: nodes, Seed: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	library, err := Load(c)
	require.NoError(t, err)
	o.PT = 4
	members := make([]*Member, nodes)
	for i := range nodes {
		require.NoError(t, c.Spawn(i, "search", func(p *runtime.Proc) (err error) {
			if members[i], err = library.Join(p, o); err != nil {
				return err
			}
			return members[i].Run()
		}))
	}
	err = c.Run(context.Background())
	failures, _ := c.Failures()
	require.Empty(t, failures)
	require.NoError(t, err)
	distance, parent := Collect(members)
	want, err := o.Graph.Solve(o.Root, o.Weighted)
	require.NoError(t, err)
	require.Equal(t, want, distance)
	require.NoError(t, o.Graph.Validate(o.Root, distance, parent, o.Weighted))
	for _, m := range members {
		require.NoError(t, m.Quiet())
		one := m.Counts()
		all.Sent, all.Updates, all.Swaps = all.Sent+one.Sent, all.Updates+one.Updates, all.Swaps+one.Swaps
		all.Improved, all.Taken, all.Edges = all.Improved+one.Improved, all.Taken+one.Taken, all.Edges+one.Edges
	}
	return all
}

// R-MAT graphs on one node and on several, on both devices, by handlers and by hosts.
func TestSearch(t *testing.T) {
	g := RMAT(9, Factor, 1)
	for _, nodes := range []int{1, 2, 5, 8} {
		for _, weighted := range []bool{false, true} {
			for _, o := range []Options{{}, {Uncached: true}, {ByHost: true}} {
				o.Graph, o.Root, o.Weighted = g, g.Root(0, 1), weighted
				device := []string{"spin-int", "spin-dis"}[nodes%2]
				t.Log(nodes, weighted, o.ByHost, o.Uncached, search(t, device, nodes, o))
			}
		}
	}
}

// draw draws a graph: in parts or not, with loops, edges that are there several
// times, vertices without any, and hubs.
func draw(t *rapid.T) *Graph {
	n := rapid.SampledFrom([]int{1, 2, 7, 64, 65, 300}).Draw(t, "vertices")
	most := rapid.SampledFrom([]int{1, 9, 255, MaxWeight}).Draw(t, "heaviest")
	list := make([]Edge, rapid.SampledFrom([]int{0, 1, 20, 300, 2000}).Draw(t, "edges"))
	hubs := rapid.IntRange(0, 2).Draw(t, "hubs")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	for i := range list {
		list[i] = Edge{From: rng.Uint32N(uint32(n)), To: rng.Uint32N(uint32(n)), Weight: 1 + rng.Uint32N(uint32(most))}
		if hubs > 0 {
			list[i].From %= uint32(hubs)
		}
	}
	return New(n, list)
}

var searches = flag.Int("graph.searches", 60, "searches of TestAnyGraph")

// one is a search of TestAnyGraph.
type one struct {
	o      Options
	device string
	nodes  int
	set    []string
}

// Any graph on any number of nodes, with packets and workers few and small, and
// networks that lose packets and send them again.
func TestAnyGraph(t *testing.T) {
	generator := rapid.Custom(func(t *rapid.T) (s one) {
		s.o = Options{Graph: draw(t), Weighted: rapid.Bool().Draw(t, "weighted"), ByHost: rapid.Bool().Draw(t, "host"), Uncached: rapid.Bool().Draw(t, "uncached")}
		s.o.Root = rapid.IntRange(0, s.o.Graph.Vertices-1).Draw(t, "root")
		s.o.Workers = rapid.SampledFrom([]int{0, 1, 2, 5}).Draw(t, "workers")
		s.o.Updates = rapid.SampledFrom([]int{0, 1, 3, 40}).Draw(t, "updates")
		if rapid.Bool().Draw(t, "losses") {
			s.set = []string{"transport.kind=reliable", "fabric.faults={loss: 0.02, corrupt: 0.01, duplicate: 0.02, delay: 0.1, max_delay: 2us}"}
		}
		if rapid.Bool().Draw(t, "one HPU") {
			s.set = append(s.set, "hpu.cores=1", "hpu.contexts=1", "hpu.dma_handles=1", "nic.egress_packets=1")
		}
		s.device, s.nodes = rapid.SampledFrom([]string{"spin-int", "spin-dis"}).Draw(t, "device"), rapid.IntRange(1, 9).Draw(t, "nodes")
		return s
	})
	for seed := range *searches {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			s := generator.Example(seed)
			all := search(t, s.device, s.nodes, s.o, s.set...)
			require.GreaterOrEqual(t, all.Improved, all.Taken)
		})
	}
}

// A packet buffer that is as small as the options allow is never too small: all
// nodes send all they can to one, which has all vertices but the root.
func TestPacketBufferIsEnough(t *testing.T) {
	const nodes = 16
	var list []Edge
	for i := range uint32(4000) {
		for j := range uint32(4) {
			list = append(list, Edge{From: i * nodes, To: (i*7+j*1001)%4000*nodes + 1 + (i+j)%(nodes-1), Weight: 1})
		}
	}
	g := New(4000*nodes, list)
	for _, buffer := range []string{"8KiB", "64KiB", "1MiB"} {
		search(t, "spin-int", nodes, Options{Graph: g, Root: 0}, "nic.packet_buffer="+buffer, "hpu.cores=1", "hpu.clock=100MHz")
	}
}

var large = flag.Int("graph.scale", 10, "scale of TestManyNodes")

// An R-MAT graph on 64 nodes.
func TestManyNodes(t *testing.T) {
	g := RMAT(*large, Factor, 1)
	all := search(t, "spin-int", 64, Options{Graph: g, Root: g.Root(0, 1)})
	require.Less(t, all.Edges, uint64(4*g.Edges()), "no edge is followed twice as often as it must")
}

// Everything is found at the same moment, every time.
func TestSameAgain(t *testing.T) {
	g := RMAT(8, Factor, 3)
	o := Options{Graph: g, Root: g.Root(0, 3), Weighted: true}
	first := search(t, "spin-dis", 3, o)
	require.Equal(t, first, search(t, "spin-dis", 3, o))
}

// What cannot be is an error that names what was expected.
func TestWrongOptions(t *testing.T) {
	p, err := profile.Load("spin-int")
	require.NoError(t, err)
	g := New(3, nil)
	for want, o := range map[string]Options{
		"graph: expected a graph of 1 to 67108864 vertices":                                {},
		"graph: root 3, expected a vertex below 3":                                         {Graph: g, Root: 3},
		"graph: root -1, expected a vertex below 3":                                        {Graph: g, Root: -1},
		"graph: 65 workers, expected 0 to 64":                                              {Graph: g, Workers: 65},
		"graph: packets of 257 updates, expected 0 to 256 (fabric.mtu, nic.packet_buffer)": {Graph: g, Updates: 257},
		"graph: 64 nodes with 64 workers and packets of 256 updates may fill a packet buffer (nic.packet_buffer, 4 MiB), expected fewer": {Graph: g, Workers: 64, Updates: 256},
	} {
		require.EqualError(t, o.check(p, 64), want)
	}
	for _, nodes := range []int{1, 2, 64, 1000, 4096, 20000} {
		o := Options{Graph: g}
		require.NoError(t, o.check(p, nodes))
		require.LessOrEqual(t, o.Workers*o.Updates*UpdateSize*nodes, 2<<20)
		t.Log(nodes, o.Workers, o.Updates)
	}
}

// A part of the graph that a device has no HPU memory for is refused before anything runs.
func TestNoMemory(t *testing.T) {
	p, err := profile.Load("spin-int", "hpu.max_hpu_memory=100000")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	library, err := Load(c)
	require.NoError(t, err)
	require.NoError(t, c.Spawn(0, "search", func(p *runtime.Proc) error {
		_, err := library.Join(p, Options{PT: 4, Graph: New(100000, nil)})
		require.ErrorContains(t, err, "(hpu.max_hpu_memory)")
		return nil
	}))
	require.NoError(t, c.Run(context.Background()))
}
