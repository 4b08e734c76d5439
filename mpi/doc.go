// Package mpi lets the processes of a simulated cluster exchange messages by
// rank and tag, as MPI programs do.
//
// Ranks are processes of the cluster's nodes, [Options.PerNode] on each.
// [Rank.Isend] and [Rank.Irecv] start an operation, [Rank.Wait] and [Rank.Next]
// return when one is over. Receives match in the order of posting, messages
// between two ranks in the order of sending (MPI 4.1 §3.5); source and tag of a
// receive may be wildcards. A message is eager if it is at most [Options.Eager]
// bytes long, else it waits for its receive.
//
// A communicator ([Comm]; [Rank.World] is that of all ranks) has the calls:
// point to point, and collective operations, which are schedules of messages,
// copies and reductions (schedule.go). Their algorithms are those of MPICH
// 3.2.1, or what ExaNet-MPI does instead ([Options.Algorithms]); the process is
// charged for every copy and reduction. A call that ranks do not agree on is an
// error of the run.
//
// Elements of datatypes that are not in one piece (package datatype) have calls
// of their own ([Typed], typed.go): the core packs them, and core or NIC
// unpack. Collective operations have such calls, too (typedcollect.go,
// typedcollectv.go).
//
// What carries the messages is a transport ([Options.Transport], transport.go).
// Over [Portals], who matches is the subject of sPIN'17 §5.1:
//
//   - [Host]: the NIC deposits every message into eager buffers. The process
//     looks at each, searches its list of receives, and copies. Of a large
//     message an announcement arrives, whose data the process then gets. All
//     this happens while the process is in Wait, Next or Test and not while it
//     computes.
//   - [Offload]: a receive is a match entry, so the NIC deposits an expected
//     message where it belongs. The announcement of a large one carries its
//     first part, and handlers (package handlers/matching) get the rest. A
//     message that is not expected goes to an overflow entry and leaves an
//     unexpected header, which the receive finds when it is posted: the process
//     then copies, and gets the rest of a large message itself.
//
// Every message is acknowledged, but an eager send is over when the NIC has
// read its data; the library keeps the bytes until the acknowledgement, and
// does not charge the copy. A rank whose buffers are full refuses messages,
// which their senders then send again, in order (see flow.go); if they are full
// of messages without a receive it adds buffers, and if the device has no room
// for the headers of unexpected messages the process takes them, and searches
// its own list of them first. So nothing is lost and nobody waits for a receive
// that another message must precede; it takes time, and [Stats] count it.
//
// Both forms charge the process the overhead o for every operation it gives to
// the NIC, match entries of receives and of exposed data included; Host besides
// the profile's host.match for every element of a list it looks at.
//
// Over [ExaNet] (TR-488 §5.2.1; docs/exanest.md) the process matches, too: a
// short message is one of the packetizer to the receiver's mailbox, a longer
// one goes by RDMA when its receive is there ([ExaNetOptions], exanet.go).
//
// Over [InfiniBand] (reliable connections, handlers/rnr) it does likewise: an
// eager message is copied through buffers that are pinned for good, a longer
// one is written by RDMA when its receive is there. A strategy of package
// pinning makes the memory of both sides ready for the interface, or nothing
// does and the interface has page faults ([InfiniBandOptions], infiniband.go).
package mpi
