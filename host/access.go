package host

import (
	"math"

	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// Status is how an access to memory ended.
type Status uint8

// Ends of an access.
const (
	OK     Status = iota
	Fault         // a page is not present: a retry may succeed
	Denied        // there is no such memory for the device: no retry succeeds
	// to a device as OK, but what it reads is zeros, and what it writes is
	// lost; only a Translator says it, no client is told
	Ignored
	pending // a Translator answers later
)

// String names the status as architecture and traces do.
func (s Status) String() string { return [...]string{"OK", "FAULT", "DENIED", "IGNORED", "pending"}[s] }

// Access is one use of host memory by a device: a piece of an address space, a
// direction, and who is told of its end. The client fills in the exported
// fields and gives it to Bus.Write, Bus.Read, Bus.Atomic or Bus.Stream; it is
// the bus's until the client is told of its end (of the end of its last piece),
// and may be given to the bus again from then on. One that has not ended well
// is settled by Bus.Again or Bus.Drop.
type Access struct {
	// What is needed when it ends is side by side, in one line of the
	// processor's cache if the access begins on one; what is needed when it is
	// made is in the next.

	// Space is whose memory it is; nil: memory that the driver holds for the
	// device, such as event queues, which is always present.
	Space *AddressSpace
	// Length is the bytes of the range. An access of none reaches no memory and ends well.
	Length int
	Client Client
	// Ref is the client's, as are Op, Index, Serial and Tries.
	Ref any
	// Among, of a stream: the line of writes and atomics between which it
	// reads, those made before it and those made after; nil: it does not
	// matter.
	Among *Order
	Op    uint8
	// Begin asks for Client.Begun if the bus does not take the first byte of a write at once.
	Begin bool
	// Together: a record of what has just crossed, such as the event behind a
	// handler's write that has landed; it is there as soon as the bus has had
	// room for it.
	Together bool
	way      way
	state    state
	let      bool // a Translator has let it pass, of a stream its next piece
	// what an IOMMU has let pass last; 0: Translator.Done finds it; lost: it
	// does not reach memory
	flight smmu.Flight

	// Addr is where the range begins. Places, if not nil, says where the bytes
	// lie if they are not contiguous; Addr then means nothing.
	Addr   uint64
	Places Places
	// Order is the line of accesses in which it keeps its place when the
	// translation of one of them is late or fails; nil: in none.
	Order *Order
	// Piece is the length of the pieces in which a Stream comes; the last may be shorter.
	Piece int
	piece int32   // a stream: the next one
	got   int32   // a stream Among others: pieces of it at the device
	next  *Access // in its Order; a stream: among those that want a turn
	age   uint64  // a stream: its number

	// Flow is the message it belongs to, for timelines; 0: it is not drawn.
	Flow   uint64
	Index  int
	Serial int
	Tries  int

	follows  sim.Time // an atomic: when the last of the writes made before it lands
	behind   *Access  // a stream: the next of its Order
	other    *Access  // a stream Among others: the next that is to be read
	passages *passage // what an IOMMU has let pass that is no single flight
}

// lost is the flight of what a Translator has Ignored.
const lost smmu.Flight = math.MaxUint16

// way is what the bus was asked for.
type way uint8

const (
	aWrite way = iota
	anAtomic
	aRead
	aStream // a read in pieces
)

// changes reports whether memory is changed.
func (w way) changes() bool { return w <= anAtomic }

// Direction is what an access does to memory.
type Direction uint8

// Directions.
const (
	ToMemory   Direction = iota // a write
	FromMemory                  // a read or a stream
	AtMemory                    // an atomic: a read that changes what it has read
)

// Direction is what the bus was asked for.
func (a *Access) Direction() Direction {
	return [...]Direction{aWrite: ToMemory, anAtomic: AtMemory, aRead: FromMemory, aStream: FromMemory}[a.way]
}

// At returns the address of byte off of the access, 0 <= off < Length, and how
// many of its bytes from there on are contiguous.
func (a *Access) At(off int) (addr uint64, n int) {
	if a.Places == nil {
		return a.Addr + uint64(off), a.Length - off
	}
	addr, n = a.Places.Place(a, off)
	return addr, min(n, a.Length-off)
}

// Ignored reports whether a Translator has let the access end well without
// memory: of a write nothing is there.
func (a *Access) Ignored() bool { return a.flight == lost }

// Span returns where piece i of a stream lies in the access.
func (a *Access) Span(i int) (from, to int) {
	from = i * a.Piece
	return from, min(from+a.Piece, a.Length)
}

// part returns where what ends at a time lies in the access: all of it, of a stream piece i.
func (a *Access) part(i int) (from, to int) {
	if a.way == aStream {
		return a.Span(i)
	}
	return 0, a.Length
}

// Places says where bytes that are not contiguous lie.
type Places interface {
	// Place returns the address of byte off of the access, and how many bytes
	// from there on are contiguous, at least 1.
	Place(a *Access, off int) (addr uint64, n int)
}

// Client is who made an access.
type Client interface {
	// Reached is an atomic at memory: its bytes change now. It comes once,
	// whatever the translator has said before.
	Reached(a *Access)
	// Begun is a write of which the bus takes the first byte now, if Bus.Write
	// has said that it does not yet. A write that has begun ends well.
	Begun(a *Access)
	// Ended is the end of an access or of piece i of a stream. With OK its
	// bytes move now, and the client moves them. One that has ended otherwise
	// waits for Bus.Again or Bus.Drop.
	Ended(a *Access, i int, s Status)
}

// Translator stands between a bus and memory: an IOMMU. It is asked for every
// access to an address space, for each piece of a stream by itself: for a write
// when the device makes it, for a read or an atomic when its request is at
// memory. The bytes of what it lets pass move later, when the access ends:
// until then the pages stay. A write whose turn has not come is asked about
// again when it has.
type Translator interface {
	// Translate decides about n bytes, at least 1, from offset off of a;
	// Access.At says where they are. With answered false it calls
	// Bus.Translated once, later.
	Translate(a *Access, off, n int) (s Status, answered bool)
	// Done is the end of what it has let pass, in the event in which the bytes
	// move; what may happen to the pages from now on does in a later one. It
	// comes early for a write that has to wait for others.
	Done(a *Access, off, n int)
}
