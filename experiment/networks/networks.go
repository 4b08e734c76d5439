// Package networks has the experiments on congested networks, one file for each.
package networks

import "github.com/spinsim/spinsim/experiment"

// Publication has the experiments of this package.
var Publication = &experiment.Publication{
	Name: "networks", Title: "Workloads and congestion in today's networks", Sources: []string{source}, Minutes: 1,
	Experiments: []*experiment.Experiment{traffic, collectives, congestion},
	Runs:        []experiment.PublicationRun{{Experiment: "traffic"}, {Experiment: "collectives"}, {Experiment: "congestion"}},
}

const source = "Ultra Ethernet's htsim"
