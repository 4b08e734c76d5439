package allreduce

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/internal/poison"
	_ "github.com/spinsim/spinsim/internal/rapidtest" // fewer checks
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// group is a cluster whose nodes have a process each, rank r on node r.
type group struct {
	c       *runtime.Cluster
	library *Loaded
	members []portals.ID
	modules []*Module
}

func newGroup(t require.TestingT, cleanup func(func()), name string, ranks int, cfg runtime.Config, set ...string) *group {
	p, err := profile.Load(name, set...)
	require.NoError(t, err)
	cfg.Profile, cfg.Nodes = p, ranks
	c, err := runtime.NewCluster(cfg)
	require.NoError(t, err)
	cleanup(func() { require.NoError(t, c.Close()) })
	g := &group{c: c, members: make([]portals.ID, ranks), modules: make([]*Module, ranks)}
	g.library, err = Load(c)
	require.NoError(t, err)
	for i := range g.members {
		g.members[i] = portals.PhysID(uint32(i), 0)
	}
	return g
}

// spawn starts a program on every node, with a module.
func (g *group) spawn(t require.TestingT, o Options, f func(p *runtime.Proc, m *Module) error) {
	for rank := range g.members {
		require.NoError(t, g.c.Spawn(rank, fmt.Sprintf("rank %d", rank), func(p *runtime.Proc) (err error) {
			o := o
			o.Members, o.Rank = g.members, rank
			if g.modules[rank], err = g.library.Open(p, o); err != nil {
				return err
			}
			return f(p, g.modules[rank])
		}))
	}
}

func (g *group) counts() (sum Counts) {
	for _, m := range g.modules {
		c := m.Counts()
		sum.Calls += c.Calls
		sum.Sent += c.Sent
		sum.Received += c.Received
		sum.Early += c.Early
		sum.Duplicates += c.Duplicates
		sum.Strange += c.Strange + c.Foreign + c.Busy
	}
	return sum
}

var (
	// all memory is there, and no look-up of addresses
	allThere   = []string{"os.kind=none", "smmu.kind=none"}
	algorithms = []uint32{Boards, Doubling, Ring}
	networks   = []string{"exanest", "exanest-qfdb", "spin-int", "spin-dis"}
)

// storm is what ranks do: calls, each with a vector of each rank.
type storm struct {
	ranks   int
	network string
	o       Options
	calls   []stormCall
}

type stormCall struct {
	bytes    int
	op, kind uint16
	inPlace  bool
	vectors  [][]byte
	delays   []sim.Time // of ranks, before they begin
}

// drawStorm draws calls; most is the largest number of ranks.
func drawStorm(rt *rapid.T, most int) *storm {
	s := &storm{ranks: rapid.IntRange(1, most).Draw(rt, "ranks"), network: rapid.SampledFrom(networks).Draw(rt, "network")}
	s.o.Algorithm = rapid.SampledFrom(algorithms).Draw(rt, "algorithm")
	if s.o.Algorithm == Boards {
		s.ranks = (s.ranks + 3) / 4 * 4
	}
	if s.network == "exanest-qfdb" {
		s.ranks = min(s.ranks, 16)
	}
	s.o.Window = rapid.IntRange(1, 9).Draw(rt, "window")
	s.o.Block = 8 * rapid.IntRange(1, 32).Draw(rt, "words in a block")
	s.o.PDID = rapid.Uint16().Draw(rt, "pdid")
	s.o.Group = rapid.Uint16Range(0, Groups-1).Draw(rt, "group")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "data"), 0))
	skew := rapid.SampledFrom([]sim.Time{0, sim.Microsecond, 20 * sim.Microsecond}).Draw(rt, "skew")
	for range rapid.IntRange(1, 6).Draw(rt, "calls") {
		c := stormCall{op: uint16(1 + rng.IntN(3)), kind: uint16(1 + rng.IntN(4)), inPlace: rng.IntN(2) == 0}
		size := int(Size(c.kind))
		c.bytes = size * (1 + rng.IntN(rapid.SampledFrom([]int{2, 64, 700}).Draw(rt, "elements")))
		for range s.ranks {
			c.vectors = append(c.vectors, elements(rng, c.bytes, c.kind))
			c.delays = append(c.delays, sim.Time(rng.Int64N(int64(skew)+1)))
		}
		s.calls = append(s.calls, c)
	}
	return s
}

// elements are a vector whose sums round, and that has infinities, zeros of
// both signs and not-a-numbers.
func elements(rng *rand.Rand, n int, kind uint16) []byte {
	b := make([]byte, n)
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, 1e-320}
	for i := 0; i < n; i += int(Size(kind)) {
		x := rng.NormFloat64() * math.Pow(10, float64(rng.IntN(12)))
		if rng.IntN(8) == 0 {
			x = special[rng.IntN(len(special))]
		}
		switch kind {
		case Float32:
			binary.LittleEndian.PutUint32(b[i:], math.Float32bits(float32(x)))
		case Float64:
			binary.LittleEndian.PutUint64(b[i:], math.Float64bits(x))
		case Int32:
			binary.LittleEndian.PutUint32(b[i:], rng.Uint32())
		default:
			binary.LittleEndian.PutUint64(b[i:], rng.Uint64())
		}
	}
	return b
}

// run has the ranks call, back to back but for the delays, and compares every byte.
func (s *storm) run(rt require.TestingT, g *group) error {
	g.spawn(rt, s.o, func(p *runtime.Proc, m *Module) error {
		var source, result runtime.View
		for i := range s.calls {
			c := &s.calls[i]
			source, result = p.Alloc(c.bytes), p.Alloc(c.bytes)
			if c.inPlace {
				result = source
			}
			source.CopyFrom(c.vectors[p.Rank()])
			p.Sleep(c.delays[p.Rank()])
			if err := m.Begin(Call{Source: source, Result: result, Op: c.op, Type: c.kind}); err != nil {
				return err
			}
			if err := m.Wait(); err != nil {
				return err
			}
			require.Equal(rt, reference(s.o.Algorithm, c.vectors, s.o.Block, c.op, c.kind), result.Read(), "call %d at rank %d", i, p.Rank())
			if !c.inPlace {
				require.Equal(rt, c.vectors[p.Rank()], source.Read())
			}
		}
		return nil
	})
	err := g.c.Run(context.Background())
	failed, n := g.c.HandlerErrors()
	require.Zero(rt, n, "%v", failed)
	return err
}

// Whatever groups combine, by whichever algorithm, on whichever device and
// pool: every rank has the result of the sequential reference, bit by bit;
// vectors that come before their turn are kept, and each vector is sent once.
func TestStorm(t *testing.T) {
	most := 40
	if testing.Short() {
		most = 20
	}
	var all Counts
	rapid.Check(t, func(rt *rapid.T) {
		s := drawStorm(rt, most)
		chance := rapid.SampledFrom([]float64{0, 0, 0.1}).Draw(rt, "chance")
		set := []string{fmt.Sprintf("fabric.faults={duplicate: %g, delay: %g, max_delay: 30us}", chance, chance)}
		if s.network == "exanest" || s.network == "exanest-qfdb" {
			if rapid.Bool().Draw(rt, "all memory is there") {
				set = append(set, allThere...)
			}
			set = append(set, "serve.allreduce.payload="+rapid.SampledFrom([]string{"hpu", "r5", "cells", "mailbox"}).Draw(rt, "pool"))
		}
		g := newGroup(rt, rt.Cleanup, s.network, s.ranks, runtime.Config{Seed: rapid.Uint64().Draw(rt, "seed")}, set...)
		require.NoError(rt, s.run(rt, g))
		_, failures := g.c.Failures()
		require.Zero(rt, failures)
		c := g.counts()
		require.EqualValues(rt, s.ranks*len(s.calls), c.Calls)
		require.Equal(rt, c.Sent, c.Received)
		require.Zero(rt, c.Strange)
		require.Zero(rt, c.Duplicates, "the device drops copies of packets")
		all.Early += c.Early
	})
	require.Positive(t, all.Early, "no vector came before its turn")
}

// A vector that is lost or damaged ends the run with an error that names it and
// who waits; with an end-to-end transport it comes again, and the result is
// right.
func TestLoss(t *testing.T) {
	lost := 0
	rapid.Check(t, func(rt *rapid.T) {
		s := drawStorm(rt, 12)
		chance := rapid.SampledFrom([]float64{0.01, 0.1}).Draw(rt, "chance")
		reliable := rapid.Bool().Draw(rt, "reliable")
		set := []string{fmt.Sprintf("fabric.faults={loss: %g, corrupt: %g}", chance, chance)}
		if reliable {
			set = append(set, "transport.kind=reliable", "transport.retries=1000", "transport.timeout=20us")
		}
		g := newGroup(rt, rt.Cleanup, s.network, s.ranks, runtime.Config{Seed: rapid.Uint64().Draw(rt, "seed")}, set...)
		err := s.run(rt, g)
		messages, n := g.c.LostMessages()
		if reliable {
			require.NoError(rt, err)
			return
		}
		if n == 0 {
			require.NoError(rt, err)
			return
		}
		lost++
		var stuck *sim.StuckError
		require.ErrorAs(rt, err, &stuck)
		require.ErrorContains(rt, err, "results of allreduce")
		require.NotEmpty(rt, messages)
	})
	require.Positive(t, lost, "nothing was lost")
}

// Calls that differ, descriptors that are wrong and tables of others end with
// an error that says so.
func TestRefused(t *testing.T) {
	g := newGroup(t, t.Cleanup, "exanest", 4, runtime.Config{}, allThere...)
	g.spawn(t, Options{Algorithm: Doubling}, func(p *runtime.Proc, m *Module) error {
		v, w := p.Alloc(64), p.Alloc(32)
		for want, c := range map[string]Call{
			"32 B for the result, expected 64 B":        {Source: v, Result: w, Op: Sum, Type: Int32},
			"operation 4, type 1":                       {Source: v, Result: v, Op: 4, Type: Int32},
			"operation 1, type 5":                       {Source: v, Result: v, Op: 1, Type: 5},
			"0 B, operation 1, type 1: expected whole":  {Source: v.Slice(0, 0), Result: v.Slice(0, 0), Op: 1, Type: 1},
			"12 B, operation 1, type 4: expected whole": {Source: v.Slice(0, 12), Result: v.Slice(0, 12), Op: 1, Type: 4},
		} {
			require.ErrorContains(t, m.Begin(c), want)
		}
		n := 64
		if p.Rank() == 3 {
			n = 32
		}
		c := Call{Source: v.Slice(0, n), Result: v.Slice(0, n), Op: Sum, Type: Int32}
		if err := m.Begin(c); err != nil {
			return err
		}
		require.ErrorIs(t, m.Begin(c), ErrBusy)
		err := m.Wait()
		require.ErrorIs(t, err, ErrDiffers)
		require.ErrorIs(t, m.Begin(c), ErrDiffers)
		return err
	})
	require.ErrorIs(t, g.c.Run(context.Background()), ErrDiffers)
}

func TestOptions(t *testing.T) {
	g := newGroup(t, t.Cleanup, "exanest", 6, runtime.Config{}, append([]string{"hpu.max_hpu_memory=1048576"}, allThere...)...)
	require.NoError(t, g.c.Spawn(0, "p", func(p *runtime.Proc) error {
		legal := Options{Members: g.members, Algorithm: Ring}
		for want, change := range map[string]func(o *Options){
			"rank 6 of 6":                    func(o *Options) { o.Rank = 6 },
			"algorithm 0, expected":          func(o *Options) { o.Algorithm = 0 },
			"6 ranks, expected whole boards": func(o *Options) { o.Algorithm = Boards },
			"264 B in a run":                 func(o *Options) { o.Block = 264 },
			"12 B in a run":                  func(o *Options) { o.Block = 12 },
			"a window of -1":                 func(o *Options) { o.Window = -1 },
			"group 124, expected":            func(o *Options) { o.Group = Groups },
			"not rank 1":                     func(o *Options) { o.Rank = 1 },
			"at most 1048576 on this device (hpu.max_hpu_memory)": func(o *Options) { o.Window = 4096; o.Algorithm = Doubling },
		} {
			o := legal
			change(&o)
			_, err := g.library.Open(p, o)
			require.ErrorContains(t, err, want)
		}
		_, err := g.library.Open(p, legal)
		require.NoError(t, err)
		_, err = g.library.Open(p, legal)
		require.ErrorIs(t, err, portals.ErrPTInUse)
		return nil
	}))
	require.NoError(t, g.c.Run(context.Background()))
}

// A handler that may read few places at once reads so many vectors. It does not
// begin if it would have to look up more ranks.
func TestFewHandles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	s := &storm{ranks: 4, o: Options{Algorithm: Doubling, Window: 9, Block: 64}}
	c := stormCall{bytes: 20 * 64, op: Sum, kind: Int32, delays: make([]sim.Time, s.ranks)}
	for range s.ranks {
		c.vectors = append(c.vectors, elements(rng, c.bytes, c.kind))
	}
	s.calls = []stormCall{c}
	for _, handles := range []string{"2", "4"} {
		require.NoError(t, s.run(t, newGroup(t, t.Cleanup, "spin-int", s.ranks, runtime.Config{}, "hpu.dma_handles="+handles)))
	}
	few := newGroup(t, t.Cleanup, "spin-int", 8, runtime.Config{}, "hpu.dma_handles=2")
	few.spawn(t, s.o, func(*runtime.Proc, *Module) error { return nil })
	require.ErrorContains(t, few.c.Run(context.Background()), "looks up 3 ranks at once, and its device reads 2 places (hpu.dma_handles)")
}

// A module refuses vectors of another protection domain and counts them.
func TestForeign(t *testing.T) {
	g := newGroup(t, t.Cleanup, "exanest", 4, runtime.Config{}, allThere...)
	for rank := range g.members {
		require.NoError(t, g.c.Spawn(rank, "p", func(p *runtime.Proc) (err error) {
			o := Options{Members: g.members, Rank: rank, Algorithm: Boards, PDID: 7}
			if rank == 2 {
				o.PDID = 8
			}
			if g.modules[rank], err = g.library.Open(p, o); err != nil {
				return err
			}
			v := p.Alloc(8)
			if err := g.modules[rank].Begin(Call{Source: v, Result: v, Op: Sum, Type: Int64}); err != nil {
				return err
			}
			return g.modules[rank].Wait()
		}))
	}
	var stuck *sim.StuckError
	require.ErrorAs(t, g.c.Run(context.Background()), &stuck)
	require.EqualValues(t, 1, g.modules[0].Counts().Foreign)
}

// A run in the steady state allocates nothing, whichever algorithm and pool:
// neither cells nor handlers nor the driver.
func TestAllocations(t *testing.T) {
	for _, algorithm := range algorithms {
		const warm, rounds, ranks = 20, 200, 16
		g := newGroup(t, t.Cleanup, "exanest", ranks, runtime.Config{}, allThere...)
		var before, after goruntime.MemStats
		g.spawn(t, Options{Algorithm: algorithm, Window: 3, Block: 128}, func(p *runtime.Proc, m *Module) error {
			v := p.Alloc(1000)
			for i := range warm + rounds {
				if i == warm && p.Rank() == 0 {
					goruntime.ReadMemStats(&before)
				}
				if err := m.Begin(Call{Source: v, Result: v, Op: Sum, Type: Float64}); err != nil {
					return err
				}
				if err := m.Wait(); err != nil {
					return err
				}
			}
			if p.Rank() == 0 {
				goruntime.ReadMemStats(&after)
			}
			return nil
		})
		require.NoError(t, g.c.Run(context.Background()))
		if poison.On {
			continue // nothing is used again
		}
		require.Less(t, after.Mallocs-before.Mallocs, uint64(rounds/2), "algorithm %d: %d rounds of %d ranks", algorithm, rounds, ranks)
	}
}
