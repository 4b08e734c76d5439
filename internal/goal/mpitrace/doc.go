// Package mpitrace turns traces of MPI calls into GOAL schedules. A trace has a
// file for each rank of MPI_COMM_WORLD, with a line for each call and its times.
// The format is the text of spcl's liballprof, which Schedgen of LogGOPSim reads.
//
// What follows Schedgen: the time between two calls is a computation; the time
// within a call is none, since the schedule's messages take their own. The time
// of calls that move no data is a computation. A call waits for what was before
// it. After a call that does not block, the rank goes on when it has started.
//
// What differs:
//
//   - Ranks of communicators become ranks of the world. A trace does not tell the
//     members of a communicator, but who called MPI_Comm_split with which color
//     and key. A handle that a rank uses for the first time belongs to its
//     earliest new communicator in which the rank has that number. Those of other
//     calls, such as MPI_Cart_create, have the ranks of their parent, or are
//     refused. Each communicator has tags of its own.
//   - A collective is named cC_N, the Nth of communicator C, 0 being the world, so
//     that goal run --coll can choose its algorithm. Without, it is as in
//     [Algorithms]; gather, scatter and those with counts for each member send
//     their blocks directly.
//   - Handles of an array of requests have 4 or 8 bytes, as the rank's requests
//     show.
//   - The init of a persistent request is a computation. Schedgen takes off nine
//     tenths of it, because tracing makes it longer.
//   - A receive with any tag takes the one that messages to the rank have, if it
//     is one: it must not take messages of collectives.
package mpitrace
