package scenarios_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/examples/scenarios"
	"github.com/spinsim/spinsim/internal/lab/scenario"
	"github.com/spinsim/spinsim/runtime"
)

// Every example holds what it expects, on its own profile and on the other.
func TestExamples(t *testing.T) {
	all, err := scenarios.All()
	require.NoError(t, err)
	require.Len(t, all, 3)
	for _, e := range all {
		s, err := scenario.Parse(e.Name+".yaml", e.Text)
		require.NoError(t, err)
		for _, o := range []scenario.Options{{}, {Set: []string{"dma.latency=77ns", "hpu.cores=1", "fabric.mtu=1024"}}} {
			p, err := s.Plan(o)
			require.NoError(t, err)
			result, err := p.Run(context.Background(), runtime.Config{})
			require.NoError(t, err, e.Name)
			require.Positive(t, result.Checked)
		}
	}
}

// The broadcast fits any number of ranks from two on.
func TestBroadcastRanks(t *testing.T) {
	e, err := scenarios.Find("broadcast")
	require.NoError(t, err)
	s, err := scenario.Parse("broadcast.yaml", e.Text)
	require.NoError(t, err)
	for _, ranks := range []int{2, 3, 13, 64} {
		p, err := s.Plan(scenario.Options{Ranks: ranks})
		require.NoError(t, err)
		_, err = p.Run(context.Background(), runtime.Config{})
		require.NoError(t, err, "%d ranks", ranks)
	}
	_, err = scenarios.Find("brodcast")
	require.ErrorContains(t, err, "expected one of broadcast, count")
}
