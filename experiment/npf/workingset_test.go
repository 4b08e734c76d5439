package npf

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// wsetAt is a short run of npf-working-set, at a scale with few objects.
func wsetAt(t *testing.T, mode, server string, at sim.Time) *experiment.Result {
	return onNPF(t, workingSet, experiment.Values{
		"mode": mode, "server": server, "scale": 256, "connections": 2, "change": 6 * sim.Second, "horizon": 26 * sim.Second, "window": 5 * sim.Second, "at": at,
	})
}

// The published shape of NPF'17. With page faults, memory goes from the server
// whose working set shrinks to the server whose set grows, and both find their
// objects. With half of the memory for each, the server with the large set has
// too little, now one, now the other, while the other has unused memory.
func TestMemoryGoesWhereItIsNeeded(t *testing.T) {
	const before, after = 6 * sim.Second, 26 * sim.Second
	rate := func(mode, server string, at sim.Time) float64 { return wsetAt(t, mode, server, at).Float("hit_rate") }
	for _, at := range []sim.Time{before, after} {
		large, small := wsetShrinks, wsetGrows
		if at == after {
			large, small = small, large
		}
		// 512 MiB are 48 objects for each MiB of slabs; 900 MB are 41,482
		// objects
		require.InDelta(t, 512*48/41482., rate(fleetPinned, large, at), 0.05, "%v", at)
		require.Greater(t, rate(fleetPinned, small, at), 0.99)
		require.Greater(t, rate(fleetNPF, small, at), 0.99)
		require.Greater(t, rate(fleetNPF, large, at), 0.8)
	}
	require.Less(t, rate(fleetNPF, wsetGrows, before+5*sim.Second), 0.5, "it comes by what is stored")

	run := wsetAt(t, fleetNPF, wsetBoth, after)
	require.Positive(t, run.Values["major"])
	require.Greater(t, run.Values["reclaimed"], 50, "what is asked for no more has left")
	both := run.Float("hits")
	require.InEpsilon(t, wsetAt(t, fleetNPF, wsetGrows, after).Float("hits")+wsetAt(t, fleetNPF, wsetShrinks, after).Float("hits"), both, 1e-9)
	pinned := wsetAt(t, fleetPinned, wsetBoth, after)
	require.Zero(t, pinned.Values["reclaimed"])
	require.Greater(t, run.Float("hit_rate"), pinned.Float("hit_rate")+0.1)
}

// Memory and time are divided by the same scale. So the rates do not depend on
// the scale: the share that a server finds, and its speed.
func TestScaleKeepsRates(t *testing.T) {
	at := func(scale int) *experiment.Result {
		return onNPF(t, workingSet, experiment.Values{
			"mode": fleetPinned, "server": wsetBoth, "scale": scale, "connections": 2, "change": sim.Second, "horizon": 3 * sim.Second, "window": 2 * sim.Second, "at": 3 * sim.Second,
		})
	}
	small, large := at(256), at(128)
	require.InEpsilon(t, large.Float("operations"), small.Float("operations"), 0.1)
	require.InDelta(t, large.Float("hit_rate"), small.Float("hit_rate"), 0.1)
}

// At each scale the servers have the divided memory, to a page, though memory
// has a unit of 2 MiB. Sets have a value for each connection.
func TestMemoryOfEachScale(t *testing.T) {
	p, err := profile.Load("eth-npf")
	require.NoError(t, err)
	at := func(set experiment.Values) (*experiment.Point, error) {
		v := experiment.Values{"mode": fleetNPF, "server": wsetBoth, "at": 100 * sim.Second}
		for name, x := range set {
			v[name] = x
		}
		return workingSet.At(p, v)
	}
	for _, scale := range []int{1, 2, 3, 7, 64, 100, 129, 171, 255, 256} {
		point, err := at(experiment.Values{"scale": scale})
		require.NoError(t, err)
		changed, other, err := wsetProfile(point)
		require.NoError(t, err)
		require.InDelta(t, 1<<30/scale+2<<20+wsetTables(wsetHash(point)), int(changed.OS.Memory)-other, host.PageBytes, "scale %d", scale)
		require.Less(t, other, 2<<20)
	}
	_, err = at(experiment.Values{"connections": 19})
	require.ErrorContains(t, err, "--small: 100000000 B divided by --scale hold 18 values, expected one for each of --connections, 19")
}
