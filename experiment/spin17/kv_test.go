package spin17

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

func measureKV(t *testing.T, device string, values experiment.Values) *experiment.Result {
	p, err := profile.Load(device)
	require.NoError(t, err)
	for name, v := range (experiment.Values{"workload": "A", "clients": 4, "ops": 10, "records": 200, "size": 1000}) { //lint:maporder a map is made of a map
		if _, given := values[name]; !given {
			values[name] = v
		}
	}
	at, err := keyValue.At(p, values)
	require.NoError(t, err)
	r, err := keyValue.Measure(context.Background(), at)
	require.NoError(t, err, at)
	return r
}

// Every workload in every mode: all requests are done and values are right. A
// core of the server does none of the work of handlers or clients.
func TestKeyValueWorkloads(t *testing.T) {
	for _, workload := range []string{"A", "B", "C", "D", "E", "F"} {
		by := map[string]*experiment.Result{}
		for _, mode := range []string{experiment.ModeSpin, experiment.ModeHost, experiment.ModeRDMA} {
			r := measureKV(t, "spin-int", experiment.Values{"mode": mode, "workload": workload})
			by[mode] = r
			least := 4 * 10
			if workload == "F" {
				least = 4*10 + 10
			}
			require.GreaterOrEqual(t, r.Values["requests"], least)
			require.GreaterOrEqual(t, r.Time("p99"), r.Time(experiment.LatencyColumn)/2)
		}
		require.Less(t, by[experiment.ModeSpin].Time(experiment.LatencyColumn), by[experiment.ModeHost].Time(experiment.LatencyColumn), workload)
		require.Less(t, by[experiment.ModeSpin].Time("server_cpu"), by[experiment.ModeHost].Time("server_cpu")/20, workload)
		require.Less(t, by[experiment.ModeRDMA].Time("server_cpu"), by[experiment.ModeHost].Time("server_cpu"), workload)
		require.Less(t, by[experiment.ModeSpin].Float("server_memory"), by[experiment.ModeHost].Float("server_memory"), workload)
	}
	for _, mode := range []string{experiment.ModeSpin, experiment.ModeRDMA} {
		require.Zero(t, measureKV(t, "spin-int", experiment.Values{"mode": mode, "workload": "C"}).Time("server_cpu"))
	}
}

// One get from an idle store, by the parts of the model. These are: an
// injection, two wires and a switch in each direction, matching, the request's
// read from the client's memory (two crossings of its bus), the answer's
// landing there (one), and a look at it. Between them are two reads of host
// memory by the handler (spin), or three gets with a read and a landing each
// (rdma: directory, bucket, item).
func TestKeyValueGet(t *testing.T) {
	const o, wires, match, look = 65000, 2*33400 + 50000, 30000, 51000 // ps
	for device, l := range map[string]sim.Time{"spin-int": 50 * sim.Nanosecond, "spin-dis": 250 * sim.Nanosecond} {
		with := func(mode string) sim.Time {
			return measureKV(t, device, experiment.Values{"mode": mode, "workload": "C", "clients": 1, "ops": 1, "records": 1, "size": 8}).Time(experiment.LatencyColumn)
		}
		spin := o + 2*l + wires + match + 4*l + wires + match + l + look
		require.Greater(t, with(experiment.ModeSpin), spin, device)
		require.Less(t, with(experiment.ModeSpin), spin+200*sim.Nanosecond, "%s: the handler's cycles", device)
		rdma := 3 * (o + wires + match + 2*l + wires + l + look)
		require.Greater(t, with(experiment.ModeRDMA), rdma, device)
		require.Less(t, with(experiment.ModeRDMA), rdma+100*sim.Nanosecond, "%s: bytes, and the checksum", device)
	}
}

// Handlers that may walk further hand over fewer requests. Both find
// everything.
func TestKeyValueChains(t *testing.T) {
	last := 1.0
	for _, steps := range []int{1, 4, 16} {
		r := measureKV(t, "spin-int", experiment.Values{"mode": experiment.ModeSpin, "workload": "C", "load": 16, "records": 4096, "steps": steps, "clients": 8, "ops": 25})
		handed := r.Float("handed")
		require.Less(t, handed, last)
		last = handed
	}
	require.Less(t, last, 0.2)
}
