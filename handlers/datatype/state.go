// Package datatype unpacks messages into memory that is not in one piece, on
// the network interface: MPI's datatypes (sPIN'17 §5.2) of any form (Di
// Girolamo et al., "Network-Accelerated Non-Contiguous Memory Transfers",
// SC'19).
//
// The tree of a datatype (package datatype at the top of this repository) lies
// behind the state in HPU memory, as nodes and tables. Each payload handler
// finds where the bytes of its packet belong and writes them there, one DMA
// operation for each run; packets may come in any order. How it finds its place
// is the strategy: see the constants. README.md says what each costs, and
// [Compile] takes one.
//
// To pack, the host's message to the entry starts workers, messages to self. A
// worker looks its place up, reads the runs of a packet by non-blocking DMA,
// eight at a time, puts the packet to the target, and asks for its next batch
// by another message to self: so no handler runs long. The packets are messages
// of their own; their remote offset is where they belong (pieces at the
// target).
package datatype

import "structs"

// State is the HPU memory of an entry. Behind it lie nodes, tables and
// checkpoints, at multiples of 8 bytes.
type State struct {
	_ structs.HostLayout

	Strategy uint32 `spin:"max=3"`      // Vector, General, ReadOnly or Progressing
	Depth    uint32 `spin:"max=14"`     // frames of a cursor
	Size     uint64 `spin:"unit=bytes"` // of a message: a longer one fails
	Origin   int64  `spin:"unit=bytes"` // of displacement 0, from where the entry would deposit the message

	Block  uint64 `spin:"unit=bytes"` // Vector: of a run
	Stride int64  `spin:"unit=bytes"` // Vector: from one run to the next

	Root        uint32 `spin:"unit=bytes"` // where the root lies, behind the state
	Checkpoints uint32 `spin:"unit=bytes"` // where the checkpoints lie, behind the state
	Interval    uint32 `spin:"unit=bytes"` // ReadOnly, Progressing: of the stream, from one checkpoint to the next
	Pieces      uint32 `spin:"max=1"`      // 1: each packet is a message of its own, whose offset in the entry says where in the stream it begins

	Packets uint64 // that were unpacked or packed
	Runs    uint64 // DMA operations for them
	Seeks   uint64 // times that a place was looked up from the root

	Send Send // for the handler pack
}

// Send is where a packed message goes.
type Send struct {
	_       structs.HostLayout
	NID     uint32 // target
	PID     uint32
	PT      uint32 `spin:"max=255"`
	Packet  uint32 `spin:"unit=bytes"` // of the stream in each packet but the last
	Bits    uint64 // match bits
	Offset  uint64 `spin:"unit=bytes"`   // of the stream's first byte in the target's entry
	DoneCT  uint32 `spin:"unit=counter"` // counts packets that have been sent; 0: none
	SelfPT  uint32 `spin:"max=255"`      // portal table entry of this entry
	Workers uint32 `spin:"max=64"`       // handlers that pack at the same time
	Batch   uint32 // packets that each packs before it lets others in
	Spare   uint32 `spin:"max=0"`      // 0
	Buffers uint32 `spin:"unit=bytes"` // where Workers of them lie, behind the state; in front of each a word that says whether it is used
}

// MaxWorkers is how many handlers may pack at the same time.
const MaxWorkers = 64

// Strategies.
const (
	Vector      = iota // equal blocks at equal distances: the place is computed, two divisions
	General            // the place is looked up from the root, at each packet
	ReadOnly           // from the checkpoint before it, which the host has made; up to an interval is walked over
	Progressing        // from where the packet before it ended, if it has left a checkpoint; else as General
)

// MaxDepth is how deep the tree of a type may be: a cursor must fit on the stack of a handler.
const MaxDepth = 14

// Kinds of nodes.
const (
	Leaf = iota
	Loop
	Blocks
	List
)

// Node is a node of the tree.
type Node struct {
	_      structs.HostLayout
	Kind   uint32
	Child  uint32 // of a loop: its node; of blocks and lists: their table. Bytes behind the state
	Count  uint64 // of a loop: iterations; of a table: entries
	Stride int64  // of a loop, bytes
	Size   uint64 // bytes of data
}

// NodeSize is that of a Node, bytes.
const NodeSize = 32

// Entry is one of a table.
type Entry struct {
	_     structs.HostLayout
	Place int64  // bytes
	End   uint64 // behind it in the stream of the node's bytes
}

// EntrySize is that of an Entry, bytes. The table of a list has a word of 8
// bytes for each entry behind all of them: where its node lies.
const EntrySize = 16

// Slots is how many checkpoints Progressing has.
const Slots = 64

// Slot is one of them.
type Slot struct {
	_        structs.HostLayout
	Position uint64 // 1 + the byte of the stream at which the cursor stands; 0: none
	Cursor   Cursor
}

// SlotSize is that of a Slot, bytes.
const SlotSize = 8 + HeadSize + MaxDepth*FrameSize
