package experiment

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
)

var dependent = flag.Bool("dependent", false, "divide experiments whose programs share variables, too: with -race it shows which")

// No value depends on the number of cores. With -race it finds programs that
// share variables. Networks get small switches, so that a few nodes have several.
func TestCoresChangeNothing(t *testing.T) {
	defer func(least int) { leastDivided = least }(leastDivided)
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
				for _, values := range e.Smoke {
					var want Values
					for _, cores := range []int{1, 2, 3, 8} {
						p, err := one.At(device, values)
						require.NoError(t, err)
						p.Cores = cores
						r, err := one.Measure(t.Context(), p)
						require.NoError(t, err, p)
						if cores == 1 {
							want = r.Values
						}
						require.Equal(t, want, r.Values, "%s, %d cores", p, cores)
					}
				}
			}
		})
	}
}
