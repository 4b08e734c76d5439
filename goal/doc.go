// Package goal reads, writes, generates and runs GOAL schedules.
//
// A schedule lists, for each rank of a parallel program, its sends, receives
// and computations, and the dependencies between them. It has a text form
// ([ReadText], [WriteText]) and a binary one ([ReadBinary], [WriteBinary]).
// [ReadFile] detects the form, and unpacks gzip, xz and zstd.
//
// [Simulator] runs a schedule on the LogGOPS model (LogGOPS'10). Each rank has
// processors and network interfaces; the network between them has latency but
// no contention. The model has no nodes, cells or handlers. All times are
// integer nanoseconds.
//
// The text form is
//
//	num_ranks 2
//	rank 0 {
//	  work: calc 500
//	  hand: send 8b to 1 tag 7
//	  hand requires work
//	}
//	rank 1 {
//	  recv 8b from 0 tag 7
//	}
package goal
