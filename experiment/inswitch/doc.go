// Package inswitch has the experiments on switches that compute.
package inswitch

import "github.com/spinsim/spinsim/experiment"

// Publication has the experiments of this package.
var Publication = &experiment.Publication{
	Name: "inc", Title: "Switches that compute", Sources: []string{"atlahs-inc"}, Minutes: 1,
	Experiments: []*experiment.Experiment{inSwitch, ofPairs},
	Runs: []experiment.PublicationRun{
		{Experiment: "inswitch", Quick: experiment.Choice{Values: "ranks=2,16 size=64KiB"}},
		{Experiment: "sparse", Quick: experiment.Choice{Values: "density=1%,50%"}},
	},
}
