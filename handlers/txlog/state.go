// Package txlog logs every access to a region of memory, on the network
// interface (sPIN'17, "Distributed Transactions"): gets before their data is
// read, puts and atomics when their data has landed. The host evaluates the log
// when a transaction commits. README.md explains why the order of the records
// is enough.
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
// A transaction commits if nothing that it has read was changed before. So
// committed transactions are as if they had run one after the other, in the
// order of their commits (backward validation: Kung and Robinson, "On
// Optimistic Methods for Concurrency Control", TODS 6(2), 1981). A transaction
// that does not commit may have read some of another's changes and not others.
package txlog

import "structs"

// State is the HPU memory of the entries of a region, which share it. The log
// is handler host memory.
type State struct {
	_    structs.HostLayout
	Next uint64 // records so far
	Last uint64 // the log's size, a power of two, less one: after that the first place is overwritten
}

// Record is an access. It is written in one operation.
type Record struct {
	_      structs.HostLayout
	Number uint64 // from 1; it determines the place in the log
	Offset uint64 // in the region, bytes
	Length uint64 // bytes
	NID    uint32 // node of the initiator
	PID    uint32
	Tag    uint64 // match bits of the request, chosen by the initiator
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
