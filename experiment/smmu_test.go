package experiment

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// Behind an SMMU every experiment gives the same bytes in every mode, later or at the same time, whatever the size of its TLBs; and none of its
// translations is stale.
func TestExperimentsBehindAnSMMU(t *testing.T) {
	small := []string{"smmu.l1_entries=1", "smmu.l2_entries=1", "smmu.l2_ways=1", "smmu.walk_cache=0", "smmu.walks=1", "smmu.outstanding=2", "smmu.channels=1"}
	for _, e := range All() {
		if e.Name == "matching" {
			continue // its worlds are those of package goal/nodes
		}
		values, modes, column := Values{"size": 40000}, e.Axis("mode").Of, "latency"
		if e.Name == "hpus" {
			values, modes, column = Values{"hpus": 4, "size": 4096}, []string{ModeSpinStream}, "latency"
		}
		if e.Name == "bcast" {
			values["ranks"] = 8
		}
		for _, mode := range modes {
			values["mode"] = mode
			with := func(name string, overrides ...string) sim.Time {
				device, err := profile.Load(name, overrides...)
				require.NoError(t, err)
				p, err := e.At(device, values)
				require.NoError(t, err)
				m, err := e.Measure(context.Background(), p)
				require.NoError(t, err, "%s %s", p, overrides)
				return m.Time(column)
			}
			const behind = "../docs/profiles/spin-int-smmu.yaml"
			without, large := with("spin-int"), with(behind, "smmu.stale=poison")
			least := with(behind, append(small, "smmu.stale=poison")...)
			require.Less(t, without, large, "%s %s", e.Name, mode)
			require.Less(t, large, least, "%s %s", e.Name, mode)
		}
	}
}
