package beff_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/beff"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// 1, 2, 4, … 4,096, and eight more by the same factor: for 128 MiB that is 32,768^(1/8) = 3.668.
func TestLengths(t *testing.T) {
	list := beff.Lengths(128 << 20)
	require.Len(t, list, beff.LengthsOf)
	require.Equal(t, []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}, list[:13])
	require.Equal(t, 128<<20, list[20])
	for i := 13; i < 21; i++ {
		require.InDelta(t, 3.668, float64(list[i])/float64(list[i-1]), 0.001)
	}
}

// Rings have all ranks, at least two each, and have the sizes of the definition
// where the number of ranks allows.
func TestRings(t *testing.T) {
	for ranks := 2; ranks < 300; ranks++ {
		for p := range 6 {
			rings, sum := beff.Rings(ranks, p), 0
			for _, n := range rings {
				require.GreaterOrEqual(t, n, 2)
				sum += n
			}
			require.Equal(t, ranks, sum, "%d ranks, pattern %d: %v", ranks, p, rings)
			require.LessOrEqual(t, slices.Max(rings)-slices.Min(rings), 1)
		}
	}
	require.Equal(t, []int{2, 2, 2, 2}, beff.Rings(8, 0))
	require.Equal(t, []int{4, 4}, beff.Rings(8, 1))
	require.Equal(t, []int{8}, beff.Rings(8, 3))
	require.Equal(t, []int{2, 3}, beff.Rings(5, 0))
	require.Equal(t, slices.Repeat([]int{25}, 4), beff.Rings(100, 3), "max(16, 100/4)")
	require.Equal(t, []int{50, 50}, beff.Rings(100, 4), "max(32, 100/2)")
}

// The means follow the definition. If three patterns have the bandwidth 4
// everywhere and three 16, logavg is 8; together with random patterns of 2 the
// result is 4.
func TestMeans(t *testing.T) {
	var r beff.Result
	for p := range r.Bandwidth {
		for i := range r.Bandwidth[p] {
			switch {
			case p >= 6:
				r.Bandwidth[p][i] = 2
			case p%2 == 0:
				r.Bandwidth[p][i] = 4
			default:
				r.Bandwidth[p][i] = 16
			}
		}
	}
	require.InEpsilon(t, 8, r.Rings(), 1e-12)
	require.InEpsilon(t, 2, r.Random(), 1e-12)
	require.InEpsilon(t, 4, r.Effective(), 1e-12)
	r.Bandwidth[0][20] += 21 // the arithmetic mean over lengths is 5
	require.InEpsilon(t, 8*math.Pow(5.0/4, 1.0/6), r.Rings(), 1e-12)
}

// run runs the benchmark on a network whose times can be computed.
func run(t *testing.T, ranks int, o beff.Options) *beff.Result {
	p, err := profile.Load("spin-int", "fabric.kind=crossbar")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: ranks})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	w, err := mpi.New(c, mpi.DefaultOptions(mpi.Host))
	require.NoError(t, err)
	b, err := beff.New(o, ranks)
	require.NoError(t, err)
	for rank := range ranks {
		require.NoError(t, w.Spawn(rank, b.Program))
	}
	require.NoError(t, w.Run(context.Background()))
	return &b.Result
}

// On a network that is the same for all ranks, patterns with rings of the same
// sizes have the same bandwidth, whatever their order. So Alike changes little.
// The run checks every message, for numbers of ranks with rings of two and of
// three.
func TestAlike(t *testing.T) {
	for _, ranks := range []int{2, 5} {
		o := beff.Options{Longest: 64 << 10, Sent: 64 << 10, Repetitions: 1, Loop: 20 * sim.Microsecond, Seed: 7}
		all := run(t, ranks, o)
		o.Alike = true
		some := run(t, ranks, o)
		require.InEpsilon(t, all.Effective(), some.Effective(), 0.1, "%d ranks", ranks)
		require.Equal(t, some.Rings(), some.Random())
		for p := range all.Bandwidth {
			for i, b := range all.Bandwidth[p] {
				require.Positive(t, b, "pattern %d, length %d", p, i)
			}
		}
		require.Less(t, all.At(20), 2*50e9*float64(ranks), "50 GB/s for each rank and direction")
		require.Greater(t, all.At(20), 0.3*50e9*float64(ranks))
	}
}

// A length that is not sent has the bandwidth of the longest that is.
func TestSent(t *testing.T) {
	r := run(t, 4, beff.Options{Longest: 128 << 20, Sent: 16 << 10, Repetitions: 1, Alike: true, Loop: sim.Microsecond})
	list := beff.Lengths(128 << 20)
	last := slices.IndexFunc(list, func(n int) bool { return n > 16<<10 }) - 1
	for i := last; i < beff.LengthsOf; i++ {
		require.Equal(t, r.Bandwidth[3][last], r.Bandwidth[3][i])
	}
	require.NotEqual(t, r.Bandwidth[3][last], r.Bandwidth[3][last-1])
}

func TestOptions(t *testing.T) {
	_, err := beff.New(beff.Options{Longest: 1, Sent: 2, Loop: -1}, 8)
	require.EqualError(t, err, "beff: longest is 1, expected 8192 to 134217728\nbeff: sent is 2, expected 4096 to 1\nbeff: repetitions is 0, expected 1 to 3\nbeff: loop is -1 ps, expected at least 0")
	_, err = beff.New(beff.Options{Longest: 8192, Sent: 8192, Repetitions: 1}, 1)
	require.EqualError(t, err, "beff: 1 ranks, expected at least 2")
	require.Equal(t, "Sendrecv Alltoallv nonblocking", fmt.Sprint(beff.Sendrecv, " ", beff.Alltoallv, " ", beff.Nonblocking))
}
