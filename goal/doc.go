// Package goal reads, writes, generates and runs GOAL schedules.
//
// A schedule says for each rank of a parallel program what it sends, receives
// and computes, and which of these operations wait for which others. It comes
// as text ([ReadText], [WriteText]) or packed ([ReadBinary], [WriteBinary]);
// [ReadFile] tells the two apart and unpacks gzip, xz and zstd.
//
// [Simulator] runs a schedule on the LogGOPS model (LogGOPS'10): each rank has
// its processors and network interfaces, the network between them has latency
// but no contention. It knows nothing of nodes, cells or handlers; all times
// are integer nanoseconds.
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
