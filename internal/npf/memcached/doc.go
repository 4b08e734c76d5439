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
// # Protocol
//
// All text commands but meta commands, stats with an argument and
// authentication; no binary protocol, no UDP. Answers are memcached's 1.6.18:
// go test -run Protocol -memcached /usr/bin/memcached asks one that is installed
// (-rewrite writes them anew).
//
// # Memory
//
// Slabs have the sizes of slabs.c, but items beyond half a page have a class of
// their own, as before 1.4.36. The LRU is the one before 1.5 (-o no_modern). An
// item is moved to the head once a minute (Config.Bump). The hash table has its
// size from the beginning.
//
// A read touches bucket, heads, keys and value; a store writes all of the item.
// A touch costs the core host.memory_latency for its first line and
// host.core_bandwidth for the others. Instructions are Server.Operation, 0 by
// default. A value that is the same eight bytes again and again is kept as the
// eight bytes; pages are touched, not written, so that 8 GB of values need not
// be there.
//
// Package memaslap generates the load: a closed loop of 90% reads and 10%
// stores, keys of 64 B, values of 1 KiB.
package memcached
