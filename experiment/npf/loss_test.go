package npf

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// All programs on Ethernet use TCP, or count lost datagrams. So a network that
// loses frames makes them slower, but ends no run. (A lost window takes a
// time-out, or does not come back within the horizon of a timeline.)
func TestEthernetMayLoseFrames(t *testing.T) {
	again := 0
	for _, e := range Publication.Experiments {
		if !slices.Contains(e.DefaultProfiles(), "eth-npf") {
			continue
		}
		require.NotEmpty(t, e.Smoke, e.Name)
		values := e.Smoke[0]
		device, err := profile.Load("eth-npf", "fabric.faults.loss=0.01")
		require.NoError(t, err)
		if e == instances {
			values = maps.Clone(values)
			values["time"], values["connections"] = 5*sim.Second, 1
		}
		p, err := e.At(device, values)
		if e == workingSet { // its time is divided, but TCP's is not
			require.ErrorContains(t, err, "fabric.faults loses frames")
			continue
		}
		require.NoError(t, err)
		r, err := e.Measure(context.Background(), p)
		require.NoError(t, err, "%s", p)
		if n, counted := r.Values["timeouts"].(int); counted {
			again += n
		}
	}
	require.Positive(t, again, "something was lost")
}
