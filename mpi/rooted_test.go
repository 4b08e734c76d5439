package mpi_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// rootedCalls are calls of a group, drawn alike at all its members.
type rootedCalls struct {
	trials       []trial
	begun, ended [][]sim.Time // of each trial, by rank of the group
}

func drawRooted(seed uint64, calls, size int) *rootedCalls {
	g := &rootedCalls{}
	rng := rand.New(rand.NewPCG(seed, 7))
	for range calls {
		tr := trial{
			what: []string{"bcast", "reduce", "barrier", "allreduce", "allgather", "reducescatter"}[rng.IntN(6)], root: rng.IntN(size), seed: rng.Uint64(), later: true, inPlace: rng.IntN(3) == 0,
			op: []*mpi.Op{mpi.Sum, mpi.Min, mpi.Max}[rng.IntN(3)], t: []mpi.Type{mpi.Int32, mpi.Int64}[rng.IntN(2)],
			n: 8 * []int{0, 1, 7, 500, 512, 5000, 20_000}[rng.IntN(7)],
		}
		switch {
		case tr.what == "reducescatter":
			tr.counts = slices.Repeat([]int{tr.n}, size)
			tr.n *= size
		case tr.n > 0 && (tr.what == "bcast" || tr.what == "allgather"):
			tr.n -= rng.IntN(8)
		}
		g.trials = append(g.trials, tr)
		g.begun, g.ended = append(g.begun, make([]sim.Time, size)), append(g.ended, make([]sim.Time, size))
	}
	return g
}

// Trees of groups, which share switches, do what processes do: whoever is the root,
// with any number of packets, none of them too, of groups of one, with loss that
// the transport mends, and at the same times on several cores. Nobody leaves a
// barrier before all have come.
func TestRooted(t *testing.T) {
	const rows, columns, calls = 3, 4, 14
	groups := grid(rows, columns)
	for _, mode := range []mpi.Mode{mpi.ModeHost, mpi.ModeTree, mpi.ModeSwitch} {
		for _, loss := range []string{"0", "0.02"} {
			var first []sim.Time
			for cores := 1; cores <= 2; cores++ {
				o := mpi.DefaultOptions(mpi.Host)
				o.Allreduce, o.Rooted, o.Ranks, o.Groups = mode, true, rows*columns, groups
				w := worldWith(t, t.Cleanup, "spin-dis", o.Ranks, o, runtime.Config{Cores: cores},
					"fabric.kind=leaf-spine", "fabric.radix=0", "fabric.leaf_nodes=5", "fabric.spines=2", "fabric.units={at: all, rate: 1ps/B, wire: 1ns}",
					"fabric.faults={loss: "+loss+"}", "transport.kind=reliable", "transport.retries=1000", "transport.timeout=20us")
				plans, known, offloaded := make([]*rootedCalls, len(groups)), newKnown(), int64(0)
				for i, of := range groups {
					plans[i] = drawRooted(uint64(i), calls, len(of))
					for k, tr := range plans[i].trials {
						known.of(i, k, len(of), tr) // ranks only read it
						if len(of) > 1 && (tr.n > 0 || tr.what == "barrier") {
							offloaded += int64(len(of))
						}
					}
				}
				times := make([]sim.Time, o.Ranks)
				for rank := range o.Ranks {
					require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
						err := callRooted(r, plans, known)
						times[rank] = r.Now()
						return err
					}))
				}
				require.NoError(t, w.Run(context.Background()), mode)
				require.Empty(t, w.Fallbacks())
				if mode == mpi.ModeHost {
					offloaded = 0
				}
				require.Equal(t, offloaded, w.Stats().Offloaded, mode)
				for _, g := range plans {
					for i, tr := range g.trials {
						if tr.what == "barrier" {
							require.LessOrEqual(t, slices.Max(g.begun[i]), slices.Min(g.ended[i]), "%s: a rank left before another came", mode)
						}
					}
				}
				if first == nil {
					first = times
				}
				require.Equal(t, first, times, mode)
			}
		}
	}
}

// callRooted makes the calls in one group of a rank after the other.
func callRooted(r *mpi.Rank, plans []*rootedCalls, known known) error {
	rng := rand.New(rand.NewPCG(uint64(r.Rank()), 0))
	for i := range plans[0].trials {
		for k, g := range plans {
			c := mpi.GroupOf(r, k)
			if c == nil {
				continue
			}
			if rng.IntN(3) == 0 {
				r.Compute(sim.Time(rng.IntN(20)) * sim.Microsecond)
			}
			tr := g.trials[i]
			g.begun[i][c.Rank()] = r.Now()
			if err := attempt(c, tr, known.of(k, i, c.Size(), tr)); err != nil {
				return fmt.Errorf("rank %d of group %d, call %d (%s, %d B, root %d): %w", c.Rank(), k, i, tr.what, tr.n, tr.root, err)
			}
			g.ended[i][c.Rank()] = r.Now()
		}
	}
	return nil
}

// What modules of allreduces alone do not take is named; without Rooted nobody asks
// them.
func TestRootedFallbacks(t *testing.T) {
	for _, mode := range []mpi.Mode{mpi.ModeDoubling, mpi.ModeTree} {
		for _, asked := range []bool{true, false} {
			o := mpi.DefaultOptions(mpi.Host)
			o.Allreduce, o.Rooted, o.Ranks = mode, asked, 4
			w := worldOf(t, "spin-dis", o)
			for rank := range 4 {
				require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
					v, err := r.Alloc(64)
					if err != nil {
						return err
					}
					if rank == 2 {
						v.CopyFrom(bytes.Repeat([]byte{9}, 64))
					}
					c := r.World()
					if err := c.Bcast(v, 2); err != nil {
						return err
					}
					require.Equal(t, bytes.Repeat([]byte{9}, 64), v.Read())
					part, err := c.Split(rank%2, 0) // its barrier is the library's
					if err != nil {
						return err
					}
					_, err = c.Start(mpi.Reduce{Send: mpi.Data{Memory: v}, Recv: mpi.Data{Memory: v}, Type: mpi.Int64, Op: mpi.BXor, Root: 0})
					require.ErrorContains(t, err, "overlap")
					if q, err := c.Start(mpi.ReduceScatter{Send: mpi.InPlace, Recv: v.Slice(0, 56), Counts: []int{32, 24, 0, 0}, Type: mpi.Int64, Op: mpi.Sum}); err != nil {
						return err
					} else if _, err = r.Wait(q); err != nil {
						return err
					}
					return part.Barrier()
				}))
			}
			require.NoError(t, w.Run(context.Background()))
			var want []mpi.Fallback
			switch {
			case !asked:
			case mode == mpi.ModeTree:
				want = []mpi.Fallback{{Why: "a communicator that was made during the run has no tree", Calls: 4}, {Why: "pieces of different lengths", Calls: 4}}
			default:
				want = []mpi.Fallback{{Why: "Barrier by offload-doubling, which does Allreduce alone", Calls: 4}, {Why: "Bcast by offload-doubling, which does Allreduce alone", Calls: 4}, {Why: "ReduceScatter by offload-doubling, which does Allreduce alone", Calls: 4}}
			}
			require.Equal(t, want, w.Fallbacks())
			require.NoError(t, w.Cluster().Close())
		}
	}
}
