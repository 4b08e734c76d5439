package experiment

// spin17Publication is the publication with the experiments of this package, one in each file.
var spin17Publication = &Publication{
	Name: "spin17", Title: "sPIN: high-performance streaming processing in the network (SC'17)", Sources: []string{"sPIN'17"}, Minutes: 3,
	Experiments: []*Experiment{
		pingpong,
		accumulate,
		bcast,
		hpus,
		matching,
		datatypes,
		datatypeApps,
		raid5,
		replication,
		ftbcast,
		transactions,
		keyValue,
		conditionalRead,
		graphs,
	},
	Runs: []PublicationRun{
		{Experiment: "pingpong", Quick: Choice{Values: "size=8,512,4KiB,64KiB"}},
		{Experiment: "accumulate", Quick: Choice{Values: "size=64,4KiB,64KiB"}},
		{
			Experiment: "bcast", Full: Choice{Profiles: "spin-dis,spin-int,spin-int-sc17"},
			Quick: Choice{Profiles: "spin-int,spin-int-sc17", Values: "ranks=4,64,1024 mode=rdma,p4,spin-stream"},
		},
		{
			Experiment: "bcast", Full: Choice{Waterfall: "spin-int-sc17,spin-int", Values: "ranks=1024 size=64KiB mode=rdma,p4,spin-stream"},
			Quick: Choice{Waterfall: "spin-int-sc17,spin-int", Values: "ranks=64 size=64KiB mode=rdma,p4,spin-stream"}, Without: "the way from the authors' simulator to ours on 1024 ranks, 64 instead",
		},
		{Experiment: "hpus"},
		{Experiment: "matching", Quick: Choice{Values: "ranks=64,72"}, Without: "applications with 360 ranks"},
		{Experiment: "datatype", Quick: Choice{Values: "block=64,4KiB,64KiB"}},
		{Experiment: "raid5", Quick: Choice{Values: "size=64,4KiB,64KiB"}},
		{Experiment: "ftbcast", Quick: Choice{Values: "ranks=8 failed=0,1"}, Without: "64 ranks"},
		{Experiment: "txlog", Quick: Choice{Values: "ranks=2 size=8,64KiB"}, Without: "16 clients"},
		{Experiment: "kv", Quick: Choice{Values: "workload=B,C clients=4 records=1000"}, Without: "workloads A, D, E, F, and 16 clients"},
		{Experiment: "scan", Quick: Choice{Values: "size=256KiB selectivity=1%,100%"}, Without: "a table of 4 MiB"},
		{Experiment: "graph", Quick: Choice{Values: "scale=8 ranks=4"}, Without: "graphs of 1024 and 4096 vertices on 16 nodes"},
	},
}
