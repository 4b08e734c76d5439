package spin17

import (
	"math"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/ddtbench"
)

// ledgerUnpacking are the rows of SC'19, whose applications' names and sizes are
// not in its abstract: DDTBench's are taken for them.
func ledgerUnpacking() (rows []experiment.LedgerRow) {
	for _, id := range []string{"sc19-abstract-01", "sc19-abstract-02"} {
		rows = append(rows, experiment.LedgerRow{
			ID: id, Of: "profile=spin-int mode=rdma,spin app=" + strings.Join(ddtbench.Names(), ","), How: "the largest throughput of handlers by that of a core that unpacks, communication of 16 applications",
			Ours: func(m *experiment.Measured) []float64 { return []float64{most(m, "throughput", experiment.ModeRDMA)} },
		})
	}
	return rows
}

// most is how many times the value of a column is with handlers what it is with
// another mode, at most.
func most(m *experiment.Measured, column, other string) float64 {
	best := 0.0
	for _, r := range m.Results {
		if r.Point.Text("mode") == experiment.ModeSpin {
			best = max(best, m.Of(r, column)/m.Beside(r, column, "mode="+other))
		}
	}
	return best
}

// ledgerCopies is the row of SC'22 on replication. Its abstract has CPU and RDMA
// in one sentence: the faster of both is taken.
func ledgerCopies() []experiment.LedgerRow {
	return []experiment.LedgerRow{{
		ID: "sc22-abstract-02", Of: "profile=spin-int mode=client,host,spin shape=ring copies=2,4,8 size=64,4KiB,64KiB,1MiB",
		How: "the largest time of the faster of client and cores of the servers by that of handlers, 2 to 8 copies along a ring, 64 B to 1 MiB",
		Ours: func(m *experiment.Measured) []float64 {
			best := 0.0
			for _, r := range m.Results {
				if r.Point.Text("mode") != experiment.ModeSpin {
					continue
				}
				other := math.Inf(1)
				for _, mode := range []string{modeClient, experiment.ModeHost} {
					other = min(other, m.Beside(r, experiment.LatencyColumn, "mode="+mode))
				}
				best = max(best, other/m.Of(r, experiment.LatencyColumn))
			}
			return []float64{best}
		},
	}}
}
