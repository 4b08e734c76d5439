// Package sparse adds up the sparse vectors of many processes in a tree of
// aggregators and gives all of them the sum: an allreduce of (index, value)
// pairs. Aggregators run in units of switches (fabric.Spec.Units), as in Flare
// (De Sensi et al., SC'21), or in NICs. Package reduction has the trees, and is
// for dense vectors.
//
// An aggregator adds what its children send in their order, whenever it arrives,
// so a sum has the same bits in every run. README.md describes the protocol.
//
//	library, err := sparse.Load(cluster)
//	tree, err := reduction.Switches(cluster, members, 0)
//	o := sparse.Options{Members: members, Tree: tree, Span: 4096}
//	group, err := library.Group(o) // before the programs
//	m, err := group.Open(p, rank)  // in each program
//	err = m.Allreduce(1<<20, pairs, func(sum []sparse.Pair) { ... })
package sparse

import "structs"

// Limits of the library.
const (
	MaxChildren = 1024    // of an aggregator
	MaxWindow   = 1024    // blocks
	MaxPackets  = 1 << 12 // that a child may send of a block
	MaxSpan     = 1 << 24 // indices of a block
)

// Turn is how many full packets a handler adds of those that came early.
const Turn = 64

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
	// payload of a full packet; a multiple of 8
	Packet uint32 `spin:"unit=bytes default=mtu min=8 max=65536"`
	// indices of a block; a power of two
	Span uint32 `spin:"default=1024 min=1 max=16777216"`
	// places of the table of sums, a power of two. As many as Span: an array.
	// Fewer: a hash table. The root has an array.
	Table     uint32 `spin:"default=1024 min=1 max=16777216"`
	Root      uint32 `spin:"default=1 max=1"` // 1: it has no parent
	ParentNID uint32 // node of the parent
	ParentPID uint32 // process of the parent there
	Place     uint32 // number among the parent's children
	// memory of a slot for packets that come before their turn; a multiple of 8
	Kept uint32 `spin:"unit=bytes max=1073741824"`
	// packets of the result of a block at most
	Results uint32 `spin:"default=1 min=1 max=4096"`
	Broken  uint32 // Differs: no call ends any more
	Padding uint32 // 0
	Counts  Counts // of the aggregator
}

// Counts counts what an aggregator has done.
type Counts struct {
	_       structs.HostLayout
	Packets uint64 // received from children
	Early   uint64 // those among them that came before their turn and were kept
	Spilled uint64 // pairs sent on because another index had their place
	Blocks  uint64 // added up
	Results uint64 // packets received from the parent
	Strange uint64 // invalid messages, or pairs of another block
}

// Child is a child of an aggregator.
type Child struct {
	_        structs.HostLayout
	NID, PID uint32
	First    uint32 // where a slot keeps its packets, bytes behind those of others
	Packets  uint32 // of a block at most
	Bytes    uint32 // of a packet at most
	_        uint32 // 0
}

// Pair is an element that is not zero.
type Pair struct {
	_     structs.HostLayout
	Index uint32
	Value float32
}

// None is the index of a pair that stands for none. A block of zeros is one.
const None = 1<<32 - 1

// Slot is the place of a block. Behind it lie the table, the packet that is
// next to be sent, and packets that came before their turn, each a Kept and its
// bytes. Who has the slot may use it, but for Busy and Kept.Came, which are
// atomic.
type Slot struct {
	_      structs.HostLayout
	Round  uint32 // how many blocks it has had
	Next   uint32 // the child whose turn it is
	Packet uint32 // and which of its packets
	Busy   uint32 // 1: a handler has it
	Block  Block  // of the sum
	Filled uint32 // bytes of the packet that is next to be sent
	Sent   uint32 // packets of the sum
}

// Block is what a packet says of its block.
type Block struct {
	_     structs.HostLayout
	Run   uint32 // number of the block, over all calls
	Count uint32 // elements of the vector: the same at all members
	Index uint32 // of the block in its vector
	_     uint32 // 0
}

// Entry is a place of a table.
type Entry struct {
	_     structs.HostLayout
	Key   uint32 // index + 1; 0: free
	Value float32
}

// Kept is the head of a packet that came before its turn.
type Kept struct {
	_     structs.HostLayout
	Came  uint32 // 1: it is there
	Last  uint32 // 1: it is the child's last one of the block
	Bytes uint32
	_     uint32 // 0
	Block Block
}

// Sizes of these records, bytes.
const (
	ChildBytes = 24
	PairBytes  = 8 // also of an Entry
	SlotHead   = 40
	KeptHead   = 32
)

// SlotBytes returns the size of a slot with all that lies behind it.
func (s *State) SlotBytes() uint32 { return SlotHead + PairBytes*s.Table + s.Packet + s.Kept }

// Bytes returns the HPU memory behind the state.
func (s *State) Bytes() int64 {
	return ChildBytes*int64(s.Children) + 2*int64(s.Window)*int64(s.SlotBytes())
}

// Packets returns how many packets n pairs take; none take one, too.
func (s *State) Packets(n int64) int64 {
	return max(1, (PairBytes*n+int64(s.Packet)-1)/int64(s.Packet))
}

// Kinds of messages, in the lowest 8 bits of the match bits.
const (
	Last        = 1 << iota // the last packet of the block; its number says how many there are
	KindPairs               // from a child
	KindResult              // from the parent
	KindTrouble             // a status that ends the group
	KindMore                // to self: there are more packets to add
)

// Places in match bits, behind the kind: of the child among its parent's, of the
// packet in its block, of the block in its vector. The header data are
// Block.Run and, from bit 32 on, Block.Count.
const (
	PlaceShift  = 8
	PacketShift = 20
	IndexShift  = 32
	PlaceMask   = 1<<(PacketShift-PlaceShift) - 1
	PacketMask  = 1<<(IndexShift-PacketShift) - 1
)

// Differs is the status of a group whose members gave vectors of other lengths.
const Differs = 1
