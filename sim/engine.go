package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// ID names an actor: the number of actors registered before it.
type ID int32

// Kind is the meaning of an event. Kinds below [KindShared] are private to the
// destination.
type Kind uint32

const (
	// KindShared is the first kind that is not private to the destination. From
	// here up to KindReserved, each package that sends events to actors of other
	// packages (for example the fabric) has 65,536 kinds of its own.
	KindShared Kind = 0xF000_0000
	// KindReserved is the first kind that only package sim may use. Such events
	// never reach an actor.
	KindReserved Kind = 0xFFFF_0000

	kindResume = KindReserved     // P: the process, A: its generation
	kindTimer  = KindReserved + 1 // P: the timer, A: its generation
)

// Event is the input of an actor. The meaning of A, B and P depends on Kind and
// the destination. P should be a pointer, so that storing it allocates nothing.
type Event struct {
	Time Time
	Dst  ID
	Src  ID
	Seq  uint64 // counts the events of Src from 0
	Kind Kind
	A, B uint64
	P    any
}

// Actor is anything that reacts to events.
type Actor interface {
	// Handle reacts to e at time e.Time. e is valid only during the call.
	Handle(e *Event)
}

// Engine has the virtual time, the pending events, the actors and the
// processes. It is for one goroutine at a time, unless it is split.
type Engine struct {
	q       queue
	now     Time
	actors  []entry
	groups  []group
	current Event
	handled uint64
	running bool
	stopped bool
	closed  bool
	slow    bool // tests: every sleep is an event
	err     error

	seed    uint64
	tracer  Tracer
	tracing bool

	coros     CoroPool
	deep      *Coro      // of Process.Deep; nil: nobody has needed it
	processes []*Process // in order of spawning; finished ones are removed now and then
	alive     int
	watched   []Waiter
	interrupt *atomic.Pointer[error] // of all domains
	turns     int                    // of the loop, void events included
	limit     Time                   // of Run or RunUntil, or of a round
	until     Time                   // limits of the run
	most      uint64                 // events
	failed    position               // of the event that has ended the run with err
	spawned   position               // of the next process that no event spawns

	split  *split // nil: there is one domain
	domain int
	boxes  [2][]box // by parity of the round and domain: events for others
	side   int      // which of both takes them
}

// entry is an actor and the state of its ID.
type entry struct {
	Actor
	seq uint64 // of the next event it posts
}

// group is a range of actors registered together.
type group struct {
	first ID
	name  func(i int) string
}

// New returns an engine at time 0 with no actors. All random streams depend on
// seed.
func New(seed uint64) *Engine {
	return &Engine{seed: seed, until: MaxTime, most: ^uint64(0), interrupt: new(atomic.Pointer[error]), spawned: position{at: -1}}
}

// Seed returns the seed given to New.
func (e *Engine) Seed() uint64 { return e.seed }

// Add registers an actor and returns its ID. name is for people; hierarchical
// names such as "Node[3].NIC" read best. The order of registration is part of
// the order of events.
func (e *Engine) Add(name string, a Actor) ID {
	return e.AddGroup(1, func(int) string { return name }, a)
}

// AddGroup registers n consecutive IDs for one actor and returns the first. The
// actor distinguishes them by Event.Dst. name is called, with 0 to n-1, only
// when a name is needed.
func (e *Engine) AddGroup(n int, name func(i int) string, a Actor) ID {
	first := len(e.actors)
	if n < 1 || n > math.MaxInt32-first {
		panic(fmt.Sprintf("sim: cannot add %d actors to %d", n, first))
	}
	e.actors = slices.Grow(e.actors, n)
	for range n {
		e.actors = append(e.actors, entry{Actor: a})
	}
	e.groups = append(e.groups, group{ID(first), name})
	for d := range e.Domains() {
		e.Domain(d).actors, e.Domain(d).groups = e.actors, e.groups
	}
	return ID(first)
}

// Wrap replaces the actor at id by the result of wrap. The ID, and so the order
// of events, does not change. Wrap is for observers and fault injectors.
func (e *Engine) Wrap(id ID, wrap func(Actor) Actor) { e.actors[id].Actor = wrap(e.actors[id].Actor) }

// Name returns the name of the actor id.
func (e *Engine) Name(id ID) string {
	lo, hi := 0, len(e.groups) // the last group whose first is not above id
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; e.groups[mid].first <= id {
			lo = mid
		} else {
			hi = mid
		}
	}
	if id < 0 || int(id) >= len(e.actors) {
		return fmt.Sprintf("actor %d (not registered)", id)
	}
	return e.groups[lo].name(int(id - e.groups[lo].first))
}

// Now returns the time of the event being handled, or of the end of the run.
func (e *Engine) Now() Time { return e.now }

// Handled returns the number of events handled so far, in the engine's domain.
func (e *Engine) Handled() uint64 { return e.handled }

// Pending returns the number of events to come, in the engine's domain.
func (e *Engine) Pending() int { return e.q.pending }

// Next returns the time of the next event; false if there is none.
func (e *Engine) Next() (Time, bool) { return e.q.next() }

// Post makes dst handle an event at time at. src is the actor that posts; code
// outside every actor uses dst as src. Post panics for a time in the past or an
// unregistered ID: that is a programmer's mistake. An event beyond [Horizon]
// ends the run.
func (e *Engine) Post(at Time, dst, src ID, k Kind, a, b uint64, p any) {
	q := &e.q
	if at < e.now || at > Horizon {
		e.refuse(at, dst, src)
		return
	}
	s := &e.actors[src]
	seq := s.seq
	s.seq = seq + 1
	if at == q.last && q.due > 0 {
		q.pushLate(Event{at, dst, src, seq, k, a, b, p})
		return
	}
	i := q.place(at) % slotCount
	ev := &q.one[i]
	if word, bit := i/64, uint64(1)<<(i%64); q.used[word]&bit == 0 {
		q.pending++
		q.used[word] |= bit
		q.summary |= 1 << word
	} else {
		ev = q.join(i, at)
	}
	ev.Time, ev.Dst, ev.Src, ev.Seq, ev.Kind = at, dst, src, seq, k
	ev.A, ev.B, ev.P = a, b, p
}

// refuse handles an event with an impossible time.
func (e *Engine) refuse(at Time, dst, src ID) {
	if at < e.now {
		panic(fmt.Sprintf("sim: %s posts to %s for %v, before the present time %v", e.Name(src), e.Name(dst), at, e.now))
	}
	e.Fail(fmt.Errorf("%s at %v: %w", e.Name(src), e.now, ErrHorizon))
}

// Interleave changes the order of events at the same time for different
// destinations: the number of a destination is xored with mask. Events for one
// destination keep their order. It is for tests: actors that share only events
// behave the same. Call it before the first event.
func (e *Engine) Interleave(mask uint32) { e.q.mask = uint64(mask) << 32 }

// Run handles events until none is left. It returns the error of Fail or of a
// process, or a *StuckError if a process or a registered waiter still waits.
func (e *Engine) Run() error {
	if err := e.run(MaxTime); err != nil || e.stopped {
		return err
	}
	return e.stuck()
}

// RunUntil handles all events up to and including time t and then sets the
// present time to t, unless t is past or the run was stopped. Waiting processes
// are no error: a later event may wake them.
func (e *Engine) RunUntil(t Time) error {
	err := e.run(t)
	if err == nil && !e.stopped && e.now < t {
		e.now = t
	}
	return err
}

// Stop ends the run after the present event. A later Run continues. Other domains
// (Split) end soon after.
func (e *Engine) Stop() { e.stopped = true }

// Fail ends the run after the present event with err. The first error stays;
// the engine does not run again.
func (e *Engine) Fail(err error) {
	if e.err == nil {
		e.err = err
	}
	e.stopped = true
}

// Interrupt ends the run with err soon, within some thousand events. It is the
// only method for other goroutines. A later Run returns err at once.
func (e *Engine) Interrupt(err error) { e.interrupt.CompareAndSwap(nil, &err) }

// interrupted ends the run before event ev, which stays pending.
func (e *Engine) interrupted(err error, ev *Event) {
	if e.split != nil { // which describes it
		e.q.unpop(ev)
		e.stopped = true
		return
	}
	e.q.pending++
	if limit, ok := errors.AsType[*LimitError](err); ok {
		err = &LimitError{limit.Limit, e.now, e.handled, e.q.pending, ev.Time, e.waiting()}
	}
	e.Fail(err)
}

// interruptEvery is how many events pass between checks for an interrupt; a
// power of two.
const interruptEvery = 4096

func (e *Engine) run(limit Time) error {
	switch {
	case e.running:
		panic("sim: Run called from within a run")
	case e.closed:
		panic("sim: Run called on a closed engine")
	case e.err != nil:
		return e.err
	}
	e.running, e.stopped = true, false
	defer func() { e.running = false }()
	e.spawned.at, e.spawned.dst = e.now, math.MaxInt32
	if e.split != nil {
		return e.split.run(limit)
	}
	e.loop(limit)
	if e.q.pending == 0 {
		// A dropped timer may have been the last event: the present is before it.
		e.q.last = e.now
	}
	return e.err
}

// loop handles events up to and including time limit.
func (e *Engine) loop(limit Time) {
	e.limit = limit
	var ev *Event
	for !e.stopped {
		ev = e.q.pop(limit, &e.current)
		if ev == nil {
			break
		}
		if e.turns++; e.turns%interruptEvery == 0 {
			if err := e.interrupt.Load(); err != nil {
				e.interrupted(*err, ev)
				break
			}
		}
		if (ev.Time > e.until || e.handled >= e.most) && e.exceeds(ev) {
			break
		}
		if ev.Kind >= KindReserved {
			if ev.Kind == kindResume {
				e.resume(ev)
			} else {
				e.expire(ev)
			}
		} else {
			e.now = ev.Time
			e.handled++
			e.actors[ev.Dst].Handle(ev)
		}
		ev.P = nil // drop the reference, as the event may stay there for long
	}
	if e.err != nil && ev != nil {
		e.failed = position{e.now, ev.Dst, ev.Src, ev.Seq}
	}
}

// quietUntil reports whether an event at time t would be the next one, and
// would be handled.
func (e *Engine) quietUntil(t Time) bool {
	if e.slow || e.q.due > 0 || t < e.now || t > min(e.limit, e.until, Horizon) || e.handled >= e.most || e.stopped || e.interrupt.Load() != nil {
		return false
	}
	next, some := e.q.next()
	return !some || t < next
}

// Close unwinds every unfinished process, so that no goroutine is left. The
// engine does not run again.
func (e *Engine) Close() {
	for d := range e.Domains() {
		one := e.Domain(d)
		one.closed = true
		for _, p := range one.processes {
			p.kill()
		}
		one.processes, one.alive = nil, 0
		one.coros.Close()
		if one.deep != nil {
			one.deep.Close()
		}
	}
}
