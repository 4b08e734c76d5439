// Package ip is IP over ExaNet (TR-488 §5.3): on each node a program of user
// space carries packets of IP between a device of the kernel (TUN) and the
// other nodes, over the interconnect. Programs talk by sockets and know nothing
// of it.
//
//	network, err := ip.New(cluster, ip.Options{})            // a service on each node
//	sockets, err := network.Open(p)                          // in a process: its node's sockets
//	conn, err := sockets.Dial(ip.AddrOf(5), 80)
//
// # The service
//
// It starts out of band: over a management Ethernet every service sends a
// heartbeat now and then, and hears those of others. Once it hears another one
// it takes a receive and a transmit ring for it and shakes hands over ExaNet,
// by packetizer and mailbox: each tells the other where its receive ring is.
// From then on packets go from ring to ring: the service reads packets of the
// device into the transmit ring, several behind each other, and has RDMA write
// them to the same place of the other's receive ring, with a notification that
// says how much has come. The receiver writes them to its device, and says by
// packetizer how much of its ring is free again. The fabric delivers reliably
// and within a transfer all or nothing, so there is nothing else to check.
//
// When no heartbeat has come for some time the other one is dead: packets to it
// are dropped, and counted, until it is heard again and has shaken hands.
//
// A service that has nothing to do looks again and again (Polling), or sleeps
// longer and longer (Sleeping): Spec.Sleep.
//
// # What is real
//
// Packets are real: headers with checksums, segments of TCP (package inet)
// whose windows, timers and retransmissions do what they do. A Device is what
// the service needs of the kernel, so another one can take the place of the
// simulated TUN. What the kernel's code takes is of Spec, assumed: TR-488 has
// no figures.
package ip
