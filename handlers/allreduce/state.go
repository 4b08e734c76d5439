// Package allreduce combines vectors of many processes and gives all of them
// the result, in the network interface: the Allreduce accelerator of ExaNeSt
// (TR-488 §4.7; Ploumidis et al., FORTH-ICS, 2023) as a library of handlers,
// and beyond it recursive doubling and a ring for any number of ranks and any
// length.
//
// An instance is a module of a process for one group of processes: what the
// host programs for each vector, and where the vectors of other modules arrive.
// README.md has the protocol.
//
// A host program uses it so:
//
//	library, err := allreduce.Load(cluster)                              // once for each cluster
//	module, err := library.Open(p, allreduce.Options{Members: places, Rank: 3, Algorithm: allreduce.Boards})
//	err = module.Begin(allreduce.Call{Source: v, Result: v, Op: allreduce.Sum, Type: allreduce.Float64})
//	err = module.Wait()                                               // until the result is there
//
// All members open the group with the same number before any of them begins a
// call, and begin the same calls in the same order.
package allreduce

import "structs"

// What the accelerator of ExaNeSt can do (TR-488 §4.7).
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
	_ structs.HostLayout // what its owner sets before the first message comes first

	MatchBits uint64 // of the group's messages: the protection domain, from bit 32; kind and level are in the lowest 10
	NID       uint32 `spin:"default=rank"` // node of the process
	PID       uint32 // of the process on its node
	PT        uint32 `spin:"max=255"`                                // portal table entry of the group's messages
	DoneCT    uint32 `spin:"unit=counter"`                           // counts calls that are over; 0: none
	Window    uint32 `spin:"default=1 min=1 max=4096"`               // runs of a call that are under way at a time
	Block     uint32 `spin:"unit=bytes default=mtu min=8 max=65536"` // of a run at most; a multiple of 8
	Levels    uint32 `spin:"default=4 min=1 max=32"`                 // places where vectors of a run arrive
	Ready     uint32 // 1: the slots are numbered

	Counts Counts // what it has done

	Call     Descriptor        // under way, or the last one
	Active   uint32            // 1: it is under way
	Next     uint32            // number of the next run to begin
	Oldest   uint32            // number of the oldest run that is not over
	Last     uint32            // number behind the call's last run
	Status   uint32            // of the call
	Padding  uint32            // 0
	Reports  uint64            // word that goes to the host
	Program  [MaxSteps]Step    // of the call's runs
	Steps    uint32            // of the program
	Links    uint32            // peers
	Peers    [MaxLevels]Entry  // as the table has them
	Expected [MaxLevels]uint32 // their ranks
}

// Counts are what a module has done.
type Counts struct {
	_          structs.HostLayout
	Calls      uint64 // that have begun
	Runs       uint64 // likewise
	Sent       uint64 // vectors
	Received   uint64 // likewise
	Early      uint64 // of those, vectors that came before their turn and were kept
	Duplicates uint64 // copies of vectors that had come, or of runs that are over
	Strange    uint64 // messages that mean nothing
	Foreign    uint64 // messages of another protection domain
	Busy       uint64 // calls that came before the one before was over
}

// Descriptor is what the host stores to begin a call.
type Descriptor struct {
	_         structs.HostLayout
	Source    uint64 // address of the process's vector
	Result    uint64 // and of the result
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

// Entry is one of the table: a rank and where its module is.
type Entry struct {
	_       structs.HostLayout
	Rank    uint32 // of the process
	Address uint32 // node, and above it, from bit NodeBits, the process on it
}

// NodeBits of an address name a node (TR-488 §4.3), 10 more a process.
const NodeBits = 22

// Slot is the place of a run. Behind it lie the process's own vector, of Block
// bytes, and Levels of others.
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
	Signs   [MaxLevels]uint32 // of the vectors that have come: see Sign
}

// SlotHead is the size of a Slot, bytes.
const SlotHead = 32 + 4*MaxLevels

// SlotBytes is what a run takes.
func (s *State) SlotBytes() uint32 { return SlotHead + (1+s.Levels)*s.Block }

// Algorithms.
const (
	Boards   = iota + 1 // the accelerator's: clients and servers of QFDBs
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
	Illegal   // a descriptor that means nothing
	Differs   // a vector of another length, operation or type
	BadTable  // an entry of the table has another rank
	Illegible // no such node
)

// Kinds of messages, in the lowest 4 bits of the match bits; of a vector the 6
// bits above are the level.
const (
	KindBegin  = 1 + iota // of the own process: a descriptor
	KindVector            // of another module
)

// HeaderBits are those of kind and level.
const HeaderBits = 10

// Sign is the upper half of the header data of a vector: all ranks must mean
// the same. The lower half is the number of the run.
func Sign(bytes uint32, op, kind uint16) uint32 {
	return bytes&0xffffff | uint32(op&0xf)<<24 | uint32(kind&0xf)<<28
}

// Size is that of an element, bytes; 0: there is no such type.
func Size(kind uint16) uint32 {
	switch kind {
	case Int32, Float32:
		return 4
	case Int64, Float64:
		return 8
	}
	return 0
}

// After returns by how much a number of a run is newer than another, negative if it is older.
func After(a, b uint32) int32 { return int32(a - b) }
