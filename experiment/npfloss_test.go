package experiment

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
)

// Whatever runs over Ethernet has TCP, or counts what its datagrams lose: a network that loses frames
// makes it slower, and ends no run. (A window that is lost takes a time-out, or does not come back
// within the horizon of a timeline.)
func TestEthernetMayLoseFrames(t *testing.T) {
	again := 0
	for _, e := range All() {
		if !slices.Contains(e.DefaultProfiles(), "eth-npf") {
			continue
		}
		values, there := smallPoints[e.Name]
		require.True(t, there, e.Name)
		device, err := profile.Load("eth-npf", "fabric.faults.loss=0.01")
		require.NoError(t, err)
		p, err := e.At(device, values)
		require.NoError(t, err)
		r, err := e.Measure(context.Background(), p)
		require.NoError(t, err, "%s", p)
		if n, counted := r.Values["timeouts"].(int); counted {
			again += n
		}
	}
	require.Positive(t, again, "something was lost")
}
