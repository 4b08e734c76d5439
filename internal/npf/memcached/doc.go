// Package memcached is a key-value server: memcached's text protocol (its
// doc/protocol.txt) over its slab allocator and LRU, as a program of a
// simulated host. Each item has an address in the memory of the process. Reads
// and writes of an item touch its pages. The first touch takes time, and so
// does swap if memory is overcommitted.
//
//	store, err := memcached.NewStore(memory, memcached.Config{Limit: 1 << 30}) // pure: memory charges for accesses
//	s := memcached.NewSession(store)                                         // of one connection: bytes in, bytes out
//	in, more := s.Input(now, b)
//	out := s.Output()
//
//	server := memcached.NewServer(p, store)                                  // on a process
//	done := server.Advance(session, conn)                                    // conn has something to read, or has room again
//
// Package memaslap generates the load.
package memcached
