package host

import "github.com/spinsim/spinsim/sim"

// NAPI is how a device that interrupts for each of many frames is served
// without the core's threads starving (Linux, Documentation/networking/napi.rst
// and net/core/dev.c; Salim, Olsson and Kuznetsov, "Beyond Softnet", ALS'01;
// Mogul and Ramakrishnan, "Eliminating Receive Livelock in an Interrupt-driven
// Kernel", TOCS 1997, is why). An interrupt switches the line off and schedules
// a tasklet, which takes frames, a batch (OSSpec.PollWeight) at a time, until
// there are none: then the line is on again, after a time (PollRest) in which
// frames gather. After PollBudget frames in one go a thread of the core
// (ksoftirqd) takes over, which gets the core in turn with other threads.
type NAPI struct {
	Stats NAPIStats

	line    *IRQ
	tasklet *Tasklet
	thread  *Thread
	timer   *sim.Process
	spec    *OSSpec
	late    bool     // the thread's
	on      sim.Time // when the line is to be on again, if it rests
	rests   bool
	poll    func(t *Thread, most int) (done int)
}

// NAPIStats is what became of interrupts.
type NAPIStats struct {
	Interrupts int64
	Polls      int64 // batches
	Late       int64 // of them, those of the thread
}

// NewNAPI connects a device to a core. poll takes at most so many frames, and
// returns how many there were. With a PollBudget of 0 there are no tasklet and
// no thread: the interrupt handler takes frames as long as there are any.
func (c *CPU) NewNAPI(core int, name string, s *OSSpec, poll func(t *Thread, most int) (done int)) *NAPI {
	n := &NAPI{spec: s, poll: poll}
	n.line = c.RequestIRQ(core, name, n.interrupt)
	if s.PollBudget > 0 {
		n.tasklet = c.NewTasklet(name, n.takes)
		n.thread = c.Kthread(core, "ksoftirqd "+name, n.takesLate)
		n.timer = c.engine.Spawn(c.owner, "moderation of "+name, n.moderates)
		n.timer.Background()
	}
	return n
}

// Line is what the device raises.
func (n *NAPI) Line() *IRQ { return n.line }

func (n *NAPI) interrupt(t *Thread) {
	n.Stats.Interrupts++
	if n.tasklet != nil {
		n.line.Disable()
		n.tasklet.Schedule(t.Core())
		return
	}
	for done := unlimited; done == unlimited; n.Stats.Polls++ {
		done = n.poll(t, unlimited)
	}
}

// unlimited is how many frames an interrupt handler takes at a time that takes all.
const unlimited = 64

// batch takes a batch. It reports whether there may be more.
func (n *NAPI) batch(t *Thread, most int) (done int, more bool) {
	n.line.missed = false
	n.Stats.Polls++
	done = n.poll(t, most)
	return done, done == most || n.line.missed
}

// takes is the tasklet.
func (n *NAPI) takes(t *Thread) {
	for left, more := n.spec.PollBudget, true; more; {
		if left == 0 {
			n.late = true
			n.thread.Wake()
			return
		}
		var done int
		done, more = n.batch(t, min(left, n.spec.PollWeight))
		left -= done
	}
	n.rest(t)
}

// rest has the line off until frames have had time to gather.
func (n *NAPI) rest(t *Thread) {
	if n.spec.PollRest == 0 {
		n.line.Enable()
		return
	}
	n.on, n.rests = t.Now()+n.spec.PollRest, true
	n.timer.Wake()
}

// moderates is the timer of the device that switches the line on. It takes no core.
func (n *NAPI) moderates(p *sim.Process) error {
	for {
		for !n.rests {
			p.Park("interrupts to be moderated")
		}
		for p.Now() < n.on {
			p.SleepUntil(n.on)
		}
		n.rests = false
		n.line.Enable()
	}
}

// takesLate is the thread.
func (n *NAPI) takesLate(t *Thread) {
	for {
		for !n.late {
			t.Wait("frames beyond a tasklet's budget")
		}
		n.Stats.Late++
		if _, more := n.batch(t, n.spec.PollWeight); !more {
			n.late = false
			n.rest(t)
		}
	}
}
