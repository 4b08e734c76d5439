// Package scan reads the rows of a table for which a predicate holds (sPIN'17
// §5.4, conditional read). Handlers evaluate it next to the memory, and only
// matching rows cross the network. README.md describes the method.
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

// State is the HPU memory of a table. Behind it lie slots and buffers, at the
// places in its fields.
type State struct {
	_ structs.HostLayout

	Rows     uint64 // of the table
	RowBytes uint32 `spin:"unit=bytes"` // of a row
	// largest payload of a packet, and the part that is read at once
	Chunk    uint32 `spin:"unit=bytes default=mtu"`
	Slots    uint32 // scans that may be under way
	Workers  uint32 // handlers that work at a scan
	Buffers  uint32 // as many as handlers may run at a time, up to 64
	SelfPT   uint32 `spin:"max=255"` // portal table entry of the table
	SelfBits uint64 // match bits of its entry
	// that a handler may use before it lets others run
	Budget uint64 `spin:"unit=cycles"`
	// of the slots, behind the state
	SlotsAt uint32 `spin:"unit=bytes"`
	// of the buffers, likewise
	BuffAt uint32 `spin:"unit=bytes"`
	Free   uint64 `spin:"default=(1<<min(hpus*contexts,64))-1"` // bit i: buffer i is free

	Counts Counts // of the handlers
}

// Counts counts the work of handlers.
type Counts struct {
	_       structs.HostLayout
	Scans   uint64 // completed
	Looked  uint64 // rows examined
	Matched uint64 // rows that matched
	Packets uint64 // with rows
	Busy    uint64 // requests that found no slot
	Illegal uint64 // messages that are not requests
}

// Query begins a request; its instructions follow.
type Query struct {
	_       structs.HostLayout
	First   uint64 // row
	Rows    uint64 // from the first on
	Limit   uint64 // largest number of rows to send; all matching rows are counted
	Bits    uint64 // match bits of the answer
	PT      uint32 // for the answer
	Tag     uint32 // returned in the answer's hdr_data
	Program uint32 // instructions
	Parts   uint32 // number of parts of a row to send, in their order
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

// QuerySize is the size of a Query, bytes.
const QuerySize = 48 + 8*MaxParts

// Slot is a scan under way.
type Slot struct {
	_       structs.HostLayout
	Used    uint64 // 1; 0: the slot is free
	Query   Query
	NID     uint32
	PID     uint32
	Batch   uint64 // rows that a worker examines at once
	Batches uint64
	Left    uint64 // batches that have not ended
	Matched uint64
	Sent    uint64 // rows
	Packets uint64
	Status  uint64 // Failed if rows could not be read or sent
	Width   uint64 `spin:"unit=bytes"` // of the sent parts of a row
	Code    [MaxProgram]Instruction
}

// SlotSize is the size of a Slot, bytes.
const SlotSize = 8 + QuerySize + 8 + 8*8 + 16*MaxProgram

// MaxRow is the longest row, bytes: a packet, less the answer's head.
const MaxRow = 2048

// An answer is packets with rows, in any order, and a packet with a Total. Each
// packet with rows is a message with hdr_data [Rows] that begins with a Head.
const (
	KindRows  = 1
	KindTotal = 2
)

// Data returns the hdr_data of a packet of an answer.
func Data(tag, kind uint32) uint64 { return uint64(tag)<<32 | uint64(kind) }

// Head begins a packet of rows.
type Head struct {
	_     structs.HostLayout
	Batch uint64 // of the rows: batches are in the order of the table
	Part  uint32 // number within the batch's packets
	Rows  uint32
}

// HeadSize is the size of a Head, bytes.
const HeadSize = 16

// Total ends an answer.
type Total struct {
	_       structs.HostLayout
	Status  uint64
	Matched uint64 // rows
	Sent    uint64 // of them
	Packets uint64 // with these rows
}

// TotalSize is the size of a Total, bytes.
const TotalSize = 32

// Status of answers.
const (
	OK      = iota
	Busy    // nothing was done: there is no slot; the client must ask again
	Illegal // the message is not a query for this table
	Failed  // rows could not be read or sent: the answer is incomplete
)
