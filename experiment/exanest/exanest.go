package exanest

import (
	"strings"

	"github.com/spinsim/spinsim/experiment"
)

// Publication has the experiments of this package, one in each file.
var Publication = &experiment.Publication{
	Name: "exanest", Title: "ExaNeSt prototype (FORTH-ICS TR-488)", Sources: []string{"TR-488"}, Minutes: 16,
	Experiments: []*experiment.Experiment{
		exanet,
		gsas,
		ipExperiment,
		OSU,
		OSURanks,
		scaling,
		allreduce,
		credits,
		multiply,
	},
	Runs: []experiment.PublicationRun{
		{Experiment: "exanet", Full: experiment.Choice{Values: "path=intra-fpga,intra-qfdb,d"}, Quick: experiment.Choice{Values: "path=intra-fpga,intra-qfdb size=0,64,4KiB,4MiB mode=mailbox,mpi"}},
		{Experiment: "exanet", Preset: "firmware", Quick: experiment.Choice{Values: "size=64,1KiB,16KiB"}},
		{Experiment: "gsas", Quick: experiment.Choice{Values: "size=8,64,4KiB path=intra-qfdb"}},
		{Experiment: "ip", Quick: experiment.Choice{Values: "traffic=rtt"}, Without: "throughput of TCP and UDP"},
		{
			Experiment: "osu", Full: experiment.Choice{Values: "benchmark=latency,bw,bibw path=" + strings.Join(table1, ",") + ",inter-mezz:1,0,0 size=0,1,32,64,4KiB,64KiB,4MiB"}, Quick: experiment.Choice{Values: "benchmark=latency path=intra-fpga,intra-qfdb,intra-mezz:1 size=0,64,4KiB,4MiB"},
			Without: "distant paths, throughput",
		},
		{
			Experiment: "osu-ranks", Full: experiment.Choice{Values: "benchmark=bcast,allreduce ranks=4,16,64,128 ranks-per-node=1,4 size=1,4,32,64,256,1KiB,4KiB,16KiB"},
			Quick: experiment.Choice{Values: "benchmark=bcast,allreduce ranks=4,16 ranks-per-node=1,4 size=1,4,256"}, Without: "more than 16 ranks",
		},
		{Experiment: "osu-ranks", Preset: "collectives", Quick: experiment.Choice{Skip: true}, Without: "collective operations of 512 ranks"},
		{Experiment: "osu-ranks", Preset: "barrier"},
		{Experiment: "scaling", Full: experiment.Choice{Values: "ranks=1,2,4,8,64"}, Quick: experiment.Choice{Values: "ranks=1,2,8 app=minife"}, Without: "64 ranks, HPCG and LAMMPS"},
		{
			Experiment: "allreduce", Full: experiment.Choice{Values: "ranks=4,16,32,64,128"}, Quick: experiment.Choice{Values: "ranks=4,16 size=4,256"}, Without: "more than 16 ranks",
		},
		{Experiment: "allreduce", Preset: "pools", Quick: experiment.Choice{Values: "ranks=16 size=256"}},
		{Experiment: "allreduce", Preset: "offload", Full: experiment.Choice{Profiles: "exanest,spin-int"}, Quick: experiment.Choice{Values: "ranks=16 size=8"}},
		{Experiment: "gemm", Quick: experiment.Choice{Values: "n=512"}},
		{Experiment: "gemm", Preset: "large", Quick: experiment.Choice{Values: "n=1024"}},
		{Experiment: "credits", Full: experiment.Choice{Values: "ranks=16,128"}, Quick: experiment.Choice{Values: "ranks=16"}, Without: "128 ranks"},
	},
}
