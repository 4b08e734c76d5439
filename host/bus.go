package host

import (
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

// Bus is the path between a device and the memory of its host (sPIN'17 §4).
// Transfers share the bandwidth of one bus, or of one bus per direction. Every
// crossing takes the latency. Its events go to the actor that owns it; the
// actor passes kinds from KindBus up to KindBusEnd to Handle. Only the bus
// computes when an access ends.
type Bus struct {
	// A transfer touches three cache lines, the end of a transfer only the first.

	engine     *sim.Engine
	iommu      *IOMMU // the translator, if it is an IOMMU
	translator Translator
	id         sim.ID
	bare       bool // ChargeLatency
	latency    sim.Time
	landing    sim.Time // from a write's last byte on the bus until it has landed
	asking     sim.Time // until the request of a read is at the memory
	rate       sim.Rate
	gap        sim.Time

	bytes   int64    // moved so far, in both directions
	landed  sim.Time // when the last write lands
	reads   *Server  // resource for data to the device
	writes  *Server  // resource for data to memory
	streams streams
	more    *moreBus // nil: nothing of it
	// Cache is told about the writes of devices. nil: there is none. Set it before
	// the first access.
	Cache *Cache

	own   [2]Server
	begun uint64 // number of streams so far
}

// Kinds of bus events.
const (
	// A: not 0 if ignored, B: piece, *Access: a write has landed, or the bytes of
	// a read are at the device
	KindBus     sim.Kind = 0x100 + iota
	kindBegun            // *Access: the bus takes the first byte of a write
	kindMemory           // *Access: a read or an atomic has reached memory
	kindRequest          // *Access: the request for a stream has reached memory
	kindTurn             // a piece of a stream has passed the bus: next turn
	// A: status, B: piece, *Access: the device learns that an access has failed
	kindFailed
	kindTranslated // A: status, *Access: a translator has answered
	KindBusEnd
)

// Init makes b the bus of actor id. memory is the memory controller of the
// cores: transfers use part of its rate if spec.SharedMemory.
func (b *Bus) Init(eng *sim.Engine, id sim.ID, spec *BusSpec, memory *Server) {
	b.engine, b.id = eng, id
	b.latency, b.rate, b.gap = spec.Latency, spec.Bandwidth, spec.Gap
	b.landing, b.asking = b.latency, b.latency
	if spec.WriteWays == 2 {
		b.landing += b.latency
	}
	if spec.ReadWays == 1 {
		b.asking = 0
	}
	b.bare = spec.Charge == ChargeLatency
	b.reads, b.writes = &b.own[0], &b.own[0]
	if spec.FullDuplex {
		b.writes = &b.own[1]
	}
	if spec.SharedMemory {
		b.reads, b.writes = memory, memory
	}
}

// Translate installs t between the bus and memory. nil: every page is present,
// at no cost. Call it before the first access.
func (b *Bus) Translate(t Translator) {
	b.translator = t
	b.iommu, _ = t.(*IOMMU)
}

// Paged reports whether the bus has a Translator: then accesses may fail or be
// late.
func (b *Bus) Paged() bool { return b.translator != nil }

// Watch calls f for every transfer of an access with a Flow, with the time it
// takes the bus, for a timeline.
func (b *Bus) Watch(f func(a *Access, toMemory bool, from, to sim.Time, bytes int)) {
	b.extend().watch = f
}

// Bytes returns the number of bytes that crossed so far, in both directions.
func (b *Bus) Bytes() int64 { return b.bytes }

func (b *Bus) post(at sim.Time, kind sim.Kind, x, y uint64, a *Access) {
	b.engine.Post(at, b.id, b.id, kind, x, y, a)
}

// Write sends the bytes of an access to memory. Writes of one Order land in the
// order in which they are made. Other writes land in the order in which their
// translations are known. Write reports whether the bus has taken the first
// byte; if not, it calls Client.Begun later.
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

// write is the data phase of a write. tell: call Client.Begun even if the bus
// takes the first byte at once.
func (b *Bus) write(a *Access, tell bool) (begun bool) {
	now := b.engine.Now()
	before := b.landed
	start, end := now, now
	b.bytes += int64(a.Length)
	if a.Ports != 0 {
		start, at := b.more.ports[a.Ports-1].write(now, a.Length, b.landing)
		b.draw(a, true, at-b.landing, a.Length)
		if begun = start <= now; a.Begin && (tell || !begun) {
			b.post(start, kindBegun, 0, 0, a)
		}
		b.post(at, KindBus, uint64(a.flight), 0, a)
		return begun
	}
	if !b.bare {
		start, end = b.writes.Hold(now, b.gap+b.rate.Time(int64(a.Length)))
	}
	b.landed = max(b.landed, end+b.landing)
	b.draw(a, true, b.landed-b.landing, a.Length)
	begun = start <= now
	if a.Begin && (tell || !begun) {
		b.post(start, kindBegun, 0, 0, a)
	}
	at := b.landed
	if a.Together {
		at = max(now, before, at-b.landing)
	}
	b.post(at, KindBus, uint64(a.flight), 0, a)
	return begun
}

// request returns when a read request made now reaches memory: it does not
// overtake earlier writes.
func (b *Bus) request(a *Access) sim.Time {
	now := b.engine.Now()
	if a.Ports != 0 {
		return max(now+b.asking, b.more.ports[a.Ports-1].landed)
	}
	if !b.bare && b.reads != b.writes {
		now = max(now, b.writes.Free())
	}
	if b.landing > b.asking {
		return max(now+b.asking, b.landed)
	}
	return now + b.asking
}

// Read requests the bytes of an access. The access ends when they are at the
// device.
func (b *Bus) Read(a *Access) {
	a.way = aRead
	b.fetchLater(a)
}

// Atomic makes Client.Reached change the bytes of an access at memory. The
// access ends when the answer, of the same length, is at the device.
func (b *Bus) Atomic(a *Access) {
	a.way = anAtomic
	b.fetchLater(a)
}

// fetchLater sends the request of a read or an atomic, after the writes of its
// Order.
func (b *Bus) fetchLater(a *Access) {
	a.state = launched
	if o := a.Order; o != nil && (o.first != nil || o.keeps(a)) {
		o.push(a)
		a.state = ready
		return
	}
	b.launch(a)
}

// launch sends an access across the bus when its turn has come.
func (b *Bus) launch(a *Access) {
	switch a.way {
	case aWrite:
		b.write(a, true)
	case anAtomic:
		a.follows = b.landed
		b.post(b.request(a), kindMemory, 0, 0, a)
	case aRead:
		b.post(b.request(a), kindMemory, 0, 0, a)
	case aStream:
		b.stream(a)
	}
}

// reached handles a read or an atomic that is at memory.
func (b *Bus) reached(a *Access) {
	now := b.engine.Now()
	if a.way == anAtomic && now < a.follows {
		// Where reads share the bus with writes, the request reaches memory before
		// the writes it follows. The answer of an atomic must not leave before they
		// have landed.
		b.post(a.follows, kindMemory, 0, 0, a)
		return
	}
	b.known(a, b.ask(a, 0, a.Length))
}

// answer is the data phase of a read.
func (b *Bus) answer(a *Access) {
	if a.way == anAtomic {
		a.reach()
	}
	n := int64(a.Length)
	b.bytes += n
	sent := b.engine.Now()
	if a.Ports != 0 {
		sent = b.more.ports[a.Ports-1].read(sent, a.Length)
	} else if b.bare {
		sent += b.rate.Time(n)
	} else {
		_, sent = b.reads.Hold(sent, b.gap+b.rate.Time(n))
	}
	b.draw(a, false, sent, a.Length)
	b.post(sent+b.latency, KindBus, uint64(a.flight), 0, a)
}

// asked reports whether the bus must ask the translator about an access: there
// is a translator, and the memory belongs to a process.
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

// Translated gives the answer that Translator.Translate left open, at the
// present time. Any actor's event may call it. It panics if no access waits for
// the answer.
func (b *Bus) Translated(a *Access, s Status) {
	if a.state != waits || s >= pending {
		panic("host: a translator answers " + s.String() + " for an access that waits for no answer") //lint:panic a bug of the translator
	}
	a.state = answered
	b.post(b.engine.Now(), kindTranslated, uint64(s), 0, a)
}

// known handles the translation of an access or of a piece of a stream: the
// access continues, waits, or fails at the device. The answer crosses the bus;
// for a write the question crossed it before, too.
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
		a.let = true // its next piece may have a turn
		b.streamReady(a)
	default:
		a.state = launched
		b.answer(a)
	}
}

// refuse reports to the device that an access has failed.
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

// Handle performs an event of a kind from KindBus up to KindBusEnd.
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
		b.streamReady(a)
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

// ended moves the bytes of an access, or of piece i of a stream.
func (b *Bus) ended(a *Access, i int, f smmu.Flight) {
	b.done(a, i, f)
	if b.Cache != nil && f != lost && a.way.changes() && a.Space != nil {
		b.Cache.ended(a)
	}
	o := a.Among
	if a.way != aStream {
		o = nil
	}
	if o != nil {
		o.read(a, i)
	}
	if f == lost {
		a.pretend(i)
	} else {
		a.Client.Ended(a, i, OK)
	}
	if o != nil { // the client may already use a again
		b.proceed(o)
	}
}

// done reports the end of an admitted access to the translator.
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
	if b.more == nil || b.more.watch == nil || a.Flow == 0 {
		return
	}
	took := b.rate.Time(int64(bytes))
	switch {
	case a.Ports != 0:
		took = b.more.ports[a.Ports-1].rate.Time(int64(bytes))
	case b.bare:
		took = 0
	}
	b.more.watch(a, toMemory, sent-took, sent, bytes)
}
