//go:build wasmtime

package experiment

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// Every benchmark gives the same latency, the same cycles and the same counts on both WebAssembly engines.
func TestEnginesAgreeOnEveryBenchmark(t *testing.T) {
	for _, name := range profile.Names() {
		p, err := profile.Load(name)
		require.NoError(t, err)
		for _, b := range Benchmarks() {
			for _, mode := range b.Modes {
				for _, bytes := range []int{16, 4096, 3 * 4096} {
					point := Point{Profile: p, Mode: mode, Ranks: b.Ranks[0], Bytes: bytes, Seed: 11}
					switch b {
					case bcastBenchmark:
						point.Ranks = 9
					case hpus:
						point.Bytes = min(bytes, 4096)
						point.Profile, err = (&Sweep{Overrides: []string{"hpu.charge=cycles"}}).withHPUs(name, 4, max(64, point.Bytes))
						require.NoError(t, err)
						point.Bytes = max(64, point.Bytes)
						point.Work = &WorkPoint{HPUs: 4, Handler: 200 * sim.Nanosecond}
					}
					requireSameOnBothEngines(t, b, point)
				}
			}
		}
	}
}

func requireSameOnBothEngines(t *testing.T, b *Benchmark, point Point) {
	var first *Result
	for _, engine := range []string{"wazero", "wasmtime"} {
		p := point
		p.Engine = engine
		r, err := b.Run(context.Background(), &p)
		require.NoError(t, err)
		if first == nil {
			first = r
			continue
		}
		require.Equal(t, first.Latency, r.Latency, "%s %s %d B", b.Name, p.Mode, p.Bytes)
		require.Equal(t, first.Stats, r.Stats, "%s %s %d B", b.Name, p.Mode, p.Bytes)
		require.Equal(t, first.Work, r.Work)
	}
}
