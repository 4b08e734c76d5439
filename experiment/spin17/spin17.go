package spin17

import "github.com/spinsim/spinsim/experiment"

// Publication has the experiments of this package, one in each file.
var Publication = &experiment.Publication{
	Name: "spin17", Title: "sPIN: high-performance streaming processing in the network (SC'17)", Sources: []string{"sPIN'17", "after sPIN'17"}, Minutes: 3,
	Experiments: []*experiment.Experiment{
		pingpong,
		accumulate,
		bcast,
		hpus,
		matching,
		receives,
		datatypes,
		datatypeApps,
		raid5Experiment,
		loads,
		replication,
		ftbcastExperiment,
		transactions,
		keyValue,
		conditionalRead,
		graphs,
		rulesExperiment,
	},
	Runs: []experiment.PublicationRun{
		{Experiment: "pingpong", Quick: experiment.Choice{Values: "size=8,512,4KiB,64KiB"}},
		{Experiment: "accumulate", Quick: experiment.Choice{Values: "size=64,4KiB,64KiB"}},
		{
			Experiment: "bcast", Full: experiment.Choice{Profiles: "spin-dis,spin-int,spin-int-sc17"},
			Quick: experiment.Choice{Profiles: "spin-int,spin-int-sc17", Values: "ranks=4,64,1024 mode=rdma,p4,spin-stream"},
		},
		{
			Experiment: "bcast", Full: experiment.Choice{Waterfall: "spin-int-sc17,spin-int", Values: "ranks=64,1024 size=64KiB mode=rdma,p4,spin-stream"},
			Quick: experiment.Choice{Waterfall: "spin-int-sc17,spin-int", Values: "ranks=64 size=64KiB mode=rdma,p4,spin-stream"}, Without: "the way from the authors' simulator to ours on 1024 ranks, 64 instead",
		},
		{Experiment: "hpus"},
		{Experiment: "matching", Quick: experiment.Choice{Values: "ranks=64,72"}, Without: "applications with 360 ranks"},
		{
			Experiment: "datatype", Full: experiment.Choice{Values: "side=destination,source,both block=4,16,64,256,1KiB,4KiB,16KiB,64KiB,256KiB"},
			Quick: experiment.Choice{Values: "side=destination block=64,4KiB,64KiB"}, Without: "packing at the source",
		},
		{Experiment: "datatype", Preset: "cost", Quick: experiment.Choice{Profiles: "spin-int"}},
		{Experiment: "datatype-apps", Quick: experiment.Choice{Profiles: "spin-int", Values: "app=WRF_y_vec,NAS_LU_x,LAMMPS_atomic,SPECFEM3D_oc"}, Without: "most types of applications"},
		{Experiment: "raid5", Quick: experiment.Choice{Values: "size=64,4KiB,64KiB"}},
		{Experiment: "raid5", Preset: "cost", Quick: experiment.Choice{Values: "size=4KiB"}},
		{Experiment: "raid5", Preset: "failed", Quick: experiment.Choice{Values: "size=64,64KiB"}},
		{Experiment: "raid5", Preset: "codes", Quick: experiment.Choice{Profiles: "spin-int", Values: "size=64KiB"}},
		{Experiment: "replicate"},
		{Experiment: "replicate", Preset: "shapes", Quick: experiment.Choice{Profiles: "spin-int"}},
		{Experiment: "replicate", Preset: "cost"},
		{Experiment: "replicate", Preset: "guard"},
		{Experiment: "ftbcast", Quick: experiment.Choice{Values: "ranks=8 failed=0,1"}, Without: "64 ranks"},
		{Experiment: "txlog", Quick: experiment.Choice{Values: "ranks=2 size=8,64KiB"}, Without: "16 clients"},
		{Experiment: "kv", Quick: experiment.Choice{Profiles: "spin-int", Values: "workload=B,C"}, Without: "workloads A, D, E, F"},
		{Experiment: "kv", Preset: "clients", Quick: experiment.Choice{Profiles: "spin-int", Values: "clients=1,2"}, Without: "4 clients and more"},
		{Experiment: "kv", Preset: "values", Quick: experiment.Choice{Profiles: "spin-int", Values: "size=16,256"}, Without: "large values"},
		{Experiment: "kv", Preset: "chains", Quick: experiment.Choice{Profiles: "spin-int"}},
		{Experiment: "scan"},
		{Experiment: "scan", Preset: "rows"},
		{Experiment: "scan", Preset: "terms"},
		{Experiment: "graph", Quick: experiment.Choice{Profiles: "spin-int", Values: "scale=10"}, Without: "the graph of 4096 vertices"},
		{Experiment: "graph", Preset: "nodes", Full: experiment.Choice{Values: "kernel=bfs"}, Quick: experiment.Choice{Profiles: "spin-int", Values: "kernel=bfs ranks=1,2"}, Without: "a search on up to 64 nodes"},
	},
}

// bench is a measurement with the host programs of an experiment as its
// methods.
type bench struct{ *experiment.Bench }
