package inswitch

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

func measurePairs(t *testing.T, device string, values experiment.Values, set ...string) *experiment.Result {
	p, err := profile.Load(device, set...)
	require.NoError(t, err)
	at, err := ofPairs.At(p, values)
	require.NoError(t, err)
	r, err := ofPairs.Measure(t.Context(), at)
	require.NoError(t, err)
	return r
}

// A block of zeros is one packet of 8 B, up and down, over two links each way. It
// takes as long as a dense vector of 8 B, of which TestTimeOfOneSwitch has the
// parts.
func TestTimeOfPairs(t *testing.T) {
	p, err := profile.Load("inc")
	require.NoError(t, err)
	const ranks, block = 5, 4096
	r := measurePairs(t, "inc", experiment.Values{"mode": asPairs, "density": 0.0, "ranks": ranks, "size": element * block})
	dense := measure(t, "inc", experiment.Values{"mode": bySwitch, "ranks": ranks, "size": 8})
	require.Equal(t, dense.Time(experiment.LatencyColumn), r.Time(experiment.LatencyColumn))
	require.EqualValues(t, 8+p.Fabric.Header, r.Values["rank_bytes"])
	require.EqualValues(t, 2*2*ranks*(8+p.Fabric.Header), r.Values[bytesColumn])
}

// Links carry pairs: a share d of the elements up, and of
// the sum what is not zero at all ranks, 1-(1-d)^n, down, 8 B instead of 4. So
// with 16 ranks pairs save bytes at 10%, and do not at 20%; they are faster as
// long as what comes down is: below about 4%.
func TestBytesOfPairs(t *testing.T) {
	const ranks, size = 16, 256 << 10
	for _, d := range []float64{0.01, 0.1, 0.2, 0.5} {
		values := experiment.Values{"mode": asPairs, "density": d, "ranks": ranks, "size": size}
		pairs := measurePairs(t, "inc", values)
		values["mode"] = asVector
		dense := measurePairs(t, "inc", values)
		ours := float64(pairs.Values[bytesColumn].(int64)) / float64(dense.Values[bytesColumn].(int64))
		require.InEpsilon(t, (2*d+2*(1-math.Pow(1-d, ranks)))/2, ours, 0.05, "%v", d)
		require.Equal(t, d < 0.05, pairs.Time(experiment.LatencyColumn) < dense.Time(experiment.LatencyColumn), "%v", d)
	}
}

// With small tables pairs spill, and every byte of the result is right all the
// same: Measure compares. So is it on other devices, in NICs, with loss.
func TestPairsAnywhere(t *testing.T) {
	tree := []string{"fabric.kind=leaf-spine", "fabric.radix=0", "fabric.leaf_nodes=3", "fabric.spines=1"}
	for _, device := range []string{"inc", "spin-int", "exanest"} {
		for _, where := range ofPairs.Axis("where").Of {
			set := append([]string{
				"fabric.units={at: all, rate: 1ps/B, wire: 1ns}", "os.kind=none", "smmu.kind=none",
				"fabric.faults={loss: 0.01}", "transport.kind=reliable", "transport.retries=100", "transport.timeout=20us",
			}, tree...)
			r := measurePairs(t, device, experiment.Values{"mode": asPairs, "where": where, "density": 0.2, "block": 256, "sums": 16, "ranks": 7, "size": 10004}, set...)
			require.Positive(t, r.Values["spilled"])
		}
	}
}

// The aggregators of both modes have the same processors.
func TestPairsRunWhereVectorsDo(t *testing.T) {
	values := experiment.Values{"mode": asPairs, "density": 0.1, "ranks": 4, "size": 64 << 10}
	time := func(set ...string) sim.Time {
		return measurePairs(t, "inc", values, set...).Time(experiment.LatencyColumn)
	}
	require.Greater(t, time("serve.reduction.payload=hpu"), 2*time())
	require.Equal(t, time("serve.reduction.payload=hpu"), time("serve.sparse.payload=hpu"))
	s, err := experiment.New(ofPairs)
	require.NoError(t, err)
	s.Profiles, s.Overrides = []string{"inc"}, []string{"serve.reduction.payload=hpu"}
	require.NoError(t, s.Choose("mode", asPairs))
	_, err = s.Points()
	require.NoError(t, err, "whoever chooses them need not measure dense")
}

func TestPointsOfPairs(t *testing.T) {
	for want, values := range map[string]experiment.Values{
		"no switch has a unit (fabric.units)":                       {"mode": asPairs},
		"--block: 3, expected a power of two":                       {"mode": asPairs, "block": 3},
		"--sums: 8, expected a power of two up to the 4 of --block": {"mode": asPairs, "block": 4, "sums": 8},
	} {
		p, err := profile.Load("spin-dis")
		require.NoError(t, err)
		_, err = ofPairs.At(p, values)
		require.ErrorContains(t, err, want)
	}
	odd, err := profile.Load("spin-dis", "fabric.mtu=1514")
	require.NoError(t, err)
	const want = "profile spin-dis: fabric.mtu: 1514, expected a multiple of 8"
	_, err = ofPairs.At(odd, experiment.Values{"where": byNICTree})
	require.ErrorContains(t, err, want)
	_, err = inSwitch.At(odd, experiment.Values{"mode": byNICTree})
	require.ErrorContains(t, err, want)
}

// The answer lists the densities, and says when there are none.
func TestWorthIt(t *testing.T) {
	var results []*experiment.Result
	for _, d := range []float64{0.01, 0.1, 0.5} {
		for _, mode := range []string{asVector, asPairs} {
			results = append(results, measurePairs(t, "inc", experiment.Values{"mode": mode, "density": d, "ranks": 16, "size": 64 << 10}))
		}
	}
	require.Equal(t, []string{
		"inc, switch, 16 ranks, 64 KiB, blocks of 4096: pairs are faster than whole vectors at 1%, and take fewer bytes on links at 1%, 10%.",
	}, worthIt(results))
	require.Contains(t, worthIt(results[4:])[0], "at none of the densities, and take fewer bytes on links at none")
}
