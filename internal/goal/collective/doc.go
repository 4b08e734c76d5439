// Package collective has algorithms for the collectives that a GOAL schedule
// names, to run it with others than it has.
//
// Those with channels, chunks and slices are NCCL's, as far as a schedule can
// say:
//
//   - The vector is divided among the channels. Each has a thread, which takes
//     chunks in turn, and of each the slices. It receives a slice, reduces or
//     copies it, sends it on, and goes to the next: so it neither waits for its
//     sends nor for the buffers of its neighbours.
//   - ring passes chunks around. An allreduce reduces on the first way around,
//     and distributes on the second.
//   - tree is a binary tree in which leaves and inner nodes alternate. One thread
//     reduces up, another one distributes down. double-tree gives half of each
//     channel to the tree, and half to its mirror image (of an odd number of
//     members: to the tree of the next ones), where its leaves are inner nodes.
//   - pat has a binomial tree for each member, the farthest step first; messages
//     of the trees that go the same way are together, up to a chunk of each.
//   - Protocol ll sends 16 bytes for each 8 or part of them, ll128 sends 128 for
//     each 120, simple the bytes alone.
//
// Reducing and copying take a time per byte on the processor of the receives,
// one after the other also of different channels. Without these times they take
// none: on nodes, where a core of the library computes, compare with them.
package collective
