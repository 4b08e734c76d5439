// Package cli has what the command lines of spinsim and of a user's experiments
// share: exit codes, signals, limits, files that a run writes, progress, help.
//
//	execute.go   exit codes, signals, errors; the command of a program
//	flags.go     flags that are given twice, empty or wrong
//	limits.go    flags that bound a run; memory.go: its memory
//	outputs.go   files that a command is going to write
//	files.go     the files of a run, which appear when it has ended
//	links.go, pcap.go, shape.go   flags of runs with a network
//	progress.go, fit.go           what people see on a terminal
//	suggest.go   completion
package cli
