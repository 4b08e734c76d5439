// Package inswitch has the experiment on switches that compute.
package inswitch

import "github.com/spinsim/spinsim/experiment"

// Publication has the experiment of this package.
var Publication = &experiment.Publication{
	Name: "inc", Title: "Switches that compute", Sources: []string{"atlahs-inc"}, Minutes: 1,
	Experiments: []*experiment.Experiment{inSwitch},
	Runs: []experiment.PublicationRun{
		{Experiment: "inswitch", Quick: experiment.Choice{Values: "ranks=2,16 size=64KiB"}},
	},
}
