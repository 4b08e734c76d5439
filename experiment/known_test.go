package experiment_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
)

// A plan measures a known point again only if a field that counted there has
// another value, and has the same numbers either way.
func TestKnownPointsAreNotMeasuredAgain(t *testing.T) {
	e, err := experiment.Find("pingpong")
	require.NoError(t, err)
	list := []*experiment.Experiment{e}
	var known experiment.Known
	plan := func(known *experiment.Known, set ...string) any {
		want := func(id string) bool { return id == e.Ledger[0].ID }
		p, err := experiment.PlanLedger(list, want, func(s *experiment.Sweep) error {
			s.Overrides = set
			return nil
		})
		require.NoError(t, err)
		if known != nil {
			p.Reuse(known)
		}
		require.NoError(t, p.Run(context.Background(), nil, nil))
		return p.Others(nil)
	}
	first := plan(&known)
	n := known.Measured
	require.Positive(t, n)
	require.Zero(t, known.Reused)

	require.Equal(t, first, plan(&known, "host.jitter=0.25", "os.fault_ask=page", "smmu.banks=3"))
	require.Equal(t, n, known.Measured, "nothing of these counts")
	require.Equal(t, n, known.Reused)

	slow := plan(&known, "nic.overhead=1us", "host.jitter=0.25")
	require.Equal(t, 2*n, known.Measured)
	require.NotEqual(t, first, slow)
	require.Equal(t, plan(nil, "nic.overhead=1us"), slow)
	require.Equal(t, slow, plan(&known, "nic.overhead=1us"))
	require.Equal(t, 2*n, known.Measured)
}

// Points of several plans are measured once, all ahead of the plans: these then
// measure nothing, and have the numbers that they have alone.
func TestPlansAreMeasuredAhead(t *testing.T) {
	e, err := experiment.Find("pingpong")
	require.NoError(t, err)
	plan := func(set ...string) *experiment.LedgerPlan {
		want := func(id string) bool { return id == e.Ledger[0].ID }
		p, err := experiment.PlanLedger([]*experiment.Experiment{e}, want, func(s *experiment.Sweep) error {
			s.Overrides = set
			return nil
		})
		require.NoError(t, err)
		return p
	}
	sets := [][]string{nil, {"dma.latency=1us"}, {"dma.latency=2us"}, {"dma.latency=1us"}}
	var known experiment.Known
	var plans []*experiment.LedgerPlan
	for _, set := range sets {
		p := plan(set...)
		p.Reuse(&known)
		plans = append(plans, p)
	}
	var steps atomic.Int64
	require.NoError(t, known.Ahead(t.Context(), plans, nil, func(points int) func() {
		require.Equal(t, 3*plans[0].Points(), points)
		return func() { steps.Add(1) }
	}))
	require.EqualValues(t, known.Measured, steps.Load())
	measured := known.Measured
	require.Equal(t, 3*plans[0].Points(), measured)
	for i, p := range plans {
		require.NoError(t, p.Run(t.Context(), nil, nil))
		alone := plan(sets[i]...)
		require.NoError(t, alone.Run(t.Context(), nil, nil))
		require.Equal(t, alone.Others(nil), p.Others(nil), sets[i])
	}
	require.Equal(t, measured, known.Measured)
	plans = []*experiment.LedgerPlan{plan("dma.latency=4us"), plan("dma.latency=4us", "host.jitter=0.25"), plan("dma.latency=4us", "smmu.banks=3")}
	steps.Store(0)
	require.NoError(t, known.Ahead(t.Context(), plans, nil, func(int) func() { return func() { steps.Add(1) } }))
	require.Equal(t, measured+plans[0].Points(), known.Measured, "only the latency counts")
	require.EqualValues(t, 3*plans[0].Points(), steps.Load())
	stopped, stop := context.WithCancel(t.Context())
	stop()
	require.ErrorIs(t, known.Ahead(stopped, []*experiment.LedgerPlan{plan("dma.latency=3us")}, nil, func(int) func() { return func() {} }), context.Canceled)
}
