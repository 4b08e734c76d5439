// Package fabric carries packets between nodes: links with a rate and a length,
// switches that take time to traverse, buffers that may be full, ports by which
// nodes send and receive.
//
// A [Topology] is data: switches, links and a routing function. Fat trees,
// tori, crossbars, the boards of ExaNeSt and networks from a list of switches
// and cables ([Plan]) are built in; [NewNetwork] takes one's own. A [Port] is a
// node's way in and out: it says when the node may send, and takes back the
// room of what the node has received. [Tap] watches any fabric, [Faulty] spoils
// its packets.
//
// A packet's bytes are serialised on every link of its path at the link's rate.
// Switches cut through: the head goes on while the tail still comes in. With no
// other traffic and equal rates a packet over h switches arrives after
//
//	h·switch + (h+1)·wire + (bytes+header)·G
//
// (LogGP's L and G; sPIN'17 §4 gives the figures of profile spin-dis).
// docs/model.md has the model in full, RATIONALE.md the reasons.
package fabric
