package smmu

import (
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/sim"
)

// Kinds of events of an SMMU. The owner passes those from KindFirst up to
// KindEnd to Handle.
const (
	KindFirst  sim.Kind = 0xA00 + iota // A: slot: the second TLB has been looked up
	kindRead                           // A: walk: a descriptor has been read
	kindAnswer                         // *Request: the first TLB has answered
	kindWake                           // A: bank: its held slots may go on
	kindLookup = KindFirst
	KindEnd    = KindFirst + 0x100
)

// Config is the SMMU's parameters and connections.
type Config struct {
	Spec       *Spec
	Memory     Memory
	Interrupts Interrupts
	Watcher    Watcher // nil: none
}

// SMMU is the memory management unit between the devices of a node and its
// memory. It belongs to one actor: its events go there, and the clients of that
// actor call it. Its driver may call it from any actor's event of the same
// node.
type SMMU struct {
	// A hit uses these fields, so they are in one line of the processor's cache.
	banks []bank
	l1    full

	engine   *sim.Engine
	id       sim.ID
	streams  []uint32 // of each bank: PDID + 1, 0: none
	latest   int      // the bank found last
	instant  bool     // a hit in l1 answers at once
	poison   bool
	both     bool // there is one channel
	channels [2]channel
	count    Counters
	spec     Spec
	memory   Memory
	lines    Interrupts
	watch    Watcher
	top      int
	l2       assoc
	tables   assoc // the walk cache
	slots    []slot
	walks    []walk
	walking  int
	waiting  list // slots that wait for a walk
	first    *Request
	last     *Request // answers to give
	rising   []int    // banks whose interrupt line has risen
}

// channel is the way in for reads, for writes or for both.
type channel struct {
	first, last *Request // they wait for their turn, in order
	free        int32    // a list of slots, none: -1
	used        int      // slots
	stuck       int      // its slots that wait for a walk, if that blocks it
}

// open reports whether the channel takes a transaction.
func (c *channel) open() bool { return c.free >= 0 && c.stuck == 0 }

// slot is a transaction that waits for the second TLB or for a walk, or is
// stalled.
type slot struct {
	r       *Request
	va      uint64
	from    sim.Time // when it was stalled
	next    int32
	gen     uint32 // of the bank
	bank    uint8
	channel uint8
	why     why  // it is stalled
	again   bool // it has been looked up before
}

// list is a list of slots in order. The zero value is not empty: see none.
type list struct{ first, last int32 }

var none = list{-1, -1}

func (s *SMMU) append(l *list, i int32) {
	s.slots[i].next = -1
	if l.first < 0 {
		l.first = i
	} else {
		s.slots[l.last].next = i
	}
	l.last = i
}

func (s *SMMU) pop(l *list) int32 {
	i := l.first
	l.first = s.slots[i].next
	return i
}

// Init makes s an SMMU without a process and with empty TLBs. Spec must be
// valid and On. The events go to the actor id.
func (s *SMMU) Init(eng *sim.Engine, id sim.ID, cfg *Config) {
	spec := *cfg.Spec
	*s = SMMU{
		engine: eng, id: id, spec: spec, memory: cfg.Memory, lines: cfg.Interrupts, watch: cfg.Watcher,
		streams: make([]uint32, spec.Banks), banks: make([]bank, spec.Banks),
		slots: make([]slot, spec.Channels*spec.Outstanding), walks: make([]walk, spec.Walks),
		waiting: none, top: spec.top(), both: spec.Channels == 1,
		instant: spec.L1Latency == 0, poison: spec.Stale == Poison,
		rising: make([]int, 0, spec.Banks),
	}
	for c := range spec.Channels {
		s.channels[c].free = -1
		for i := (c+1)*spec.Outstanding - 1; i >= c*spec.Outstanding; i-- {
			s.slots[i].channel = uint8(c)
			s.slots[i].next, s.channels[c].free = s.channels[c].free, int32(i)
		}
	}
	for i := range s.banks {
		s.banks[i].held, s.banks[i].index = none, uint8(i)
	}
	for i := range s.walks {
		s.walks[i].list = none
	}
	s.l1.init(spec.L1Entries)
	s.l2.init(spec.L2Entries, spec.L2Ways)
	s.tables.init(spec.WalkCache, spec.WalkCacheWays)
}

func (s *SMMU) post(at sim.Time, kind sim.Kind, a uint64, r *Request) {
	if r == nil {
		s.engine.Post(at, s.id, s.id, kind, a, 0, nil)
		return
	}
	s.engine.Post(at, s.id, s.id, kind, a, 0, r)
}

// Translate asks for a translation. With answered true, res is the answer; else
// Client.Translated gets it later. After the answer OK the client does the
// access, and calls Done when it has reached memory.
func (s *SMMU) Translate(r *Request) (res Result, answered bool) {
	if poison.On {
		r.mayAsk()
	}
	if f := s.Hit(r.PDID, r.Addr, r.Length, r.Write); f != 0 {
		s.hit(r, f)
		return OK, true
	}
	s.count.Requests++
	bank := s.bankOf(r.PDID)
	if bank < 0 {
		s.count.Denied++
		r.result, r.failed = Denied, r.Addr
		return Denied, true
	}
	r.bank = uint8(bank)
	return s.ask(r, s.channelOf(r.Write))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// bankOf returns the bank of a PDID, -1 if it has none.
func (s *SMMU) bankOf(pdid uint16) int {
	want := uint32(pdid) + 1
	if s.streams[s.latest] == want {
		return s.latest
	}
	for i, stream := range s.streams {
		if stream == want {
			s.latest = i
			return i
		}
	}
	return -1
}

func (s *SMMU) channelOf(write bool) *channel {
	if write && !s.both {
		return &s.channels[1]
	}
	return &s.channels[0]
}

// ask is Translate for every request that is not a Hit.
func (s *SMMU) ask(r *Request, c *channel) (res Result, answered bool) {
	r.result, r.open, r.known, r.next = OK, 0, false, nil
	r.gen = s.banks[r.bank].gen
	r.at, r.end = r.Addr, r.Addr+uint64(r.Length)
	if r.end < r.Addr {
		r.end = ^uint64(0)
	}
	if c.first != nil || !c.open() || !s.advance(r, c) {
		s.enqueue(r, c)
		s.tellLines()
		return s.later(r)
	}
	s.tellLines()
	switch {
	case r.open > 0:
		return s.later(r)
	case !s.instant:
		s.post(s.engine.Now()+s.spec.L1Latency, kindAnswer, 0, r)
		return s.later(r)
	}
	s.answer(r)
	return r.result, true
}

// later leaves the answer to an event.
func (s *SMMU) later(r *Request) (res Result, answered bool) {
	if poison.On {
		r.state = asked
	}
	return 0, false
}

func (s *SMMU) enqueue(r *Request, c *channel) {
	s.count.Queued++
	if c.first == nil {
		c.first = r
	} else {
		c.last.next = r
	}
	c.last = r
}

// advance looks up pieces of a request while the channel takes them. It reports
// whether it has looked up all.
func (s *SMMU) advance(r *Request, c *channel) bool {
	for r.at < r.end {
		b := &s.banks[r.bank]
		if b.gen != r.gen || b.sctlr&SCTLRM == 0 {
			s.count.Denied++
			r.fail(r.at, Denied)
			r.at = r.end
			break
		}
		res, done := s.quick(r, b)
		switch {
		case done && res != OK:
			r.fail(r.at, res)
		case done:
		case !c.open():
			return false
		default:
			s.enter(s.take(c, r))
		}
		r.at = s.next(r)
	}
	return true
}

// next returns the end of the piece that begins at r.at. All bytes beyond the
// highest address are one piece.
func (s *SMMU) next(r *Request) uint64 {
	if r.at>>s.spec.AddressBits != 0 {
		return r.end
	}
	return min(r.end, (r.at|pageMask)+1)
}

// quick decides about the piece at r.at if that needs no waiting.
func (s *SMMU) quick(r *Request, b *bank) (res Result, done bool) {
	if s.blocked(b) {
		if b.stalls() {
			return 0, false
		}
		return s.terminated(b), true
	}
	l, level, hit := s.lookL1(r, r.at)
	switch {
	case !hit:
		return 0, false
	case s.poison && s.stale(r, b, r.at, l, level):
		return Stale, true
	case !l.allows(r.Write) && b.stalls():
		return 0, false
	}
	s.count.L1Hits++
	if !l.allows(r.Write) {
		return s.abort(b, r, r.at, level, Permission), true
	}
	r.lies(b, r.at, l.frame(level, r.at))
	return OK, true
}

// lookL1 looks va up in the first TLB.
func (s *SMMU) lookL1(r *Request, va uint64) (l leaf, level int, hit bool) {
	i := s.l1.look(int(r.bank), va)
	line := &s.l1.lines[i]
	return line.leaf, line.tag.level(), i != 0
}

// lies notes that the page of va has been translated to frame.
func (r *Request) lies(b *bank, va, frame uint64) {
	if !r.known {
		r.known, r.inv = true, b.inv
	}
	if n := int(va>>pageBits - r.Addr>>pageBits); n < len(r.Frames) {
		r.Frames[n] = frame
	}
}

// take takes a slot for the piece at r.at.
func (s *SMMU) take(c *channel, r *Request) int32 {
	i := c.free
	t := &s.slots[i]
	if c.free = t.next; !c.open() {
		s.l1.forget()
	}
	c.used++
	s.count.MostOutstanding = max(s.count.MostOutstanding, c.used)
	t.r, t.va, t.bank, t.gen = r, r.at, r.bank, r.gen
	r.open++
	return i
}

// enter begins the translation of a slot, or holds it back.
func (s *SMMU) enter(i int32) {
	t := &s.slots[i]
	b := &s.banks[t.bank]
	if s.blocked(b) && b.stalls() {
		s.hold(i, b)
		return
	}
	if l, level, hit := s.lookL1(t.r, t.va); hit {
		s.count.L1Hits++
		s.resolve(i, l, level)
		return
	}
	s.count.L1Misses++
	t.again = false
	s.post(s.engine.Now()+s.spec.L1Latency+s.spec.L2Latency, kindLookup, uint64(i), nil)
}

// resolve decides about a slot that has its translation.
func (s *SMMU) resolve(i int32, l leaf, level int) {
	t := &s.slots[i]
	b := &s.banks[t.bank]
	switch {
	case s.blocked(b) && b.stalls():
		s.hold(i, b)
	case s.blocked(b):
		s.finish(i, s.terminated(b))
	case s.poison && s.stale(t.r, b, t.va, l, level):
		s.finish(i, Stale)
	case !l.allows(t.r.Write):
		s.fault(i, b, level, Permission)
	default:
		t.r.lies(b, t.va, l.frame(level, t.va))
		s.finish(i, OK)
	}
}

// finish ends the piece of a slot, and its request if it was the last one.
func (s *SMMU) finish(i int32, res Result) {
	t := &s.slots[i]
	r := t.r
	c := &s.channels[t.channel]
	t.r, t.next, c.free = nil, c.free, i
	c.used--
	if res != OK {
		r.fail(t.va, res)
	}
	r.open--
	if r.open == 0 && r.at >= r.end {
		s.end(r)
	}
}

// end queues a request for its answer, which is given at the end of this event.
func (s *SMMU) end(r *Request) {
	r.next = nil
	if s.first == nil {
		s.first = r
	} else {
		s.last.next = r
	}
	s.last = r
}

// answer counts an access that may be done.
func (s *SMMU) answer(r *Request) {
	if poison.On {
		r.state = idle
	}
	if r.result == OK {
		r.flight = s.fly(r.bank)
		if poison.On {
			r.state = flying
		}
	}
}

// outdated reports whether an invalidation came between the first and the last
// piece of a request. The first pieces then do not count.
func (s *SMMU) outdated(r *Request) bool {
	return r.result == OK && r.known && r.inv != s.banks[r.bank].inv
}

// redo looks up a request once more, before the waiting requests.
func (s *SMMU) redo(r *Request) {
	s.count.Redone++
	r.at, r.known = r.Addr, false
	c := s.channelOf(r.Write)
	switch {
	case !c.open() || !s.advance(r, c):
		r.next = c.first
		c.first = r
		if r.next == nil {
			c.last = r
		}
	case r.open == 0:
		s.end(r)
	}
}

// Handle carries out an event of a kind from KindFirst up to KindEnd.
func (s *SMMU) Handle(e *sim.Event) {
	switch e.Kind {
	case kindLookup:
		s.lookup(int32(e.A))
	case kindRead:
		s.read(int(e.A))
	case kindWake:
		s.wake(int(e.A))
	case kindAnswer:
		r, _ := e.P.(*Request)
		s.end(r)
	default:
		panic("smmu: an event of no SMMU") //lint:panic a bug of the owner
	}
	s.refill()
	s.admit()
	s.tellLines()
	for s.first != nil {
		r := s.first
		s.first, r.next = r.next, nil
		if s.outdated(r) {
			s.redo(r)
			s.tellLines()
			continue
		}
		s.answer(r)
		r.Client.Translated(r, r.result)
	}
}

// admit lets channels take the requests that wait for them.
func (s *SMMU) admit() {
	for c := range s.channels[:s.spec.Channels] {
		c := &s.channels[c]
		for c.first != nil && c.open() {
			r := c.first
			if !s.advance(r, c) {
				break
			}
			c.first = r.next
			if r.open == 0 {
				s.settle(r)
			}
		}
	}
}

// settle ends a request that needed only the first TLB.
func (s *SMMU) settle(r *Request) {
	if s.instant {
		s.end(r)
		return
	}
	r.next = nil
	s.post(s.engine.Now()+s.spec.L1Latency, kindAnswer, 0, r)
}
