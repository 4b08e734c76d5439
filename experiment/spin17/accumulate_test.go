package spin17

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/profile"
)

// accumulated measures accumulate on spin-int with a cost table.
func accumulated(t *testing.T, costs, mode string, bytes int) *experiment.Result {
	device, err := profile.Load("spin-int", "hpu.costs="+costs)
	require.NoError(t, err)
	p, err := accumulate.At(device, experiment.Values{"mode": mode, "ranks": 2, "size": bytes})
	require.NoError(t, err)
	p.Seed = 3
	r, err := accumulate.Measure(context.Background(), p)
	require.NoError(t, err)
	return r
}

// RATIONALE.md, "A handler costs what a cost table says": an element of the
// accumulate loop takes 6 cycles with the profile's table and 20 with the
// scalar table. That one executes 20 instructions one by one: 4 loads, 4
// products, 2 sums, 2 stores, and 8 for addresses, the counter and the branch.
// The Cortex-A15 fetches three in a cycle, and two of the addresses are part of
// loads and stores: (20 - 2) / 3 = 6. The table decides who wins.
func TestAccumulateByCostTable(t *testing.T) {
	const elements = 128 // in 2 KiB
	for costs, want := range map[string]struct {
		cycles int64
		faster float64
	}{
		"a15":    {6, 3.21},
		"scalar": {20, 1.08},
	} {
		few, more := accumulated(t, costs, experiment.ModeSpinStream, 2<<10), accumulated(t, costs, experiment.ModeSpinStream, 4<<10)
		cycles := func(r *experiment.Result) int64 { return r.Values["handler_cycles"].(int64) }
		require.Equal(t, want.cycles*elements, cycles(more)-cycles(few), costs)

		spin, rdma := accumulated(t, costs, experiment.ModeSpinStream, 256<<10).Time("latency"), accumulated(t, costs, experiment.ModeRDMA, 256<<10).Time("latency")
		require.InDelta(t, want.faster, rdma.Seconds()/spin.Seconds(), 0.005, costs)
	}
}
