package spin17

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/experiment"
	graph "github.com/spinsim/spinsim/handlers/ftbcast"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

func measureFTBcast(t require.TestingT, device string, seed uint64, v experiment.Values) *experiment.Result {
	p, err := profile.Load(device)
	require.NoError(t, err)
	at, err := ftbcastExperiment.At(p, v)
	require.NoError(t, err)
	at.Seed = seed
	r, err := ftbcastExperiment.Measure(context.Background(), at)
	require.NoError(t, err, "%v, seed %d", at, seed)
	return r
}

// In every mode and with any failures, every rank that is up gets the message.
// Run checks it.
func TestFTBcastArrives(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		ranks := rapid.IntRange(2, 40).Draw(r, "ranks")
		v := experiment.Values{
			"ranks": ranks, "mode": rapid.SampledFrom([]string{modeDetector, modeDetector, modeGraph, experiment.ModeSpin}).Draw(r, "mode"),
			"size":   rapid.SampledFrom([]int{0, 1, 4096, 10000}).Draw(r, "size"),
			"failed": rapid.IntRange(0, len(graph.Graph(uint32(ranks)))-1).Draw(r, "failed"),
		}
		device := rapid.SampledFrom([]string{"spin-int", "spin-dis"}).Draw(r, "device")
		m := measureFTBcast(r, device, rapid.Uint64().Draw(r, "seed"), v)
		if v["mode"] == modeDetector {
			require.GreaterOrEqual(r, m.Time("known"), m.Time(experiment.LatencyColumn))
		}
	})
}

// Without failures, a detector is the tree of bcast, followed by a word to the
// root. A failure costs the time-out.
func TestFTBcastDetector(t *testing.T) {
	v := experiment.Values{"ranks": 16, "size": 4096}
	at := func(mode string, failed int, timeout sim.Time) *experiment.Result {
		v["mode"], v["failed"], v["timeout"] = mode, failed, timeout
		return measureFTBcast(t, "spin-int", 3, v)
	}
	const long, short = 300 * sim.Microsecond, 200 * sim.Microsecond
	require.Equal(t, at(experiment.ModeRDMA, 0, long).Time(experiment.LatencyColumn), at(modeDetector, 0, long).Time(experiment.LatencyColumn))
	slow, quick := at(modeDetector, 2, long), at(modeDetector, 2, short)
	require.Equal(t, slow.Values["attempts"], quick.Values["attempts"])
	require.Equal(t, 3, quick.Values["attempts"], "one is found after the other")
	require.Equal(t, long-short, slow.Time("known")-quick.Time("known"))
}

// Handlers save memory accesses. Each rank's memory gets every byte once, and
// is read once for each neighbour that is no child. The same holds for the
// root.
func TestFTBcastMemory(t *testing.T) {
	const ranks, size = 16, 4 * 4096
	reads := 1 // by the root, which sends to itself
	for rank := range uint32(ranks) {
		list, children := graph.NeighboursOf(rank, 0, ranks)
		reads += len(list) - children
	}
	m := measureFTBcast(t, "spin-int", 1, experiment.Values{"ranks": ranks, "size": size, "mode": experiment.ModeSpin, "failed": 0})
	require.Equal(t, int64((ranks-1+reads)*size), m.Values["host_memory"])
	one := measureFTBcast(t, "spin-int", 1, experiment.Values{"ranks": ranks, "size": 8, "mode": experiment.ModeSpin, "failed": 0})
	require.Equal(t, int64(ranks*8), one.Values["host_memory"])
}
