// Package gsas is ExaNeSt's Global Shared Address Space (TR-488 §5.2.2), on top
// of message passing. Processes of all nodes allocate memory on any node and
// access it, also with atomic operations.
//
//	space, err := gsas.New(cluster, gsas.Options{PDID: 7, Heap: 1 << 20}) // a home with a heap on each node
//	m, err := space.Open(p)                        // in a process, before it first waits
//	at, err := m.Alloc(3, 4096)                    // memory of node 3
//	before, err := m.FetchAdd(at, 1)
//	err = m.Write(at.Plus(64), view)               // any number of bytes
//	err = m.Free(at)
//
// # Who does what
//
// The home of a node is a separate process with a heap. Other processes send it
// requests in messages of the packetizer, one at a time, and it answers in
// messages: this is the report's "on top of message passing". Up to Inline
// bytes travel in these messages. Larger data goes by RDMA, which the home
// starts when it is the request's turn. For a write, it reads the data from the
// caller's memory. For a read, it writes the data there, with a notification. A
// caller who wrote by RDMA would save a message, but the home would not know
// when the bytes arrive, so large operations would not be atomic.
//
// # What is promised
//
// The home of a location serialises. Every operation (a read or write of any
// length, an atomic operation, an allocation) takes effect as a whole, at one
// moment between its call and its return. So the memory is linearizable, and
// therefore sequentially consistent, in each location and over all of them.
// While RDMA moves the bytes of a large operation, the home holds back the
// requests that overlap it, unless both read. Other requests go on, also those
// behind a held one. Held requests keep their order, so none waits for ever. A
// process has one operation at a time. The home does not protect the caller's
// own buffers (the views): another thread of control may change them meanwhile.
//
// The packetizer resends a lost request, and the mailbox takes it once
// (handlers/mailbox). So an operation that returns nil has happened once. With
// ErrTimedOut it has happened once or not at all.
//
// # Protection
//
// Homes and processes are in one protection domain. The mailbox of a home
// refuses messages of another domain, and counts them: ErrForeign. Pointers are
// addresses of TR-488's global virtual address space (exanet.Target). Anyone
// who has the bits has the pointer, so the home checks the pointer in every
// request: ErrDead.
package gsas
