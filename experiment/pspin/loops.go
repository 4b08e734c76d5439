package pspin

import (
	"context"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/cores"
	"github.com/spinsim/spinsim/report"
)

var loops = &experiment.Experiment{
	Name:  "pspin-loops",
	Short: "cycles of a round of small loops on a device's cores, beside PsPIN's RTL",
	Long: `A round's cycles come from the cost table of the profile, as a handler is charged: the difference between runs of so many and twice as many rounds.
Words lie in memory of the core's own cluster, but for the loops whose name ends in l2. The loops floats and lanes, the inner loop of a reduction without and
with vectors, are for cores that have SIMD.`,
	Source:    "PsPIN's RTL §loops",
	Profiles:  []string{"pspin"},
	Smoke:     []experiment.Values{{loopAxis: "sum8"}},
	Axes:      []experiment.Axis{{Name: loopAxis, Kind: report.Text, Of: loopNames(), Help: "loop (internal/cores: guest, vectors)"}},
	Columns:   []report.Column{{Name: "cycles", Kind: report.Number, Help: "cycles of a round"}},
	Points:    hasLoop,
	Run:       runLoop,
	Memory:    func(*experiment.Point) int64 { return 8 << 20 },
	Undivided: "a loop has no parts",
	Untraced:  true,
	Ledger:    ledgerLoops(),
	View:      experiment.View{Value: "cycles", X: loopAxis, Summary: []string{experiment.ProfileColumn, loopAxis, "cycles"}},
	Notes:     []string{"The loops are compiled to WebAssembly and charged by the cost table; those of the RTL are compiled for RV32."},
}

const loopAxis = "loop"

// far are the loops whose words are outside the cluster.
var far = []string{"sum_l2", "copy_l2", "histogram_l2"}

// all are the loops without floating point, which PsPIN's build of the core does
// not have, and those for cores with SIMD.
func all() []cores.Loop {
	return slices.DeleteFunc(slices.Concat(cores.Loops(), cores.More(), cores.Vectors()), func(l cores.Loop) bool {
		return slices.Contains([]string{"cmul", "cmulf", "normf"}, l.Name)
	})
}

func loopNames() (names []string) {
	for _, l := range all() {
		names = append(names, l.Name)
	}
	return names
}

// hasLoop leaves loops with vectors to cores that have them.
func hasLoop(p *experiment.Point) (bool, error) {
	one := loopOf(p)
	if one.Vectors && p.Profile.HPU.Costs.SIMD.AccessBytes == 0 {
		return false, &experiment.NoPoint{Why: fmt.Errorf("profile %s: hpu.costs.simd.access_bytes: 0, expected a core with SIMD", p.Profile.Name)}
	}
	return true, nil
}

func loopOf(p *experiment.Point) cores.Loop {
	list := all()
	return list[slices.IndexFunc(list, func(l cores.Loop) bool { return l.Name == p.Text(loopAxis) })]
}

func runLoop(_ context.Context, p *experiment.Point) (experiment.Values, error) {
	p.Reads("hpu.costs")
	one := loopOf(p)
	cycles, err := cores.MeasureLoops(&p.Profile.HPU.Costs, []cores.Loop{one}, cores.Place(slices.Contains(far, one.Name)))
	if err != nil {
		return nil, err
	}
	return experiment.Values{"cycles": cycles[0]}, nil
}
