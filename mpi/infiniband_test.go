package mpi_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

func infiniBandWorld(t require.TestingT, cleanup func(func()), ranks int, o mpi.Options, cfg runtime.Config, overrides ...string) *mpi.World {
	return worldWith(t, cleanup, "ib-npf", ranks, o, cfg, append([]string{"storage.read_latency=30us", "storage.write_latency=10us", "storage.bandwidth=2GB/s"}, overrides...)...)
}

// strategies returns all strategies of package pinning, with bounds that
// messages reach.
func strategies() []pinning.Options {
	return []pinning.Options{
		{Kind: pinning.NoneKind},
		{Kind: pinning.BounceKind, Buffer: 16 * pageBytes},
		{Kind: pinning.CacheKind, Bound: 4 * pageBytes},
		{Kind: pinning.CacheKind, Bound: 64 * pageBytes, Bucket: 2 * pageBytes},
		{Kind: pinning.FirehoseKind, Bound: 32 * pageBytes, Victims: 3 * pageBytes, Bucket: 2 * pageBytes},
		{Kind: pinning.FineKind},
		{Kind: pinning.StaticKind},
	}
}

func drawInfiniBand(rt *rapid.T, ranks int) *mpi.World {
	o := mpi.DefaultInfiniBandOptions()
	o.Eager = rapid.SampledFrom([]int{0, 7, 1000, 12 << 10}).Draw(rt, "eager")
	o.Buffers = rapid.SampledFrom([]int{1, 2, 32, 64}).Draw(rt, "buffers")
	o.PerNode = rapid.IntRange(1, 3).Draw(rt, "ranks on a node")
	o.InfiniBand.Pinning = rapid.SampledFrom(strategies()).Draw(rt, "strategy")
	if o.InfiniBand.Piece = rapid.SampledFrom([]int{0, pageBytes}).Draw(rt, "piece"); o.InfiniBand.Pinning.Kind == pinning.BounceKind {
		o.InfiniBand.Piece = pageBytes
	}
	o.InfiniBand.Connections = rnr.Options{OnePage: rapid.Bool().Draw(rt, "a page at a time"), Pause: 1, Timeout: 5 * sim.Millisecond}
	cfg := runtime.Config{Seed: rapid.Uint64().Draw(rt, "seed")}
	overrides := []string{fmt.Sprintf("fabric.mtu=%d", rapid.SampledFrom([]int{256, 4096}).Draw(rt, "mtu")), "pools.firmware.invocation=5us"}
	if rapid.IntRange(0, 3).Draw(rt, "faults of the network") == 0 {
		overrides = append(overrides, "fabric.faults={loss: 0.01, corrupt: 0.01, duplicate: 0.02, delay: 0.02, max_delay: 3us}")
	}
	return infiniBandWorld(rt, rt.Cleanup, ranks, o, cfg, overrides...)
}

// Random programs with every strategy, with pieces and bounds of a few pages,
// on networks that lose packets. Every message arrives once and whole, and
// pairs up like in the simple matcher.
func TestInfiniBandMatching(t *testing.T) {
	var all mpi.Stats
	worlds := 0
	rapid.Check(t, func(rt *rapid.T) {
		ranks := rapid.IntRange(1, 4).Draw(rt, "ranks")
		w := drawInfiniBand(rt, ranks)
		matches(rt, w, ranks)
		for node := range w.Cluster().Nodes() {
			require.Zero(rt, w.Cluster().Node(node).Kernel().Stats().PinsHeld)
		}
		s := w.Stats()
		all.Large += s.Large
		all.Unexpected += s.Unexpected
		worlds++
	})
	if worlds >= 100 {
		require.Positive(t, all.Large)
		require.Positive(t, all.Unexpected)
	}
}

// Every strategy carries messages of all sizes in both directions between three
// ranks, while a thief keeps taking away all pages that are not pinned. Every
// byte arrives, every pin is undone, and the interface meets absent pages only
// if nothing is pinned. The last strategy wrongly pins nothing, and the test
// finds it.
func TestInfiniBandThieves(t *testing.T) {
	forgets := len(strategies())
	for i, s := range append(strategies(), pinning.Options{Kind: pinning.CacheKind, Bound: 64 * pageBytes}) {
		t.Run(fmt.Sprintf("%s/%d", s.Kind, i), func(t *testing.T) {
			o := mpi.DefaultInfiniBandOptions()
			o.InfiniBand.Pinning = s
			if s.Kind == pinning.BounceKind {
				o.InfiniBand.Piece = pageBytes
			}
			w := infiniBandWorld(t, t.Cleanup, 3, o, runtime.Config{}, "smmu.stale=poison", "pools.firmware.invocation=5us")
			every := 2
			if s.Kind == pinning.NoneKind || i == forgets {
				every = 200 // else pages go as fast as they come
			}
			for rank := range 3 {
				require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
					if i == forgets {
						none, err := pinning.New(nil, nil, pinning.Options{Kind: pinning.NoneKind})
						if err != nil {
							return err
						}
						*mpi.StrategyOf(r) = none
					}
					return robbed(r, every)
				}))
			}
			require.NoError(t, w.Run(context.Background()))
			faults, pins := int64(0), int64(0)
			for node := range 3 {
				n := w.Pinning(node)
				require.Zero(t, n.Leased)
				require.Zero(t, n.Pinned)
				require.Positive(t, n.Leases)
				require.Equal(t, n.Pins, n.Unpins)
				pins += n.Pins
				k := w.Cluster().Node(node).Kernel()
				require.NoError(t, k.Audit())
				require.Zero(t, k.Stats().PinsHeld)
				faults += mpi.ConnectionsOf(w).Stats(node).Faults
			}
			if s.Kind == pinning.NoneKind || i == forgets {
				require.Positive(t, faults)
				require.Zero(t, pins)
				return
			}
			require.Zero(t, faults, "memory that was not pinned was used")
			require.Positive(t, pins)
		})
	}
}

// robbed exchanges messages with both neighbours. It takes away all pages of
// one of its two buffers that are not pinned: when the messages start, and then
// at random, in one turn of every `every` turns.
func robbed(r *mpi.Rank, every int) error {
	sizes := []int{1, 4095, 12 << 10, 12<<10 + 1, 40000, 131072}
	rng := rand.New(rand.NewPCG(uint64(r.Rank()), 3))
	p := mpi.ProcOf(r)
	for turn := range 12 {
		n := sizes[turn%len(sizes)]
		var all, in [2]runtime.View
		requests := 4
		for side := range 2 {
			var err error
			if all[side], err = r.Alloc(2*n + 8192); err != nil {
				return err
			}
			off := rng.IntN(4096)
			in[side] = all[side].Slice(n+off, 2*n+off)
			out := all[side].Slice(off/2, off/2+n)
			to := (r.Rank() + 1 + side) % 3
			fill(out.Write(), mpi.Status{Source: r.Rank(), Tag: uint32(side), Sequence: uint32(turn)})
			if _, err := r.Irecv(in[side], (r.Rank()+2-side)%3, uint32(side)); err != nil {
				return err
			}
			if _, err := r.Isend(out, to, uint32(side)); err != nil {
				return err
			}
		}
		for steal := true; requests > 0; steal = rng.IntN(every) == 0 {
			if v := all[rng.IntN(2)]; steal {
				if err := p.OS().PageOut(p.Thread(), v.Addr()&^(host.PageBytes-1), uint64(v.Len())); err != nil {
					return err
				}
			}
			q, err := r.Test()
			if err != nil {
				return err
			}
			if q != nil {
				r.Free(q)
				requests--
			}
			r.Compute(5 * sim.Microsecond)
		}
		for side := range 2 {
			want := make([]byte, n)
			fill(want, mpi.Status{Source: (r.Rank() + 2 - side) % 3, Tag: uint32(side), Sequence: uint32(turn)})
			if string(in[side].Read()) != string(want) {
				return fmt.Errorf("rank %d: message of %d B in turn %d is not what was sent", r.Rank(), n, turn)
			}
		}
	}
	return nil
}

// Collective operations over InfiniBand give the results of a loop over all
// ranks, with each strategy.
func TestInfiniBandCollectives(t *testing.T) {
	ranks := []int{1, 2, 3, 5, 8, 13, 16}
	if testing.Short() {
		ranks = []int{1, 5, 8}
	}
	for i, n := range ranks {
		o := mpi.DefaultInfiniBandOptions()
		o.Algorithms = mpi.AlgorithmChoices()[i%2]
		o.Eager = 200 // vectors have up to 3,000 B
		o.InfiniBand.Pinning = strategies()[i%len(strategies())]
		if o.InfiniBand.Pinning.Kind == pinning.BounceKind {
			o.InfiniBand.Piece = pageBytes
		}
		collectives(t, "ib-npf", n, 15, o)
	}
}

// A synchronous send of any length completes only when its message has a
// receive: to another rank and to itself, over InfiniBand and over ExaNet.
func TestSynchronous(t *testing.T) {
	const late = 50 * sim.Microsecond
	for i, n := range []int{0, 8, 50000, 0, 8, 5000, 50000} {
		w := infiniBandWorld(t, t.Cleanup, 2, mpi.DefaultInfiniBandOptions(), runtime.Config{})
		if i > 2 {
			w = exanetWorld(t, t.Cleanup, 2, mpi.DefaultExaNetOptions(), runtime.Config{}, allThere...)
		}
		for me := range 2 {
			require.NoError(t, w.Spawn(me, func(r *mpi.Rank) error {
				data, err := r.Alloc(2 * n)
				if err != nil {
					return err
				}
				for target := range 2 {
					if err := r.World().Barrier(); err != nil {
						return err
					}
					begin := r.Now()
					var send, receive *mpi.Request
					if me == 0 {
						if send, err = r.World().Start(mpi.Send{Data: mpi.Data{Memory: data.Slice(0, n)}, To: target, Mode: mpi.Synchronous}); err != nil {
							return err
						}
					}
					if me == target {
						r.Compute(late)
						if q, err := r.Test(); q != nil || err != nil {
							return fmt.Errorf("something is over before there is a receive: %w", err)
						}
						if receive, err = r.Irecv(data.Slice(n, 2*n), 0, 0); err != nil {
							return err
						}
					}
					for _, q := range []*mpi.Request{send, receive} {
						if q == nil {
							continue
						}
						if _, err := r.Wait(q); err != nil {
							return err
						}
						if took := r.Now() - begin; took < late {
							return fmt.Errorf("%d B to rank %d took %v", n, target, took)
						}
					}
				}
				return nil
			}))
		}
		require.NoError(t, w.Run(context.Background()))
	}
}

// The errors for invalid options name the fault.
func TestInfiniBandOptions(t *testing.T) {
	for _, c := range []struct {
		change func(o *mpi.Options)
		want   string
	}{
		{func(o *mpi.Options) { o.Matching = mpi.Offload }, "over InfiniBand the process matches"},
		{func(o *mpi.Options) { o.Allreduce = mpi.ModeRing }, "over InfiniBand processes compute it"},
		{func(o *mpi.Options) { o.Buffers = 65 }, "expected 1 to 64"},
		{func(o *mpi.Options) { o.InfiniBand.Piece = 5 }, "expected a multiple of 4096 B"},
		{func(o *mpi.Options) { o.InfiniBand.Pinning.Kind = "most" }, "expected one of static"},
		{func(o *mpi.Options) {
			o.InfiniBand.Pinning = pinning.Options{Kind: pinning.CacheKind, Bound: 3 * pageBytes}
		}, "12288 B, expected room for four pieces"},
		{func(o *mpi.Options) {
			o.InfiniBand.Pinning = pinning.Options{Kind: pinning.BounceKind, Buffer: 15 * pageBytes}
		}, "expected room for four pieces of 65536 B"},
	} {
		o := mpi.DefaultInfiniBandOptions()
		c.change(&o)
		require.ErrorContains(t, o.Validate(), c.want)
	}
	p, err := profile.Load("ib-npf", "os.kind=none", "smmu.kind=none")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 2})
	require.NoError(t, err)
	o := mpi.DefaultInfiniBandOptions()
	o.InfiniBand.Pinning.Kind = pinning.FineKind
	_, err = mpi.New(c, o)
	require.ErrorContains(t, err, "profile ib-npf has no operating system")
	require.NoError(t, c.Close())
}
