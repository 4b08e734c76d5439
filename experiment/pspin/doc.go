// Package pspin has the experiments on PsPIN's RTL: handlers like its and FPsPIN's
// examples,
// and loops on its cores.
package pspin

import "github.com/spinsim/spinsim/experiment"

// Publication has the experiments of this package, one in each file.
var Publication = &experiment.Publication{
	Name: "pspin", Title: "PsPIN's RTL and FPsPIN: handlers and loops", Sources: []string{"PsPIN's RTL", "after sPIN'17"}, Minutes: 1,
	Experiments: []*experiment.Experiment{handlerRuns, loops, pings, tenants, aggressor},
	Runs:        []experiment.PublicationRun{{Experiment: "pspin"}, {Experiment: "pspin-loops"}, {Experiment: "fpspin"}},
}
