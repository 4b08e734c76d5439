// Package nodes runs GOAL schedules on simulated nodes: sends and receives
// become messages of package mpi, with real data that is checked, and
// computations occupy cores.
//
// A rank is one program on one node, sequential if it has one cpu and one nic index. It
// starts an operation as soon as the operations that it requires are done:
// receives before sends before computations, each kind in the order of release.
// This is how a program behaves that knows its messages and posts its receives
// first. The rank looks for messages that have arrived when it has neither
// receives nor sends to start, so before every computation. It waits when it
// has nothing else to do.
// In particular:
//
//   - A rank has a core of its node for each of its cpu indices. A core is a
//     thread of the rank's program: it computes beside the others, and its sends
//     and receives wait for its computations. The threads share one library, with
//     one lock. So calls of the library take turns, each on the core of its
//     operation; in the model, cores send at once. What arrives takes a core that
//     does not compute, the same one as long as possible; in the model it takes
//     the processor of its send. While all cores compute, no message is matched by
//     the process. Threads wait without context switches.
//   - If a rank uses several nic indices, a host has a NIC for each index of the
//     schedule, with a port, a bus and memory of its own (runtime.Config.NICs). A
//     message takes the same NIC at both ends, that of its send, and its receive
//     waits there, whatever nic it names. Each NIC of a rank has a library and a
//     lock of its own. Otherwise a host has one NIC.
//   - A send has started when the NIC has it, and is done when its data may
//     change. A receive has started when it is posted.
//   - A receive must not be smaller than its message. The endpoint model of
//     package goal ignores sizes there.
//   - Allreduces that a configuration names are calls of package mpi instead of
//     their operations: by processes, in NICs or in switches. Sums are checked.
//   - A send has no wildcard tag, and no tag has more than 32 bits.
//
// The endpoint model, with the eager limit of the nodes, checks a schedule
// first. If it does not finish there, it does not run: the error names the
// cycle or the operations without a partner.
package nodes
