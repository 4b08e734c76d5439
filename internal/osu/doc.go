// Package osu has the OSU micro-benchmarks as programs of package mpi, on any
// transport and device.
//
// They do what those of the Ohio State University do in versions 5.6.1 and 7.4
// (https://mvapich.cse.ohio-state.edu/benchmarks/): the same calls in the same
// order, the same part of them timed, the same way to a mean. No code is
// theirs. What differs is that a simulation needs no thousands of iterations,
// since it has no noise (Options.Iterations), and that what has arrived is
// compared with what was sent, behind the last iteration.
//
// [Benchmark.Program] is what a rank runs, for one size of message; [Run] runs
// it at all ranks of a world. [Benchmark.WriteHeader] and [Benchmark.WriteRow]
// print as the originals do, so that what reads theirs reads ours. [OneWay] is
// no benchmark of OSU but TR-488's: one side only sends.
package osu
