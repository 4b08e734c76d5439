// Package exanet is ExaNeSt's user interface to its network (TR-488 §4.4, §5.1;
// Ploumidis et al., FORTH-ICS, 2023), on the handler library mailbox: the
// packetizer sends messages of up to 64 bytes, and a mailbox is a queue of
// them.
//
// The system software gives a process its protection domain, and interfaces;
// from then on it has no part in anything:
//
//	system, err := exanet.Load(cluster)
//	err = system.Admit(p, 7)                    // the kernel: protection domain 7
//	page, err := system.Open(p, exanet.Options{})
//	err = page.Send(to, []byte("hello"))        // until the other mailbox has it
//	m, err := page.Receive(buffer)
//
// Send and Receive wait. A program that has something else to do uses the
// channels as the hardware shows them: Launch, Look, State, Again, and Poll.
//
// A message that was acknowledged is in the mailbox, once; one that was
// negatively acknowledged is not and will not be. One that has timed out may
// be: if it is sent again by Again it is there once, too. Messages of one
// channel come in the order in which they were launched.
//
// Bulk data goes by RDMA: handlers/rdma, on the same interface of Portals.
package exanet
