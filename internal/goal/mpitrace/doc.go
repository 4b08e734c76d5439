// Package mpitrace turns traces of MPI calls into GOAL schedules. A trace has a
// file for each rank of MPI_COMM_WORLD, with the calls and their times. There are
// two readers of files, and one maker of schedules: of the text of spcl's
// liballprof, which Schedgen of LogGOPSim reads, and of the text that dumpi2ascii
// makes of SST's dumpi.
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
//
// Of dumpi:
//
//   - Communicators, groups, datatypes and requests have handles, which calls make:
//     nothing is guessed. What MPI_Comm_rank and MPI_Comm_size answered must agree.
//   - The size of a datatype comes from a table if it is basic, else from the call
//     that made it, from MPI_Type_size or from the end of the file. A trace without
//     it is refused.
//   - A wait is for the requests that were done, and a test that found them done is
//     a wait. A receive has the bytes of its status. A cancelled one is left out.
//   - Calls of several threads are in the order of the file.
package mpitrace
