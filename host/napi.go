package host

import (
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/sim"
)

// NAPI serves a device with many frames without starving the threads of a core
// (Linux, Documentation/networking/napi.rst and net/core/dev.c; Salim, Olsson
// and Kuznetsov, "Beyond Softnet", ALS'01). For the reason see Mogul and
// Ramakrishnan, "Eliminating Receive Livelock in an Interrupt-driven Kernel",
// TOCS 1997. An interrupt switches the line off and schedules a tasklet. The
// tasklet takes frames in batches (OSSpec.PollWeight) until none is left. Then,
// after a time in which frames gather (PollRest), it switches the line on
// again. After PollBudget frames in one go a thread of the core (ksoftirqd)
// continues; it takes turns with other threads.
type NAPI struct {
	Stats NAPIStats

	line    *IRQ
	tasklet *Tasklet
	thread  *Thread
	timer   *sim.Process
	spec    *OSSpec
	late    bool     // for the thread
	on      sim.Time // when to switch the line on, if it rests
	rests   bool
	poll    func(t *Thread, most int) (done int)
}

// NAPIStats counts interrupts and batches.
type NAPIStats struct {
	Interrupts int64
	Polls      int64 // batches
	Late       int64 // batches of the thread
}

// NewNAPI connects a device to a core. poll takes at most the given number of
// frames and returns how many it took. With a PollBudget of 0 there is no
// tasklet and no thread: the interrupt handler takes all frames.
func (c *CPU) NewNAPI(core int, name string, s *OSSpec, poll func(t *Thread, most int) (done int)) *NAPI {
	n := &NAPI{spec: s, poll: poll}
	n.line = c.RequestIRQ(core, name, n.interrupt)
	c.Use(used.Napi)
	if s.PollBudget > 0 {
		n.tasklet = c.NewTasklet(name, n.takes)
		n.thread = c.Kthread(core, "ksoftirqd "+name, n.takesLate)
		n.timer = c.engine.Spawn(c.owner, "moderation of "+name, n.moderates)
		n.timer.Background()
	}
	return n
}

// Line returns the interrupt line of the device.
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

// unlimited is the batch of an interrupt handler that takes all frames.
const unlimited = 64

// batch takes one batch. It reports whether there may be more frames.
func (n *NAPI) batch(t *Thread, most int) (done int, more bool) {
	n.line.missed = false
	n.Stats.Polls++
	done = n.poll(t, most)
	return done, done == most || n.line.missed
}

// takes is the code of the tasklet.
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

// rest keeps the line off until frames have had time to gather.
func (n *NAPI) rest(t *Thread) {
	if n.spec.PollRest == 0 {
		n.line.Enable()
		return
	}
	n.on, n.rests = t.Now()+n.spec.PollRest, true
	n.timer.Wake()
}

// moderates is the device's timer that switches the line on. It uses no core.
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

// takesLate is the code of the thread.
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
