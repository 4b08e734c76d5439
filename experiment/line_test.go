package experiment

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Tables about the gain of libraries show, for both devices, the work that
// hosts are spared, and whether handlers keep up with line rate.
func TestTablesHaveLineRate(t *testing.T) {
	for name, short := range map[string]Values{
		"datatype":      {"mode": ModeSpin, "size": 65536, "block": 256},
		"datatype-apps": {"mode": ModeSpin, "app": "LAMMPS_atomic"},
		"raid5":         {"mode": ModeSpin, "size": 65536},
		"kv":            {"mode": ModeSpin, "ops": 2, "records": 10, "clients": 2},
		"scan":          {"mode": ModeSpin, "size": 65536},
		"txlog":         {"mode": ModeSpin, "op": "read", "ranks": 2, "count": 10, "size": 512},
		"ftbcast":       {"mode": ModeSpin, "failed": 0, "ranks": 4, "size": 8},
	} {
		e, err := Find(name)
		require.NoError(t, err)
		said := slices.ContainsFunc(append([]View{e.View}, presetViews(e)...), func(v View) bool {
			has := func(columns ...string) bool {
				return slices.ContainsFunc(columns, func(c string) bool { return slices.Contains(v.Summary, c) })
			}
			return has("host_cpu", "server_cpu") && has("host_memory", "server_memory") && has("hpus_needed") && has("littles_law_share")
		})
		require.True(t, said, name)
		require.NotNil(t, e.Caveats, name)
		for _, device := range []string{"spin-int", "spin-dis"} {
			r := measuredOn(t, e, device, short)
			needed := r.Float("hpus_needed")
			require.Positive(t, needed, name)
			require.Equal(t, min(1, float64(r.Point.Profile.HPU.Cores)/needed), r.Float("littles_law_share"), name)
			// these have the caveat only for long messages
			if needed > float64(r.Point.Profile.HPU.Cores) && name != "datatype" && name != "datatype-apps" {
				require.Regexp(t, "^"+device+`: handlers need up to .* \(Little's law\)\.$`, e.Caveats([]*Result{r})[0])
			}
		}
	}
}

func presetViews(e *Experiment) (views []View) {
	for i := range e.Presets {
		if v := e.Presets[i].View; v != nil {
			views = append(views, *v)
		}
	}
	return views
}

// 1000 cycles at 2.5 GHz are 400 ns. With 100 ns at line rate 4 HPUs compute.
// Handlers that wait occupy contexts: 1.6 us in all means 16 at a time, two on
// an HPU.
func TestHPUsNeeded(t *testing.T) {
	device, err := profile.Load("spin-int", "hpu.clock=2500MHz", "hpu.contexts=2")
	require.NoError(t, err)
	p := &Point{Profile: device}
	for inside, want := range map[sim.Time]float64{400 * sim.Nanosecond: 4, 800 * sim.Nanosecond: 4, 1600 * sim.Nanosecond: 8} {
		s := runtime.Stats{Stats: nic.Stats{HandlerCycles: 1000, HandlerTime: inside}}
		require.InDelta(t, want, p.HPUsNeeded(&s, 100*sim.Nanosecond), 1e-9)
	}
}

// If enough clients ask, a store reaches the throughput of Little's law: for
// answers of 1024 B, one every 20.5 ns at line rate.
func TestLittlesLawIsRight(t *testing.T) {
	for _, device := range []string{"spin-int", "spin-dis"} {
		r := measuredOn(t, builtin("kv"), device, Values{"mode": ModeSpin, "workload": "C", "clients": 32, "ops": 40, "records": 1000, "size": 1000})
		line := r.Point.Profile.Fabric.Rate.Time(1024)
		share := r.Float("throughput") * float64(line) / float64(sim.Microsecond)
		law := r.Float("littles_law_share")
		require.Less(t, law, 0.5, device)
		require.LessOrEqual(t, share, law, device)
		require.Less(t, math.Abs(share-law)/law, 0.12, "%s: %v, %v", device, share, law)
	}
}

func measuredOn(t *testing.T, e *Experiment, device string, values Values, overrides ...string) *Result {
	d, err := profile.Load(device, overrides...)
	require.NoError(t, err)
	p, err := e.At(d, values)
	require.NoError(t, err)
	r, err := e.Measure(context.Background(), p)
	require.NoError(t, err)
	return r
}
