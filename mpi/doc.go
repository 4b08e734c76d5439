// Package mpi lets the processes of a simulated cluster exchange messages by
// rank and tag, like MPI programs.
//
// Ranks are processes of the cluster's nodes, [Options.PerNode] on each node.
// [Rank.Isend] and [Rank.Irecv] start an operation; [Rank.Wait] and [Rank.Next]
// return when one is complete. Receives match in the order of posting, and
// messages between two ranks in the order of sending (MPI 4.1 §3.5). A receive
// may have wildcards for source and tag. A message of at most [Options.Eager]
// bytes is eager: it is sent at once. A longer one waits for its receive.
//
// The calls belong to a communicator ([Comm]); [Rank.World] returns the
// communicator of all ranks. An [Operation] is a message or a collective
// operation with its arguments: [Comm.Do] makes it and waits, [Comm.Start]
// returns a request, [Comm.Prepare] keeps it for later. The usual ones have
// methods of their own, such as [Comm.Send] and [Comm.Bcast].
//
// A collective operation is a schedule of messages, copies and reductions
// (schedule.go), and the process pays for every copy and reduction.
// [Options.Algorithms] selects the algorithms of MPICH 3.2.1 or of ExaNet-MPI.
// If ranks do not agree on a call, the run fails.
//
// [Data] is bytes, or elements of a datatype that need not be in one piece
// (package datatype). The core packs such elements; the core or the NIC unpacks
// them.
//
// A transport carries the messages ([Options.Transport], transport.go). Over
// [Portals] there are two ways to match, the subject of sPIN'17 §5.1:
//
//   - [Host]: the NIC writes every message into eager buffers. The process
//     looks at each message, searches its list of receives, and copies. For a
//     large message only an announcement arrives, and the process then gets the
//     data. All this happens while the process is in Wait, Next or Test, and not
//     while it computes.
//   - [Offload]: a receive is a match entry, so the NIC writes an expected
//     message to its place. The announcement of a large message carries its
//     first part, and handlers (package handlers/matching) get the rest. An
//     unexpected message goes to an overflow entry and leaves an unexpected
//     header. A receive that is posted later finds the header: the process then
//     copies, and gets the rest of a large message itself.
//
// Every message is acknowledged, but an eager send is complete when the NIC has
// read its data. The library keeps the bytes until the acknowledgement, and
// does not charge the copy.
//
// A rank with full buffers refuses messages. Their senders send them again, in
// order (flow.go). If the buffers are full of messages without a receive, the
// rank adds buffers. If the device has no room for more headers of unexpected
// messages, the process takes them, and first searches its own list of them. So
// no message is lost, and no message waits for a receive that needs another
// message first. This takes time, and [Stats] count it.
//
// Both forms charge the process the overhead o for every operation that it
// gives to the NIC, match entries of receives and of exposed data included.
// Host also charges the profile's host.match for every list element that the
// process looks at.
//
// Over [ExaNet] (TR-488 §5.2.1; docs/exanest.md) the process matches, too. A
// short message is one packetizer message to the receiver's mailbox. A longer
// one goes by RDMA when its receive is there ([ExaNetOptions], exanet.go).
//
// Over [InfiniBand] (reliable connections, handlers/rnr) the process matches as
// well. An eager message is copied through buffers that stay pinned. A longer
// one is written by RDMA when its receive is there. A strategy of package
// pinning makes the memory of both sides ready for the interface; without one
// the interface has page faults ([InfiniBandOptions], infiniband.go).
//
// # Algorithms
//
// They are MPICH 3.2.1's, without its special treatment of ranks on one node.
// docs/mpi.md has Bcast and Allreduce, which [Options.Algorithms] chooses.
//
//   - Barrier: dissemination.
//   - Scatter, Gather: binomial tree. A root other than rank 0 brings the blocks
//     into order by copies.
//   - Scatterv, Gatherv: the root and one rank after the other; Gatherv
//     synchronous from 32 ranks on.
//   - Allgather, Allgatherv: in all below 524,288 B and a power of two ranks:
//     recursive doubling; below 81,920 B: Bruck; else ring, of Allgatherv in
//     pieces of at least 32,768 B.
//   - Alltoall: blocks up to 256 B and 8 ranks or more: Bruck; up to 32,768 B: all
//     at once, 32 under way; else, and in place: pairwise.
//   - Alltoallv: all at once, 32 under way; in place: pairwise.
//   - Reduce: binomial tree up to 2,048 B, for operations of one's own and with
//     fewer elements than ranks; else reduce-scatter and gather (Rabenseifner).
//   - ReduceScatter: recursive halving below 524,288 B; pairwise above; recursive
//     doubling of the whole vector if the operation does not commute.
//   - Scan, Exscan: recursive doubling.
//   - Split: allgather of 8 B a rank and allreduce of 256 B, for a context that is
//     free everywhere. Dup: the latter.
//
// # Order of summation
//
// Results are the same bits on every run, and at all ranks. With n ranks, p the
// largest power of two up to n and x0, x1, ... the ranks' elements:
//
//   - Allreduce, by either choice of algorithms, and Reduce above 2,048 B: of
//     the first 2(n-p) ranks pairs are added, x0+x1, x2+x3, ... These and the
//     other ranks' elements are p summands. The sum of the lower half is added to
//     the sum of the upper half, and so on in each half.
//   - Allreduce by modules: offload-doubling likewise. accelerator and
//     offload-boards add ((x0+x1)+x2)+x3 on each board, and then boards as ranks
//     above. offload-ring adds the elements of block b of the vector (the payload
//     of a packet) one after the other, from rank b+1 around to rank b, modulo n.
//     Trees add the vectors below each aggregator in the order of its children:
//     offload-tree those of ranks r, 2r+1 and 2r+2; switch the ranks at a switch,
//     and then its switches by their first rank.
//   - Reduce up to 2,048 B: counted from the root, the sum over the first half of
//     a power of two of ranks plus the sum over those ranks of the second half
//     that exist, and so on in each half.
//   - ReduceScatter by halving: the p summands as above. Summand i and i+p/2 are
//     added first, then i and i+p/4, ... Pairwise: a rank's own element, then the
//     one of the rank below it, then of the rank below that, ...
//   - Scan: for each bit of the rank's number, the lowest first, the sum of the
//     group of that size below it is put in front of what is there.
//
// An operation that does not commute gets its operands in the order of ranks.
// Integers wrap around. Min and Max of floating point numbers follow IEEE
// 754-2019, and a NaN is always the same NaN.
package mpi
