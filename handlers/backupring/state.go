// Package backupring is the receive side of an Ethernet interface whose rings
// lie in memory that may be absent (Lesokhin et al., "Page Fault Support for
// Network Controllers", ASPLOS'17, §5, "NPF'17"). If a frame's descriptor or
// buffer is absent, the frame goes into a small pinned ring of the IOprovider.
// The IOprovider copies it to its place when the pages have come. The IOuser
// gets all frames in order, and never notices.
//
// One instance is the interface of a node. It belongs to the IOprovider and has
// two entries, which share the state: frames (recv), whose memory is the backup
// ring, and control. Rings of IOusers lie in memory that they have granted
// (nic.Memory.Grant). README.md describes the protocol.
//
// A host program uses it so:
//
//	lib, err := backupring.Load(cluster)                              // once for each cluster
//	provider, err := lib.Serve(0, backupring.Options{})               // once for each node that has rings, before its IOusers are spawned
//	ring, err := provider.Open(p, backupring.RingOptions{Size: 64})   // by an IOuser, before it first waits
//	frame, err := ring.Receive()                                  // in order; blocks
//	port, err := lib.Connect(p)                                   // by whoever sends
//	err = port.Send(view, 0, ring.ID())                           // to a ring of node 0
package backupring

import "structs"

// Sizes.
const (
	MaxRings       = 16   // of a node
	MaxSize        = 4096 // descriptors of a ring, and bits of its bitmap
	DescriptorSize = 16
	EntrySize      = 64 // of an Entry; the frame follows it
	words          = MaxSize / 64
)

// State is the interface.
type State struct {
	_   structs.HostLayout
	NID uint32 `spin:"default=rank"` // node
	PID uint32 // of the IOprovider
	// counts frames in the backup ring: the IOprovider's interrupt
	BackupCT uint32 `spin:"unit=counter"`
	// counts changes of the tails of watched rings
	TailCT    uint32 `spin:"unit=counter"`
	Slots     uint64 `spin:"default=64 min=1"`          // of the backup ring
	SlotBytes uint64 `spin:"unit=bytes default=mtu+64"` // of each: an Entry and a frame
	// slots that may be taken: backup.size - (backup.tail - backup.head) of
	// NPF'17
	Free uint64 `spin:"default=64"`
	// slots that were taken
	Head uint64
	// how much of its budget a frame waits for its turn before it is dropped: a
	// killed handler would stop the ring
	Patience uint64 `spin:"unit=cycles default=750000"`
	Stray    uint64 // frames for no ring
	// messages to control that are invalid, or from a process that may not send
	// them
	Foreign uint64
	// of IOusers
	Rings [MaxRings]RingState
}

// RingState is the ring of an IOuser. Indices grow without bound: the place of
// a descriptor is its index modulo Size. Handlers of frames that come at once
// meet twice, each time for a few cycles. They take their descriptors one after
// the other, in turn, and they move Head one after the other, with Lock. A
// frame that has taken its descriptor does not hold up the next ones.
type RingState struct {
	_          structs.HostLayout
	Generation uint64 // rings that were here and are closed
	Control    uint64 // 1: a handler carries out a message about the ring
	Lock       uint64 // 1: a handler moves Head
	Ticket     uint64 // frames that have come
	// how many of them know their destination: frames take their descriptors in
	// the order of arrival
	Turn  uint64
	Space uint32 // of the memory that the IOuser has granted
	Size  uint32 // descriptors; 0: there is no such ring
	// bits: frames that the IOprovider is willing, or allowed, to hold; 0:
	// none, absent memory drops
	BitmapSize uint32
	// 1: if BitmapSize is 0, a frame that is dropped for an absent buffer uses
	// up its descriptor; 0: the next frame gets it
	Skips   uint32
	Watched uint32 // 1: TailCT counts changes of Tail
	PID     uint32 // of the IOuser
	PT      uint32 // where it receives Head
	// place of Next: a division takes longer than all other work in the turn
	NextPlace   uint32
	HeadPlace   uint32 // place of Head
	Spare       uint32
	Descriptors uint64 `spin:"unit=bytes"` // where they begin in the space
	Tail        uint64 // one past the last posted descriptor
	// descriptor of the next frame, head + head_offset of NPF'17: the sum is
	// kept, so that moving Head does not change it
	Next        uint64
	Head        uint64 // first descriptor that was not reported to the IOuser
	BitmapIndex uint64 // bit of Head
	Told        uint64 // messages to the IOuser about Head
	// frames that were to be stored: those in neither Stats.Stored nor
	// Stats.Absent are under way
	Begun  uint64
	Stats  Stats         // outcomes of frames
	Late   [words]uint64 // frames that have left before their turn, by tickets
	Bitmap [words]uint64 // frames that the IOprovider holds
	// frames from Head on that are in their buffers, by places: ours, because
	// handlers of several frames run at once
	Done [words]uint64
}

// HeadOffset returns how many descriptors from Head on are taken.
func (r *RingState) HeadOffset() uint64 { return r.Next - r.Head }

// Stats counts frames of a ring.
type Stats struct {
	_        structs.HostLayout
	Stored   uint64 // by the interface, in their buffers
	Absent   uint64 // with an absent descriptor or buffer
	NoBuffer uint64 // without a descriptor
	Backed   uint64 // put into the backup ring
	Dropped  uint64 // lost, because there was no room there or in the bitmap, or no time
	// dropped frames whose handlers would have waited for their turn beyond
	// their budget
	Late       uint64
	Skipped    uint64 // dropped frames that used up their descriptor
	Unsuitable uint64 // with a descriptor for memory that is too small or not the IOuser's
}

// Descriptor is a buffer of an IOuser, in its memory.
type Descriptor struct {
	_      structs.HostLayout
	Offset uint64 // of the buffer, in the granted memory, bytes
	Length uint32 // bytes
	// set by the interface: bytes of the frame, or TooLong, Illegal or Unused,
	// its initial value
	Used uint32
}

// Values of Used that are not a length.
const (
	TooLong = 1<<32 - 1 // for the buffer
	Illegal = 1<<32 - 2 // the buffer is not in the granted memory
	// the buffer, or the descriptor, was absent, and the ring skips such
	// descriptors
	Unused = 0
)

// Entry heads a slot of the backup ring.
type Entry struct {
	_      structs.HostLayout
	Number uint64 // of the frame in the backup ring, from 1; set when the slot is complete
	Slot   uint64 // descriptor of the ring
	Bit    uint64 // Resolved gives it back
	Ring   uint64 // its ID
	Length uint64 // bytes of the frame
	Spare  [2]uint64
}

// Kinds of messages to control: match bits are ID << 8 | kind, and header data is the number.
const (
	Posted    = 1 // IOuser: Tail is the number
	Resolved  = 2 // IOprovider: the frame with this bit is in its buffer
	GivenBack = 3 // IOprovider: this many slots of the backup ring are free again
	// IOprovider: TailCT counts changes of Tail from now on, and immediately if
	// Tail is the number or more already; 0: no more
	Watch  = 4
	Closed = 5 // IOprovider: frames take no more descriptors
)

// ID returns a ring's number, which frames have in their match bits. The number
// of a closed ring is never used again.
func ID(place int, generation uint64) uint64 { return generation*MaxRings + uint64(place) }

// Bits returns the match bits of a message to control about a ring.
func Bits(kind uint32, id uint64) uint64 { return id<<8 | uint64(kind) }
