// Package exanet is ExaNeSt's user interface to its network (TR-488 §4.4, §5.1;
// Ploumidis et al., FORTH-ICS, 2023). It builds on the handler library mailbox.
// The packetizer sends messages of up to 64 bytes. A mailbox is a queue of such
// messages.
//
// The system software gives a process its protection domain and its interfaces.
// After that it takes no part:
//
//	system, err := exanet.Load(cluster)
//	err = system.Admit(p, 7)                    // the kernel: protection domain 7
//	page, err := system.Open(p, exanet.Options{})
//	err = page.Send(to, []byte("hello"))        // until the other mailbox has it
//	m, err := page.Receive(buffer)
//
// Send and Receive wait. A program that has other work uses the channels as the
// hardware shows them: Launch, Look, State, Again and Poll.
//
// An acknowledged message is in the mailbox exactly once. A message with a
// negative acknowledgement is not there and will not be. A message that timed
// out may be there; if Again sends it once more, it is still there only once.
// Messages of one channel arrive in the order of their launch.
//
// Bulk data goes by RDMA: handlers/rdma, on the same Portals interface.
package exanet
