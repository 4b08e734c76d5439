package reduction

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/handlers/allreduce"
	"github.com/spinsim/spinsim/handlers/allreduce/combine"
	_ "github.com/spinsim/spinsim/internal/rapidtest" // fewer checks
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// storm is what members do: calls, each with a vector of each member.
type storm struct {
	c       *runtime.Cluster
	group   *Group
	members []portals.ID
	tree    Tree
	calls   []stormCall
}

type stormCall struct {
	what     string // of whats
	root     int
	bytes    int
	op, kind uint16
	inPlace  bool
	vectors  [][]byte
	delays   []sim.Time // of members, before they begin
	want     []byte
	begun    []sim.Time // of members
	ended    []sim.Time
}

var whats = []string{"allreduce", "reduce", "broadcast", "barrier", "allgather", "reducescatter"}

var networks = [][]string{
	{"fabric.kind=crossbar"},
	{"fabric.kind=leaf-spine", "fabric.radix=0", "fabric.leaf_nodes=3", "fabric.spines=2"},
	{"fabric.radix=4"},
	{"fabric.kind=torus", "fabric.dims=[4, 3]", "fabric.buffer=4KiB"},
}

// drawStorm draws a network with units, a group with a tree in switches or NICs,
// and calls.
func drawStorm(rt *rapid.T, set ...string) *storm {
	ranks := rapid.IntRange(1, 12).Draw(rt, "ranks")
	set = append(append([]string{"fabric.mtu=64"}, rapid.SampledFrom(networks).Draw(rt, "network")...), set...)
	at := rapid.SampledFrom([]string{"leaves", "all"}).Draw(rt, "at")
	p, err := profile.Load(rapid.SampledFrom([]string{"spin-dis", "spin-int"}).Draw(rt, "profile"),
		append(set, "fabric.units={at: "+at+", rate: 1ps/B, wire: 1ns}")...)
	require.NoError(rt, err)
	s := &storm{}
	s.c, err = runtime.NewCluster(runtime.Config{
		Profile: p, Nodes: ranks, Seed: rapid.Uint64().Draw(rt, "seed"), Cores: rapid.IntRange(1, 3).Draw(rt, "cores"),
	})
	require.NoError(rt, err)
	rt.Cleanup(func() { require.NoError(rt, s.c.Close()) })
	inSwitches := rapid.Bool().Draw(rt, "in switches")
	for i := range ranks {
		pid := uint32(1) // behind the aggregator
		if inSwitches {
			pid = 0
		}
		s.members = append(s.members, portals.PhysID(uint32(i), pid))
	}
	if inSwitches {
		s.tree, err = Switches(s.c, s.members, rapid.IntRange(0, 5).Draw(rt, "root"))
	} else {
		s.tree, err = NICs(s.members, rapid.IntRange(1, 4).Draw(rt, "arity"))
	}
	require.NoError(rt, err)
	library, err := Load(s.c)
	require.NoError(rt, err)
	s.group, err = library.Group(Options{
		Members: s.members, Tree: s.tree, Number: rapid.IntRange(0, Groups-1).Draw(rt, "number"), Window: rapid.IntRange(0, 5).Draw(rt, "window"),
	})
	require.NoError(rt, err)
	s.drawCalls(rt)
	return s
}

func (s *storm) drawCalls(rt *rapid.T) {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "data"), 0))
	skew := rapid.SampledFrom([]sim.Time{0, sim.Microsecond, 20 * sim.Microsecond}).Draw(rt, "skew")
	for range rapid.IntRange(1, 4).Draw(rt, "calls") {
		c := stormCall{what: rapid.SampledFrom(whats).Draw(rt, "what"), root: rng.IntN(len(s.members)), op: uint16(1 + rng.IntN(3)), kind: uint16(1 + rng.IntN(4)), inPlace: rng.IntN(2) == 0}
		c.bytes = int(allreduce.Size(c.kind)) * (1 + rng.IntN(rapid.SampledFrom([]int{2, 64, 300}).Draw(rt, "elements")))
		switch c.what {
		case "barrier":
			c.bytes = 0
		case "reducescatter":
			c.bytes *= len(s.members)
		case "broadcast", "allgather":
			c.bytes -= rng.IntN(int(allreduce.Size(c.kind))) // of no type
		}
		c.begun, c.ended = make([]sim.Time, len(s.members)), make([]sim.Time, len(s.members))
		for range s.members {
			c.vectors = append(c.vectors, elements(rng, c.bytes, c.kind))
			c.delays = append(c.delays, sim.Time(rng.Int64N(int64(skew)+1)))
		}
		switch c.want = c.vectors[c.root]; c.what {
		case "allreduce", "reduce", "reducescatter":
			c.want = s.tree.fold(0, &c)
		case "allgather":
			c.want = bytes.Join(c.vectors, nil)
		}
		s.calls = append(s.calls, c)
	}
}

// elements are a vector whose sums round, and that has special values.
func elements(rng *rand.Rand, n int, kind uint16) []byte {
	b := make([]byte, n)
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, 1e-320}
	for i := 0; i+int(allreduce.Size(kind)) <= n; i += int(allreduce.Size(kind)) {
		x := rng.NormFloat64() * math.Pow(10, float64(rng.IntN(12)))
		if rng.IntN(8) == 0 {
			x = special[rng.IntN(len(special))]
		}
		switch kind {
		case allreduce.Float32:
			binary.LittleEndian.PutUint32(b[i:], math.Float32bits(float32(x)))
		case allreduce.Float64:
			binary.LittleEndian.PutUint64(b[i:], math.Float64bits(x))
		case allreduce.Int32:
			binary.LittleEndian.PutUint32(b[i:], rng.Uint32())
		default:
			binary.LittleEndian.PutUint64(b[i:], rng.Uint64())
		}
	}
	return b
}

// fold is the sum below an aggregator, in the order of the children.
func (t Tree) fold(at int, c *stormCall) (sum []byte) {
	for i, child := range t[at].Children {
		var x []byte
		if child.Inner {
			x = t.fold(child.Number, c)
		} else {
			x = c.vectors[child.Number]
		}
		if i == 0 {
			sum = append(sum, x...)
		} else {
			combine.Vectors(sum, x, c.op, c.kind)
		}
	}
	return sum
}

// run has the members call and compares every byte.
func (s *storm) run(rt require.TestingT) error {
	for rank := range s.members {
		require.NoError(rt, s.c.Spawn(rank, "member", func(p *runtime.Proc) error {
			m, err := s.group.Open(p, rank, nil)
			if err != nil {
				return err
			}
			for i := range s.calls {
				if err := s.calls[i].do(p, m); err != nil {
					return fmt.Errorf("call %d at rank %d: %w", i, rank, err)
				}
			}
			return nil
		}))
	}
	err := s.c.Run(context.Background())
	failed, n := s.c.HandlerErrors()
	require.Zero(rt, n, "%v", failed)
	return err
}

// do makes a call at a member and compares every byte.
func (c *stormCall) do(p *runtime.Proc, m *Member) (err error) {
	source, result := p.Alloc(c.bytes), p.Alloc(c.bytes)
	if c.inPlace {
		result = source
	}
	p.Sleep(c.delays[m.rank])
	c.begun[m.rank] = p.Now()
	source.CopyFrom(c.vectors[m.rank])
	want := c.want
	switch call := (allreduce.Call{Source: source, Result: result, Op: c.op, Type: c.kind}); c.what {
	case "allreduce":
		err = m.Begin(call)
	case "reduce":
		if err = m.Reduce(call, c.root); m.rank != c.root {
			want = bytes.Clone(result.Read())
		}
	case "allgather":
		result = p.Alloc(len(c.want))
		result.Slice(m.rank*c.bytes, (m.rank+1)*c.bytes).CopyFrom(c.vectors[m.rank])
		err = m.Allgather(source, result)
	case "reducescatter":
		piece := c.bytes / len(c.begun)
		want = want[m.rank*piece:][:piece]
		if result = p.Alloc(piece); c.inPlace {
			result = source.Slice(m.rank*piece, (m.rank+1)*piece)
		}
		call.Result = result
		err = m.ReduceScatter(call)
	case "broadcast":
		result = source
		err = m.Broadcast(source, c.root)
	default:
		err = m.Barrier()
	}
	if err == nil {
		err = m.Wait()
	}
	c.ended[m.rank] = p.Now()
	if got := result.Read(); err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("%s of %d B, root %d: %x, expected %x", c.what, c.bytes, c.root, got, want)
	}
	return err
}

// Whatever groups combine, in whichever tree, network and order of arrival:
// every member has the sum in the order of the tree, bit by bit, or the root alone,
// or what the root had; nobody leaves a barrier before all have come; every child
// sends each block once, and nothing is strange.
func TestStorm(t *testing.T) {
	early := uint64(0)
	rapid.Check(t, func(rt *rapid.T) {
		chance := rapid.SampledFrom([]float64{0, 0, 0.1}).Draw(rt, "chance")
		s := drawStorm(rt, fmt.Sprintf("fabric.faults={duplicate: %g, delay: %g, max_delay: 30us}", chance, chance))
		require.NoError(rt, s.run(rt))
		blocks, children := 0, 0
		for _, c := range s.calls {
			switch n := (c.bytes + 63) / 64; c.what {
			case "allgather":
				blocks += n * len(s.members)
			case "reducescatter":
				blocks += (c.bytes/len(s.members) + 63) / 64 * len(s.members)
			default:
				blocks += max(1, n)
			}
			if c.what == "barrier" {
				require.LessOrEqual(rt, slices.Max(c.begun), slices.Min(c.ended), "a member left before another came")
			}
		}
		for _, a := range s.tree {
			children += len(a.Children)
		}
		c := s.group.Counts()
		require.Equal(rt, Counts{
			Vectors: uint64(blocks * children), Early: c.Early, Blocks: uint64(blocks * len(s.tree)), Results: uint64(blocks * (len(s.tree) - 1)),
		}, c)
		early += c.Early
	})
	require.Positive(t, early, "no vector came before its turn")
}

// Loss is mended by the transport; without one, the run ends with an error that
// names who waits for what was lost.
func TestLoss(t *testing.T) {
	lost := 0
	rapid.Check(t, func(rt *rapid.T) {
		set := []string{fmt.Sprintf("fabric.faults={loss: %g, corrupt: 0.01}", rapid.SampledFrom([]float64{0.01, 0.1}).Draw(rt, "loss"))}
		reliable := rapid.Bool().Draw(rt, "reliable")
		if reliable {
			set = append(set, "transport.kind=reliable", "transport.retries=1000", "transport.timeout=20us")
		}
		s := drawStorm(rt, set...)
		err := s.run(rt)
		if _, n := s.c.LostMessages(); n > 0 && !reliable {
			lost++
			var stuck *sim.StuckError
			require.ErrorAs(rt, err, &stuck)
			require.ErrorContains(rt, err, "results of reduction")
			return
		}
		require.NoError(rt, err)
		require.Zero(rt, s.group.Counts().Strange)
	})
	require.Positive(t, lost, "nothing was lost")
}

// Roots that differ break the group.
func TestRootsRefused(t *testing.T) {
	c := newCluster(t, 2)
	members := []portals.ID{portals.PhysID(0, 1), portals.PhysID(1, 1)}
	tree, err := NICs(members, 1)
	require.NoError(t, err)
	library, err := Load(c)
	require.NoError(t, err)
	g, err := library.Group(Options{Members: members, Tree: tree})
	require.NoError(t, err)
	for rank := range members {
		require.NoError(t, c.Spawn(rank, "p", func(p *runtime.Proc) error {
			m, err := g.Open(p, rank, nil)
			require.NoError(t, err)
			v := p.Alloc(8)
			require.EqualError(t, m.Broadcast(v, 2), "reduction: root 2, expected one of 2 members")
			require.EqualError(t, m.Broadcast(v.Slice(0, 0), 0), "reduction: a broadcast of 0 B, expected at least one")
			require.ErrorContains(t, m.Reduce(allreduce.Call{Source: v, Result: v}, 0), "expected whole elements")
			require.EqualError(t, m.Allgather(v, v), "reduction: 8 B of each of 2 members, and 8 B for all, expected 16 B, at least one of each")
			require.EqualError(t, m.ReduceScatter(allreduce.Call{Source: v, Result: v}), "reduction: 8 B for the result, expected one of 2 pieces of 8 B")
			require.NoError(t, m.Broadcast(v, rank))
			require.ErrorIs(t, m.Broadcast(v, rank), ErrBusy)
			require.ErrorIs(t, m.Wait(), ErrDiffers)
			require.ErrorIs(t, m.Barrier(), ErrDiffers)
			return nil
		}))
	}
	require.NoError(t, c.Run(t.Context()))
}
