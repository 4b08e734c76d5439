// Package fabric carries packets between nodes. It has links with a rate and a
// length, switches with a traversal time, buffers that may be full, and ports
// by which nodes send and receive.
//
// A [Topology] is data: switches, links and a routing function. Fat trees,
// tori, crossbars, the boards of ExaNeSt and networks from a list of switches
// and cables ([Plan]) are built in; [NewNetwork] takes a topology of your own.
// A [Port] is a node's connection to the fabric: it reports when the node may
// send, and takes back the buffer room of received packets. [Tap] observes any
// fabric, [Faulty] loses, damages, duplicates and delays packets.
//
// Every link of a path serialises a packet's bytes at the link's rate. Switches
// cut through: the head goes on while the tail still comes in. With no other
// traffic and equal rates a packet over h switches arrives after
//
//	h·switch + (h+1)·wire + (bytes+header)·G
//
// (LogGP's L and G; sPIN'17 §4 gives the figures of profile spin-dis).
// docs/model.md has the full model, RATIONALE.md the reasons.
package fabric
