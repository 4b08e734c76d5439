// Package allreduce combines vectors of many processes and gives all of them
// the result, in the network interface. It is the Allreduce accelerator of
// ExaNeSt (TR-488 §4.7; Ploumidis et al., FORTH-ICS, 2023) as a library of
// handlers. In addition it has recursive doubling and a ring, for any number of
// ranks and any length.
//
// An instance is a module of a process for one group of processes. The host
// programs it for each vector, and vectors of other modules arrive there.
// README.md describes the protocol.
//
// A host program uses it so:
//
//	library, err := allreduce.Load(cluster)                              // once for each cluster
//	module, err := library.Open(p, allreduce.Options{Members: places, Rank: 3, Algorithm: allreduce.Boards})
//	err = module.Begin(allreduce.Call{Source: v, Result: v, Op: allreduce.Sum, Type: allreduce.Float64})
//	err = module.Wait()                                               // until the result is there
//
// All members open the group with the same number before any of them begins a
// call. They begin the same calls in the same order.
package allreduce

import "structs"

// Limits of ExaNeSt's accelerator (TR-488 §4.7).
const (
	Board    = 4    // MPSoCs of a QFDB: the server and its clients
	MaxRanks = 1024 // of a run
	MaxBytes = 256  // of a run; a longer vector takes several
)

// Limits of the library.
const (
	MaxLevels = 32 // places where vectors of a run arrive
	MaxSteps  = 64 // of a run
)

// State is the HPU memory of a module. Behind it lie 2*Window slots of SlotBytes.
type State struct {
	_ structs.HostLayout // the owner sets these fields before the first message

	// of the group's messages: the protection domain from bit 32; kind and
	// level in the lowest 10 bits
	MatchBits uint64
	NID       uint32 `spin:"default=rank"` // node of the process
	PID       uint32 // of the process on its node
	// portal table entry of the group's messages
	PT uint32 `spin:"max=255"`
	// counts calls that are over; 0: none
	DoneCT uint32 `spin:"unit=counter"`
	// runs of a call that are under way at a time
	Window uint32 `spin:"default=1 min=1 max=4096"`
	// largest size of a run; a multiple of 8
	Block uint32 `spin:"unit=bytes default=mtu min=8 max=65536"`
	// places where vectors of a run arrive
	Levels uint32 `spin:"default=4 min=1 max=32"`
	Ready  uint32 // 1: the slots are numbered

	Counts Counts // of the module

	Call     Descriptor        // under way, or the last one
	Active   uint32            // 1: it is under way
	Next     uint32            // number of the next run to begin
	Oldest   uint32            // number of the oldest run that is not over
	Last     uint32            // number behind the call's last run
	Status   uint32            // of the call
	Padding  uint32            // 0
	Reports  uint64            // the word for the host
	Program  [MaxSteps]Step    // of the call's runs
	Steps    uint32            // of the program
	Links    uint32            // peers
	Peers    [MaxLevels]Entry  // from the table
	Expected [MaxLevels]uint32 // their ranks
}

// Counts counts what a module has done.
type Counts struct {
	_          structs.HostLayout
	Calls      uint64 // begun
	Runs       uint64 // begun
	Sent       uint64 // vectors
	Received   uint64 // likewise
	Early      uint64 // received vectors that came before their turn and were kept
	Duplicates uint64 // copies of vectors that had come, or vectors of runs that are over
	Strange    uint64 // invalid messages
	Foreign    uint64 // messages of another protection domain
	Busy       uint64 // calls that came before the previous one was over
}

// Descriptor is what the host stores to begin a call.
type Descriptor struct {
	_         structs.HostLayout
	Source    uint64 // address of the process's vector
	Result    uint64 // address of the result
	Table     uint64 // address of Ranks entries
	Bytes     uint32 // of the vector
	First     uint32 // number of its first run
	Rank      uint32 // of the process
	Ranks     uint32 // of the group
	Algorithm uint32 // Boards, Doubling or Ring
	Op        uint16 // Sum, Min or Max
	Type      uint16 // of elements
	Tag       uint32 // comes back in the status
	Reserved  uint32 // 0
}

// Entry is an entry of the table: a rank and the address of its module.
type Entry struct {
	_       structs.HostLayout
	Rank    uint32 // of the process
	Address uint32 // node, and above it, from bit NodeBits, the process on it
}

// NodeBits of an address name a node (TR-488 §4.3), the 10 bits above a
// process.
const NodeBits = 22

// Slot is the place of a run. Behind it lie the process's own vector, of Block
// bytes, and one vector for each level.
type Slot struct {
	_       structs.HostLayout
	Run     uint32
	Arrived uint32            // a bit for each level
	Bytes   uint32            // of the run
	Step    uint16            // the next one
	End     uint16            // behind the last one
	Live    uint32            // 1: the own vector is there
	Busy    uint32            // 1: a handler takes steps, or reads or writes host memory
	Offset  uint64            // of the run in the vector
	Signs   [MaxLevels]uint32 // of the received vectors: see Sign
}

// SlotHead is the size of a Slot, bytes.
const SlotHead = 32 + 4*MaxLevels

// SlotBytes returns the size of a slot with its vectors.
func (s *State) SlotBytes() uint32 { return SlotHead + (1+s.Levels)*s.Block }

// Algorithms.
const (
	Boards   = iota + 1 // as in the accelerator: clients and servers of QFDBs
	Doubling            // recursive doubling
	Ring
)

// Operations.
const (
	Sum = iota + 1
	Min
	Max
)

// Types of elements, little endian.
const (
	Int32 = iota + 1
	Int64
	Float32
	Float64
)

// Status of a call.
const (
	OK        = iota + 1
	Denied    // memory that is not there, or not for this access
	Illegal   // an invalid descriptor
	Differs   // a vector of another length, operation or type
	BadTable  // an entry of the table has another rank
	Illegible // no such node
)

// Kinds of messages, in the lowest 4 bits of the match bits. For a vector, the
// 6 bits above are the level.
const (
	KindBegin  = 1 + iota // from the own process: a descriptor
	KindVector            // from another module
)

// HeaderBits is the number of bits of kind and level.
const HeaderBits = 10

// Sign returns the upper half of the header data of a vector. It must be the
// same at all ranks. The lower half is the number of the run.
func Sign(bytes uint32, op, kind uint16) uint32 {
	return bytes&0xffffff | uint32(op&0xf)<<24 | uint32(kind&0xf)<<28
}

// Size returns the size of an element, bytes; 0: there is no such type.
func Size(kind uint16) uint32 {
	switch kind {
	case Int32, Float32:
		return 4
	case Int64, Float64:
		return 8
	}
	return 0
}

// After returns by how much one number of a run is newer than another, negative
// if it is older.
func After(a, b uint32) int32 { return int32(a - b) }
