package experiment

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/goal/proxy"
	"github.com/spinsim/spinsim/runtime"
)

// Every published application has its proxy, and the share of communication that a run has is the published one.
func TestMatchingHasThePublishedShare(t *testing.T) {
	p, err := runtime.LoadProfile("spin-int")
	require.NoError(t, err)
	for _, a := range PublishedApplications() {
		require.Contains(t, proxy.Names(), a.Proxy)
		if a.Ranks > 72 || a.Proxy == "comd" {
			continue // the same with more ranks or bytes
		}
		r, err := RunMatching(context.Background(), a, MatchingConfig{Profile: p, Iterations: 2, Eager: 16 << 10, Seed: 1})
		require.NoError(t, err)
		require.InDelta(t, a.Share, r.Host.Share(), shareTolerance)
		require.Equal(t, r.Host.Messages.Received, r.Offload.Messages.Received)
		require.Positive(t, r.Gain(), a.Proxy)
		require.Less(t, r.Gain(), a.Share/(1-a.Share), "no more can be gained than communication takes")
	}
}
