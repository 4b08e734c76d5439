// Package txlog writes down every access to a region of memory, on the network
// interface (sPIN'17, "Distributed Transactions"): gets before their data is
// read, puts and atomics when their data has landed. The host evaluates the log
// when a transaction commits. Package driver is what programs use; README.md
// says why the order of the records is enough.
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
