package host

import (
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/sim"
)

// pass is one go of a core through its tasklets (Linux: __do_softirq). Newly
// scheduled tasklets are its next round, until a limit is reached. Then the
// thread ksoftirqd runs the rest, so that the core's programs have their turn.
type pass struct {
	on       bool
	since    sim.Time
	rounds   int
	left     int  // tasklets of the round that have not begun
	deferred bool // ksoftirqd must begin the next pass
	daemon   *Thread
}

// begins reports whether the core's next tasklet may begin now. If not,
// ksoftirqd begins it later.
func (s *system) begins() bool {
	p := &s.pass
	switch {
	case p.deferred: // Linux 4.9: ksoftirqd also runs the tasklets that interrupts schedule meanwhile
		return false
	case p.left > 0:
		p.left--
		return true
	case !p.on:
		p.on, p.since, p.rounds = true, s.cpu.engine.Now(), 0
	case s.exceeded():
		s.postpone()
		return false
	}
	p.rounds++
	p.left = len(s.pending) - 1
	return true
}

// exceeded reports whether a pass must end although tasklets wait.
func (s *system) exceeded() bool {
	p, spec := &s.pass, s.cpu.spec
	if spec.SoftirqRounds == 0 {
		return false
	}
	now := s.cpu.engine.Now()
	return p.rounds >= spec.SoftirqRounds || now-p.since >= spec.SoftirqTime || s.core.wanted(now)
}

// postpone leaves the core's tasklets to its thread.
func (s *system) postpone() {
	p := &s.pass
	p.on, p.deferred = false, true
	if p.daemon == nil {
		p.daemon = s.cpu.Kthread(int(s.core.index), "ksoftirqd", s.ksoftirqd)
		return
	}
	p.daemon.Wake()
}

// ksoftirqd is the code of the thread. It takes turns with other threads; each
// turn is another pass.
func (s *system) ksoftirqd(t *Thread) {
	for {
		for !s.pass.deferred {
			t.Spin("tasklets beyond the bounds of a pass")
		}
		s.cpu.Use(used.ContextSwitch)
		t.Run(s.cpu.spec.ContextSwitch, "context switch")
		s.pass.deferred = false
		s.next(nil)
	}
}

// wanted reports whether a thread waits for the core and no thread was
// interrupted there: then the waiting thread is next (Linux: need_resched).
// Threads behind an interrupted one must wait in any case.
func (c *Core) wanted(now sim.Time) bool {
	waits := false
	for _, q := range c.queue {
		if q.level != Threads {
			continue
		}
		if q.start < now {
			return false
		}
		waits = true
	}
	return waits
}
