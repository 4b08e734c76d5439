package experiment

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/runtime"
)

func TestSmoke(t *testing.T) {
	for _, prof := range runtime.ProfileNames() {
		p, err := runtime.LoadProfile(prof)
		require.NoError(t, err)
		for _, b := range Benchmarks() {
			for _, size := range []int{16, 4096, 65536} {
				for _, mode := range b.Modes {
					pt := &Point{Profile: p, Mode: mode, Ranks: b.Ranks[0], Bytes: size}
					if b == hpus {
						if size > 4096 { continue }
						q, err := WithHPUs(prof, nil, 4, size)
						require.NoError(t, err)
						pt.Profile = q
						pt.Work = &WorkPoint{HPUs: 4, Handler: 200000}
					}
					r, err := b.Run(pt)
					if err != nil { t.Error(err); continue }
					t.Log(prof, b.Name, mode, size, r.Latency, r.Stats.CPUBusy, r.Stats.HostMemoryBytes, r.Stats.HandlerCalls, r.Stats.HandlerCycles)
					if r.Work != nil { t.Logf("%+v", *r.Work) }
				}
			}
		}
	}
}
