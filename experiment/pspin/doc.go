// Package pspin has the experiments on PsPIN's RTL: handlers like its and FPsPIN's
// examples, loops on its cores, and owners of handlers that share a device as
// OSMOSIS lets them share it.
package pspin

import "github.com/spinsim/spinsim/experiment"

// Publication has the experiments of this package, one in each file.
var Publication = &experiment.Publication{
	Name: "pspin", Title: "PsPIN's RTL, FPsPIN and OSMOSIS: handlers, loops, tenants", Sources: []string{"PsPIN's RTL", "after sPIN'17", osmosis}, Minutes: 1,
	Experiments: []*experiment.Experiment{handlerRuns, loops, pings, tenants, aggressor},
	Runs:        []experiment.PublicationRun{{Experiment: "pspin"}, {Experiment: "pspin-loops"}, {Experiment: "fpspin"}, {Experiment: "tenants"}, {Experiment: "aggressor"}},
}
