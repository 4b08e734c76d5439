package pspin

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/sim"
)

// at measures a point of pspin.
func at(t *testing.T, values string, set ...string) *experiment.Result {
	t.Helper()
	return measure(t, handlerRuns, "pspin-rtl-20", values, set...)
}

// measure measures a point of an experiment that answers a row.
func measure(t *testing.T, e *experiment.Experiment, id, values string, set ...string) *experiment.Result {
	t.Helper()
	row := experiment.LedgerRow{ID: id, Of: values}
	s, err := row.Sweep(e)
	require.NoError(t, err)
	s.Overrides = append(s.Overrides, set...)
	points, err := s.Points()
	require.NoError(t, err)
	results, err := s.Run(t.Context(), points, func() {})
	require.NoError(t, err)
	require.Len(t, results, 1)
	return results[0]
}

// Each part of a packet's way takes what the profile says, at every size.
func TestWayOfAPacket(t *testing.T) {
	for _, size := range []int64{64, 128, 512, 1024, 2048} {
		r := at(t, "example=empty packets=2 size="+strconv.FormatInt(size, 10))
		cycles := sim.Time(size/64) * sim.Nanosecond
		require.Equal(t, 4*sim.Nanosecond+cycles, r.Values["request"], size)
		require.Equal(t, 16*sim.Nanosecond+cycles, r.Values["start"], size)
		require.Equal(t, 4*sim.Nanosecond, r.Values["end"], size)
	}
}

// What the header does in place of hardware is free, and only there; a first run
// is slower, and only with a price for misses.
func TestWhatCosts(t *testing.T) {
	const of = "example=copy_to_host packets=2 size=64"
	r := at(t, of)
	require.Greater(t, r.Values["cold"], r.Values["warm"])
	warm := r.Values["warm"]
	r = at(t, of, "hpu.costs.misses.line=0")
	require.Equal(t, warm, r.Values["warm"])
	require.Equal(t, warm, r.Values["cold"])
	r = at(t, of, "hpu.costs.hardware_runtime=false")
	require.Greater(t, r.Values["warm"].(int64), 3*warm.(int64))
}

// Handlers of one message leave their home when it has as many as it takes. With
// room for all they stay, and the eight HPUs there take three times as long as
// with a fair share of the clusters.
func TestHandlersLeaveTheirHome(t *testing.T) {
	const of = "example=aggregate packets=64 size=512"
	spread, home := at(t, of).Float("rate"), at(t, of, "hpu.cluster_tasks=56").Float("rate")
	require.InEpsilon(t, 3.5, spread/home, 0.15)
}
