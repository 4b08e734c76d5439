// Package gsas is ExaNeSt's Global Shared Address Space (TR-488 §5.2.2):
// processes of all nodes allocate memory of any node and access it, with atomic
// operations, on message passing.
//
//	space, err := gsas.New(cluster, gsas.Options{PDID: 7, Heap: 1 << 20})   // a home on each node, which has a heap
//	m, err := space.Open(p)                                                // in a process, before it first waits
//	at, err := m.Alloc(3, 4096)                                            // memory of node 3
//	before, err := m.FetchAdd(at, 1)
//	err = m.Write(at.Plus(64), view)                                       // any number of bytes
//	err = m.Free(at)
//
// # Who does what
//
// The home of a node is a process of its own with a heap. What others want of
// the heap they ask it in messages of the packetizer, one at a time, and it
// answers in messages: that is the report's "on top of message passing". Up to
// Inline bytes travel in these messages. More go by RDMA, which the home starts
// when it is the request's turn: it reads what is to be written from the memory
// of who asks, or writes what is to be read there, with a notification.
//
// # What is promised
//
// The home of a location serialises. Every operation (a read or write of any
// length, an atomic operation, an allocation) takes effect at one moment
// between its call and its return, as a whole: the memory is linearizable, and
// so sequentially consistent, in each location and over all of them. While RDMA
// moves the bytes of a large operation the home lets those wait that overlap
// it, unless both read; others go on, also those behind them. Waiting requests
// keep their order, so none waits for ever. A process has one operation at a
// time. Memory of other processes that is read from or written to (the views)
// is theirs: what another thread of control does to it meanwhile is not the
// home's affair.
//
// A request that is lost is sent again by the packetizer, and taken once by the
// mailbox (handlers/mailbox): an operation happens once, if it returns nil.
// With ErrTimedOut nobody knows: it has happened once or not at all.
//
// # Protection
//
// Homes and processes are of one protection domain. The mailbox of a home
// refuses messages of another, and counts them: ErrForeign. Pointers are
// addresses of TR-488's global virtual address space (package gvas): whoever
// has the bits has the pointer, and what it may do with it is checked at the
// home, in every request: ErrDead.
package gsas
