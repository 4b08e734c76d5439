package part

import "github.com/spinsim/spinsim/experiment"

// Publication has the experiments of this package, one in each file.
var Publication = &experiment.Publication{
	Name: "part", Title: "PART: page faults of RDMA in the ExaNeSt prototype (PART'22, Psistakis'19)", Sources: []string{"PART'22", "Psistakis'19"}, Minutes: 1,
	Experiments: []*experiment.Experiment{
		pagefault,
		isend,
		apps,
		osCalls,
	},
	Runs: []experiment.PublicationRun{
		{
			Experiment: "pagefault", Full: experiment.Choice{Values: "policy=transfer,touch,touch-present,pin,pin-present,pio,pi4,pia size=16,4KiB,16KiB,32KiB,64KiB,1MiB,4MiB"},
			Quick: experiment.Choice{Values: "policy=transfer,touch,touch-present,pin,pin-present,pio,pia size=16,4KiB,16KiB,32KiB,64KiB"},
		},
		{Experiment: "pagefault", Preset: "no-fault", Quick: experiment.Choice{Skip: true}, Without: "transfers without faults by size"},
		{Experiment: "pagefault", Preset: "small", Quick: experiment.Choice{Skip: true}, Without: "small messages by timeout"},
		{Experiment: "pagefault", Preset: "sizes", Quick: experiment.Choice{Skip: true}, Without: "all policies by size"},
		{Experiment: "pagefault", Preset: "breakdown", Quick: experiment.Choice{Values: "size=4KiB,64KiB"}},
		{Experiment: "pagefault", Preset: "frequency", Quick: experiment.Choice{Values: "size=4KiB,64KiB frequency=0,20%,100%"}},
		{Experiment: "pagefault", Preset: "timeout", Quick: experiment.Choice{Skip: true}, Without: "timeouts"},
		{Experiment: "pagefault", Preset: "sides", Quick: experiment.Choice{Skip: true}, Without: "faults at the source"},
		{Experiment: "pagefault", Preset: "hupcf", Quick: experiment.Choice{Skip: true}, Without: "hit under previous context fault"},
		{Experiment: "pagefault", Preset: "pool", Quick: experiment.Choice{Skip: true}, Without: "the engine's firmware on HPUs"},
		{Experiment: "isend", Quick: experiment.Choice{Values: "sample=1,8,16"}},
		{Experiment: "apps", Quick: experiment.Choice{Values: "ranks=4"}, Without: "1 and 16 ranks"},
	},
}
