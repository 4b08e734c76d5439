package host

import "slices"

// system is what the kernel has running on a core besides threads.
type system struct {
	cpu      *CPU
	core     *Core
	raised   []*IRQ
	handler  *Thread // of interrupts
	handling bool
	pending  []*Tasklet
	ready    []*Thread // tasklets that have waited and go on when the core is theirs again
	idle     []*Thread // contexts for tasklets that have none
	owner    *Thread   // that of the tasklet that runs; nil: none
	pass     pass
}

func (c *CPU) systemOf(core int) *system {
	k := &c.cores[core]
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
	missed  bool // raised while it was off
}

// RequestIRQ connects a line to a core. Its handler runs there, above all else;
// those of several lines one after the other in the order in which they were
// raised. It may work (Thread.Run), wake threads and schedule tasklets, but not
// wait.
func (c *CPU) RequestIRQ(core int, name string, handler func(t *Thread)) *IRQ {
	return &IRQ{on: c.systemOf(core), name: "interrupt " + name, handler: handler}
}

// Raise interrupts the core, at the present time. A line that is up and whose
// handler has not begun stays up; while its handler runs it makes it run once
// more.
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
		s.handler = s.cpu.kernelThread(s.core.index, "interrupts", Interrupt, s.interrupts)
		return
	}
	s.handler.Wake()
}

// Disable switches the line off: until Enable it interrupts nobody.
func (q *IRQ) Disable() { q.off, q.missed = true, false }

// Enable switches it on again. If it was raised meanwhile it interrupts now.
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

// Tasklet is work that an interrupt handler leaves for later: it runs on the
// core on which it was scheduled when no interrupt is handled there, before all
// threads, but for what CPUSpec.SoftirqRounds and SoftirqTime bound. It never
// runs twice at once. What has much to do does a part of it and schedules
// itself.
type Tasklet struct {
	cpu       *CPU
	name      string
	f         func(t *Thread)
	core      int
	scheduled bool
	running   bool
}

// NewTasklet returns a tasklet that nobody has scheduled. It may wait: the core
// then goes on with what comes next, and with the tasklet when it was woken and
// the tasklet that runs, if any, waits or ends. (Tasklets of Linux may not;
// what has to wait is a work queue there.)
func (c *CPU) NewTasklet(name string, f func(t *Thread)) *Tasklet {
	return &Tasklet{cpu: c, name: "tasklet " + name, f: f}
}

// Schedule makes the tasklet run once more on a core, now or later. While it is
// scheduled already that changes nothing; while it runs it will run once more
// when it has ended.
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

// next gives the core to the next tasklet if it is free for one. self is who
// asks, and need not be woken; nil: no tasklet.
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
		s.owner = s.cpu.kernelThread(s.core.index, "softirq", Softirq, s.softirqs)
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

// enter waits until the core is that of t again.
func (s *system) enter(t *Thread) {
	s.ready = append(s.ready, t)
	s.next(t)
	for s.owner != t {
		t.process.Park("its core")
	}
}
