// Package nodes runs GOAL schedules on simulated nodes: sends and receives
// become messages of package mpi, with real data that is checked, and
// computations occupy cores.
//
// A rank is one sequential program on one node. It carries out operations as
// soon as what they require is over, receives before sends before computations,
// each kind in the order of release: a program that knows what it will get
// posts its receives first. It looks for messages that have come when it has
// neither to receive nor to send, so before every computation, and waits when
// it has nothing else to do. In particular:
//
//   - A rank has one processor and one network interface. A schedule whose rank
//     uses two cpu or two nic indices is refused.
//   - A send has started when it is given to the NIC and is done when its data
//     may change. A receive has started when it is posted.
//   - A receive must not be smaller than its message. The endpoint model of
//     package goal ignores sizes there.
//   - A send has no wildcard tag.
//
// A schedule that does not finish in the endpoint model with the eager limit of
// the nodes is not run: the model names the cycle or the operations without a
// partner.
package nodes
