package patterns_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/internal/guard/guardtest"
	"github.com/spinsim/spinsim/internal/patterns"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// TestMain guards the memory of some simulated processes. It finds a program
// that accesses this memory without a touch.
func TestMain(m *testing.M) { os.Exit(guardtest.Run(m, guardtest.Few)) }

// In each step, one rank sends as much as the other receives, on any number of
// ranks. All ranks together compute as much as one rank would alone.
func TestPlansFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := patterns.Problem{App: rapid.SampledFrom(patterns.Apps()).Draw(t, "app"), Scaling: rapid.SampledFrom(patterns.Scalings()).Draw(t, "scaling")}
		ranks := rapid.IntRange(1, 70).Draw(t, "ranks")
		if p.App == patterns.HPCG && p.Scaling == patterns.Strong {
			ranks = 1 << rapid.IntRange(0, 9).Draw(t, "power")
		}
		var plans []*patterns.Plan
		var all patterns.Work
		for rank := range ranks {
			plan, err := p.Plan(rank, ranks)
			require.NoError(t, err)
			require.NoError(t, plan.Check(rank))
			plans = append(plans, plan)
			all.Operations += plan.Work().Operations
		}
		for i := range plans[0].Steps {
			type way struct{ from, to int }
			sent, got := map[way][]int{}, map[way][]int{}
			for rank, plan := range plans {
				require.Len(t, plan.Steps, len(plans[0].Steps))
				require.Equal(t, plans[0].Steps[i].Reduce, plan.Steps[i].Reduce)
				for _, m := range plan.Steps[i].Sends {
					sent[way{rank, m.Rank}] = append(sent[way{rank, m.Rank}], m.Bytes)
				}
				for _, m := range plan.Steps[i].Receives {
					got[way{m.Rank, rank}] = append(got[way{m.Rank, rank}], m.Bytes)
				}
			}
			require.Equal(t, sent, got, "step %d", i)
		}
		one, err := p.Plan(0, 1)
		require.NoError(t, err)
		want := float64(one.Work().Operations)
		if p.Scaling == patterns.Weak {
			want *= float64(ranks)
		}
		// miniFE has one node more than elements in each dimension of all
		require.InEpsilon(t, want, float64(all.Operations), 0.06)
	})
}

// The sizes of TR-488's problems, by hand.
func TestSizes(t *testing.T) {
	plan := func(app patterns.App, s patterns.Scaling, rank, ranks int) *patterns.Plan {
		p, err := patterns.Problem{App: app, Scaling: s}.Plan(rank, ranks)
		require.NoError(t, err)
		return p
	}
	inner := 1 + 8*(1+8*1) // of 8 x 8 x 8: no end in any dimension
	hpcg := plan(patterns.HPCG, patterns.Weak, inner, 512)
	messages, bytes, neighbours := hpcg.Sum()
	require.Equal(t, 26, neighbours)
	require.Equal(t, 11*26, messages, "an exchange of the product, three on each of three levels, one on the last")
	points := 0 // of the 26 faces, edges and corners
	for level, times := range []int{4, 3, 3, 1} {
		n := 104 >> level
		points += times * (6*n*n + 12*n + 8)
	}
	require.Equal(t, 8*points, bytes)
	reduced := 0
	for _, s := range hpcg.Steps {
		reduced += s.Reduce
	}
	require.Equal(t, 3*8, reduced)

	strong := plan(patterns.HPCG, patterns.Strong, 0, 512)
	require.Equal(t, patterns.Grid{8, 8, 8}, strong.Grid)
	_, _, neighbours = strong.Sum()
	require.Equal(t, 7, neighbours, "in a corner")

	fe := plan(patterns.MiniFE, patterns.Weak, inner, 512)
	_, bytes, neighbours = fe.Sum()
	require.Equal(t, 26, neighbours)
	require.Equal(t, 8*(6*64*64+12*64+8), bytes)

	// LAMMPS' log has 47,958 ghosts for the box; each comes once, and its force goes back.
	md := plan(patterns.LAMMPS, patterns.Weak, inner, 512)
	messages, bytes, neighbours = md.Sum()
	require.Equal(t, 6, neighbours)
	require.Equal(t, 12, messages)
	require.InEpsilon(t, 2*47958*24, bytes, 0.01)
	// Parts of 55/8 x 77/8 x 72.7/8 Å are smaller than the cutoff of 12 Å: two swaps to each side.
	small := plan(patterns.LAMMPS, patterns.Strong, inner, 512)
	messages, _, neighbours = small.Sum()
	require.Equal(t, [2]int{24, 6}, [2]int{messages, neighbours})
	alone := plan(patterns.LAMMPS, patterns.Strong, 0, 1)
	messages, _, _ = alone.Sum()
	require.Zero(t, messages)
	// 375.88 distances and 217.5 forces of an atom, of 71.4% of the time.
	require.InEpsilon(t, 32000*(375.88*9+217.5*45)/0.7142, alone.Work().Operations, 0.001)
}

func TestGrids(t *testing.T) {
	cube := [3]float64{1, 1, 1}
	for ranks, want := range map[int]patterns.Grid{1: {1, 1, 1}, 2: {2, 1, 1}, 4: {2, 2, 1}, 8: {2, 2, 2}, 12: {3, 2, 2}, 16: {4, 2, 2}, 512: {8, 8, 8}, 7: {7, 1, 1}} {
		require.Equal(t, want, patterns.NewGrid(ranks, cube))
	}
	require.Equal(t, patterns.Grid{8, 8, 4}, patterns.NewGrid(256, [3]float64{256, 256, 128}))
}

// A core is bound by its own bandwidth, 2.2 GB/s, because four cores need less
// than the memory's 20 GB/s. Twenty cores would need more, but twenty ranks on
// four cores do not.
func TestCores(t *testing.T) {
	p, err := profile.Load("exanest")
	require.NoError(t, err)
	c := patterns.CoreOf(p, 4, 1e9)
	require.InDelta(t, 1e9/2.2e9, c.Time(patterns.Work{Bytes: 1e9}).Seconds(), 1e-6)
	require.Equal(t, sim.Second, c.Time(patterns.Work{Operations: 1e9, Bytes: 1e9}))
	require.Equal(t, c, patterns.CoreOf(p, 20, 1e9)) // sixteen of them wait for a core
	p.Host.Cores = 20
	require.InDelta(t, 1, patterns.CoreOf(p, 20, 1e9).Time(patterns.Work{Bytes: 1e9}).Seconds(), 1e-3)
}

// run runs iterations of an application on exanest, four ranks on an MPSoC, and
// returns the mean of a rank's times.
func run(t *testing.T, p patterns.Problem, ranks, n int) (result patterns.Result) {
	device, err := profile.Load("exanest")
	require.NoError(t, err)
	o := mpi.DefaultExaNetOptions()
	o.Ranks, o.PerNode = ranks, 4
	c, err := runtime.NewCluster(runtime.Config{Profile: device, Nodes: o.Nodes(ranks)})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	w, err := mpi.New(c, o)
	require.NoError(t, err)
	for rank := range ranks {
		require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
			plan, err := p.Plan(rank, ranks)
			if err != nil {
				return err
			}
			one, err := plan.Run(r.World(), patterns.CoreOf(device, 4, 1e9), n)
			if rank == 0 {
				result = one
			}
			return err
		}))
	}
	require.NoError(t, w.Run(context.Background()))
	return result
}

// All iterations are alike, which is why few of them are run. A rank that is
// alone only computes.
func TestIterationsRepeat(t *testing.T) {
	for _, p := range []patterns.Problem{
		{App: patterns.HPCG, Scaling: patterns.Weak, Size: [3]int{16, 16, 16}},
		{App: patterns.MiniFE, Scaling: patterns.Strong, Size: [3]int{30, 30, 30}},
		{App: patterns.LAMMPS, Scaling: patterns.Strong},
	} {
		one, five := run(t, p, 12, 1), run(t, p, 12, 5)
		require.InEpsilon(t, float64(one.Time), float64(five.Time)/5, 0.03, p.App)
		require.Equal(t, five.Time, five.Compute+five.Exchange+five.Reduce)
		plan, err := p.Plan(0, 1)
		require.NoError(t, err)
		alone := run(t, p, 1, 1)
		require.Zero(t, alone.Exchange)
		require.Less(t, alone.Reduce, alone.Time/100, "copies of reductions")
		require.Positive(t, plan.Work().Bytes)
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		p           patterns.Problem
		rank, ranks int
		want        string
	}{
		{patterns.Problem{App: "hpl", Scaling: patterns.Weak}, 0, 1, `no application "hpl", expected one of hpcg lammps minife`},
		{patterns.Problem{App: patterns.HPCG, Scaling: "both"}, 0, 1, `scaling "both", expected`},
		{patterns.Problem{App: patterns.HPCG, Scaling: patterns.Strong}, 0, 3, "parts must be alike and multiples of 8"},
		{patterns.Problem{App: patterns.HPCG, Scaling: patterns.Weak, Size: [3]int{12, 16, 16}}, 0, 1, "multiples of 8"},
		{patterns.Problem{App: patterns.MiniFE, Scaling: patterns.Strong, Size: [3]int{2, 2, 2}}, 26, 27, "expected one for each rank"},
		{patterns.Problem{App: patterns.LAMMPS, Scaling: patterns.Weak}, 4, 4, "rank 4 of 4"},
		{patterns.Problem{App: patterns.LAMMPS, Scaling: patterns.Weak, Size: [3]int{-1, 1, 1}}, 0, 4, "expected a size above 0"},
	} {
		_, err := c.p.Plan(c.rank, c.ranks)
		require.ErrorContains(t, err, c.want)
	}
}
