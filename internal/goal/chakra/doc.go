// Package chakra turns Chakra execution traces (ET 0.0.4 and 1.0) into GOAL
// schedules. A trace has a file for each NPU. Its nodes are computations,
// sends, receives and collectives, with dependencies. The collectives become
// the messages that ASTRA-sim sends for them.
//
// What follows ASTRA-sim:
//
//   - Each NPU does one operation of its CPU, one computation and one
//     collective at a time: the first two because they are on processors [CPU]
//     and [GPU] of their rank, the collectives because each waits for the one
//     before. They are in the order in which they would begin if messages
//     took no time. A computation lasts duration_micros x 1000 ns, at least 1 ns.
//   - A collective is divided into preferred-dataset-splits chunks, of which
//     active-chunks-per-dimension are under way. A chunk moves on after
//     endpoint-delay ns and, where it is reduced, three times its bytes divided
//     by local-mem-bw. These delays are computations on processors of their own.
//   - A collective of all NPUs has the order of the ranks. One of a smaller
//     group has the order of the group, and there the endpoint delay is 10 ns.
//   - A collective of several NPUs has a name: gG_N, the Nth of process group G,
//     0 being that of all NPUs.
//   - A broadcast lasts its recorded duration.
//
// What differs: a SEND is done when it leaves, and neither waits for
// collectives and other sends nor delays them. In ASTRA-sim it keeps the NPU's
// communication until it arrives. Roofline models, memory nodes and networks of
// several dimensions have no place in a schedule.
package chakra
