package host

import (
	"math"

	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// Status is the result of an access to memory.
type Status uint8

// Results of an access.
const (
	OK     Status = iota
	Fault         // a page is not present: a retry may succeed
	Denied        // the device has no such memory: no retry succeeds
	// the device sees OK, but it reads zeros and its writes are lost; only a
	// Translator returns it, clients never see it
	Ignored
	pending // a Translator answers later
)

// String names the status as the architecture and traces do.
func (s Status) String() string { return [...]string{"OK", "FAULT", "DENIED", "IGNORED", "pending"}[s] }

// Access is one use of host memory by a device: a range of an address space, a
// direction, and a client. The client fills in the exported fields and passes
// the access to Bus.Write, Bus.Read, Bus.Atomic or Bus.Stream. The bus owns it
// until it reports the end (of the last piece) to the client. Then the client
// may use it again. After an end other than OK, the client calls Bus.Again or
// Bus.Drop.
type Access struct {
	// The fields used at the end of an access come first, in one cache line if the
	// access begins on one. The fields used at its beginning are in the next line.

	// Space is the address space. nil: memory that the driver holds for the
	// device, such as event queues; it is always present.
	Space *AddressSpace
	// Length is the number of bytes of the range. An access of 0 bytes reaches no
	// memory and ends with OK.
	Length int
	Client Client
	// Ref belongs to the client, like Op, Index, Serial and Tries.
	Ref any
	// Among, for a stream, is a line of writes and atomics. The stream reads after
	// those made before it and before those made after it. nil: no such order.
	Among *Order
	Op    uint8
	// Begin asks for a call of Client.Begun if the bus does not take the first
	// byte of a write at once.
	Begin bool
	// Together marks a record of data that has just crossed, for example the event
	// after a handler's write has landed. It arrives as soon as the bus had room
	// for it.
	Together bool
	way      way
	state    state
	let      bool // a Translator has admitted it; for a stream, its next piece
	// latest flight in an IOMMU; 0: Translator.Done finds it; lost: it does not
	// reach memory
	flight smmu.Flight

	// Addr is the beginning of the range. If the bytes are not contiguous, Places
	// gives their addresses and Addr means nothing.
	Addr   uint64
	Places Places
	// Order is the line in which the access keeps its place, even if a translation
	// in the line is late or fails; nil: none.
	Order *Order
	// Piece is the length of a stream's pieces; the last may be shorter.
	Piece int
	piece int32   // of a stream: the next piece
	got   int32   // of a stream Among others: pieces that are at the device
	next  *Access // in its Order; for a stream: among the streams that want a turn
	age   uint64  // of a stream: its number

	// Flow is the message of the access, for timelines; 0: it is not drawn.
	Flow   uint64
	Index  int
	Serial int
	Tries  int32
	// Ports are the ways of a read or a write to memory, from AddPorts; 0: the bus.
	Ports uint8
	// Line is whose share a stream has (Share); otherwise for the client's use.
	Line uint16

	follows  sim.Time // of an atomic: when the last earlier write lands
	behind   *Access  // of a stream: the next in its Order
	other    *Access  // of a stream Among others: the next stream that is not read yet
	passages *passage // admitted by an IOMMU in more than a single flight
}

// Held reports whether an access that has not begun waits for its page or for others
// of its Order, and not for the bus.
func (a *Access) Held() bool { return a.state != launched }

// lost is the flight of an access that a Translator has Ignored.
const lost smmu.Flight = math.MaxUint16

// way is the operation requested of the bus.
type way uint8

const (
	aWrite way = iota
	anAtomic
	aRead
	aStream // a read in pieces
)

// changes reports whether the operation changes memory.
func (w way) changes() bool { return w <= anAtomic }

// Direction is the effect of an access on memory.
type Direction uint8

// Directions.
const (
	ToMemory   Direction = iota // a write
	FromMemory                  // a read or a stream
	AtMemory                    // an atomic: reads and changes memory
)

// Direction returns the direction of the requested operation.
func (a *Access) Direction() Direction {
	return [...]Direction{aWrite: ToMemory, anAtomic: AtMemory, aRead: FromMemory, aStream: FromMemory}[a.way]
}

// At returns the address of byte off of the access, 0 <= off < Length, and the
// number of contiguous bytes from there on.
func (a *Access) At(off int) (addr uint64, n int) {
	if a.Places == nil {
		return a.Addr + uint64(off), a.Length - off
	}
	addr, n = a.Places.Place(a, off)
	return addr, min(n, a.Length-off)
}

// Ignored reports whether a Translator let the access end with OK but without
// memory: the bytes of such a write are lost.
func (a *Access) Ignored() bool { return a.flight == lost }

// Span returns the offsets of piece i of a stream in the access.
func (a *Access) Span(i int) (from, to int) {
	from = i * a.Piece
	return from, min(from+a.Piece, a.Length)
}

// part returns the offsets that end together: piece i of a stream, otherwise
// all of the access.
func (a *Access) part(i int) (from, to int) {
	if a.way == aStream {
		return a.Span(i)
	}
	return 0, a.Length
}

// Places gives the addresses of bytes that are not contiguous.
type Places interface {
	// Place returns the address of byte off of the access, and the number of
	// contiguous bytes from there on, at least 1.
	Place(a *Access, off int) (addr uint64, n int)
}

// Client makes accesses and receives their results.
type Client interface {
	// Reached reports that an atomic is at memory: its bytes change now. It is
	// called once, whatever the translator answered before.
	Reached(a *Access)
	// Begun reports that the bus takes the first byte of a write now. It is called
	// if Bus.Write returned false. A write that has begun ends with OK.
	Begun(a *Access)
	// Ended reports the end of an access or of piece i of a stream. With OK the
	// client moves the bytes now. With another status it calls Bus.Again or
	// Bus.Drop, now or later.
	Ended(a *Access, i int, s Status)
}

// Translator translates addresses between a bus and memory, as an IOMMU does.
// The bus asks it about every access to an address space, and about each piece
// of a stream separately. It asks about a write when the device makes it, and
// about a read or an atomic when the request is at memory. The bytes of an
// admitted access move later, at its end: until then the pages must stay. The
// bus asks again about a write that had to wait for its turn.
type Translator interface {
	// Translate decides about n bytes, at least 1, from offset off of a; Access.At
	// gives their addresses. If answered is false, the translator calls
	// Bus.Translated once, later.
	Translate(a *Access, off, n int) (s Status, answered bool)
	// Done reports the end of an admitted access, in the event in which its bytes
	// move. The translator must not change the pages before a later event. Done
	// comes early for a write that waits for others.
	Done(a *Access, off, n int)
}
