package mpi_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

func newLoop(tb testing.TB, ranks int, o mpi.Options, call func(c *mpi.Comm, v, w runtime.View) error, n, rounds int) *mpi.World {
	p, err := profile.Load("spin-int")
	require.NoError(tb, err)
	o.Eager, o.Buffers, o.BufferBytes, o.Ranks, o.PerNode = 16<<10, 4, 64<<10, ranks, 4
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: o.Nodes(ranks)})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, c.Close()) })
	w, err := mpi.New(c, o)
	require.NoError(tb, err)
	for rank := range ranks {
		require.NoError(tb, w.Spawn(rank, func(r *mpi.Rank) error {
			v, err := r.Alloc(n)
			if err != nil {
				return err
			}
			u, err := r.Alloc(n)
			if err != nil {
				return err
			}
			for range rounds {
				if err := call(r.World(), v, u); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return w
}

// BenchmarkCollectives: one operation is one call at all ranks.
func BenchmarkCollectives(b *testing.B) {
	for _, form := range mpi.Forms() {
		for _, call := range []struct {
			name string
			f    func(c *mpi.Comm, v, w runtime.View) error
		}{
			{"allreduce", func(c *mpi.Comm, v, w runtime.View) error { return c.Allreduce(v, w, mpi.Float64, mpi.Sum) }},
			{"bcast", func(c *mpi.Comm, v, _ runtime.View) error { return c.Bcast(v, 0) }},
			{"barrier", func(c *mpi.Comm, _, _ runtime.View) error { return c.Barrier() }},
		} {
			for _, n := range []int{8, 4096} {
				b.Run(fmt.Sprintf("%s/%s/512/%d", form, call.name, n), func(b *testing.B) {
					w := newLoop(b, 512, mpi.Options{Matching: form}, call.f, n, b.N)
					b.ReportAllocs()
					b.ResetTimer()
					require.NoError(b, w.Run(context.Background()))
					s := w.Stats()
					b.ReportMetric(float64(s.Sent)/float64(b.N), "messages/op")
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(s.Sent), "ns/message")
				})
			}
		}
	}
}

// After a warm-up, collective operations allocate nothing, except what Portals
// needs for the descriptor of an announcement that carries data.
func TestCollectivesAllocateNothing(t *testing.T) {
	const ranks, rounds = 13, 50
	if poison.On {
		t.Skip("nothing is used again") //lint:skip the tag invariants forgets what is given back
	}
	for _, form := range mpi.Forms() {
		for _, n := range []int{8, 40000} {
			var at [2]goruntime.MemStats
			count := 0
			w := newLoop(t, ranks, mpi.Options{Matching: form}, func(c *mpi.Comm, v, u runtime.View) error {
				if c.Rank() == 0 {
					switch count++; count {
					case rounds:
						goruntime.ReadMemStats(&at[0])
					case 2 * rounds:
						goruntime.ReadMemStats(&at[1])
					}
				}
				if err := c.Allreduce(v, u, mpi.Float64, mpi.Sum); err != nil {
					return err
				}
				if err := c.Bcast(v, 3); err != nil {
					return err
				}
				q, err := c.Start(mpi.Barrier{})
				if err != nil {
					return err
				}
				_, err = c.Owner().Wait(q)
				return err
			}, n, 2*rounds+1)
			require.NoError(t, w.Run(context.Background()))
			messages := w.Stats().Sent / 2
			t.Logf("%s, %d B: %d allocations, %d messages", form, n, at[1].Mallocs-at[0].Mallocs, messages)
			most := messages / 100
			if form == mpi.Offload && n > 16<<10 { // the descriptor of an announcement that carries data
				most = 5 * messages
			}
			require.Less(t, int64(at[1].Mallocs-at[0].Mallocs), most)
		}
	}
}

// BenchmarkModules: 4,096 MPSoCs of ExaNeSt's torus, four times the limit of
// the accelerator, combine 256 B. Each operation makes the system and gives it
// back.
func BenchmarkModules(b *testing.B) {
	p, err := profile.Load("exanest", "fabric.dims=[16, 16, 4]")
	require.NoError(b, err)
	for _, by := range []mpi.Mode{mpi.ModeBoards, mpi.ModeDoubling} {
		b.Run(string(by)+"/4096", func(b *testing.B) {
			for range b.N {
				o := mpi.DefaultExaNetOptions()
				o.Ranks, o.Allreduce = 4096, by
				c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: o.Ranks})
				require.NoError(b, err)
				w, err := mpi.New(c, o)
				require.NoError(b, err)
				for rank := range o.Ranks {
					require.NoError(b, w.Spawn(rank, func(r *mpi.Rank) error {
						v, err := r.Alloc(256)
						if err != nil {
							return err
						}
						return r.World().Allreduce(mpi.InPlace, v, mpi.Float32, mpi.Sum)
					}))
				}
				require.NoError(b, w.Run(context.Background()))
				require.NoError(b, c.Close())
			}
		})
	}
}

// BenchmarkNear sends a fixed total of cells in messages that stay on their
// MPSoCs, on 1 to 128 MPSoCs at a time. The extra time per cell with many
// MPSoCs is the time to load the state of a node into the cache again.
func BenchmarkNear(b *testing.B) {
	const bytes, perNode = 16 << 20, 4
	p, err := profile.Load("exanest")
	require.NoError(b, err)
	for _, nodes := range []int{1, 16, 128} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			ranks, cells, events := nodes*perNode, 0.0, 0.0
			for range b.N {
				b.StopTimer()
				o := mpi.DefaultExaNetOptions()
				o.Ranks, o.PerNode = ranks, perNode
				c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: nodes})
				require.NoError(b, err)
				w, err := mpi.New(c, o)
				require.NoError(b, err)
				for rank := range ranks {
					require.NoError(b, w.Spawn(rank, func(r *mpi.Rank) error { return toNeighbour(r, bytes/(ranks/2)) }))
				}
				b.StartTimer()
				require.NoError(b, w.Run(context.Background()))
				b.StopTimer()
				cells += float64(bytes / p.Fabric.MTU)
				events += float64(c.Engine().Handled())
				require.NoError(b, c.Close())
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/cells, "ns/cell")
			b.ReportMetric(events/cells, "events/cell")
		})
	}
}

// toNeighbour sends n bytes from an even rank to the next rank. All pages are
// present.
func toNeighbour(r *mpi.Rank, n int) error {
	v, err := r.Alloc(n)
	if err != nil {
		return err
	}
	v.Write()
	if r.World().Rank()%2 == 0 {
		return r.World().Send(v, r.World().Rank()+1, 0)
	}
	_, err = r.World().Recv(v, r.World().Rank()-1, 0)
	return err
}
