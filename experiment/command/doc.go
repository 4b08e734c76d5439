// Package command makes command lines of experiments: the flags of its axes, tables, CSV, JSON, plots, timelines, waterfalls, and results that
// can be made again. Those of spinsim compare are made here, and so are programs with a user's own experiments: see Main.
//
//	main.go         a program of experiments
//	compare.go      the command of one: flags to a sweep, a sweep to its table
//	waterfall.go    the way between two profiles
//	rerun.go        a result made again from what it says of itself
//	limits.go       flags that bound a run
//	execute.go      exit codes, signals, errors
package command
