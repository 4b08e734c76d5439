// Package scenario runs experiments that a file describes: the device and the
// network, the entries and handlers on each rank, the programs of the hosts,
// what must be true and what is to be shown.
//
// A scenario passes through three stages, and the files follow them:
//
//	spec.go, steps.go   what a file may say, with the text of the manual on every field
//	decode.go           a strict reader that knows path and line of every value
//	expr.go, content.go numbers that depend on the rank, and bytes
//	plan.go, check.go   names, files, modules and ranges resolved; everything wrong is reported before anything runs
//	rest.go             of what is wrong, what does not follow from something else that is
//	run.go, program.go  the cluster and the steps of its programs
//	record.go           events at the time at which they are posted
//	expect.go           what must be true
//	result.go           tables
//	schema.go           the same description for editors
package scenario
