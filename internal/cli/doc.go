// Package cli is the common part of the command lines of spinsim and of a user's
// experiments: exit codes, signals, limits, output files, progress, help.
//
//	execute.go   exit codes, signals, errors; the command of a program
//	flags.go     flags that are given twice, empty or wrong
//	limits.go    flags that bound a run; memory.go: its memory
//	outputs.go   checks of the output files, before anything runs
//	files.go     output files, which get their names after the run
//	links.go, pcap.go, shape.go   flags of runs with a network
//	progress.go, fit.go           output on a terminal
//	suggest.go   completion
package cli
