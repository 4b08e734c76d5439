package experiment

import (
	"flag"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/lazy"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
)

var dependent = flag.Bool("dependent", false, "divide experiments whose programs share variables, too: with -race it shows which")

// No value depends on the number of cores. With -race it finds programs that
// share variables. Networks get small switches, so that a few nodes have several.
// Nor does a value depend on whether equal bytes exist once and programs that rest
// have no memory, as only in the runs on several cores here.
func TestCoresChangeNothing(t *testing.T) {
	defer func(least int) { leastDivided = least }(leastDivided)
	defer func(shared bool, many int) { lazy.Shared, lazy.Many = shared, many }(lazy.Shared, lazy.Many)
	leastDivided = 0
	for _, e := range All() {
		if e.Deviceless || !e.Independent && !*dependent {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			one := *e
			one.Independent = true
			for _, name := range e.DefaultProfiles() {
				device, err := profile.Load(name)
				require.NoError(t, err)
				if device.Fabric.Radix > 4 {
					device, err = profile.Load(name, "fabric.radix=4")
					require.NoError(t, err)
				}
				for i, values := range everyChoice(e) {
					if _, err := one.At(device, values); err != nil {
						continue // no such combination
					}
					var want Values
					var operations []Operation
					cores := []int{1, 3}
					if i < len(e.Smoke) {
						cores = []int{1, 2, 3, 8}
					}
					for _, cores := range cores {
						if lazy.Shared, lazy.Many = cores > 1, 1; cores == 1 {
							lazy.Many = math.MaxInt
						}
						p, err := one.At(device, values)
						require.NoError(t, err)
						p.Cores = cores
						r, err := one.Measure(t.Context(), p)
						require.NoError(t, err, p)
						if cores == 1 {
							want, operations = r.Values, p.Operations()
						}
						require.Equal(t, want, r.Values, "%s, %d cores", p, cores)
						require.Equal(t, operations, p.Operations(), "%s, %d cores", p, cores)
					}
				}
			}
		})
	}
}

// Errors do not depend on it either, nor what they count.
func TestCoresChangeNoError(t *testing.T) {
	defer func(least int) { leastDivided = least }(leastDivided)
	leastDivided = 0
	device, err := profile.Load("spin-int", "fabric.radix=4", "hpu.max_cycles=300", "hpu.max_cycles_per_byte=0")
	require.NoError(t, err)
	for name, mode := range map[string]string{"bcast": "spin-stream", "ftbcast": "spin"} { //lint:maporder each by itself
		e, err := Find(name)
		require.NoError(t, err)
		var want string
		for _, cores := range []int{1, 2, 3, 8} {
			p, err := e.At(device, Values{"ranks": 200, "size": 16384, "mode": mode})
			require.NoError(t, err)
			p.Cores = cores
			_, err = e.Measure(t.Context(), p)
			require.Error(t, err)
			if cores == 1 {
				want = err.Error()
			}
			require.Equal(t, want, err.Error(), "%s, %d cores", name, cores)
		}
	}
}

// everyChoice are the smoke points of an experiment, and the first with each
// choice of each axis of names.
func everyChoice(e *Experiment) []Values {
	list := slices.Clone(e.Smoke)
	for _, a := range e.Axes {
		for _, choice := range a.Of {
			values := maps.Clone(e.Smoke[0])
			values[a.Name] = choice
			// with the race detector, which is in a hurry, only who does the work
			if a.Kind == report.Text && e.Independent && (!testing.Short() || a.Name == "mode" || a.Name == "by") {
				list = append(list, values)
			}
		}
	}
	return list
}
