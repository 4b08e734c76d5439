// Package scan reads the rows of a table that a predicate holds for (sPIN'17
// §5.4, conditional read): handlers evaluate it next to the memory, and only
// matching rows cross the network. README.md says how.
//
// A host program uses it so:
//
//	schema, err := scan.NewSchema(scan.Field{Name: "id", Kind: scan.U32}, scan.Field{Name: "name", Kind: scan.Bytes, Length: 28})
//	table, err := scan.Open(p, schema, rows, scan.Options{})              // in the table's process, before it first waits
//	err = table.Serve()                                                     // of a cluster.SpawnService
//	client, err := scan.Dial(p, scan.Address{NID: 0}, schema, n, options)   // in a client's process
//	result, err := client.Select(`id == 100`, []string{"name"}, n)          // SELECT name FROM table WHERE id = 100
package scan

import "structs"

// State is the HPU memory of a table. Behind it lie slots and buffers, at the places it names.
type State struct {
	_ structs.HostLayout

	Rows     uint64 // of the table
	RowBytes uint32 `spin:"unit=bytes"`             // of a row
	Chunk    uint32 `spin:"unit=bytes default=mtu"` // largest payload of a packet, and what is read at a time
	Slots    uint32 // scans that may be under way
	Workers  uint32 // handlers that work at a scan
	Buffers  uint32 // as many as handlers may run at a time, up to 64
	SelfPT   uint32 `spin:"max=255"` // portal table entry of the table
	SelfBits uint64 // match bits of its entry
	Budget   uint64 `spin:"unit=cycles"`                          // that a handler may take before it lets others in
	SlotsAt  uint32 `spin:"unit=bytes"`                           // where the slots lie, behind the state
	BuffAt   uint32 `spin:"unit=bytes"`                           // where the buffers lie, likewise
	Free     uint64 `spin:"default=(1<<min(hpus*contexts,64))-1"` // bit i: buffer i is free

	Counts Counts // what handlers have done
}

// Counts are what handlers have done.
type Counts struct {
	_       structs.HostLayout
	Scans   uint64 // that have ended
	Looked  uint64 // rows that a predicate was asked about
	Matched uint64 // of them
	Packets uint64 // with rows
	Busy    uint64 // requests that found no slot
	Illegal uint64 // messages that are no requests
}

// Query is what a request begins with; its instructions follow.
type Query struct {
	_       structs.HostLayout
	First   uint64 // row
	Rows    uint64 // from the first on
	Limit   uint64 // rows that are sent; those that match are counted all the same
	Bits    uint64 // match bits of the answer
	PT      uint32 // where it goes
	Tag     uint32 // the answer's hdr_data has it
	Program uint32 // instructions
	Parts   uint32 // of a row that are sent, in their order
	Part    [MaxParts]Part
}

// Part is a part of a row.
type Part struct {
	_      structs.HostLayout
	Offset uint32 `spin:"unit=bytes"`
	Length uint32 `spin:"unit=bytes"`
}

// MaxParts is how many parts of a row a query may name.
const MaxParts = 4

// QuerySize is that of a Query, bytes.
const QuerySize = 48 + 8*MaxParts

// Slot is a scan that is under way.
type Slot struct {
	_       structs.HostLayout
	Used    uint64 // 1; 0: the slot is free
	Query   Query
	NID     uint32
	PID     uint32
	Batch   uint64 // rows that a worker looks at in one go
	Batches uint64
	Left    uint64 // batches that have not ended
	Matched uint64
	Sent    uint64 // rows
	Packets uint64
	Status  uint64 // Failed if rows could not be read or sent
	Width   uint64 `spin:"unit=bytes"` // of what is sent of a row
	Code    [MaxProgram]Instruction
}

// SlotSize is that of a Slot, bytes.
const SlotSize = 8 + QuerySize + 8 + 8*8 + 16*MaxProgram

// MaxRow is the longest row, bytes: a packet, less the answer's head.
const MaxRow = 2048

// An answer is packets with rows, in any order, each a message whose hdr_data
// is [Rows] and whose head is a Head, and one with a Total.
const (
	KindRows  = 1
	KindTotal = 2
)

// Data is the hdr_data of a packet of an answer.
func Data(tag, kind uint32) uint64 { return uint64(tag)<<32 | uint64(kind) }

// Head is what a packet of rows begins with.
type Head struct {
	_     structs.HostLayout
	Batch uint64 // that the rows are of: batches are in the order of the table
	Part  uint32 // of the batch's packets
	Rows  uint32
}

// HeadSize is that of a Head, bytes.
const HeadSize = 16

// Total ends an answer.
type Total struct {
	_       structs.HostLayout
	Status  uint64
	Matched uint64 // rows
	Sent    uint64 // of them
	Packets uint64 // that they are in
}

// TotalSize is that of a Total, bytes.
const TotalSize = 32

// Status of answers.
const (
	OK      = iota
	Busy    // nothing was done: there is no slot; the client is to ask again
	Illegal // the message is no query of this table
	Failed  // rows could not be read or sent: what came is not all
)
