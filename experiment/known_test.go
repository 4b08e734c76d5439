package experiment_test

import (
	"context"
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
