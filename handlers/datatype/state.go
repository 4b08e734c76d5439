// Package datatype unpacks messages into memory that is not in one piece, on
// the network interface: MPI's datatypes (sPIN'17 §5.2) of any form (Di
// Girolamo et al., "Network-Accelerated Non-Contiguous Memory Transfers",
// SC'19).
//
// The tree of a datatype (package datatype at the top of this repository) lies
// behind the state in HPU memory, as nodes and tables. Each payload handler
// finds the places for the bytes of its packet and writes them there, with one
// DMA operation for each run. Packets may come in any order. The strategy is
// how a handler finds its place: see the constants. README.md has the cost of
// each, and [Compile] chooses one.
//
// To pack, the host's message to the entry starts workers, which are messages
// to self. A worker looks its place up, reads the runs of a packet by
// non-blocking DMA, eight at a time, and puts the packet to the target. It asks
// for its next batch by another message to self, so that no handler runs long.
// The packets are messages of their own; their remote offset is their place in
// the stream (pieces at the target).
package datatype

import "structs"

// State is the HPU memory of an entry. Behind it lie nodes, tables and
// checkpoints, at multiples of 8 bytes.
type State struct {
	_ structs.HostLayout

	Strategy uint32 `spin:"max=3"`      // Vector, General, ReadOnly or Progressing
	Depth    uint32 `spin:"max=14"`     // frames of a cursor
	Size     uint64 `spin:"unit=bytes"` // of a message: a longer one fails
	// of displacement 0, relative to where the entry would deposit the message
	Origin int64 `spin:"unit=bytes"`

	Block  uint64 `spin:"unit=bytes"` // Vector: of a run
	Stride int64  `spin:"unit=bytes"` // Vector: from one run to the next

	Root        uint32 `spin:"unit=bytes"` // of the root, behind the state
	Checkpoints uint32 `spin:"unit=bytes"` // of the checkpoints, behind the state
	// ReadOnly, Progressing: from one checkpoint to the next in the stream
	Interval uint32 `spin:"unit=bytes"`
	// 1: each packet is a message of its own, whose offset in the entry is its
	// place in the stream
	Pieces uint32 `spin:"max=1"`

	Packets uint64 // unpacked or packed
	Runs    uint64 // DMA operations for them
	Seeks   uint64 // look-ups of a place from the root

	Send Send // for the handler pack
}

// Send is the destination of a packed message.
type Send struct {
	_   structs.HostLayout
	NID uint32 // target
	PID uint32
	PT  uint32 `spin:"max=255"`
	// of the stream, in each packet but the last
	Packet  uint32 `spin:"unit=bytes"`
	Bits    uint64 // match bits
	Offset  uint64 `spin:"unit=bytes"`   // of the stream's first byte in the target's entry
	DoneCT  uint32 `spin:"unit=counter"` // counts sent packets; 0: none
	SelfPT  uint32 `spin:"max=255"`      // portal table entry of this entry
	Workers uint32 `spin:"max=64"`       // handlers that pack at the same time
	Batch   uint32 // packets that each packs before it lets others run
	Spare   uint32 `spin:"max=0"` // 0
	// of the Workers buffers, behind the state; in front of each is a word that
	// is set while it is used
	Buffers uint32 `spin:"unit=bytes"`
}

// MaxWorkers is how many handlers may pack at the same time.
const MaxWorkers = 64

// Strategies.
const (
	Vector  = iota // equal blocks at equal distances: two divisions compute the place
	General        // each packet looks the place up from the root
	// each packet walks from the previous checkpoint, which the host has made,
	// over at most an interval
	ReadOnly
	// each packet begins where the previous one ended, if it has left a
	// checkpoint; else as General
	Progressing
)

// MaxDepth is the largest depth of a type's tree: a cursor must fit on the
// stack of a handler.
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

// NodeSize is the size of a Node, bytes.
const NodeSize = 32

// Entry is an entry of a table.
type Entry struct {
	_     structs.HostLayout
	Place int64  // bytes
	End   uint64 // its end in the stream of the node's bytes
}

// EntrySize is the size of an Entry, bytes. In the table of a list, words of 8
// bytes follow the entries, one for each: the address of its node.
const EntrySize = 16

// Slots is the number of Progressing's checkpoints.
const Slots = 64

// Slot is a checkpoint of Progressing.
type Slot struct {
	_        structs.HostLayout
	Position uint64 // 1 + the cursor's byte of the stream; 0: none
	Cursor   Cursor
}

// SlotSize is the size of a Slot, bytes.
const SlotSize = 8 + HeadSize + MaxDepth*FrameSize
