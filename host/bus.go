package host

import "github.com/spinsim/spinsim/sim"

// Status is how an access to memory ended.
type Status uint8

// Ends of an access.
const (
	OK      Status = iota
	Fault          // a page is not present: a retry may succeed
	Denied         // there is no such memory for the device: no retry succeeds
	pending        // a Translator answers later
)

// String names the status as architecture and traces do.
func (s Status) String() string { return [...]string{"OK", "FAULT", "DENIED", "pending"}[s] }

// Access is one use of host memory by a device: a piece of an address space, a direction, and who is told of its end. The client fills in
// the exported fields and gives it to Bus.Write, Bus.Read or Bus.Stream; it is the bus's until the client is told of its end (of the end
// of its last piece), and may be given to the bus again from then on.
type Access struct {
	// Space is whose memory it is; nil: memory that the driver holds for the device, such as event queues, which is always present.
	Space *AddressSpace
	// Addr and Length are the range. Places, if not nil, says where the bytes lie if they are not contiguous; Addr then means nothing.
	Addr   uint64
	Length int
	Places Places
	// Piece is the length of the pieces in which a Stream comes; the last may be shorter.
	Piece int
	// Begin asks for Client.Begun if the bus does not take the first byte of a write at once.
	Begin bool
	// Together: a record of what has just crossed, such as the event behind a handler's write that has landed; it is there as soon as the bus
	// has had room for it.
	Together bool
	// Flow is the message it belongs to, for timelines; 0: it is not drawn.
	Flow uint64

	Client Client
	// Op, Index and Ref are the client's.
	Op     uint8
	Index  int // any three numbers
	Serial int
	Tries  int
	Ref    any

	dir       Direction
	follows   sim.Time // an atomic: when the last of the writes made before it lands
	requested bool     // a stream: the request has reached memory
	piece     int      // a stream: of which a Translator has been asked
	next      *Access
}

// Direction is what an access does to memory.
type Direction uint8

// Directions.
const (
	ToMemory   Direction = iota // a write
	FromMemory                  // a read or a stream
	AtMemory                    // an atomic: a read that changes what it has read
)

// Direction is what the bus was asked for.
func (a *Access) Direction() Direction { return a.dir }

// Places says where bytes that are not contiguous lie.
type Places interface {
	// Place returns the address of byte off of the access, and how many bytes from there on are contiguous, at least 1.
	Place(a *Access, off int) (addr uint64, n int)
}

// Client is who made an access.
type Client interface {
	// Reached is an atomic at memory: its bytes change now.
	Reached(a *Access)
	// Begun is a write of which the bus takes the first byte now, if Bus.Write has said that it does not yet.
	Begun(a *Access)
	// Ended is the end of an access or of piece i of a stream. With OK its bytes move now, and the client moves them. A stream that has not
	// ended well waits for Bus.Again or Bus.Drop.
	Ended(a *Access, i int, s Status)
}

// Translator stands between a bus and memory: an IOMMU. It is asked for every access to an address space when it is at memory, piece by
// piece for a stream.
type Translator interface {
	// Translate decides about n bytes from offset off of a. With answered false it calls Bus.Translated once, later.
	Translate(a *Access, off, n int) (s Status, answered bool)
}

// Bus is the path between a device and the memory of its host (sPIN'17 §4): transfers share the bandwidth of one bus, or of one in each
// direction, and every crossing takes the latency. Its events go to the actor that owns it, which passes those of kinds from KindBus up
// to KindBusEnd to Handle. Nobody but the bus computes when an access will have ended.
type Bus struct {
	engine  *sim.Engine
	id      sim.ID
	latency sim.Time
	rate    sim.Rate
	bare    bool    // ChargeLatency
	reads   *Server // the resource that data towards the device takes
	writes  *Server // the resource that data towards memory takes
	own     [2]Server
	landed  sim.Time // when the last write lands
	bytes   int64    // moved so far, both directions

	first, last *Access // streams, one after the other (LogGP: a NIC sends one message at a time)
	passing     bool    // the last piece of the stream before the first is passing the bus
	translator  Translator
	watch       func(a *Access, toMemory bool, from, to sim.Time, bytes int)
}

// Kinds of events of a bus.
const (
	KindBus        sim.Kind = 0x100 + iota // B: piece, *Access: a write has landed, or what a read has asked for is at the device
	kindBegun                              // *Access: the bus takes the first byte of a write
	kindMemory                             // *Access: a read or an atomic has reached memory
	kindRequest                            // *Access: the request for a stream has reached memory
	kindSlot                               // A: piece, *Access: a piece of a stream has its turn on the bus
	kindNext                               // the last piece of a stream has passed the bus, the next stream may
	kindFailed                             // A: status, B: piece, *Access: an access has failed
	kindTranslated                         // A: status, *Access: a translator has answered
	KindBusEnd
)

// Init makes b the bus of the actor id. memory is the controller that the cores use: transfers take part of its rate if spec says so.
func (b *Bus) Init(eng *sim.Engine, id sim.ID, spec *BusSpec, memory *Server) {
	b.engine, b.id = eng, id
	b.latency, b.rate = spec.Latency, spec.Bandwidth
	b.bare = spec.Charge == ChargeLatency
	b.reads, b.writes = &b.own[0], &b.own[0]
	if spec.FullDuplex {
		b.writes = &b.own[1]
	}
	if spec.SharedMemory {
		b.reads, b.writes = memory, memory
	}
}

// Translate puts t between the bus and memory; nil: every page is present, at no cost.
func (b *Bus) Translate(t Translator) { b.translator = t }

// Watch tells f of the time in which the bytes of an access with a Flow take the bus, for a timeline.
func (b *Bus) Watch(f func(a *Access, toMemory bool, from, to sim.Time, bytes int)) { b.watch = f }

// Bytes is how many bytes have crossed so far, in both directions.
func (b *Bus) Bytes() int64 { return b.bytes }

func (b *Bus) post(at sim.Time, kind sim.Kind, x, y uint64, a *Access) {
	b.engine.Post(at, b.id, b.id, kind, x, y, a)
}

// Write sends the bytes of an access to memory. Writes land in the order they are made. It reports whether the bus has taken the first byte;
// if not, Client.Begun is told when it does.
func (b *Bus) Write(a *Access) (begun bool) {
	a.dir, a.piece = ToMemory, whole
	if s := b.ask(a, 0, a.Length); s != OK {
		b.refused(a, 0, s, 2*b.latency)
		return false
	}
	return b.write(a)
}

func (b *Bus) write(a *Access) (begun bool) {
	now := b.engine.Now()
	before := b.landed
	start, end := now, now
	b.bytes += int64(a.Length)
	if !b.bare {
		start, end = b.writes.Hold(now, b.rate.Time(int64(a.Length)))
	}
	b.landed = max(b.landed, end+b.latency)
	b.draw(a, true, b.landed-b.latency, a.Length)
	begun = start <= now
	if !begun && a.Begin {
		b.post(start, kindBegun, 0, 0, a)
	}
	at := b.landed
	if a.Together {
		at = max(now, before, at-b.latency)
	}
	b.post(at, KindBus, 0, 0, a)
	return begun
}

// request is when a read request that the device makes now reaches memory: it does not overtake writes made before.
func (b *Bus) request() sim.Time {
	now := b.engine.Now()
	if !b.bare && b.reads != b.writes {
		now = max(now, b.writes.Free())
	}
	return now + b.latency
}

// Read asks for the bytes of an access, which ends when they are at the device.
func (b *Bus) Read(a *Access) {
	a.dir = FromMemory
	b.post(b.request(), kindMemory, 0, 0, a)
}

// Atomic has Client.Reached change the bytes of an access at memory; the access ends when the answer, of as many bytes, is at the device.
func (b *Bus) Atomic(a *Access) {
	a.dir, a.follows = AtMemory, b.landed
	b.post(b.request(), kindMemory, 0, 0, a)
}

// reached is a read or an atomic at memory.
func (b *Bus) reached(a *Access) {
	now := b.engine.Now()
	if a.dir == AtMemory && now < a.follows {
		// Where reads share the bus with writes, the request is at memory before the writes it follows. The answer of an atomic cannot leave
		// before they have landed.
		b.post(a.follows, kindMemory, 0, 0, a)
		return
	}
	a.piece = whole
	if s := b.ask(a, 0, a.Length); s != OK {
		b.refused(a, 0, s, b.latency)
		return
	}
	b.answer(a)
}

// answer is the data phase of a read.
func (b *Bus) answer(a *Access) {
	if a.dir == AtMemory {
		a.Client.Reached(a)
	}
	n := int64(a.Length)
	b.bytes += n
	sent := b.engine.Now()
	if b.bare {
		sent += b.rate.Time(n)
	} else {
		_, sent = b.reads.Hold(sent, b.rate.Time(n))
	}
	b.draw(a, false, sent, a.Length)
	b.post(sent+b.latency, KindBus, 0, 0, a)
}

// Stream asks for the bytes of an access in pieces. Streams come one after the other, in the order in which they were asked for.
func (b *Bus) Stream(a *Access) {
	a.dir, a.requested, a.next = FromMemory, false, nil
	if b.first == nil {
		b.first = a
	} else {
		b.last.next = a
	}
	b.last = a
	b.post(b.request(), kindRequest, 0, 0, a)
}

// streamRequested is the request for a stream at memory; the data follows when that of earlier ones has.
func (b *Bus) streamRequested(a *Access) {
	a.requested = true
	if b.first == a && !b.passing {
		b.slot(a, 0)
	}
}

// slot gives piece i of a stream its turn on the bus.
func (b *Bus) slot(a *Access, i int) {
	from, to := a.Span(i)
	a.piece = i
	if s := b.ask(a, from, to-from); s != OK {
		b.refused(a, i, s, b.latency)
		return
	}
	b.fetch(a, i)
}

// fetch sends piece i of a stream; the next turn comes when it has passed.
func (b *Bus) fetch(a *Access, i int) {
	from, to := a.Span(i)
	n := int64(to - from)
	b.bytes += n
	sent := b.engine.Now()
	done := sent
	if !b.bare {
		_, sent = b.reads.Hold(sent, b.rate.Time(n))
		done = sent + b.latency
	}
	b.draw(a, false, sent, to-from)
	b.post(done, KindBus, 0, uint64(i), a)
	switch {
	case to < a.Length:
		b.post(sent, kindSlot, uint64(i+1), 0, a)
	case a.next != nil:
		b.first, b.passing = a.next, true // a may be its client's again before the next one begins
		b.post(sent, kindNext, 0, 0, nil)
	default:
		b.pop()
	}
}

// Span returns where piece i of a stream lies in the access.
func (a *Access) Span(i int) (from, to int) {
	from = i * a.Piece
	return from, min(from+a.Piece, a.Length)
}

func (b *Bus) pop() {
	b.first = b.first.next
	if b.first == nil {
		b.last = nil
	}
}

// nextStream goes on to the first stream, if its request has reached memory.
func (b *Bus) nextStream() {
	if b.first != nil && b.first.requested {
		b.slot(b.first, 0)
	}
}

// Again makes piece i of a stream, which has failed, and those behind it be fetched; other streams have waited for it.
func (b *Bus) Again(a *Access, i int) { b.slot(a, i) }

// Drop ends a stream of which a piece has failed: no more of it comes.
func (b *Bus) Drop(_ *Access) {
	b.pop()
	b.nextStream()
}

// whole is the piece of an access that is no stream.
const whole = -1

// ask asks the translator, if there is one and the memory is that of a process.
func (b *Bus) ask(a *Access, off, n int) Status {
	if b.translator == nil || a.Space == nil {
		return OK
	}
	if s, answered := b.translator.Translate(a, off, n); answered {
		return s
	}
	return pending
}

// refused tells the client after the time d that an access has failed; one that is pending waits for its answer.
func (b *Bus) refused(a *Access, i int, s Status, d sim.Time) {
	if s != pending {
		b.post(b.engine.Now()+d, kindFailed, uint64(s), uint64(i), a)
	}
}

// Translated answers what Translator.Translate has left open, at the present time. It may be called from any actor's event.
func (b *Bus) Translated(a *Access, s Status) {
	b.post(b.engine.Now(), kindTranslated, uint64(s), 0, a)
}

func (b *Bus) translated(a *Access, s Status) {
	switch {
	case s != OK:
		b.refused(a, max(0, a.piece), s, b.latency)
	case a.piece != whole:
		b.fetch(a, a.piece)
	case a.dir != ToMemory:
		b.answer(a)
	case b.write(a) && a.Begin:
		a.Client.Begun(a)
	}
}

// Handle carries out an event of a kind from KindBus up to KindBusEnd.
func (b *Bus) Handle(e *sim.Event) {
	a, _ := e.P.(*Access)
	switch e.Kind {
	case KindBus:
		a.Client.Ended(a, int(e.B), OK)
	case kindBegun:
		a.Client.Begun(a)
	case kindMemory:
		b.reached(a)
	case kindRequest:
		b.streamRequested(a)
	case kindSlot:
		b.slot(a, int(e.A))
	case kindNext:
		b.passing = false
		b.nextStream()
	case kindFailed:
		a.Client.Ended(a, int(e.B), Status(e.A))
	case kindTranslated:
		b.translated(a, Status(e.A))
	default:
		panic("host: an event of no bus") //lint:panic a bug of the owner
	}
}

func (b *Bus) draw(a *Access, toMemory bool, sent sim.Time, bytes int) {
	if b.watch == nil || a.Flow == 0 {
		return
	}
	took := b.rate.Time(int64(bytes))
	if b.bare {
		took = 0
	}
	b.watch(a, toMemory, sent-took, sent, bytes)
}
