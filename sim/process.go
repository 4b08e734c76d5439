package sim

import (
	"errors"
	"fmt"
)

// Process is a host program: sequential code that waits in virtual time. Its
// methods other than Wake, Name and Done are for the program itself.
type Process struct {
	eng        *Engine
	owner      ID
	name       string
	body       func(p *Process) error
	coro       *Coro
	generation uint64 // counts resumptions: an event of an older one is void
	state      processState
	background bool
	woken      bool // parked: the resumption is posted; otherwise: the next Park returns at once
	timedOut   bool
	since      Time
	born       position
	what       string
	describe   func() string
}

type processState uint8

const (
	processReady processState = iota
	processRunning
	processDeep // runs, in Deep
	processSleeping
	processParked
	processDone
)

// Spawn starts f as a process of owner, in an event at the present time, so not
// before the caller returns. An error of f ends the run, and Run returns it
// with the name. Run panics with a panic of f.
func (e *Engine) Spawn(owner ID, name string, f func(p *Process) error) *Process {
	p := &Process{eng: e, owner: owner, name: name, body: f, since: e.now, what: "its start", born: e.birth(owner)}
	e.processes = append(e.processes, p)
	e.alive++
	e.Post(e.now, owner, owner, kindResume, 0, 0, p)
	return p
}

// birth is the place of a process among all, in the order of spawning.
func (e *Engine) birth(owner ID) position {
	main := e.Domain(0)
	if main.running {
		return position{e.now, owner, owner, e.actors[owner].seq}
	}
	main.spawned.seq++
	return main.spawned
}

// Name returns the name given to Spawn.
func (p *Process) Name() string { return p.name }

// Owner returns the actor given to Spawn.
func (p *Process) Owner() ID { return p.owner }

// Engine returns the engine of the process.
func (p *Process) Engine() *Engine { return p.eng }

// Now returns the present time.
func (p *Process) Now() Time { return p.eng.now }

// Done reports whether the program has returned or was unwound.
func (p *Process) Done() bool { return p.state == processDone }

// Background marks a process that serves others for ever: a run may end while
// it is parked.
func (p *Process) Background() { p.background = true }

// Describe sets a function that describes what the process waits for, with its
// progress if you like. It is called when a run is stuck and the process is
// parked. If it returns the empty string, the text of Park is used.
func (p *Process) Describe(f func() string) { p.describe = f }

// waitsFor returns the text for the diagnosis of a stuck run.
func (p *Process) waitsFor() string {
	if p.describe != nil && p.state == processParked {
		if what := p.describe(); what != "" {
			return what
		}
	}
	return p.what
}

// Sleep waits for d, which is not negative. Sleep(0) lets the other events of
// the present time that come first in the order go first.
func (p *Process) Sleep(d Time) { p.SleepUntil(p.eng.now.Later(d)) }

// SleepUntil waits until time t, which is not in the past. Wake does not
// shorten a sleep; the next Park remembers it.
func (p *Process) SleepUntil(t Time) {
	// the rest would change only the time
	if p.state == processRunning && p.eng.quietUntil(t) {
		p.eng.now = t
		p.eng.handled++
		p.generation++
		return
	}
	p.eng.Post(t, p.owner, p.owner, kindResume, p.generation, 0, p)
	p.wait(processSleeping, "the end of its sleep")
}

// Park waits until Wake is called. It returns at once if Wake was called since
// the last Park returned. Callers loop on their condition. what describes the
// condition for the diagnosis of a stuck run: "event on queue 3".
func (p *Process) Park(what string) {
	if p.woken {
		p.woken = false
		return
	}
	p.wait(processParked, what)
}

// ParkUntil is Park with a deadline, which is not in the past. It reports
// whether Wake came first.
func (p *Process) ParkUntil(what string, deadline Time) bool {
	if p.woken {
		p.woken = false
		return true
	}
	if deadline <= Horizon {
		p.eng.Post(deadline, p.owner, p.owner, kindResume, p.generation, 0, p)
	}
	p.wait(processParked, what)
	return !p.timedOut
}

// Deep runs f, which must not wait, on a stack that it shares with the other
// processes of the engine. A stack remains as large as it ever was, and each of
// a million processes has its own. So what needs much of it once, to set up,
// belongs here.
func (p *Process) Deep(f func()) {
	if p.state != processRunning {
		f()
		return
	}
	if p.eng.deep == nil {
		p.eng.deep = NewCoro()
	}
	p.state = processDeep
	defer func() { p.state = processRunning }()
	p.eng.deep.Start(f)
}

func (p *Process) wait(s processState, what string) {
	if p.state != processRunning {
		panic(fmt.Sprintf("sim: process %s waits while it is not running", p.name))
	}
	p.state, p.since, p.what = s, p.eng.now, what
	p.coro.Yield()
}

// Wake makes Park return. If the process is parked, Park returns now, in an
// event; else its next call returns. Several calls count once until Park
// returns.
func (p *Process) Wake() {
	if p.woken || p.state == processDone {
		return
	}
	p.woken = true
	if p.state == processParked {
		p.eng.Post(p.eng.now, p.owner, p.owner, kindResume, p.generation, 0, p)
	}
}

// resume continues the process of ev. A void event changes nothing: even the
// present time stays.
func (e *Engine) resume(ev *Event) {
	p := ev.P.(*Process)
	if p.state == processDone || ev.A != p.generation {
		return
	}
	e.now = ev.Time
	e.handled++
	p.generation++
	var done bool
	switch p.state {
	case processReady:
		p.state, p.coro = processRunning, e.coros.Get()
		done = p.coro.Start(p.main)
	default:
		if p.state == processParked {
			// The wake may still be pending in this same picosecond: it counts.
			p.timedOut, p.woken = !p.woken, false
		}
		p.state = processRunning
		done = p.coro.Resume()
	}
	if done {
		p.finish()
	}
}

func (p *Process) main() {
	err := p.body(p)
	if limit, ok := errors.AsType[*LimitError](err); ok { // the program saw the interruption first
		seen := &LimitError{Limit: limit.Limit}
		if p.eng.split == nil { // which describes it
			next, _ := p.eng.q.next()
			seen = &LimitError{limit.Limit, p.eng.now, p.eng.handled, p.eng.q.pending, next, p.eng.waiting()}
		}
		p.eng.Fail(seen)
	}
	if err != nil {
		p.eng.Fail(fmt.Errorf("process %s at %v: %w", p.name, p.eng.now, err))
	}
}

func (p *Process) finish() {
	p.state = processDone
	e := p.eng
	e.coros.Put(p.coro)
	p.coro, p.body = nil, nil
	e.alive--
	if len(e.processes) < 2*e.alive+64 {
		return
	}
	kept := e.processes[:0]
	for _, q := range e.processes {
		if q.state != processDone {
			kept = append(kept, q)
		}
	}
	clear(e.processes[len(kept):])
	e.processes = kept
}

// kill unwinds the process and ends its coroutine.
func (p *Process) kill() {
	if p.state != processDone && p.coro != nil {
		p.state = processRunning
		p.coro.Close()
	}
	p.state, p.coro, p.body = processDone, nil, nil
}
