// Package ip is IP over ExaNet (TR-488 §5.3). On each node a user-space program
// carries IP packets between a device of the kernel (TUN) and the other nodes,
// over the interconnect. Programs use sockets and need not know about it.
//
//	network, err := ip.New(cluster, ip.Options{})            // a service on each node
//	sockets, err := network.Open(p)                          // in a process: its node's sockets
//	conn, err := sockets.Dial(ip.AddrOf(5), 80)
//
// # The service
//
// The service starts out of band. Every service sends heartbeats over a
// management Ethernet, and listens for the others. When it hears a new peer, it
// allocates a receive ring and a transmit ring for it. Then they shake hands
// over ExaNet, by packetizer and mailbox: each sends the place of its receive
// ring.
//
// From then on packets go from ring to ring. The sender reads packets from the
// device into the transmit ring, several in a row. RDMA writes them to the same
// place of the peer's receive ring, with a notification that holds their place
// and length. The receiver writes them to its device, and reports free room of
// its ring by packetizer. The fabric delivers reliably, and each transfer as a
// whole or not at all, so no other check is needed.
//
// A peer without a heartbeat for some time is dead. Packets to it are dropped,
// and counted, until it is heard again and the handshake is complete.
//
// An idle service polls (Polling), or sleeps for longer and longer times
// (Sleeping): see Spec.Sleep.
//
// # What is real
//
// Packets are real: headers with checksums, and TCP segments (package inet)
// with real windows, timers and retransmissions. Device is all that the service
// needs of the kernel, so another device can replace the simulated TUN. The
// durations of kernel code are in Spec. They are assumed: TR-488 has no
// figures.
package ip
