package sim

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// split is the domains of a run on several cores. Each domain has an engine, and
// every actor belongs to one domain. Domains share only events, and an event
// from one domain to another has a least delay: the lookahead, for example the
// time that a packet takes from one switch to the next.
//
// The domains proceed in rounds. Before a round each knows the next event of all
// others, and so the time before which nothing more can come to it from them. It
// handles its own events up to that time. What it posts to others goes into
// boxes, which these empty at the beginning of the next round. This is a
// conservative simulation (Chandy and Misra, CACM 24(4), 1981, with a barrier in
// place of null messages).
//
// The order of events is by time, destination, source and number at the source.
// None of these depends on the domains. At one destination events therefore come
// in the same order for any number of domains.
type split struct {
	engines []*Engine
	// [from*n+to]: an event that from posts comes to to no earlier than this after
	// it; MaxTime: never
	ahead  []Time
	least  []Time // likewise along any chain of domains; [d*n+d] is the shortest circle
	rounds barrier
	// what each domain announces before a round, by the round's parity: nobody
	// reads the announcements of a round while those of the next are made
	said   [2][]announcement
	faults []*fault // by domain: panics of actors
}

// announcement is what a domain tells the others before a round.
type announcement struct {
	next Time   // of its events; MaxTime: there is none
	sent []Time // of the events in its box to each domain
	cap  Time   // nothing later need be handled: an error has ended the run
	stop bool
	_    [64]byte // domains write to different cache lines
}

// fault is a panic, or the end of the goroutine, in an actor.
type fault struct{ value any }

// box is events from one domain to another.
type box struct {
	events []Event
	first  Time
}

// Split makes e the first of n engines, each of them for the actors of one
// domain of a run. Actors added to any of them have IDs in common. Run, Close and
// the limits of e are for all of them. Call it before the first actor is added.
// Actors of different domains share nothing but events that are posted with
// PostTo.
func (e *Engine) Split(n int) {
	if len(e.actors) > 0 || e.split != nil || n < 1 {
		panic(fmt.Sprintf("sim: %d domains of an engine that has %d actors", n, len(e.actors)))
	}
	if n == 1 {
		return
	}
	s := &split{engines: []*Engine{e}, ahead: make([]Time, n*n), faults: make([]*fault, n)}
	for i := range s.ahead {
		s.ahead[i] = MaxTime
	}
	for len(s.engines) < n {
		other := New(e.seed)
		other.interrupt = e.interrupt
		s.engines = append(s.engines, other)
	}
	for d, one := range s.engines {
		one.split, one.domain = s, d
		for p := range one.boxes {
			one.boxes[p] = make([]box, n)
			for to := range one.boxes[p] {
				one.boxes[p][to].first = MaxTime
			}
			s.said[p] = append(s.said[p], announcement{sent: make([]Time, n)})
		}
	}
	s.rounds.init(n)
}

// Domains returns the number of domains, 1 without Split.
func (e *Engine) Domains() int {
	if e.split == nil {
		return 1
	}
	return len(e.split.engines)
}

// Domain returns the engine of domain i.
func (e *Engine) Domain(i int) *Engine {
	if e.split == nil {
		return e
	}
	return e.split.engines[i]
}

// Reach says that actors of e post to actors of to, at the earliest after ahead,
// which is more than 0. Call it before the run.
func (e *Engine) Reach(to *Engine, ahead Time) {
	if ahead <= 0 {
		panic(fmt.Sprintf("sim: domain %d reaches domain %d after %v", e.domain, to.domain, ahead))
	}
	s := e.split
	i := e.domain*len(s.engines) + to.domain
	s.ahead[i] = min(s.ahead[i], ahead)
}

// PostTo is Post to an actor of engine to. It panics if the time is earlier than
// Reach has promised.
func (e *Engine) PostTo(to *Engine, at Time, dst, src ID, k Kind, a, b uint64, p any) {
	if e == to {
		e.Post(at, dst, src, k, a, b, p)
		return
	}
	s := e.split
	if ahead := s.ahead[e.domain*len(s.engines)+to.domain]; at > Horizon || at-e.now < ahead {
		if at > Horizon {
			e.refuse(at, dst, src)
			return
		}
		panic(fmt.Sprintf("sim: %s posts from domain %d to %s of domain %d for %v after the present time, promised were %v",
			e.Name(src), e.domain, e.Name(dst), to.domain, at-e.now, ahead))
	}
	from := &e.actors[src]
	box := &e.boxes[e.side][to.domain]
	box.events = append(box.events, Event{at, dst, src, from.seq, k, a, b, p})
	box.first = min(box.first, at)
	from.seq++
}

// closure fills in least: the shortest paths of at least one step.
func (s *split) closure() {
	n := len(s.engines)
	s.least = slices.Clone(s.ahead)
	for via := range n {
		for from := range n {
			for to := range n {
				if a, b := s.least[from*n+via], s.least[via*n+to]; a < MaxTime && b < MaxTime {
					s.least[from*n+to] = min(s.least[from*n+to], a.Plus(b))
				}
			}
		}
	}
}

// run is Engine.run for all domains.
func (s *split) run(limit Time) error {
	main := s.engines[0]
	until := min(limit, main.until)
	s.closure()
	for _, e := range s.engines {
		e.stopped = false
	}
	var others sync.WaitGroup
	for d := 1; d < len(s.engines); d++ {
		others.Go(func() { s.work(d, until) })
	}
	s.work(0, until)
	others.Wait()
	for d, f := range s.faults {
		if f != nil {
			s.faults[d] = nil
			if f.value == nil {
				runtime.Goexit() // a test has ended
			}
			panic(f.value) //lint:panic an actor's own, passed on to whoever runs it
		}
	}
	s.empty()
	return s.end(limit)
}

// work runs a domain until nothing is left for any of them, or one has ended the
// run.
func (s *split) work(d int, limit Time) {
	e, n := s.engines[d], len(s.engines)
	side, finished := 0, false
	defer func() {
		if !finished { // an actor has panicked
			s.faults[d] = &fault{recover()}
			s.said[1-side][d].stop = true
			s.rounds.wait()
		}
	}()
	for ; ; side = 1 - side {
		me := &s.said[side][d]
		me.next, me.stop, me.cap = MaxTime, false, limit
		if at, some := e.q.next(); some {
			me.next = at
		}
		switch err := e.interrupt.Load(); {
		case err != nil:
			me.stop = true
		case e.err != nil:
			me.next, me.cap = MaxTime, min(limit, e.failed.at)
		case e.stopped:
			me.stop = true
		}
		for to := range n {
			me.sent[to] = e.boxes[side][to].first
		}
		s.rounds.wait()
		all := s.said[side]
		until, more := s.window(all, d)
		if !more {
			finished = true
			return
		}
		for from := range n {
			b := &s.engines[from].boxes[side][d]
			for i := range b.events {
				ev := &b.events[i]
				*e.q.push(ev.Time) = *ev
				ev.P = nil
			}
			b.events, b.first = b.events[:0], MaxTime
		}
		e.side = 1 - side
		if e.err == nil {
			e.loop(until)
		}
	}
}

// window returns the time up to which a domain may handle events; false: no
// domain has more to do.
func (s *split) window(all []announcement, d int) (until Time, more bool) {
	n := len(all)
	until = MaxTime
	for i := range all {
		if all[i].stop {
			return 0, false
		}
		until = min(until, all[i].cap)
	}
	last := until
	for i := range all {
		next := all[i].next
		for from := range all {
			next = min(next, all[from].sent[i])
		}
		if next < MaxTime && next <= last {
			more = true
		}
		if least := s.least[i*n+d]; next < MaxTime && least < MaxTime {
			until = min(until, next.Plus(least)-1)
		}
	}
	return until, more
}

// processes lists the processes of all domains, in the order of spawning.
func (s *split) processes() (list []*Process) {
	for _, e := range s.engines {
		list = append(list, e.processes...)
	}
	slices.SortFunc(list, func(a, b *Process) int { return a.born.compare(&b.born) })
	return list
}

// empty gives the events in all boxes to their domains.
func (s *split) empty() {
	for _, e := range s.engines {
		for p := range e.boxes {
			for to := range e.boxes[p] {
				b := &e.boxes[p][to]
				for i := range b.events {
					ev := &b.events[i]
					*s.engines[to].q.push(ev.Time) = *ev
					ev.P = nil
				}
				b.events, b.first = b.events[:0], MaxTime
			}
		}
		e.side = 0
	}
}

// end is the result of a run. It makes the present time of all engines the
// latest.
func (s *split) end(limit Time) error {
	main := s.engines[0]
	first, stopped := -1, false
	var now Time
	for d, e := range s.engines {
		now, stopped = max(now, e.now), stopped || e.stopped
		if e.err != nil && (first < 0 || e.failed.compare(&s.engines[first].failed) < 0) {
			first = d
		}
	}
	err := main.interrupt.Load()
	switch {
	case first >= 0:
		main.err, now = s.engines[first].err, s.engines[first].failed.at
	case err != nil:
		main.err = *err
	case limit > main.until:
		if held := s.beyond(); held != nil {
			main.err = s.limited(fmt.Sprintf("%v of virtual time", main.until), now, held)
		}
	}
	if l, is := errors.AsType[*LimitError](main.err); is && l.Pending == 0 {
		main.err = s.limited(l.Limit, now, nil)
	}
	for _, e := range s.engines {
		e.now = now
		if e.q.pending == 0 {
			e.q.last = now
		}
		e.stopped = stopped || main.err != nil
		e.spawned.at = now
	}
	return main.err
}

// limited is the error of a run that a limit has ended. held, if not nil, is the
// next event, which is counted but no longer in a queue.
func (s *split) limited(limit string, now Time, held *Event) *LimitError {
	l := &LimitError{Limit: limit, At: now, Next: MaxTime, Waiting: s.engines[0].waiting()}
	for _, e := range s.engines {
		l.Handled += e.handled
		l.Pending += e.q.pending
		if at, some := e.q.next(); some {
			l.Next = min(l.Next, at)
		}
	}
	if held != nil {
		l.Next = held.Time
	}
	l.At = min(now, l.Next) // an interrupt finds the domains at different times
	return l
}

// beyond drops void events, in the order of events, up to the first that is not
// void, and returns that one. nil: there is none.
func (s *split) beyond() *Event {
	held := make([]*Event, len(s.engines))
	for {
		first := -1
		for d, e := range s.engines {
			if held[d] == nil {
				if ev := e.q.pop(MaxTime, &e.current); ev != nil {
					held[d] = ev
				}
			}
			if held[d] != nil && (first < 0 || compareEvents(held[d], held[first]) < 0) {
				first = d
			}
		}
		if first < 0 {
			return nil
		}
		if !held[first].void() {
			for d, e := range s.engines {
				if held[d] != nil {
					e.q.pending++
				}
			}
			return held[first]
		}
		if ev := held[first]; ev.Kind == kindTimer {
			s.engines[first].expire(ev) // one that was postponed comes later
		}
		held[first].P = nil
		held[first] = nil
	}
}

func compareEvents(a, b *Event) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Dst, b.Dst), cmp.Compare(a.Src, b.Src), cmp.Compare(a.Seq, b.Seq))
}

// position is the place of an event in the order of events.
type position struct {
	at       Time
	dst, src ID
	seq      uint64
}

func (p *position) compare(o *position) int {
	return cmp.Or(cmp.Compare(p.at, o.at), cmp.Compare(p.dst, o.dst), cmp.Compare(p.src, o.src), cmp.Compare(p.seq, o.seq))
}

// barrier lets a fixed number of goroutines wait for each other, again and
// again. A wait is short, so they look again and again before they sleep.
type barrier struct {
	n       int32
	waits   atomic.Int32
	turn    atomic.Uint32
	mu      sync.Mutex
	changed *sync.Cond
}

func (b *barrier) init(n int) {
	b.n = int32(n)
	b.changed = sync.NewCond(&b.mu)
}

// looks is how often a goroutine looks for the others before it sleeps: for about
// as long as it takes to wake it up.
const looks = 4096

// wait returns when all have called it.
func (b *barrier) wait() {
	turn := b.turn.Load()
	if b.waits.Add(1) == b.n {
		b.waits.Store(0)
		b.mu.Lock()
		b.turn.Add(1)
		b.mu.Unlock()
		b.changed.Broadcast()
		return
	}
	for i := range looks {
		if b.turn.Load() != turn {
			return
		}
		if i >= looks/2 {
			runtime.Gosched()
		}
	}
	b.mu.Lock()
	for b.turn.Load() == turn {
		b.changed.Wait()
	}
	b.mu.Unlock()
}
