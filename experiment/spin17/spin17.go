package spin17

import "github.com/spinsim/spinsim/experiment"

// Publication has the experiments of this package, one in each file.
var Publication = &experiment.Publication{
	Name: "spin17", Title: "sPIN: high-performance streaming processing in the network (SC'17)", Sources: []string{"sPIN'17"}, Minutes: 3,
	Experiments: []*experiment.Experiment{
		pingpong,
		accumulate,
		bcast,
		hpus,
		matching,
		datatypes,
		datatypeApps,
		raid5Experiment,
		replication,
		ftbcastExperiment,
		transactions,
		keyValue,
		conditionalRead,
		graphs,
	},
	Runs: []experiment.PublicationRun{
		{Experiment: "pingpong", Quick: experiment.Choice{Values: "size=8,512,4KiB,64KiB"}},
		{Experiment: "accumulate", Quick: experiment.Choice{Values: "size=64,4KiB,64KiB"}},
		{
			Experiment: "bcast", Full: experiment.Choice{Profiles: "spin-dis,spin-int,spin-int-sc17"},
			Quick: experiment.Choice{Profiles: "spin-int,spin-int-sc17", Values: "ranks=4,64,1024 mode=rdma,p4,spin-stream"},
		},
		{
			Experiment: "bcast", Full: experiment.Choice{Waterfall: "spin-int-sc17,spin-int", Values: "ranks=1024 size=64KiB mode=rdma,p4,spin-stream"},
			Quick: experiment.Choice{Waterfall: "spin-int-sc17,spin-int", Values: "ranks=64 size=64KiB mode=rdma,p4,spin-stream"}, Without: "the way from the authors' simulator to ours on 1024 ranks, 64 instead",
		},
		{Experiment: "hpus"},
		{Experiment: "matching", Quick: experiment.Choice{Values: "ranks=64,72"}, Without: "applications with 360 ranks"},
		{Experiment: "datatype", Quick: experiment.Choice{Values: "block=64,4KiB,64KiB"}},
		{Experiment: "raid5", Quick: experiment.Choice{Values: "size=64,4KiB,64KiB"}},
		{Experiment: "ftbcast", Quick: experiment.Choice{Values: "ranks=8 failed=0,1"}, Without: "64 ranks"},
		{Experiment: "txlog", Quick: experiment.Choice{Values: "ranks=2 size=8,64KiB"}, Without: "16 clients"},
		{Experiment: "kv", Quick: experiment.Choice{Values: "workload=B,C clients=4 records=1000"}, Without: "workloads A, D, E, F, and 16 clients"},
		{Experiment: "scan", Quick: experiment.Choice{Values: "size=256KiB selectivity=1%,100%"}, Without: "a table of 4 MiB"},
		{Experiment: "graph", Quick: experiment.Choice{Values: "scale=8 ranks=4"}, Without: "graphs of 1024 and 4096 vertices on 16 nodes"},
	},
}

// bench is a measurement with the host programs of an experiment as its
// methods.
type bench struct{ *experiment.Bench }
