// Package nodes runs GOAL schedules on simulated nodes: sends and receives
// become messages of package mpi, with real data that is checked, and
// computations occupy cores.
//
// A rank is one sequential program on one node. It starts an operation as soon
// as the operations that it requires are done: receives before sends before
// computations, each kind in the order of release. This is how a program
// behaves that knows its messages and posts its receives first. The rank looks
// for messages that have arrived when it has neither receives nor sends to
// start, so before every computation. It waits when it has nothing else to do.
// In particular:
//
//   - A rank has one processor and one network interface. A schedule whose rank
//     uses two cpu or two nic indices is refused.
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
