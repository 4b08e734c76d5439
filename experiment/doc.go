// Package experiment is the kit for experiments. An Experiment is data: axes, a
// function that runs a point, columns, published numbers. The kit makes sweeps,
// tables, plots, breakdowns and waterfalls from it, and records from which a
// result can be made again. All this also works for a user's own experiment.
//
// The experiments of spinsim are in the folders below, one folder for each
// publication (spin17, exanest, part, npf) and one file for each experiment.
// They use only the exported part of the kit, as a user's own do. Each builds a
// cluster, runs it, checks every byte that arrives, and returns its values.
//
// Numbers are predicted from a profile. If a field of a profile was set to meet
// a published number, its comment says so. A term that was made for a number is
// a what-if of an experiment. Published values stand beside ours.
//
// Files call lower ones only, in this order (internal/lint holds it):
//
//	axis.go, list.go        what varies: kinds, units, ranges, lists of values
//	columns.go              what is measured, and help texts of columns
//	experiment.go, terms.go an Experiment
//	point.go, operations.go one measurement to make, and its operations
//	handlers.go, memory.go  the modules of a point, and the memory it needs
//	registry.go             the list of all
//	check.go                errors in a definition
//	breakdown.go            where the time of an operation goes
//	measure.go, keep.go     a point is measured, and its result kept
//	grid.go, vary.go        values of axes, and of fields; their combinations
//	recorded.go             what produced a result
//	sweep.go                the points of a sweep (several at a time: internal/batch)
//	table.go, plot.go       results for people and programs
//	waterfall.go            the way from one profile to another
//	command.go              flags
//	rerunsweep.go, rerun.go a result made again from its record
//	publication.go          the runs of a Publication
//
// For the function that runs a point:
//
//	simulate.go        the cluster of a point, from its setup to its statistics
//	kit.go, entry.go   an entry with handlers, and messages to it
//	bench.go           measurements with the axes mode, ranks and size
//	line.go            do handlers keep up with line rate?
//	packetcheck.go     the bytes that payload handlers see
//	course.go          simulations that several points share
package experiment
