// Package txlog writes down every access to a region of memory, on the network
// interface (sPIN'17, "Distributed Transactions"): gets before their data is
// read, puts and atomics when their data has landed. The host evaluates the log
// when a transaction commits. README.md says why the order of the records is
// enough.
//
// A host program uses it so:
//
//	library, err := txlog.Load(cluster)                                 // once for each cluster
//	s, err := library.Open(p, txlog.Options{PT: 4, Region: 1 << 20})    // the home, a process that serves
//	err = s.Serve()
//
//	c, err := txlog.Join(p, home, txlog.Options{PT: 4, Region: 1 << 20}) // a client
//	tx := c.Begin()
//	err = tx.Read(offset, b)                                             // a get, which the home's host does not see
//	err = tx.Write(offset, b)                                            // kept until then
//	committed, err := tx.Commit()                                        // false: begin again
//
// A transaction commits if nothing that it has read was changed before:
// transactions that commit are as if one had run after the other, in the order
// of their commits (backward validation: Kung and Robinson, "On Optimistic
// Methods for Concurrency Control", TODS 6(2), 1981). One that does not commit
// may have read parts of what others have changed.
package txlog

import "structs"

// State is the HPU memory of the entries of a region, which share it. The log
// is handler host memory.
type State struct {
	_    structs.HostLayout
	Next uint64 // records so far
	Last uint64 // place of the log, a power of two less one: behind it the first is written over
}

// Record is an access. All of it is written at once.
type Record struct {
	_      structs.HostLayout
	Number uint64 // from 1; the place in the log follows from it
	Offset uint64 // in the region, bytes
	Length uint64 // bytes
	NID    uint32 // who has accessed it
	PID    uint32
	Tag    uint64 // match bits of the request: what the initiator calls it
	Kind   uint32 // Read or Write
	Spare  uint32 // 0
}

// RecordSize is the size of a Record, bytes.
const RecordSize = 48

// Kinds of records.
const (
	Read  = 1 // the data is read after this
	Write = 2 // the data has landed before this
)
