package host

import (
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// Bus is the path between a device and the memory of its host (sPIN'17 §4):
// transfers share the bandwidth of one bus, or of one in each direction, and
// every crossing takes the latency. Its events go to the actor that owns it,
// which passes those of kinds from KindBus up to KindBusEnd to Handle. Nobody
// but the bus computes when an access will have ended.
type Bus struct {
	// What a transfer touches is in three lines of the processor's cache, what
	// the end of one touches in the first.

	engine     *sim.Engine
	iommu      *IOMMU // the translator, if it is one
	translator Translator
	id         sim.ID
	bare       bool // ChargeLatency
	latency    sim.Time
	rate       sim.Rate

	bytes   int64    // moved so far, both directions
	landed  sim.Time // when the last write lands
	reads   *Server  // the resource that data towards the device takes
	writes  *Server  // the resource that data towards memory takes
	streams streams
	watch   func(a *Access, toMemory bool, from, to sim.Time, bytes int)

	own   [2]Server
	begun uint64 // streams
}

// Kinds of events of a bus.
const (
	// A: not 0: it is ignored, B: piece, *Access: a write has landed, or what a
	// read has asked for is at the device
	KindBus     sim.Kind = 0x100 + iota
	kindBegun            // *Access: the bus takes the first byte of a write
	kindMemory           // *Access: a read or an atomic has reached memory
	kindRequest          // *Access: the request for a stream has reached memory
	kindTurn             // a piece of a stream has passed the bus, the next may
	// A: status, B: piece, *Access: the device learns that an access has failed
	kindFailed
	kindTranslated // A: status, *Access: a translator has answered
	KindBusEnd
)

// Init makes b the bus of the actor id. memory is the controller that the cores
// use: transfers take part of its rate if spec says so.
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

// Translate puts t between the bus and memory; nil: every page is present, at
// no cost. It is for the time before the first access.
func (b *Bus) Translate(t Translator) {
	b.translator = t
	b.iommu, _ = t.(*IOMMU)
}

// Paged reports whether accesses may fail or be late: there is a Translator.
func (b *Bus) Paged() bool { return b.translator != nil }

// Watch tells f of the time in which the bytes of an access with a Flow take
// the bus, for a timeline.
func (b *Bus) Watch(f func(a *Access, toMemory bool, from, to sim.Time, bytes int)) { b.watch = f }

// Bytes is how many bytes have crossed so far, in both directions.
func (b *Bus) Bytes() int64 { return b.bytes }

func (b *Bus) post(at sim.Time, kind sim.Kind, x, y uint64, a *Access) {
	b.engine.Post(at, b.id, b.id, kind, x, y, a)
}

// Write sends the bytes of an access to memory. Writes land in the order in
// which they are made, those of one Order whatever the translator says, others
// when their translation is known. It reports whether the bus has taken the
// first byte; if not, Client.Begun is told when it does.
func (b *Bus) Write(a *Access) (begun bool) {
	a.way, a.state, a.let = aWrite, launched, false
	s := b.ask(a, 0, a.Length)
	switch o := a.Order; {
	case s == OK && (o == nil || o.first == nil && !o.keeps(a)):
		a.state = launched
		return b.write(a, false)
	case o != nil:
		o.push(a)
	}
	b.known(a, s)
	return false
}

// write is the data phase of a write; tell: Client.Begun is told even if the
// bus takes the first byte at once.
func (b *Bus) write(a *Access, tell bool) (begun bool) {
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
	if a.Begin && (tell || !begun) {
		b.post(start, kindBegun, 0, 0, a)
	}
	at := b.landed
	if a.Together {
		at = max(now, before, at-b.latency)
	}
	b.post(at, KindBus, uint64(a.flight), 0, a)
	return begun
}

// request is when a read request that the device makes now reaches memory: it
// does not overtake writes made before.
func (b *Bus) request() sim.Time {
	now := b.engine.Now()
	if !b.bare && b.reads != b.writes {
		now = max(now, b.writes.Free())
	}
	return now + b.latency
}

// Read asks for the bytes of an access, which ends when they are at the device.
func (b *Bus) Read(a *Access) {
	a.way = aRead
	b.fetchLater(a)
}

// Atomic has Client.Reached change the bytes of an access at memory; the access
// ends when the answer, of as many bytes, is at the device.
func (b *Bus) Atomic(a *Access) {
	a.way = anAtomic
	b.fetchLater(a)
}

// fetchLater sends the request of a read or an atomic, behind the writes of its Order.
func (b *Bus) fetchLater(a *Access) {
	a.state = launched
	if o := a.Order; o != nil && (o.first != nil || o.keeps(a)) {
		o.push(a)
		a.state = ready
		return
	}
	b.launch(a)
}

// launch lets an access whose turn has come cross the bus.
func (b *Bus) launch(a *Access) {
	switch a.way {
	case aWrite:
		b.write(a, true)
	case anAtomic:
		a.follows = b.landed
		b.post(b.request(), kindMemory, 0, 0, a)
	case aRead:
		b.post(b.request(), kindMemory, 0, 0, a)
	case aStream:
		b.stream(a)
	}
}

// reached is a read or an atomic at memory.
func (b *Bus) reached(a *Access) {
	now := b.engine.Now()
	if a.way == anAtomic && now < a.follows {
		// Where reads share the bus with writes, the request is at memory
		// before the writes it follows. The answer of an atomic cannot leave
		// before they have landed.
		b.post(a.follows, kindMemory, 0, 0, a)
		return
	}
	b.known(a, b.ask(a, 0, a.Length))
}

// answer is the data phase of a read.
func (b *Bus) answer(a *Access) {
	if a.way == anAtomic {
		b.reach(a)
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
	b.post(sent+b.latency, KindBus, uint64(a.flight), 0, a)
}

// asked reports whether a translator is to be asked about an access: there is
// one, and the memory is that of a process.
func (b *Bus) asked(a *Access) bool { return b.translator != nil && a.Space != nil && a.Length > 0 }

// ask asks the translator about n bytes of an access.
func (b *Bus) ask(a *Access, off, n int) Status {
	a.flight = 0
	if !b.asked(a) {
		return OK
	}
	a.state = waits
	a.Space.asked = b.engine.Now()
	if b.iommu != nil && b.iommu.hit(a, off, n) {
		return OK
	}
	if s, answered := b.translator.Translate(a, off, n); answered {
		return s
	}
	return pending
}

// Translated answers what Translator.Translate has left open, at the present
// time. It may be called from any actor's event. An answer that nobody waits
// for is a mistake of the translator and panics.
func (b *Bus) Translated(a *Access, s Status) {
	if a.state != waits || s >= pending {
		panic("host: a translator answers " + s.String() + " for an access that waits for no answer") //lint:panic a bug of the translator
	}
	a.state = answered
	b.post(b.engine.Now(), kindTranslated, uint64(s), 0, a)
}

// known is the translation of an access or of a piece of a stream: it goes on,
// waits, or the device learns that it has failed. The answer crosses the bus;
// in front of a write its question has done so, too.
func (b *Bus) known(a *Access, s Status) {
	if s == Ignored {
		a.flight = lost
	}
	switch {
	case s == pending:
	case s != OK && s != Ignored:
		b.refuse(a, s)
	case a.way == aWrite:
		b.admit(a)
	case a.way == aStream:
		b.letPass(a)
	default:
		a.state = launched
		b.answer(a)
	}
}

// refuse tells the device that an access has failed.
func (b *Bus) refuse(a *Access, s Status) {
	d, i := b.latency, uint64(0)
	switch a.way {
	case aWrite:
		d += b.latency
	case aStream:
		i = uint64(a.piece)
	}
	a.state = failed
	b.post(b.engine.Now()+d, kindFailed, uint64(s), i, a)
}

// Handle carries out an event of a kind from KindBus up to KindBusEnd.
func (b *Bus) Handle(e *sim.Event) {
	a, _ := e.P.(*Access)
	switch e.Kind {
	case KindBus:
		b.ended(a, int(e.B), smmu.Flight(e.A))
	case kindBegun:
		a.Client.Begun(a)
	case kindMemory:
		b.reached(a)
	case kindRequest:
		b.streamRequested(a)
	case kindTurn:
		b.streams.passing = false
		b.turn()
	case kindFailed:
		a.Client.Ended(a, int(e.B), Status(e.A))
	case kindTranslated:
		b.known(a, Status(e.A))
	default:
		panic("host: an event of no bus") //lint:panic a bug of the owner
	}
}

// ended is the moment at which the bytes of an access, or of piece i of a stream, move.
func (b *Bus) ended(a *Access, i int, f smmu.Flight) {
	b.done(a, i, f)
	o := a.Among
	if a.way != aStream {
		o = nil
	}
	if o != nil {
		o.read(a, i)
	}
	if f == lost {
		b.pretend(a, i)
	} else {
		a.Client.Ended(a, i, OK)
	}
	if o != nil { // a may be its client's again
		b.proceed(o)
	}
}

// done tells the translator of the end of what it has let pass.
func (b *Bus) done(a *Access, i int, f smmu.Flight) {
	switch {
	case f != 0 && f != lost:
		b.iommu.smmu.Landed(f)
	case b.asked(a):
		from, to := a.part(i)
		b.translator.Done(a, from, to-from)
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
