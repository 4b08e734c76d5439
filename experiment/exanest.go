package experiment

// exanestPublication is the publication with the experiments of this package, one in each file.
var exanestPublication = &Publication{
	Name: "exanest", Title: "ExaNeSt prototype (FORTH-ICS TR-488)", Sources: []string{"TR-488"}, Minutes: 14,
	Experiments: []*Experiment{
		exanet,
		gsas,
		ipExperiment,
		OSU,
		OSURanks,
		scaling,
		allreduce,
		credits,
	},
	Runs: []PublicationRun{
		{Experiment: "exanet", Full: Choice{Values: "path=intra-fpga,intra-qfdb,d"}, Quick: Choice{Values: "path=intra-fpga,intra-qfdb size=0,64,4KiB,4MiB mode=mailbox,mpi"}},
		{Experiment: "gsas", Quick: Choice{Values: "size=8,64,4KiB path=intra-qfdb"}},
		{Experiment: "ip", Quick: Choice{Values: "traffic=rtt"}, Without: "throughput of TCP and UDP"},
		{
			Experiment: "osu", Full: Choice{Values: "benchmark=latency,bw,bibw"}, Quick: Choice{Values: "benchmark=latency,bw path=intra-fpga,intra-qfdb,intra-mezz:1 size=0,64,4KiB,4MiB"},
			Without: "distant paths, both directions at once",
		},
		{
			Experiment: "osu-ranks", Full: Choice{Values: "benchmark=bcast,allreduce ranks=4,16,64,128 ranks-per-node=1,4 size=1,4,32,64,256,1KiB,4KiB,16KiB"},
			Quick: Choice{Values: "benchmark=bcast,allreduce ranks=4,16 ranks-per-node=1,4 size=1,4,256"}, Without: "more than 16 ranks",
		},
		{Experiment: "osu-ranks", Preset: "collectives", Quick: Choice{Skip: true}, Without: "collective operations of 512 ranks"},
		{Experiment: "scaling", Quick: Choice{Values: "ranks=1,8 app=minife"}, Without: "64 ranks, HPCG and LAMMPS"},
		{
			Experiment: "allreduce", Full: Choice{Values: "ranks=4,16,32,64,128"}, Quick: Choice{Values: "ranks=4,16 size=4,256"}, Without: "more than 16 ranks",
		},
		{Experiment: "credits", Quick: Choice{Values: "ranks=16 size=4KiB"}, Without: "128 ranks"},
	},
}
