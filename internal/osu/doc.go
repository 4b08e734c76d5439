// Package osu has the OSU micro-benchmarks as programs of package mpi, on any
// transport and device.
//
// They follow versions 5.6.1 and 7.4 of the Ohio State University's benchmarks
// (https://mvapich.cse.ohio-state.edu/benchmarks/): the same calls in the same
// order, the same part of them timed, the same way to compute a mean. No code
// is theirs. There are two differences. A simulation has no noise, so it needs
// no thousands of iterations (Options.Iterations). And received data is
// compared with sent data after the last iteration.
//
// [Benchmark.Program] is the program of a rank for one size of message; [Run]
// runs it at all ranks of a world. [Benchmark.WriteHeader] and
// [Benchmark.WriteRow] print as the originals do, so that programs that read
// their output can read ours. [OneWay] is not a benchmark of OSU but of TR-488:
// only one side sends.
package osu
