// Package memcached is a key-value server: memcached's text protocol (its
// doc/protocol.txt) over its slab allocator and LRU, as a program of a
// simulated host. Each item lies at an address of the process's memory, and
// whoever reads or writes it touches its pages: the first touch, and swap where
// memory is overcommitted, take time.
//
//	store, err := memcached.NewStore(memory, memcached.Config{Limit: 1 << 30}) // pure: memory says what an access costs
//	s := memcached.NewSession(store)                                         // of one connection: bytes in, bytes out
//	in, more := s.Input(now, b)
//	out := s.Output()
//
//	server := memcached.NewServer(p, store)                                  // on a process
//	done := server.Advance(session, conn)                                    // conn has something to read, or has room again
//
// Package memaslap has the load.
package memcached
