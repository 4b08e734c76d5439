package portals

import "github.com/spinsim/spinsim/internal/poison"

// counters are the counting events of an interface, with the triggered
// operations that wait for them.
type counters struct {
	fired    bool // ready has something
	all      table[ct]
	made     int
	witness  witness
	pool     pool[triggered]
	pending  int // triggered operations
	sequence uint64
	ready    []*triggered // fired, waiting for their turn
}

// count adds to the counter h, if it exists. Operations that it triggers run at
// the end of the call in progress.
func (s *counters) count(h Handle, success, failure uint64) {
	if h == CTNone {
		return
	}
	if c := s.all.get(h); c != nil {
		s.set(c, CTEvent{c.value.Success + success, c.value.Failure + failure})
	}
}

// set changes a value and moves operations that fire to the ready queue.
func (s *counters) set(c *ct, value CTEvent) {
	c.value = value
	if s.witness.tracer != nil {
		s.witness.trace(TraceRecord{What: TraceCounter, Handle: c.handle, Counter: value})
	}
	if f := s.witness.hooks.CounterChanged; f != nil {
		f(s.witness.ni, c.handle)
	}
	for len(c.heap) > 0 && c.heap[0].threshold <= c.total() {
		s.fire(c.pop())
	}
}

// countEntry counts a communication or overflow event of an entry.
func (s *counters) countEntry(opts EntryOptions, c Handle, counting EntryOptions, fail FailType, mlength uint64) {
	switch {
	case c == CTNone || opts&counting == 0:
	case fail != NIOK:
		s.count(c, 0, 1)
	case opts&OptMEEventCTBytes != 0:
		s.count(c, mlength, 0)
	default:
		s.count(c, 1, 0)
	}
}

// wait queues t on c, or fires it at once if c has reached its threshold.
func (s *counters) wait(c *ct, t *triggered, threshold uint64) {
	s.pending++
	if c.total() >= threshold {
		s.fire(t)
		return
	}
	s.sequence++
	c.push(trigRef{threshold, s.sequence, t})
}

func (s *counters) free(t *triggered) {
	if t.mark.Release("portals: a triggered operation"); poison.On {
		*t = triggered{mark: t.mark}
	}
	s.pool.put(t)
}

func (s *counters) fire(t *triggered) {
	t.mark.Live("portals: a triggered operation")
	s.pending--
	s.ready = append(s.ready, t)
	s.fired = true
}
