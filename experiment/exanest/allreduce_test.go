package exanest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

func reduced(t *testing.T, device string, values experiment.Values, set ...string) *experiment.Result {
	p, err := profile.Load(device, set...)
	require.NoError(t, err)
	at, err := allreduce.At(p, values)
	require.NoError(t, err)
	r, err := allreduce.Measure(context.Background(), at)
	require.NoError(t, err)
	return r
}

// The accelerator takes 6.79 µs with 16 ranks and 256 B; its latency was set
// for this. Each vector that a server takes costs the latency. The longest way
// has it 7 times: the call, three clients, two other servers, and the result. A
// longer vector takes a run for each 256 B; up to 4 KiB it is as fast as
// processes, as in TR-488. A short vector takes almost as long as a whole run.
func TestAllreduceAccelerator(t *testing.T) {
	accelerated := func(ranks, n int, set ...string) sim.Time {
		r := reduced(t, "exanest", experiment.Values{"mode": string(mpi.ModeAccelerator), "ranks": ranks, "size": n}, set...)
		require.InDelta(t, 1, r.Float("offloaded"), 1e-9)
		require.Nil(t, r.Values["fallback"])
		return r.Time(experiment.LatencyColumn)
	}
	ns := func(d sim.Time) float64 { return d.Seconds() * 1e9 }
	run := accelerated(16, 256)
	require.InEpsilon(t, 6790, ns(run), 0.005)
	const more, cycles = 100.0, 520.0
	slower := accelerated(16, 256, "pools.allreduce.latency=620ns")
	require.InDelta(t, 7*more, ns(slower-run), 1.2*more, "calls are not at once: a barrier leaves ranks apart")
	require.Greater(t, ns(run-accelerated(16, 256, "pools.allreduce.latency=0ns")), 5*cycles)
	require.Less(t, run, accelerated(32, 256))
	require.InEpsilon(t, 16*ns(run), ns(accelerated(16, 4096)), 0.08)
	host := reduced(t, "exanest", experiment.Values{"mode": string(mpi.ModeHost), "ranks": 16, "size": 4096}).Time(experiment.LatencyColumn)
	require.InEpsilon(t, ns(host), ns(accelerated(16, 4096)), 0.15)
	require.InEpsilon(t, ns(run), ns(accelerated(16, 4)), 0.2)
}

// Without an accelerator, or for a call that it cannot do, the processes
// compute the result, and the fallback gives the reason.
func TestAllreduceFallback(t *testing.T) {
	r := reduced(t, "exanest", experiment.Values{"mode": string(mpi.ModeAccelerator), "ranks": 6, "size": 8})
	require.Equal(t, "no whole QFDBs: 6 ranks", r.Values["fallback"])
	require.Zero(t, r.Float("offloaded"))
	require.Equal(t, []string{"accelerator of 8 B on 6 ranks was computed by processes, all of it or in part: no whole QFDBs: 6 ranks."}, allreduceFallbacks([]*experiment.Result{r}))
	r = reduced(t, "spin-int", experiment.Values{"mode": string(mpi.ModeAccelerator), "transport": "portals", "ranks": 8, "size": 8})
	require.Equal(t, "the device has no accelerator (serve.allreduce)", r.Values["fallback"])
	host := reduced(t, "spin-int", experiment.Values{"mode": string(mpi.ModeHost), "transport": "portals", "ranks": 8, "size": 8})
	require.Equal(t, host.Time(experiment.LatencyColumn), r.Time(experiment.LatencyColumn))
}

// The same modules are faster on faster processors. R5 firmware takes time for
// each invocation but not for numbers. It is between HPUs of 150 MHz and of 1
// GHz.
func TestAllreducePools(t *testing.T) {
	var before sim.Time
	for _, pool := range []string{"2.5GHz", "1GHz", "r5", "150MHz"} {
		r := reduced(t, "exanest", experiment.Values{"mode": string(mpi.ModeAccelerator), "pool": pool, "ranks": 16, "size": 256})
		require.Less(t, before, r.Time(experiment.LatencyColumn), pool)
		before = r.Time(experiment.LatencyColumn)
	}
}

// With all types, operations and modes every rank gets the result of a loop.
// Run checks it.
func TestAllreduceResults(t *testing.T) {
	for _, mode := range allreduceModes() {
		for _, kind := range allreduce.Axis("type").Of {
			for _, op := range allreduce.Axis("op").Of {
				for device, transport := range map[string]string{"exanest": "exanet", "spin-dis": "portals"} {
					set := []string{}
					if mode == string(mpi.ModeSwitch) {
						set = append(set, "fabric.units={at: all, rate: 1ps/B, wire: 1ns}")
					}
					r := reduced(t, device, experiment.Values{"mode": mode, "type": kind, "op": op, "transport": transport, "ranks": 12, "size": 520, "calls": 1}, set...)
					if mode != string(mpi.ModeHost) && mode != string(mpi.ModeAccelerator) {
						require.InDelta(t, 1, r.Float("offloaded"), 1e-9)
					}
				}
			}
		}
	}
}
