package experiment

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

func exchanged(t *testing.T, values Values) *Result {
	t.Helper()
	device, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	p, err := apps.At(device, values)
	require.NoError(t, err)
	r, err := apps.Measure(context.Background(), p)
	require.NoError(t, err, "%s", p)
	return r
}

// Where all receive buffers are used again nothing is absent behind the first round, and PART takes what memory takes that is there; touching costs a look at
// each page of both sides. With new memory every page faults once, whoever brings it in; magic brings none.
func TestApps(t *testing.T) {
	for _, ranks := range []int{1, 3} {
		at := func(mode string, fresh float64) *Result {
			return exchanged(t, Values{"app": "hpcg", "mode": mode, "fresh": fresh, "ranks": ranks, "rounds": 4, "compute": sim.Time(0)})
		}
		for _, mode := range appModes() {
			require.Zero(t, at(mode, 0).Values["faults"], mode)
		}
		present := at(appPresent, 0)
		require.Equal(t, present.Time(latencyColumn), at(policyPIA, 0).Time(latencyColumn))
		require.Greater(t, at(policyTouch, 0).Time(latencyColumn), present.Time(latencyColumn))
		require.Zero(t, at(appPresent, 1).Values["faults"])
		touched := at(policyTouch, 1).Values["faults"].(int64)
		require.Positive(t, touched)
		require.Equal(t, touched, at(policyPIO, 1).Values["faults"], "a page of the message, and no other")
		require.GreaterOrEqual(t, at(policyPIA, 1).Values["faults"], touched, "pages behind the message, too")
		require.Less(t, at(policyPIA, 1).Time(latencyColumn), at(policyPIO, 1).Time(latencyColumn))
	}
}

// Computing is added to a round.
func TestAppsCompute(t *testing.T) {
	at := func(d sim.Time) sim.Time {
		return exchanged(t, Values{"app": "lammps", "mode": policyPIA, "fresh": 0.0, "ranks": 1, "rounds": 3, "compute": d}).Time(latencyColumn)
	}
	require.InEpsilon(t, int64(sim.Millisecond), int64(at(sim.Millisecond)-at(0)), 0.001, "but for the end of the last acknowledgement, which comes meanwhile")
}
