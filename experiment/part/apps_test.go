package part

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

func exchanged(t *testing.T, values experiment.Values) *experiment.Result {
	t.Helper()
	device, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	p, err := apps.At(device, values)
	require.NoError(t, err)
	r, err := apps.Measure(context.Background(), p)
	require.NoError(t, err, "%s", p)
	return r
}

// Where all receive buffers are used again, no page is absent after the first
// round, and PART takes as long as present memory. Touching costs a line of
// memory for each page of both sides. With new memory every page faults once,
// with every method except magic.
func TestApps(t *testing.T) {
	for _, ranks := range []int{1, 3} {
		at := func(mode string, fresh float64) *experiment.Result {
			return exchanged(t, experiment.Values{"app": "hpcg", "mode": mode, "fresh": fresh, "ranks": ranks, "rounds": 4, "compute": sim.Time(0)})
		}
		for _, mode := range PageModes() {
			require.Zero(t, at(mode, 0).Values["faults"], mode)
		}
		present := at(PagesPresent, 0)
		require.Equal(t, present.Time(experiment.LatencyColumn), at(policyPIA, 0).Time(experiment.LatencyColumn))
		require.Greater(t, at(policyTouch, 0).Time(experiment.LatencyColumn), present.Time(experiment.LatencyColumn))
		require.Zero(t, at(PagesPresent, 1).Values["faults"])
		touched := at(policyTouch, 1).Values["faults"].(int64)
		require.Positive(t, touched)
		require.Equal(t, touched, at(policyPIO, 1).Values["faults"], "a page of the message, and no other")
		require.GreaterOrEqual(t, at(policyPIA, 1).Values["faults"], touched, "pages behind the message, too")
		require.Less(t, at(policyPIA, 1).Time(experiment.LatencyColumn), at(policyPIO, 1).Time(experiment.LatencyColumn))
	}
}

// The barrier after the first round is not part of the others. A round is
// measured from the moment when a rank leaves the barrier, for the slowest
// rank.
func TestAppsWithoutTheBarrier(t *testing.T) {
	const ranks = 4
	values := experiment.Values{"app": "lammps", "mode": PagesPresent, "fresh": 0.0, "ranks": ranks, "rounds": 1, "compute": sim.Time(0)}
	device, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	p, err := apps.At(device, values)
	require.NoError(t, err)
	x := &exchanging{Point: p, ranks: ranks}
	c, err := runtime.NewCluster(p.Config(context.Background(), ranks))
	require.NoError(t, err)
	o := mpi.DefaultExaNetOptions()
	o.Ranks = ranks
	w, err := mpi.New(c, o)
	require.NoError(t, err)
	var longest, barrier sim.Time
	for rank := range ranks {
		require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
			var out, in [2]runtime.View
			for side := range 2 {
				for _, v := range []*runtime.View{&out[side], &in[side]} {
					var err error
					*v, err = r.Alloc(2 * 15_100)
					require.NoError(t, err)
				}
				experiment.Pattern(out[side].Raw(), x.Seed+uint64(rank)<<1+uint64(side))
				in[side].Raw()
			}
			require.NoError(t, x.round(r, rank, 0, out, in))
			begun := r.Now()
			require.NoError(t, r.World().Barrier())
			barrier = max(barrier, r.Now()-begun)
			begun = r.Now()
			require.NoError(t, x.round(r, rank, 1, out, in))
			longest = max(longest, r.Now()-begun)
			return nil
		}))
	}
	require.NoError(t, w.Run(context.Background()))
	require.NoError(t, c.Close())
	require.Positive(t, barrier)
	require.Equal(t, longest, exchanged(t, values).Time(experiment.LatencyColumn))
}

// The computation is added to a round.
func TestAppsCompute(t *testing.T) {
	at := func(d sim.Time) sim.Time {
		return exchanged(t, experiment.Values{"app": "lammps", "mode": policyPIA, "fresh": 0.0, "ranks": 1, "rounds": 3, "compute": d}).Time(experiment.LatencyColumn)
	}
	require.InEpsilon(t, int64(sim.Millisecond), int64(at(sim.Millisecond)-at(0)), 0.001, "but for the end of the last acknowledgement, which comes meanwhile")
}
