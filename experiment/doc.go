// Package experiment is the kit that experiments are made of. An Experiment is
// data: axes, what to run at a point of them, columns, published numbers. The kit
// turns it into sweeps, tables, plots, breakdowns, waterfalls and records that can
// be made again. A user's own experiment has the same.
//
// The experiments of spinsim are in the folders below, one for each publication
// (spin17, exanest, part, npf) and one file for each experiment. They use nothing
// of the kit that a user's own could not. Each builds a cluster, runs it, checks
// every byte that arrives, and returns what was measured.
//
// Numbers are predicted from a profile. A field of a profile that was set to meet
// a published figure says so in its comment. A term that was made for one is a
// what-if of an experiment. Published values stand beside ours.
//
//	experiment.go      an Experiment
//	publication.go     a Publication and its experiments; the list of all
//	axis.go, list.go   what varies: kinds, units, ranges, lists of values
//	check.go           errors in a definition
//	point.go           one measurement to make
//	simulate.go        the cluster of a point, from its setup to its statistics
//	kit.go, entry.go   an entry with handlers, and messages to it
//	bench.go           measurements with the axes mode, ranks and size
//	line.go            do handlers keep up with line rate?
//	packetcheck.go     the bytes that payload handlers see
//	operations.go      the operations that were measured, one by one
//	course.go          simulations that several points share
//	sweep.go           the points of a sweep, several at a time
//	table.go           results for people and programs
//	columns.go         help texts of columns
//	repeat.go          a result made again from its record
//	breakdown.go       where the time of an operation goes
//	waterfall.go       the way from one profile to another
package experiment
