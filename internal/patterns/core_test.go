package patterns_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/patterns"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// core is a core of exanest with the fields, of a node with some ranks.
func core(t *testing.T, onNode int, set ...string) patterns.Core {
	p, err := profile.Load("exanest", set...)
	require.NoError(t, err)
	return patterns.CoreOf(p, onNode, 650e6)
}

// Cores share what memory sustains, or slow each other by a share, and no more
// of them than there are.
func TestCoresShareMemory(t *testing.T) {
	const bytes = 1 << 24
	work := patterns.Work{Bytes: bytes}
	one := core(t, 1).Time(work)
	require.Equal(t, one, core(t, 4).Time(work), "160 Gb/s are enough for four")
	// 2.2 GB/s each, 6 GB/s in all
	for ranks, want := range map[int]float64{1: 1, 2: 1, 3: 1.1, 4: 4.4 / 3, 8: 4.4 / 3} {
		require.InEpsilon(t, want, float64(core(t, ranks, "host.cores_bandwidth=6GB/s").Time(work))/float64(one), 1e-4, "%d ranks", ranks)
	}
	for ranks, want := range map[int]float64{1: 1, 2: 1.05, 4: 1.15, 8: 1.15} {
		require.InEpsilon(t, want, float64(core(t, ranks, "host.cores_penalty=0.05").Time(work))/float64(one), 1e-4, "%d ranks", ranks)
	}
	_, err := profile.Load("exanest", "host.cores_bandwidth=6GB/s", "dma.shared_memory=true")
	require.ErrorContains(t, err, "host.cores_bandwidth: given with dma.shared_memory")
}

// A core that waits for memory takes both times, one after the other.
func TestComputeSum(t *testing.T) {
	operations, bytes := patterns.Work{Operations: 3 * 650}, patterns.Work{Bytes: 4400}
	both := patterns.Work{Operations: 3 * 650, Bytes: 4400}
	require.Equal(t, 3*sim.Microsecond, core(t, 1).Time(both))
	require.Equal(t, 5*sim.Microsecond, core(t, 1, "host.compute=sum").Time(both))
	for _, w := range []patterns.Work{operations, bytes} {
		require.Equal(t, core(t, 1).Time(w), core(t, 1, "host.compute=sum").Time(w))
	}
}

// Jitter makes an iteration longer, by no more than its share, the same with the
// same seed. All its computation is longer, so ranks wait for each other.
func TestJitter(t *testing.T) {
	problem := patterns.Problem{App: patterns.MiniFE, Scaling: patterns.Weak, Size: [3]int{16, 16, 16}}
	run := func(share string, seed uint64) patterns.Result {
		return longest(t, problem, 4, seed, "host.jitter="+share)
	}
	none, some := run("0", 1), run("0.2", 1)
	require.Greater(t, some.Compute, none.Compute)
	require.Less(t, float64(some.Compute), 1.2*float64(none.Compute))
	require.Equal(t, some, run("0.2", 1))
	require.NotEqual(t, some, run("0.2", 2))
	require.Equal(t, none, run("0", 2))
}

// longest runs an iteration and returns the times of the slowest rank.
func longest(t *testing.T, problem patterns.Problem, ranks int, seed uint64, set ...string) (slowest patterns.Result) {
	p, err := profile.Load("exanest", set...)
	require.NoError(t, err)
	o := mpi.DefaultExaNetOptions()
	o.Ranks, o.PerNode = ranks, 4
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: o.Nodes(ranks)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	w, err := mpi.New(c, o)
	require.NoError(t, err)
	for rank := range ranks {
		require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
			plan, err := problem.Plan(rank, ranks)
			if err != nil {
				return err
			}
			own := patterns.CoreOf(p, ranks, 650e6)
			own.Seed = seed
			result, err := plan.Run(r.World(), own, 1)
			if result.Time > slowest.Time {
				slowest = result
			}
			return err
		}))
	}
	require.NoError(t, w.Run(context.Background()))
	return slowest
}
