// Package reduction combines the vectors of many processes in a tree of
// aggregators and gives all of them the result: an allreduce on its way. An
// aggregator is an instance of one module. It runs in the unit of a switch
// (fabric.Spec.Units), as in Flare or SHArP, or in a node's NIC.
//
// An aggregator combines the vectors of its children in their order, whenever
// they arrive, so a result has the same bits in every run. Children are
// processes or other aggregators. The sum goes to the parent, and at the root
// the result goes back down. README.md describes the protocol. A reduce, a
// broadcast and a barrier go the same ways, with tokens and empty messages where
// nobody needs the bytes. Each block has a root, so a reduce-scatter is a reduce,
// and an allgather a broadcast, in which members have pieces.
//
//	library, err := reduction.Load(cluster)
//	tree, err := reduction.Switches(cluster, members, 0)
//	group, err := library.Group(reduction.Options{Members: members, Tree: tree}) // before the programs
//	m, err := group.Open(p, rank, nil)                                         // in each program
//	err = m.Begin(allreduce.Call{Source: v, Result: v, Op: allreduce.Sum, Type: allreduce.Float32})
//	err = m.Wait()
package reduction

import "structs"

// Limits of the library.
const (
	MaxChildren = 1024 // of an aggregator
	MaxWindow   = 1024
)

// words is how many words have a bit for each child.
const words = MaxChildren / 32

// State is the HPU memory of an aggregator. Behind it lie Children records of
// type Child, and then 2*Window slots of SlotBytes.
type State struct {
	_ structs.HostLayout
	// portal table index of the group's messages
	PT uint32 `spin:"max=255"`
	// processes and aggregators below it
	Children uint32 `spin:"default=1 min=1 max=1024"`
	// blocks that a process may have sent without their results
	Window uint32 `spin:"default=1 min=1 max=1024"`
	// size of a block: the payload of a packet; a multiple of 8
	Block     uint32 `spin:"unit=bytes default=mtu min=8 max=65536"`
	Root      uint32 `spin:"default=1 max=1"` // 1: it has no parent
	ParentNID uint32 // node of the parent
	ParentPID uint32 // process of the parent there
	Place     uint32 // number among the parent's children
	Broken    uint32 // Differs: no call ends any more
	Padding   uint32 // 0
	Counts    Counts // of the aggregator
}

// Counts counts what an aggregator has done.
type Counts struct {
	_       structs.HostLayout
	Vectors uint64 // received from children
	Early   uint64 // those among them that came before their turn and were kept
	Blocks  uint64 // combined
	Results uint64 // received from the parent
	Strange uint64 // invalid messages
}

// Child is a child of an aggregator.
type Child struct {
	_        structs.HostLayout
	NID, PID uint32
	Inner    uint32 // 1: an aggregator; 0: a process
	Reserved uint32 // 0
}

// Slot is the place of a block. Behind it lie the sum, of State.Block bytes, and
// the vectors of children that came before their turn, each a Block and its
// bytes. Who has the slot may use it, but for Busy and Came, which are atomic.
type Slot struct {
	_     structs.HostLayout
	Round uint32        // how many blocks it has had
	Next  uint32        // the child whose turn it is
	Busy  uint32        // 1: a handler has it
	Root  uint32        // of a rooted call: 1 + the child that is the root or has it below
	Sum   Block         // of the sum
	Came  [words]uint32 // a bit for each child whose vector is kept
}

// Block is what a vector says of itself.
type Block struct {
	_     structs.HostLayout
	Run   uint32 // number of the block, over all calls
	Sign  uint32 // see Sign
	Bytes uint32 // of the block
	Index uint32 // of the block in its vector
}

// SlotHead is the size of a Slot, bytes, and BlockHead that of a Block.
const (
	SlotHead  = 32 + 4*words
	BlockHead = 16
)

// ChildBytes is the size of a Child, bytes.
const ChildBytes = 16

// SlotBytes returns the size of a slot with its vectors.
func (s *State) SlotBytes() uint32 { return SlotHead + s.Block + s.Children*(BlockHead+s.Block) }

// Bytes returns the HPU memory behind the state.
func (s *State) Bytes() int64 {
	return ChildBytes*int64(s.Children) + 2*int64(s.Window)*int64(s.SlotBytes())
}

// Kinds of messages, in the lowest 8 bits of the match bits.
const (
	KindVector  = 1 + iota // from a child, whose place is in bits 8 to 31
	KindResult             // from the parent; bits 8 to 31 have a process's place in its window
	KindTrouble            // a status that ends the group
)

// Rooted is in the kind of messages to aggregators of calls with a root: reduce,
// broadcast and barrier.
const Rooted = 1 << 7

// RootBit is in the index of the root's vector, and in that of a sum with it. There
// the index is where the block goes in the result, in bytes.
const RootBit = 1 << 31

// Places in match bits. The index of a block in its vector is from IndexShift
// on.
const (
	PlaceShift = 8
	IndexShift = 32
	PlaceMask  = 1<<(IndexShift-PlaceShift) - 1
)

// Differs is the status of a group whose members gave another length, operation
// or type.
const Differs = 1

// Reduce is in the Sign of a reduce, in the place of a bit of the length. Other
// calls with a root are broadcasts: a barrier is one of a token.
const Reduce = 1 << 23

// Token is the size of a message to an aggregator that says only that a member, or
// all below the sender, may get a block. Handlers do not see empty packets.
const Token = 8

// Sign returns the upper half of the header data. It must be the same at all
// members. The lower half is the number of the block.
func Sign(bytes int, op, kind uint16) uint32 {
	return uint32(bytes)&0xffffff | uint32(op&0xf)<<24 | uint32(kind&0xf)<<28
}
