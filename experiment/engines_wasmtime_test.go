//go:build wasmtime

package experiment

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// Every experiment gives the same values on both WebAssembly engines.
func TestEnginesAgreeOnEveryExperiment(t *testing.T) {
	for _, name := range profile.Names() {
		device, err := profile.Load(name)
		require.NoError(t, err)
		for _, e := range []*Experiment{builtin("pingpong"), builtin("accumulate"), builtin("bcast")} {
			if e.Name == "accumulate" && device.Fabric.MTU%16 != 0 {
				continue // packets have no whole number of elements
			}
			for _, mode := range e.Axis("mode").Of {
				for _, bytes := range []int{16, 4096, 3 * 4096} {
					values := Values{"mode": mode, "size": bytes}
					if e.Name == "bcast" {
						values["ranks"] = min(9, device.Fabric.Most())
					}
					requireSameOnBothEngines(t, e, device, values)
				}
			}
		}
		charge := []string{"hpu.charge=cycles"}
		if device.Fabric.Buffer != nil { // for packets of another size
			charge = append(charge, "fabric.buffer=64KiB")
		}
		charged, err := profile.Load(name, charge...)
		require.NoError(t, err)
		for _, bytes := range []int{64, 4096} {
			requireSameOnBothEngines(t, builtin("hpus"), charged, Values{"hpus": 4, "size": bytes, "handler-time": 200 * sim.Nanosecond})
		}
	}
	qfdb, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	for _, pool := range []string{"r5", "hpu"} {
		for _, policy := range []string{"pio", "pia", "timeout"} {
			requireSameOnBothEngines(t, builtin("pagefault"), qfdb, Values{"policy": policy, "pool": pool, "size": 64 << 10, "side": "both"})
		}
	}
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	requireSameOnBothEngines(t, builtin("matching"), device, Values{"app": "pop", "ranks": 64, "iterations": 1})
	for _, e := range All() {
		for _, values := range e.Smoke {
			device, err := profile.Load(e.DefaultProfiles()[0])
			require.NoError(t, err)
			requireSameOnBothEngines(t, e, device, values)
		}
	}
}

func requireSameOnBothEngines(t *testing.T, e *Experiment, device *profile.Profile, values Values) {
	var first *Result
	for _, engine := range []string{"wazero", "wasmtime"} {
		p, err := e.At(device, values)
		require.NoError(t, err)
		p.Seed, p.Engine = 11, engine
		r, err := e.Measure(context.Background(), p)
		require.NoError(t, err)
		if first == nil {
			first = r
			continue
		}
		require.Equal(t, first.Values, r.Values, p)
	}
}
