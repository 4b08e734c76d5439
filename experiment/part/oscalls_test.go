package part

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// Each call takes the times of the profile: one for the call and one for each
// page. Touching also costs a line of memory for each page, and munmap one
// invalidation of the SMMU's entries.
func TestOSCalls(t *testing.T) {
	device, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	o := &device.OS
	for call, costs := range map[string][2]sim.Time{ //lint:maporder each by itself
		callMmap:    {o.MapCall, 0},
		callMunmap:  {o.UnmapCall + o.Invalidate, o.UnmapPage},
		callMlock:   {o.LockCall, o.LockAbsent},
		callMunlock: {o.UnlockCall, o.UnlockPage},
		callTouch:   {0, o.FaultAbsent + device.Host.MemoryLatency},
	} {
		for size, pages := range map[int]sim.Time{1: 1, 4096: 1, 4097: 2, 65536: 16} { //lint:maporder each by itself
			p, err := osCalls.At(device, experiment.Values{"call": call, "size": size})
			require.NoError(t, err)
			r, err := osCalls.Measure(context.Background(), p)
			require.NoError(t, err)
			require.Equal(t, costs[0]+pages*costs[1], r.Time(experiment.LatencyColumn), "%s, %d B", call, size)
			require.EqualValues(t, pages, r.Values["pages"])
		}
	}
}
