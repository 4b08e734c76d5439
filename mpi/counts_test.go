package mpi_test

import (
	"context"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// room is the length of each half of a rank's memory in TestAlgorithms.
const room = 1 << 20

// Helpers to count messages.
func log(n int) int   { return bits.Len(uint(n - 1)) }        // rounded up
func power(n int) int { return 1 << (bits.Len(uint(n)) - 1) } // at most n
// exchanges counts exchanges of whole vectors, fold and unfold included.
func exchanges(n int) int { return power(n)*log(power(n)) + 2*(n-power(n)) }

func callBcast(v runtime.View, c *mpi.Comm, n int) error { return c.Bcast(v.Slice(0, n), 1) }

func callReduce(v runtime.View, c *mpi.Comm, n int) error {
	return c.Reduce(v.Slice(0, n), v.Slice(room, room+n), mpi.Int32, mpi.Sum, 0)
}

func callAllreduce(v runtime.View, c *mpi.Comm, n int) error {
	return c.Allreduce(v.Slice(0, n), v.Slice(room, room+n), mpi.Int32, mpi.Sum)
}

func callAllgather(v runtime.View, c *mpi.Comm, n int) error {
	return c.Allgather(v.Slice(0, n/c.Size()), v.Slice(room, room+n/c.Size()*c.Size()))
}

func callAlltoall(v runtime.View, c *mpi.Comm, n int) error {
	return c.Alltoall(v.Slice(0, n*c.Size()), v.Slice(room, room+n*c.Size()))
}

func callReduceScatter(v runtime.View, c *mpi.Comm, n int) error {
	return c.Do(mpi.ReduceScatter{Send: v.Slice(0, n*c.Size()), Recv: v.Slice(room, room+n), Type: mpi.Int32, Op: mpi.Sum})
}

func callAllgatherv(v runtime.View, c *mpi.Comm, n int) error {
	counts := make([]int, c.Size())
	counts[0], counts[1] = n, 4
	return c.Do(mpi.Allgatherv{Send: mpi.Data{Memory: v.Slice(0, counts[c.Rank()])}, Recv: mpi.Data{Memory: v.Slice(room, room+n+4)}, Counts: counts})
}

// Each call has the algorithm of the package documentation and docs/mpi.md: the
// numbers of messages and bytes agree, just below and above the sizes at which
// MPICH 3.2.1 changes.
func TestAlgorithms(t *testing.T) {
	for _, test := range []struct {
		name       string
		algorithms mpi.Algorithms
		call       func(v runtime.View, c *mpi.Comm, n int) error
		ranks, n   int
		messages   int
	}{
		{"barrier", mpi.MPICH, func(_ runtime.View, c *mpi.Comm, _ int) error { return c.Barrier() }, 11, 0, 11 * 4},
		{"binomial", mpi.MPICH, callBcast, 9, 12287, 8},
		{"binomial, few ranks", mpi.MPICH, callBcast, 7, 600000, 6},
		{"binomial, ExaNet-MPI", mpi.ExaNetMPI, callBcast, 9, 600000, 8},
		{"scatter and ring", mpi.MPICH, callBcast, 9, 12288, 8 + 9*8},
		{"scatter and doubling", mpi.MPICH, callBcast, 8, 524287, 7 + 8*3},
		{"scatter and ring, long", mpi.MPICH, callBcast, 8, 524288, 7 + 8*7},
		{"tree", mpi.MPICH, callReduce, 13, 2048, 12},
		{"halving and gather", mpi.MPICH, callReduce, 13, 2052, 5 + 8*3 + 7},
		{"few elements", mpi.MPICH, callReduce, 13, 28, 12},
		{"doubling", mpi.MPICH, callAllreduce, 13, 2048, exchanges(13)},
		{"halving", mpi.MPICH, callAllreduce, 13, 2052, exchanges(13) + 8*3},
		{"doubling, ExaNet-MPI", mpi.ExaNetMPI, callAllreduce, 13, 65536, exchanges(13)},
		{"gathered by doubling", mpi.MPICH, callAllgather, 8, 524280, 8 * 3},
		{"gathered by ring, long", mpi.MPICH, callAllgather, 8, 524288, 8 * 7},
		{"gathered by Bruck", mpi.MPICH, callAllgather, 9, 81900, 9 * log(9)},
		{"gathered by ring", mpi.MPICH, callAllgather, 9, 81927, 9 * 8},
		{"ring in pieces", mpi.MPICH, callAllgatherv, 5, 100000, 4*4 + 4},
		{"exchanged by Bruck", mpi.MPICH, callAlltoall, 9, 256, 9 * log(9)},
		{"exchanged with few ranks", mpi.MPICH, callAlltoall, 7, 256, 7 * 6},
		{"exchanged at once", mpi.MPICH, callAlltoall, 9, 257, 9 * 8},
		{"scattered by halving", mpi.MPICH, callReduceScatter, 8, 65532, 8 * 3},
		{"scattered by pairs", mpi.MPICH, callReduceScatter, 8, 65536, 8 * 7},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := worldOf(t, "spin-int", mpi.Options{Matching: mpi.Offload, Eager: 16 << 10, Buffers: 4, BufferBytes: 256 << 10, Algorithms: test.algorithms, Ranks: test.ranks})
			defer func() { require.NoError(t, w.Cluster().Close()) }()
			for rank := range test.ranks {
				require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
					v, err := r.Alloc(2 * room)
					if err != nil {
						return err
					}
					return test.call(v, r.World(), test.n)
				}))
			}
			require.NoError(t, w.Run(context.Background()))
			require.EqualValues(t, test.messages, w.Stats().Sent)
		})
	}
}

// With 32 ranks or more, a rank stays in Gatherv until the root has taken its
// data.
func TestGathervIsSynchronous(t *testing.T) {
	for _, ranks := range []int{31, 32} {
		w := newWorld(t, ranks, options(mpi.Host), runtime.Config{})
		var left sim.Time
		for rank := range ranks {
			require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
				v, err := r.Alloc(8)
				require.NoError(t, err)
				all, err := r.Alloc(8 * ranks)
				require.NoError(t, err)
				if rank == 0 {
					r.Compute(busy)
				}
				counts := make([]int, ranks)
				for i := range counts {
					counts[i] = 8
				}
				if err := r.World().Do(mpi.Gatherv{Send: mpi.Data{Memory: v}, Recv: mpi.Data{Memory: all}, Counts: counts}); err != nil {
					return err
				}
				if rank == 5 {
					left = r.Now()
				}
				return nil
			}))
		}
		require.NoError(t, w.Run(context.Background()))
		require.Equal(t, ranks >= 32, left > busy, "%d ranks: %v", ranks, left)
	}
}
