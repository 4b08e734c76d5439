// Package backupring is the receive side of an Ethernet interface whose rings
// lie in memory that may be absent (Lesokhin et al., "Page Fault Support for
// Network Controllers", ASPLOS'17, §5, "NPF'17"): a frame whose descriptor or
// buffer is not there goes into a small pinned ring of the IOprovider, which
// copies it to where it belongs when the pages have come. The IOuser gets all
// frames in order, and never notices.
//
// One instance is the interface of a node. It belongs to the IOprovider and has
// two entries, which share the state: frames (recv), whose memory is the backup
// ring, and control. Rings of IOusers lie in memory that they have granted
// (nic.Memory.Grant). README.md has the protocol.
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
	EntrySize      = 64 // of an Entry: the frame is behind it
	words          = MaxSize / 64
)

// State is the interface.
type State struct {
	_         structs.HostLayout
	NID       uint32              `spin:"default=rank"` // node
	PID       uint32              // of the IOprovider
	BackupCT  uint32              `spin:"unit=counter"`              // counts frames in the backup ring: the interrupt of the IOprovider
	TailCT    uint32              `spin:"unit=counter"`              // counts changes of the tails of rings that are watched
	Slots     uint64              `spin:"default=64 min=1"`          // of the backup ring
	SlotBytes uint64              `spin:"unit=bytes default=mtu+64"` // of each: an Entry and a frame
	Free      uint64              `spin:"default=64"`                // slots that may be taken: backup.size - (backup.tail - backup.head) of NPF'17
	Head      uint64              // slots that were taken
	Patience  uint64              `spin:"unit=cycles default=750000"` // of its budget that a frame spends on waiting for its turn before it is dropped: one that is killed would stop the ring
	Stray     uint64              // frames for no ring
	Foreign   uint64              // messages to control that it does not understand, or that are not of who may send them
	Rings     [MaxRings]RingState // of IOusers
}

// RingState is that of an IOuser. Indices run free: the descriptor of one is
// that modulo Size, its place. Frames that come at once meet twice, each time
// for a few cycles: they take their descriptors one after the other, with the
// turn, and move Head one after the other, with Lock. A frame that has taken
// its descriptor does not hold up those behind it.
type RingState struct {
	_           structs.HostLayout
	Generation  uint64 // rings that were here and are closed
	Control     uint64 // 1: a handler carries out a message about the ring
	Lock        uint64 // 1: a handler moves Head
	Ticket      uint64 // frames that have come
	Turn        uint64 // so many of them know where they go: they take their descriptors in the order in which they have come
	Space       uint32 // of the memory that the IOuser has granted
	Size        uint32 // descriptors; 0: there is no such ring
	BitmapSize  uint32 // bits: frames that the IOprovider is willing to hold, or has the right to; 0: none, absent memory drops
	Skips       uint32 // 1: of BitmapSize 0: a frame that is dropped for an absent buffer takes its descriptor along; 0: the next one gets it
	Watched     uint32 // 1: TailCT counts changes of Tail
	PID         uint32 // of the IOuser
	PT          uint32 // where it is told of Head
	NextPlace   uint32 // place of Next: a division takes longer than all that is done with the turn
	HeadPlace   uint32 // place of Head
	Spare       uint32
	Descriptors uint64        `spin:"unit=bytes"` // where they begin in the space
	Tail        uint64        // one past the last descriptor that was posted
	Next        uint64        // descriptor of the next frame, head + head_offset of NPF'17: their sum is kept, so that Head moves without it
	Head        uint64        // first descriptor that the IOuser was not told of
	BitmapIndex uint64        // bit of Head
	Told        uint64        // messages to the IOuser that Head has moved
	Begun       uint64        // frames that were to be stored: those that are neither in Stats.Stored nor in Stats.Absent are under way
	Stats       Stats         // what has become of frames
	Late        [words]uint64 // frames that have left before their turn, by tickets
	Bitmap      [words]uint64 // frames that the IOprovider has
	Done        [words]uint64 // frames from Head on that are in their buffers, by places: ours, since handlers of several frames run at once
}

// HeadOffset is how many descriptors from Head on are taken.
func (r *RingState) HeadOffset() uint64 { return r.Next - r.Head }

// Stats counts frames of a ring.
type Stats struct {
	_          structs.HostLayout
	Stored     uint64 // by the interface, in their buffers
	Absent     uint64 // whose descriptor or buffer was absent
	NoBuffer   uint64 // for which there was no descriptor
	Backed     uint64 // that went into the backup ring
	Dropped    uint64 // that did not, for want of room there or in the bitmap, or of time
	Late       uint64 // of them, those for whose turn their handlers would have waited beyond their budget
	Skipped    uint64 // of them, those whose descriptor was skipped
	Unsuitable uint64 // whose descriptor names memory that is not the IOuser's, or too little
}

// Descriptor is a buffer of an IOuser, in its memory.
type Descriptor struct {
	_      structs.HostLayout
	Offset uint64 // of the buffer, in the granted memory, bytes
	Length uint32 // bytes
	Used   uint32 // the interface: bytes of the frame, or TooLong, Illegal or Unused, which it is from the beginning
}

// What Used may say but a length.
const (
	TooLong = 1<<32 - 1 // for the buffer
	Illegal = 1<<32 - 2 // the buffer is not in the granted memory
	Unused  = 0         // the buffer, or the descriptor, was absent, and the ring skips such descriptors
)

// Entry heads a slot of the backup ring.
type Entry struct {
	_      structs.HostLayout
	Number uint64 // of the frame in the backup ring, from 1: the slot is filled when it is there
	Slot   uint64 // descriptor of the ring
	Bit    uint64 // to be given back by Resolved
	Ring   uint64 // its ID
	Length uint64 // bytes of the frame
	Spare  [2]uint64
}

// Kinds of messages to control: match bits are ID << 8 | kind, and header data is the number.
const (
	Posted    = 1 // IOuser: Tail is the number
	Resolved  = 2 // IOprovider: the frame of that bit is in its buffer
	GivenBack = 3 // IOprovider: so many slots of the backup ring may be taken again
	Watch     = 4 // IOprovider: TailCT counts changes of Tail from now on, and at once if Tail is that number or more already; or no more (0)
	Closed    = 5 // IOprovider: no frame takes a descriptor any more
)

// ID is what a ring is known by: frames have it in their match bits. That of a
// ring that was closed is nobody's ever after.
func ID(place int, generation uint64) uint64 { return generation*MaxRings + uint64(place) }

// Bits are the match bits of a message to control about the ring of an ID.
func Bits(kind uint32, id uint64) uint64 { return id<<8 | uint64(kind) }
