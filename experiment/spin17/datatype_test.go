package spin17

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/profile"
)

// throughputOf is the throughput of a mode with blocks of a length, in GiB/s.
func throughputOf(t *testing.T, device, mode string, block int, set ...string) float64 {
	p, err := profile.Load(device, set...)
	require.NoError(t, err)
	at, err := datatypes.At(p, experiment.Values{"mode": mode, "size": 4 << 20, "block": block})
	require.NoError(t, err)
	r, err := datatypes.Measure(context.Background(), at)
	require.NoError(t, err)
	return r.Float("throughput")
}

// With any strategy, handlers unpack within 5% of the line rate, 400 Gb/s, for
// blocks from 256 B on. A core reaches the throughput in sPIN'17, for which
// host.core_bandwidth was set.
func TestUnpackingIsNearLineRate(t *testing.T) {
	const line = 50e9 / (1 << 30)
	for _, device := range []string{"spin-int", "spin-dis"} {
		for _, mode := range []string{experiment.ModeSpin, modeSpinGeneral, modeSpinRead, modeSpinOn} {
			for _, block := range []int{256, 4096, 256 << 10} {
				got := throughputOf(t, device, mode, block)
				require.Greater(t, got, 0.95*line, "%s %s %d", device, mode, block)
				require.Less(t, got, line)
			}
		}
	}
	require.InDelta(t, 8.7, throughputOf(t, "spin-int", experiment.ModeRDMA, 4096), 0.01)
}

// With fewer HPUs than line rate needs, throughput is proportional: half as
// many HPUs give half of it.
func TestUnpackingByFewHPUs(t *testing.T) {
	one := throughputOf(t, "spin-int", experiment.ModeSpin, 16, "hpu.cores=1")
	require.InEpsilon(t, 2*one, throughputOf(t, "spin-int", experiment.ModeSpin, 16, "hpu.cores=2"), 0.02)
	require.InEpsilon(t, 4*one, throughputOf(t, "spin-int", experiment.ModeSpin, 16), 0.02)
}

// Packing, and packing with unpacking, are at line rate from 512 B on. A read
// crosses the bus twice, so smaller blocks take longer than unpacking.
func TestPackingIsNearLineRate(t *testing.T) {
	const line = 50e9 / (1 << 30)
	p, err := profile.Load("spin-int")
	require.NoError(t, err)
	at := func(mode, side string, block int) float64 {
		at, err := datatypes.At(p, experiment.Values{"mode": mode, "side": side, "size": 4 << 20, "block": block})
		require.NoError(t, err)
		r, err := datatypes.Measure(context.Background(), at)
		require.NoError(t, err)
		return r.Float("throughput")
	}
	for _, side := range []string{typeSource, typeBoth} {
		require.Greater(t, at(experiment.ModeSpin, side, 512), 0.95*line)
		require.Less(t, at(experiment.ModeSpin, side, 64), 0.5*at(experiment.ModeSpin, typeDestination, 64))
	}
	require.InEpsilon(t, at(experiment.ModeRDMA, typeDestination, 4096), at(experiment.ModeRDMA, typeSource, 4096), 0.01)
}

// A list of vectors is not longer than the device allows.
func TestNoVectorsBeyondTheLimit(t *testing.T) {
	p, err := profile.Load("spin-int")
	require.NoError(t, err)
	for block, expected := range map[int]bool{4096: true, 2048: false, 3: false} {
		at, err := datatypes.At(p, experiment.Values{"mode": modeIOVec, "size": 4 << 20, "block": block})
		require.Equal(t, expected, err == nil, "%d: %v %v", block, at, err)
	}
}
