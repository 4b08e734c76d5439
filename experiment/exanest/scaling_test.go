package exanest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/internal/patterns"
	"github.com/spinsim/spinsim/profile"
)

// One rank has an efficiency of 1, more ranks have less, and strong scaling
// suffers more than weak. The shares add up to the whole.
func TestScalingEfficiency(t *testing.T) {
	for _, app := range []string{"lammps", "minife"} {
		efficiency := map[string]float64{}
		for _, how := range []string{"weak", "strong"} {
			one := measured(t, scaling, "exanest", experiment.Values{"app": app, "scaling": how, "ranks": 1})
			require.InDelta(t, 1, one.Float("efficiency"), 1e-12)
			r := measured(t, scaling, "exanest", experiment.Values{"app": app, "scaling": how, "ranks": 27})
			efficiency[how] = r.Float("efficiency")
			require.Less(t, efficiency[how], 1.0)
			want := one.Time("time").Seconds() / r.Time("time").Seconds()
			if how == "strong" {
				want /= 27
			}
			require.InEpsilon(t, want, efficiency[how], 1e-9)
			require.InDelta(t, 1, r.Float("compute")+r.Float("exchange")+r.Float("reduce"), 1e-9)
		}
		require.Less(t, efficiency["strong"], efficiency["weak"], app)
		require.Greater(t, efficiency["weak"], 0.9)
	}
	// With a faster core, communication takes a larger share of the time.
	slow := measured(t, scaling, "exanest", experiment.Values{"app": "lammps", "ranks": 8})
	fast := measured(t, scaling, "exanest", experiment.Values{"app": "lammps", "ranks": 8, "core-rate": 6500.0})
	require.Less(t, fast.Float("efficiency"), slow.Float("efficiency"))
}

// The efficiency follows from the table's times, also where the cores of a node
// share its memory. A rank alone has the whole channel. With a channel of 24
// Gb/s and cores of 19.2 each, a rank of HPCG computes as long as its bytes
// take at 19.2 Gb/s, two ranks have 12 each, and four have 6.
func TestScalingSharesMemory(t *testing.T) {
	for _, app := range patterns.Apps() {
		for _, how := range []string{"weak", "strong"} {
			contended := func(ranks int) *experiment.Result {
				return measured(t, scaling, "exanest", experiment.Values{"app": string(app), "scaling": how, "ranks": ranks}, "host.memory_bandwidth=24Gb/s")
			}
			one := contended(1)
			for _, ranks := range []int{2, 4} {
				r := contended(ranks)
				want := one.Time("time").Seconds() / r.Time("time").Seconds()
				if how == "strong" {
					want /= float64(ranks)
				}
				require.InEpsilon(t, want, r.Float("efficiency"), 1e-9, "%s, %s, %d ranks", app, how, ranks)
				if app == "hpcg" && how == "weak" {
					device, err := profile.Load("exanest")
					require.NoError(t, err)
					own := device.Host.CoreBandwidth
					share := 24e9 / 8 / float64(ranks) * own.Time(1e9).Seconds() / 1e9
					require.InDelta(t, min(1, share), r.Float("efficiency"), 0.05)
				}
			}
		}
	}
}

// Other devices and transports run the same programs. Late memory changes only
// times.
func TestScalingElsewhere(t *testing.T) {
	measured(t, scaling, "spin-int", experiment.Values{"app": "hpcg", "scaling": "strong", "ranks": 8, "transport": overOffload})
	device, err := profile.Load("spin-dis")
	require.NoError(t, err)
	p, err := scaling.At(device, experiment.Values{"app": "minife", "ranks": 12, "transport": overPortals})
	require.NoError(t, err)
	f := hosttest.Nodes{Chances: hosttest.Kinds["late"]}
	p.Translator = f.Make
	_, err = scaling.Measure(t.Context(), p)
	require.NoError(t, err)
	require.Positive(t, f.Delayed)
	_, err = scaling.At(device, experiment.Values{"app": "hpcg", "scaling": "strong", "ranks": 3, "transport": overPortals})
	require.ErrorContains(t, err, "--ranks: patterns: hpcg: [256 256 128] points for 3 ranks")
}

// The fifth rank has the last node and its memory alone. It computes as fast as
// one rank, and then waits for the four others.
func TestScalingOnALastNodeWithRoom(t *testing.T) {
	contended := func(ranks int) *experiment.Result {
		return measured(t, scaling, "exanest", experiment.Values{"app": "minife", "ranks": ranks}, "host.memory_bandwidth=24Gb/s")
	}
	alone, crowded := contended(1).Time("time").Seconds(), contended(4).Time("time").Seconds()
	// the times include exchanges
	require.InDelta(t, (4*crowded+alone)/(5*crowded), contended(5).Float("compute"), 0.02)
}
