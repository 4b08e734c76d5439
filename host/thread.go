package host

import "github.com/spinsim/spinsim/sim"

// Thread is an execution context: sequential code in virtual time that has a
// core and a level. Programs have one, and the kernel has one for each thing it
// does on its own: the interrupts of a core, tasklets, kernel threads. Its
// methods other than Wake are for its own code.
type Thread struct {
	cpu     *CPU
	core    *Core
	process *sim.Process
	name    string
	level   Level
	flow    uint64 // that its work is drawn as part of
	leaves  func() // called before it suspends itself; nil: nobody cares
	kernel  bool   // a thread of the operating system
	// what it holds the core for
	start, end sim.Time
	stolen     sim.Time // taken by higher levels since it began
	owed       sim.Time // of Owe
}

// Spawn makes t a thread of a core that begins with f at the present time, as
// an event. An error of f ends the run. leaves, if it is not nil, is called
// whenever the thread is about to wait or to work.
func (c *CPU) Spawn(t *Thread, core int, name string, leaves func(), f func(t *Thread) error) *sim.Process {
	c.cores[core].threads++
	return c.spawn(t, core, name, leaves, f)
}

func (c *CPU) spawn(t *Thread, core int, name string, leaves func(), f func(t *Thread) error) *sim.Process {
	*t = Thread{cpu: c, core: &c.cores[core], name: name, leaves: leaves}
	t.process = c.engine.Spawn(c.owner, name, func(*sim.Process) error { return f(t) })
	return t.process
}

// Kthread starts a thread of the kernel that serves others for ever: a run may end while it waits.
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

// SetName changes the name in the timeline.
func (t *Thread) SetName(name string) { t.name = name }

// Follow has its work from now on drawn as part of a flow; 0: of none.
func (t *Thread) Follow(flow uint64) { t.flow = flow }

// Flow is the flow given to Follow.
func (t *Thread) Flow() uint64 { return t.flow }

// Name is the name given to Spawn.
func (t *Thread) Name() string { return t.name }

// Core is the number of its core.
func (t *Thread) Core() int { return t.core.index }

// Level is its level.
func (t *Thread) Level() Level { return t.level }

// CPU is the cores of its node.
func (t *Thread) CPU() *CPU { return t.cpu }

// Now is the present time.
func (t *Thread) Now() sim.Time { return t.process.Now() }

// Process is the coroutine it is.
func (t *Thread) Process() *sim.Process { return t.process }

// Run occupies the core for d, at least 0, as soon as it is free for the
// thread. It returns when that is done: later than d by what was before it and
// by what higher levels took meanwhile.
func (t *Thread) Run(d sim.Time, what string) {
	t.occupy(d)
	t.cpu.charge(t.level, what, t.end-t.start)
	t.finish()
	t.cpu.span(t, what, t.start, t.end)
}

// Owe is Run of work that the thread does at once with what it does next on its
// core: it returns before, and one wait is enough for both. Until then the
// thread may neither look at what others change, nor change what others see,
// nor ask for the time. Where somebody could tell, it is Run.
func (t *Thread) Owe(d sim.Time, what string) {
	if t.core.threads > 1 || t.level != Threads || t.cpu.tracks != nil {
		t.Run(d, what)
		return
	}
	t.owed = t.owed.Plus(d)
	t.cpu.charge(t.level, what, d)
}

// occupy takes the core for d, and what the thread owes, as soon as it is free.
func (t *Thread) occupy(d sim.Time) {
	t.stolen = 0
	owed := t.owed
	t.owed = 0
	t.core.hold(t, t.Now(), d.Plus(owed))
	t.start = t.start.Later(owed)
}

// finish waits until what the thread has taken the core for is done.
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

// Stream occupies the core while it reads and writes bytes in sequence: pieces
// take the memory controller in turn with other cores and, where it shares the
// memory, with the DMA; a core cannot have more than a few cache lines under
// way, which bounds its rate (Spec.StreamTime).
func (t *Thread) Stream(bytes int64, memory *Server, spec *Spec, what string) {
	t.occupy(0)
	t.finish()
	start, stolen := t.start, sim.Time(0)
	for left := bytes; left > 0; {
		piece := min(left, int64(spec.CopyChunk))
		left -= piece
		now := t.Now()
		_, end := memory.Reserve(now, piece)
		t.occupy(max(end, now+spec.StreamTime(piece)) - now)
		t.finish()
		stolen = stolen.Plus(t.stolen)
	}
	t.cpu.charge(t.level, what, t.Now()-start-stolen)
	t.cpu.span(t, what, start, t.Now())
}

// Wait gives the core away until somebody calls Wake; if somebody has since the
// last wait, it does not wait. Callers loop on the condition they wait for.
// Whoever was woken pays for the context switch. what says, for the diagnosis
// of a stuck run, what it waits for.
func (t *Thread) Wait(what string) {
	before := t.cpu.engine.Handled()
	t.Spin(what)
	t.switched(before)
}

// WaitUntil is Wait with a deadline, which is not in the past. It reports whether Wake came first.
func (t *Thread) WaitUntil(what string, deadline sim.Time) bool {
	before := t.cpu.engine.Handled()
	woken := t.SpinUntil(what, deadline)
	t.switched(before)
	return woken
}

// Spin waits busily until somebody calls Wake: on the core, but whoever else
// wants it gets it, and it costs nothing to be back.
func (t *Thread) Spin(what string) {
	t.suspend()
	t.process.Park(what)
	t.resume()
}

// SpinUntil is Spin with a deadline, which is not in the past. It reports whether Wake came first.
func (t *Thread) SpinUntil(what string, deadline sim.Time) bool {
	t.suspend()
	woken := t.process.ParkUntil(what, deadline)
	if !woken {
		t.due()
	}
	t.resume()
	return woken
}

// Sleep gives the core away until a time that is not in the past. It pays for
// the context switch behind it.
func (t *Thread) Sleep(until sim.Time) {
	before := t.cpu.engine.Handled()
	t.suspend()
	t.process.SleepUntil(until)
	t.due()
	t.resume()
	t.switched(before)
}

// due tells a follower that the thread goes on because of the time.
func (t *Thread) due() {
	if f := t.cpu.follow; f != nil {
		f.Step(&sim.Step{Kind: sim.StepTimer, Rank: int32(t.cpu.rank), To: t.Now()})
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

// switched pays for the way back to the core, if the thread has given it away:
// something has happened since so many events.
func (t *Thread) switched(before uint64) {
	if d := t.cpu.spec.ContextSwitch; d > 0 && t.cpu.engine.Handled() != before {
		t.Run(d, "context switch")
	}
}
