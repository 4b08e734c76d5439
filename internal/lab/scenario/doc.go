// Package scenario runs experiments described in a file: the device and the
// network, the entries and handlers on each rank, the programs of the hosts,
// the expectations and the outputs.
//
// A scenario passes through three stages, and the files follow them:
//
//	spec.go, steps.go   the contents of a file, with the manual's text on every field
//	decode.go           a strict reader that knows path and line of every value
//	expr.go, content.go numbers that depend on the rank, and bytes
//	plan.go, check.go   resolve names, files, modules and ranges; report all errors before the run
//	rest.go             leaves out errors that follow from other errors
//	run.go, program.go  the entries of each rank and the steps of its program
//	expect.go           the expectations
//	result.go, tables.go  what a run gives
//	schema.go           the same description for editors
package scenario
