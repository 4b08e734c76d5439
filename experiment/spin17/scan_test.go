package spin17

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/profile"
)

func measureScan(t *testing.T, device, mode string, values experiment.Values) *experiment.Result {
	p, err := profile.Load(device)
	require.NoError(t, err)
	if _, given := values["size"]; !given {
		values["size"] = 256 << 10
	}
	values["mode"] = mode
	at, err := conditionalRead.At(p, values)
	require.NoError(t, err)
	r, err := conditionalRead.Measure(context.Background(), at)
	require.NoError(t, err, at)
	return r
}

// At every selectivity all modes find the matching rows, and only the expected
// processors work. With handlers or reads, no core of the table's node works. A
// client that gets few rows gets few bytes.
func TestConditionalRead(t *testing.T) {
	for _, device := range []string{"spin-int", "spin-dis"} {
		for _, selectivity := range []float64{0, 0.001, 0.1, 1} {
			with := func(mode string) *experiment.Result {
				return measureScan(t, device, mode, experiment.Values{"selectivity": selectivity})
			}
			spin, host, rdma := with(experiment.ModeSpin), with(experiment.ModeHost), with(experiment.ModeRDMA)
			require.Less(t, spin.Time(experiment.LatencyColumn), host.Time(experiment.LatencyColumn))
			require.Zero(t, spin.Time("server_cpu"))
			require.Zero(t, rdma.Time("server_cpu"))
			require.NotZero(t, host.Time("server_cpu"))
			require.Less(t, spin.Values["client_memory"].(int64), int64(4500+selectivity*1.1*(256<<10)))
			require.Greater(t, rdma.Values["client_memory"].(int64), int64(2*256<<10-1))
		}
	}
}

// Half as many HPUs scan half as many rows in a time, as long as the bus has
// room. Long predicates take the time of their instructions.
func TestConditionalReadByFewHPUs(t *testing.T) {
	at := func(terms int, set ...string) float64 {
		p, err := profile.Load("spin-int", set...)
		require.NoError(t, err)
		point, err := conditionalRead.At(p, experiment.Values{"mode": experiment.ModeSpin, "selectivity": 0.01, "row": 64, "terms": terms, "size": 1 << 20})
		require.NoError(t, err)
		r, err := conditionalRead.Measure(context.Background(), point)
		require.NoError(t, err)
		return r.Float("throughput")
	}
	require.InEpsilon(t, at(1), 2*at(1, "hpu.cores=2"), 0.1)
	require.InEpsilon(t, at(4), 4.2*at(16), 0.15) // 7 instructions, 31
}

// Baselines are as fast as their cores. None reads all of a table before it
// looks at the first row, or finds all rows before it sends the first.
func TestCoresThatScanDoNotWait(t *testing.T) {
	for mode, of := range map[string]string{experiment.ModeHost: "server_cpu", experiment.ModeRDMA: "client_cpu"} {
		for _, selectivity := range []float64{0.001, 1} {
			r := measureScan(t, "spin-int", mode, experiment.Values{"selectivity": selectivity, "size": 4 << 20})
			require.InEpsilon(t, r.Time(of).Seconds(), r.Time(experiment.LatencyColumn).Seconds(), 0.02, "%s %v", mode, selectivity)
		}
	}
}
