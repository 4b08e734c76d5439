// Package fabric carries packets between nodes: links with a rate and a length,
// switches that take time to traverse, ports that only one packet leaves by at a
// time. It has fat trees of radix-k switches and a crossbar, and decorators that
// watch any fabric or spoil its packets.
//
// A packet's bytes are serialised on every link of its path at the link's rate.
// Switches cut through: the head goes on while the tail still comes in. With no
// other traffic and equal rates a packet over h switches arrives after
//
//	h·switch + (h+1)·wire + (bytes+header)·G
//
// (LogGP's L and G; sPIN'17 §4 gives the figures of profile spin-dis). README.md
// has the model in full.
package fabric
