package host

import (
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/sim"
)

// Thread is an execution context: sequential code in virtual time with a core
// and a level. Each program has one. The kernel has one for each of its own
// activities: the interrupts of a core, tasklets, kernel threads. Only its own
// code may call its methods, except Wake.
type Thread struct {
	cpu     *CPU
	core    *Core
	process *sim.Process
	name    string
	level   Level
	flow    uint64 // flow of its work in timelines
	leaves  func() // called before it suspends itself; nil: none
	kernel  bool   // a thread of the operating system
	// time for which it holds the core
	start, end sim.Time
	stolen     sim.Time // by higher levels since it began
	owed       sim.Time // by Owe
}

// Spawn starts f as thread t of a core, by an event at the present time. If f
// returns an error, the run ends with it. leaves, if not nil, is called
// whenever the thread is about to wait or work.
func (c *CPU) Spawn(t *Thread, core int, name string, leaves func(), f func(t *Thread) error) *sim.Process {
	c.core(core).threads++
	return c.spawn(t, core, name, leaves, f)
}

func (c *CPU) spawn(t *Thread, core int, name string, leaves func(), f func(t *Thread) error) *sim.Process {
	*t = Thread{cpu: c, core: c.core(core), name: name, leaves: leaves}
	t.process = c.engine.Spawn(c.owner, name, func(*sim.Process) error { return f(t) })
	return t.process
}

// Kthread starts a kernel thread that serves others and does not end: a run may
// end while it waits.
func (c *CPU) Kthread(core int, name string, f func(t *Thread)) *Thread {
	return c.kernelThread(core, name, Threads, f)
}

func (c *CPU) kernelThread(core int, name string, l Level, f func(t *Thread)) *Thread {
	t := new(Thread)
	c.spawn(t, core, name, nil, func(t *Thread) error { f(t); return nil }).Background()
	t.kernel = true
	if t.level = l; l == Threads {
		t.core.threads++
	}
	return t
}

// MoveTo continues the thread on another core, 0 to Cores-1. What it owes, it
// pays on the core where it was.
func (t *Thread) MoveTo(core int) {
	if t.owed > 0 {
		t.occupy(0)
		t.finish()
	}
	t.core.threads--
	t.core = t.cpu.core(core)
	t.core.threads++
}

// SetName changes the name in the timeline.
func (t *Thread) SetName(name string) { t.name = name }

// Follow makes its later work part of a flow in the timeline; 0: of none.
func (t *Thread) Follow(flow uint64) { t.flow = flow }

// Flow is the flow given to Follow.
func (t *Thread) Flow() uint64 { return t.flow }

// Name returns the name given to Spawn or SetName.
func (t *Thread) Name() string { return t.name }

// Core returns the number of its core.
func (t *Thread) Core() int { return int(t.core.index) }

// Level is its level.
func (t *Thread) Level() Level { return t.level }

// CPU returns the cores of its node.
func (t *Thread) CPU() *CPU { return t.cpu }

// Now is the present time.
func (t *Thread) Now() sim.Time { return t.process.Now() }

// Process returns the coroutine of the thread.
func (t *Thread) Process() *sim.Process { return t.process }

// Run occupies the core for d, at least 0. It begins when the core is free for
// the thread. It returns at the end of the work, which is later than d because
// of earlier work and of interruptions by higher levels.
func (t *Thread) Run(d sim.Time, what string) {
	t.occupy(d)
	t.cpu.charge(t, what, t.end-t.start)
	t.finish()
	t.cpu.span(t, what, t.start, t.end)
}

// Owe is Run that returns at once: the work is done together with the thread's
// next work, so that one wait is enough for both. Until then the thread must
// not read what others change, change what others read, or ask for the time. If
// somebody could notice the difference, Owe is Run.
func (t *Thread) Owe(d sim.Time, what string) {
	if t.core.threads > 1 || t.level != Threads || t.cpu.shown != nil {
		t.Run(d, what)
		return
	}
	t.owed = t.owed.Plus(d)
	t.cpu.charge(t, what, d)
}

// occupy takes the core for d plus the time the thread owes, as soon as it is
// free.
func (t *Thread) occupy(d sim.Time) {
	t.stolen = 0
	owed := t.owed
	t.owed = 0
	t.core.hold(t, t.Now(), d.Plus(owed))
	t.start = t.start.Later(owed)
}

// finish waits for the end of the time for which the thread took the core.
func (t *Thread) finish() {
	if t.leaves != nil {
		t.leaves()
	}
	for t.process.SleepUntil(t.end); t.Now() < t.end; {
		t.process.SleepUntil(t.end)
	}
	if t.level < Interrupt {
		t.core.done(t)
	}
}

// Stream occupies the core while it reads and writes bytes sequentially, none of
// which a cache holds (Move).
func (t *Thread) Stream(bytes int64, memory *Server, spec *Spec, what string) {
	t.Move(Stream{bytes: bytes}, memory, spec, what)
}

// Move occupies the core while it reads and writes the memory of a loop. Lines
// that the cache holds come first, at Spec.CacheBandwidth. Pieces of the others
// take the memory controller in turn with other cores and, if the DMA shares
// the memory, with the DMA. A core can have few cache lines in flight, which
// bounds its rate (Spec.StreamTime).
func (t *Thread) Move(s Stream, memory *Server, spec *Spec, what string) {
	t.cpu.Use(used.Stream)
	t.occupy(0)
	t.finish()
	start, stolen := t.start, sim.Time(0)
	if s.held > 0 {
		t.occupy(spec.CacheBandwidth.Time(s.held))
		t.finish()
		stolen = t.stolen
	}
	left, rate := s.beyond(spec)
	for left > 0 {
		piece := min(left, int64(spec.CopyChunk))
		left -= piece
		now := t.Now()
		_, end := memory.Reserve(now, piece)
		t.occupy(max(end, now+spec.linesTime(piece, rate)) - now)
		t.finish()
		stolen = stolen.Plus(t.stolen)
	}
	t.cpu.charge(t, what, t.Now()-start-stolen)
	t.cpu.span(t, what, start, t.Now())
}

// Wait gives the core away until Wake is called. It returns at once if Wake was
// called since the last wait. So callers must check their condition in a loop.
// After a wait the thread pays for the context switch. what names the wait in
// the report of a stuck run.
func (t *Thread) Wait(what string) {
	before := t.cpu.engine.Handled()
	t.Spin(what)
	t.switched(before)
}

// WaitUntil is Wait with a deadline, which must not be in the past. It reports
// whether Wake came first.
func (t *Thread) WaitUntil(what string, deadline sim.Time) bool {
	before := t.cpu.engine.Handled()
	woken := t.SpinUntil(what, deadline)
	t.switched(before)
	return woken
}

// Spin waits for Wake on the core. Other work may take the core meanwhile. The
// end of the wait needs no context switch.
func (t *Thread) Spin(what string) {
	t.suspend()
	t.process.Park(what)
	t.resume()
}

// SpinUntil is Spin with a deadline, which must not be in the past. It reports
// whether Wake came first.
func (t *Thread) SpinUntil(what string, deadline sim.Time) bool {
	t.suspend()
	woken := t.process.ParkUntil(what, deadline)
	if !woken {
		t.due()
	}
	t.resume()
	return woken
}

// Sleep gives the core away until a time, which must not be in the past, and
// then pays for the context switch.
func (t *Thread) Sleep(until sim.Time) {
	before := t.cpu.engine.Handled()
	t.suspend()
	t.process.SleepUntil(until)
	t.due()
	t.resume()
	t.switched(before)
}

// due reports to a follower that the thread continues because of the time.
func (t *Thread) due() {
	if s := t.cpu.shown; s != nil && s.follow != nil {
		s.follow.Step(&sim.Step{Kind: sim.StepTimer, Rank: int32(s.rank), To: t.Now()})
	}
}

// Wake ends the wait of a thread, or its next one.
func (t *Thread) Wake() { t.process.Wake() }

func (t *Thread) suspend() {
	if t.leaves != nil {
		t.leaves()
	}
	if t.owed > 0 {
		t.occupy(0)
		t.finish()
	}
	switch t.level {
	case Interrupt:
		// programmer's mistake: there is nobody who could go on in its place
		panic("host: an interrupt handler waits")
	case Softirq:
		t.core.system.release(t)
	}
}

// resume gives a tasklet its place on the core back.
func (t *Thread) resume() {
	if t.level == Softirq {
		t.core.system.enter(t)
	}
}

// switched pays for the context switch if the thread gave the core away, that
// is, if events happened since event number before.
func (t *Thread) switched(before uint64) {
	if t.cpu.engine.Handled() == before {
		return
	}
	t.cpu.Use(used.ContextSwitch)
	if d := t.cpu.spec.ContextSwitch; d > 0 {
		t.Run(d, "context switch")
	}
}
