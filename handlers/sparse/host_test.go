package sparse

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/handlers/reduction"
	_ "github.com/spinsim/spinsim/internal/rapidtest" // fewer checks
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// vector is a sparse vector: a plain map.
type vector map[uint32]float32

// storm is what members do: calls, each with a vector of each member.
type storm struct {
	c       *runtime.Cluster
	group   *Group
	members []portals.ID
	tree    reduction.Tree
	calls   []stormCall
}

type stormCall struct {
	elements int
	vectors  []vector
	delays   []sim.Time // of members, before they begin
}

// shape is what a storm runs in, apart from when what arrives.
type shape struct {
	ranks, arity, span, most, table, window int // arity 0: in switches
	network                                 []string
	profile                                 string
	calls                                   []stormCall
}

var networks = [][]string{
	{"fabric.kind=crossbar"},
	{"fabric.kind=leaf-spine", "fabric.radix=0", "fabric.leaf_nodes=3", "fabric.spines=2"},
	{"fabric.radix=4"},
	{"fabric.kind=torus", "fabric.dims=[4, 3]", "fabric.buffer=4KiB"},
}

// drawShape draws a tree in switches or NICs, arrays or hash tables, and calls
// whose vectors have few or many elements, all different ones or all the same.
func drawShape(rt *rapid.T) *shape {
	s := &shape{
		ranks: rapid.IntRange(1, 12).Draw(rt, "ranks"), arity: rapid.IntRange(0, 4).Draw(rt, "arity"),
		span: 1 << rapid.IntRange(0, 7).Draw(rt, "span"), window: rapid.IntRange(0, 5).Draw(rt, "window"),
		network: rapid.SampledFrom(networks).Draw(rt, "network"), profile: rapid.SampledFrom([]string{"spin-dis", "spin-int"}).Draw(rt, "profile"),
	}
	if rapid.Bool().Draw(rt, "hash") {
		s.table = rapid.SampledFrom([]int{1, max(1, s.span/8), max(1, s.span/2)}).Draw(rt, "table")
	}
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "data"), 0))
	for range rapid.IntRange(1, 3).Draw(rt, "calls") {
		c := stormCall{elements: 1 + rng.IntN(rapid.SampledFrom([]int{1, 64, 400}).Draw(rt, "elements"))}
		kind, few := rapid.SampledFrom([]string{"random", "same", "different", "empty"}).Draw(rt, "kind"), 1+rng.IntN(20)
		for rank := range s.ranks {
			v := vector{}
			for i := range c.elements {
				if kind == "same" && i%few == 0 || kind == "different" && i%s.ranks == rank || kind == "random" && rng.IntN(few) == 0 {
					v[uint32(i)] = value(rng, s.table == 0)
				}
			}
			c.vectors = append(c.vectors, v)
		}
		s.calls = append(s.calls, c)
	}
	s.most = s.span // or exactly what there is
	if rapid.Bool().Draw(rt, "exact") {
		s.most = 1
		for _, c := range s.calls {
			for _, v := range c.vectors {
				blocks := map[uint32]int{}
				for i := range v { //lint:maporder a largest number
					blocks[i/uint32(s.span)]++
					s.most = max(s.most, blocks[i/uint32(s.span)])
				}
			}
		}
	}
	return s
}

// value is a number whose sums round or, if they must not, a small integer.
func value(rng *rand.Rand, rounds bool) float32 {
	if !rounds {
		return float32(rng.IntN(201) - 100)
	}
	if special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1e-44}; rng.IntN(8) == 0 {
		return float32(special[rng.IntN(len(special))])
	}
	return float32(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(8))))
}

// storm starts the cluster, with members that begin when the seed says.
func (sh *shape) storm(rt *rapid.T, seed uint64, set ...string) *storm {
	set = slices.Concat([]string{"fabric.mtu=64", "fabric.units={at: all, rate: 1ps/B, wire: 1ns}"}, sh.network, set)
	p, err := profile.Load(sh.profile, set...)
	require.NoError(rt, err)
	s := &storm{}
	s.c, err = runtime.NewCluster(runtime.Config{Profile: p, Nodes: sh.ranks, Seed: seed, Cores: 1 + int(seed%3)})
	require.NoError(rt, err)
	rt.Cleanup(func() { require.NoError(rt, s.c.Close()) })
	for i := range sh.ranks {
		pid := uint32(min(1, sh.arity)) // behind the aggregator
		s.members = append(s.members, portals.PhysID(uint32(i), pid))
	}
	if sh.arity == 0 {
		s.tree, err = reduction.Switches(s.c, s.members, 1)
	} else {
		s.tree, err = reduction.NICs(s.members, sh.arity)
	}
	require.NoError(rt, err)
	library, err := Load(s.c)
	require.NoError(rt, err)
	s.group, err = library.Group(Options{
		Members: s.members, Tree: s.tree, Number: int(seed) & 63, Span: sh.span, Most: sh.most, Table: sh.table, Window: sh.window,
	})
	require.NoError(rt, err)
	rng := rand.New(rand.NewPCG(seed, 1))
	skew := []sim.Time{1, sim.Microsecond, 20 * sim.Microsecond}[rng.IntN(3)]
	for _, c := range sh.calls {
		c.delays = nil
		for range s.members {
			c.delays = append(c.delays, sim.Time(rng.Int64N(int64(skew))))
		}
		s.calls = append(s.calls, c)
	}
	return s
}

// fold is the sum below an aggregator, in the order of the children.
func fold(t reduction.Tree, at int, c *stormCall) vector {
	sum := vector{}
	for _, child := range t[at].Children {
		x := c.vectors[min(child.Number, len(c.vectors)-1)]
		if child.Inner {
			x = fold(t, child.Number, c)
		}
		for i, v := range x { //lint:maporder an index at a time
			sum[i] += v
		}
	}
	maps.DeleteFunc(sum, func(_ uint32, v float32) bool { return v == 0 })
	return sum
}

// take notes the pairs of a sum.
func (v vector) take(t require.TestingT) func([]Pair) {
	return func(list []Pair) {
		for _, p := range list {
			require.NotZero(t, p.Value)
			require.NotContains(t, v, p.Index)
			v[p.Index] = p.Value
		}
	}
}

func (v vector) pairs() (b []byte) {
	for _, i := range slices.Sorted(maps.Keys(v)) {
		b = binary.LittleEndian.AppendUint32(b, i)
		bits := math.Float32bits(v[i])
		if v[i] != v[i] {
			bits = 0x7fc00000 // all NaNs are the same
		}
		b = binary.LittleEndian.AppendUint32(b, bits)
	}
	return b
}

// run has the members call and returns the results, which are the same at all.
func (s *storm) run(rt require.TestingT) ([][]byte, error) {
	results := make([][][]byte, len(s.members))
	for rank := range s.members {
		require.NoError(rt, s.c.Spawn(rank, "member", func(p *runtime.Proc) error {
			m, err := s.group.Open(p, rank)
			if err != nil {
				return err
			}
			for i := range s.calls {
				c := &s.calls[i]
				pairs := c.vectors[rank].pairs()
				source, sum := p.Alloc(len(pairs)), vector{}
				source.CopyFrom(pairs)
				p.Sleep(c.delays[rank])
				if err := m.Allreduce(c.elements, source, sum.take(rt)); err != nil {
					return err
				}
				results[rank] = append(results[rank], sum.pairs())
			}
			return nil
		}))
	}
	if err := s.c.Run(context.Background()); err != nil {
		return nil, err
	}
	failed, n := s.c.HandlerErrors()
	require.Zero(rt, n, "%v", failed)
	require.Zero(rt, s.group.Counts().Strange)
	for rank := range results {
		require.Equal(rt, results[0], results[rank])
	}
	return results[0], nil
}

// check compares every byte of results with the sum that a loop over maps gives.
func (s *storm) check(rt require.TestingT, results [][]byte) {
	for i := range s.calls {
		require.Equal(rt, fold(s.tree, 0, &s.calls[i]).pairs(), results[i], "call %d", i)
	}
}

// Whatever groups add, in whichever tree, network, table and order of arrival:
// every member has the sum, bit by bit, and nothing is strange. With arrays it is
// the sum in the order of the tree.
func TestStorm(t *testing.T) {
	var all Counts
	rapid.Check(t, func(rt *rapid.T) {
		chance := rapid.SampledFrom([]float64{0, 0, 0.1}).Draw(rt, "chance")
		sh := drawShape(rt)
		s := sh.storm(rt, rapid.Uint64().Draw(rt, "seed"), fmt.Sprintf("fabric.faults={duplicate: %g, delay: %g, max_delay: 30us}", chance, chance))
		results, err := s.run(rt)
		require.NoError(rt, err)
		s.check(rt, results)
		blocks := 0
		for _, c := range s.calls {
			blocks += (c.elements + sh.span - 1) / sh.span
		}
		c := s.group.Counts()
		require.EqualValues(rt, blocks*len(s.tree), c.Blocks)
		require.False(rt, c.Spilled > 0 && sh.table == 0)
		all.Early += c.Early
		all.Spilled += c.Spilled
	})
	require.Positive(t, all.Early, "no packet came before its turn")
	require.Positive(t, all.Spilled, "no place was taken")
}

// The bits of a sum do not depend on when what arrives, with hash tables neither,
// although spilled pairs are added further up.
func TestSameBits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sh := drawShape(rt)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "values"), 2))
		for _, c := range sh.calls {
			for _, v := range c.vectors {
				for _, i := range slices.Sorted(maps.Keys(v)) {
					v[i] = value(rng, true)
				}
			}
		}
		var first [][]byte
		for seed := range uint64(3) {
			results, err := sh.storm(rt, seed, "fabric.faults={delay: 0.2, max_delay: 30us}").run(rt)
			require.NoError(rt, err)
			if seed == 0 {
				first = results
			}
			require.Equal(rt, first, results)
		}
	})
}

// Loss is mended by the transport; without one, the run ends with an error that
// names who waits for what was lost.
func TestLoss(t *testing.T) {
	lost := 0
	rapid.Check(t, func(rt *rapid.T) {
		set := []string{fmt.Sprintf("fabric.faults={loss: %g, corrupt: 0.01, duplicate: 0.05, max_delay: 1us}", rapid.SampledFrom([]float64{0.01, 0.1}).Draw(rt, "loss"))}
		reliable := rapid.Bool().Draw(rt, "reliable")
		if reliable {
			set = append(set, "transport.kind=reliable", "transport.retries=1000", "transport.timeout=20us")
		}
		s := drawShape(rt).storm(rt, rapid.Uint64().Draw(rt, "seed"), set...)
		results, err := s.run(rt)
		if _, n := s.c.LostMessages(); n > 0 && !reliable {
			lost++
			var stuck *sim.StuckError
			require.ErrorAs(rt, err, &stuck)
			require.ErrorContains(rt, err, "results of sparse")
			return
		}
		require.NoError(rt, err)
		s.check(rt, results)
	})
	require.Positive(t, lost, "nothing was lost")
}
