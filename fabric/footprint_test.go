package fabric

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/sim"
)

// Idle agrees with the memory that a network without nodes takes.
func TestIdleIsWhatANetworkTakes(t *testing.T) {
	taken := func(spec Spec) float64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := New(sim.New(1), spec, 4)
		require.NoError(t, err)
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	ring := torusSpec(40, 40, 4)
	bounded := ring
	bounded.Buffer = Buffers{4096}
	one := exanestSpec(32, 3, 16)
	one.Exanest.Channels, one.Buffer = 1, nil
	for _, spec := range []Spec{exanestSpec(32, 16, 4), one, ring, bounded} {
		require.InEpsilon(t, taken(spec), float64(Idle(&spec, 4)), 0.2, spec.Kind)
	}
	all := exanestSpec(4, 4, 2)
	require.Zero(t, Idle(&all, 128))
	tree := spinDis()
	require.Zero(t, Idle(&tree, 4))
}
