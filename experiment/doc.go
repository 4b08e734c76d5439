// Package experiment reproduces published experiments, and runs a user's own in the same way. An Experiment is data: axes, what to run at a
// point of them, columns, published numbers. Each file builds the cluster of one published experiment, runs it, checks every byte that
// arrives, and returns what was measured.
//
// Numbers are predicted from a profile. Fields of a profile that were set to meet a published figure say so in their comments, and terms that
// were made for one are what-ifs of an experiment. Published values are printed beside.
//
//	experiment.go      an Experiment, and the list of all
//	axis.go, list.go   what varies: kinds, units, ranges, lists of values
//	check.go           what is wrong with a definition
//	point.go           one measurement to make
//	sweep.go           points of many, several at a time
//	table.go           results for people and programs, published numbers beside them
//	columns.go         help texts of columns
//	repeat.go          a result made again from its record
//	waterfall.go       the way from one profile to another
//	kit.go             what a user's experiment needs most
//	bench.go, entry.go, packetcheck.go   what benchmarks of the host interface have in common
//	pingpong.go …      a published experiment each
//	pagefault.go       absent pages under RDMA: its axes; …columns.go, …presets.go, …run.go (the programs), …way.go (what carries the data),
//	                   …watch.go (where the time goes)
package experiment
