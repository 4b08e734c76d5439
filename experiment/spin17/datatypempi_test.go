package spin17

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/experiment/part"
	"github.com/spinsim/spinsim/profile"
)

// MPI's calls are as fast as the device. Cores and handlers unpack an eager
// message as fast as with the program's own entry. A large message goes through
// the NIC twice, at more than twice the rate of a core, which does nothing.
func TestMPIUnpacks(t *testing.T) {
	p, err := profile.Load("spin-int")
	require.NoError(t, err)
	at := func(mode, side string, size int) *experiment.Result {
		at, err := datatypes.At(p, experiment.Values{"mode": mode, "side": side, "size": size, "block": 64})
		require.NoError(t, err)
		r, err := datatypes.Measure(context.Background(), at)
		require.NoError(t, err)
		return r
	}
	const eager, large = 16 << 10, 4 << 20
	for called, own := range map[string]string{modeMPIHost: experiment.ModeRDMA, modeMPIOffload: experiment.ModeSpin} {
		require.InEpsilon(t, at(own, part.SideDestination, eager).Float("throughput"), at(called, part.SideDestination, eager).Float("throughput"), 0.01, called)
	}
	host, offload := at(modeMPIHost, part.SideDestination, large), at(modeMPIOffload, part.SideDestination, large)
	require.InDelta(t, 8.7, host.Float("throughput"), 0.02, "what sPIN'17 §5.2 gives for a core")
	require.Greater(t, offload.Float("throughput"), 2*host.Float("throughput"))
	require.Less(t, offload.Time("host_cpu"), host.Time("host_cpu")/500)
	require.InEpsilon(t, at(modeMPIHost, part.SideSource, large).Float("throughput"), at(modeMPIOffload, part.SideSource, large).Float("throughput"), 0.01, "cores pack in both")
}
