package host

import (
	"slices"

	"github.com/spinsim/spinsim/internal/used"
)

// system is the kernel's work on a core besides threads.
type system struct {
	cpu      *CPU
	core     *Core
	raised   []*IRQ
	handler  *Thread // for interrupts
	handling bool
	pending  []*Tasklet
	ready    []*Thread // tasklets that waited and continue when they get the core again
	idle     []*Thread // contexts without a tasklet
	owner    *Thread   // context of the running tasklet; nil: none
	pass     pass
}

func (c *CPU) systemOf(core int) *system {
	k := c.core(core)
	if k.system == nil {
		k.system = &system{cpu: c, core: k}
	}
	return k.system
}

// IRQ is an interrupt line of a device.
type IRQ struct {
	on      *system
	name    string
	handler func(t *Thread)
	raised  bool
	off     bool
	missed  bool // raised while off
}

// RequestIRQ connects an interrupt line to a core. Its handler runs there with
// the highest priority. Handlers of several lines run one after the other, in
// the order in which the lines were raised. A handler may work (Thread.Run),
// wake threads and schedule tasklets, but not wait.
func (c *CPU) RequestIRQ(core int, name string, handler func(t *Thread)) *IRQ {
	return &IRQ{on: c.systemOf(core), name: "interrupt " + name, handler: handler}
}

// Raise interrupts the core at the present time. If the line is raised and its
// handler has not begun, Raise has no effect. If the handler is running, it
// runs once more.
func (q *IRQ) Raise() {
	if q.off {
		q.missed = true
		return
	}
	if q.raised {
		return
	}
	q.raised = true
	s := q.on
	s.raised = append(s.raised, q)
	s.handling = true
	if s.handler == nil {
		s.handler = s.cpu.kernelThread(int(s.core.index), "interrupts", Interrupt, s.interrupts)
		return
	}
	s.handler.Wake()
}

// Disable switches the line off until Enable.
func (q *IRQ) Disable() { q.off, q.missed = true, false }

// Enable switches the line on. If it was raised meanwhile, it interrupts now.
func (q *IRQ) Enable() {
	if q.off = false; q.missed {
		q.Raise()
	}
}

// interrupts is the code of the core's interrupts.
func (s *system) interrupts(t *Thread) {
	for {
		for len(s.raised) > 0 {
			q := s.raised[0]
			s.raised = slices.Delete(s.raised, 0, 1)
			q.raised = false
			from := t.Now()
			s.cpu.Use(used.Interrupt)
			if d := s.cpu.spec.Interrupt; d > 0 {
				t.Run(d, "interrupt")
			}
			q.handler(t)
			if to := t.Now(); to > from {
				s.cpu.span(t, q.name, from, to)
			}
			t.flow = 0
		}
		s.handling = false
		s.next(nil)
		t.process.Park("an interrupt")
	}
}

// Tasklet is work that an interrupt handler leaves for later. It runs on the
// core on which it was scheduled, after all interrupts and before all threads;
// CPUSpec.SoftirqRounds and SoftirqTime bound this. It never runs twice at
// once. A long tasklet does a part of its work and schedules itself again.
type Tasklet struct {
	cpu       *CPU
	name      string
	f         func(t *Thread)
	core      int
	scheduled bool
	running   bool
}

// NewTasklet returns a tasklet that is not scheduled. It may wait; then the
// core does other work. When the tasklet is woken, it continues as soon as the
// running tasklet, if any, waits or ends. (Tasklets of Linux may not wait; they
// use a work queue.)
func (c *CPU) NewTasklet(name string, f func(t *Thread)) *Tasklet {
	return &Tasklet{cpu: c, name: "tasklet " + name, f: f}
}

// Schedule makes the tasklet run once more on a core, now or later. If it is
// already scheduled, that has no effect. If it is running, it runs again after
// its end.
func (k *Tasklet) Schedule(core int) {
	if k.scheduled {
		return
	}
	k.scheduled, k.core = true, core
	if !k.running {
		k.enqueue()
	}
}

func (k *Tasklet) enqueue() {
	s := k.cpu.systemOf(k.core)
	s.pending = append(s.pending, k)
	s.next(nil)
}

// next gives the core to the next tasklet if the core is free for it. self is
// the calling tasklet, which needs no wake; nil: the caller is no tasklet.
func (s *system) next(self *Thread) {
	switch {
	case s.owner != nil || s.handling:
		return
	case len(s.ready) > 0:
		s.owner = s.ready[0]
		s.ready = slices.Delete(s.ready, 0, 1)
	case len(s.pending) == 0:
		s.pass.on = false
		return
	case !s.begins():
		return
	case len(s.idle) > 0:
		last := len(s.idle) - 1
		s.owner = s.idle[last]
		s.idle = s.idle[:last]
	default:
		s.owner = s.cpu.kernelThread(int(s.core.index), "softirq", Softirq, s.softirqs)
		return
	}
	if s.owner != self {
		s.owner.Wake()
	}
}

// softirqs is the code of a context for tasklets.
func (s *system) softirqs(t *Thread) {
	for {
		k := s.pending[0]
		s.pending = slices.Delete(s.pending, 0, 1)
		k.scheduled, k.running = false, true
		from := t.Now()
		s.cpu.Use(used.Softirq)
		if d := s.cpu.spec.Softirq; d > 0 {
			t.Run(d, "softirq")
		}
		k.f(t)
		if to := t.Now(); to > from {
			s.cpu.span(t, k.name, from, to)
		}
		t.flow = 0
		k.running = false
		if k.scheduled {
			k.enqueue()
		}
		s.owner = nil
		s.idle = append(s.idle, t)
		s.next(t)
		for s.owner != t {
			t.process.Park("a tasklet")
		}
	}
}

// release gives the core to the next tasklet while t waits.
func (s *system) release(t *Thread) {
	if s.owner == t {
		s.owner = nil
		s.next(t)
	}
}

// enter waits until t has the core again.
func (s *system) enter(t *Thread) {
	s.ready = append(s.ready, t)
	s.next(t)
	for s.owner != t {
		t.process.Park("its core")
	}
}
