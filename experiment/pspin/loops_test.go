package pspin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
)

// A core with SIMD has two rows more: what a reduction of floats takes without
// and with it, for the same four floats.
func TestLoopsWithVectors(t *testing.T) {
	sweep := func(device string) *experiment.Sweep {
		s, err := experiment.New(loops)
		require.NoError(t, err)
		s.Profiles = []string{device}
		return s
	}
	scalar, err := sweep("pspin").Points()
	require.NoError(t, err)
	with := sweep("../../docs/profiles/spin-int-simd.yaml")
	vectors, err := with.Points()
	require.NoError(t, err)
	require.Len(t, vectors, len(scalar)+2)
	s := sweep("pspin")
	require.NoError(t, s.Choose(loopAxis, "lanes"))
	_, err = s.Points()
	require.ErrorContains(t, err, "profile pspin: hpu.costs.simd.access_bytes: 0, expected a core with SIMD")
	results, err := with.Run(t.Context(), vectors[len(scalar):], func() {})
	require.NoError(t, err)
	require.InDelta(t, 8, results[0].Values["cycles"], 1e-9, "floats")
	require.InDelta(t, 4, results[1].Values["cycles"], 1e-9, "lanes")
}
