package nic

import (
	"math/bits"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/sim"
)

// pool is a group of processors of one kind.
type pool struct {
	// What every segment needs, side by side:
	idle     uint64 // a bit for each of the first 64 cores: it executes nothing and has a free context
	cores    []core
	hpu      *HPUSpec // of a pool of HPUs
	fixed    sim.Time // of another pool: what a handler takes
	interval sim.Time // of a hardware pool: between two beginnings
	next     sim.Time // of a hardware pool: when the next invocation may begin

	tasks  ring[task]
	beyond []uint64 // as idle, of the cores behind the first 64
	name   string
	_      [56]byte // of the next pool begins in a line of the cache of its own
}

// time is how long so many cycles of a segment take.
func (p *pool) time(cycles int64, resumed bool) sim.Time {
	switch {
	case p.hpu != nil:
		return p.hpu.Time(cycles)
	case resumed:
		return 0
	}
	return p.fixed
}

// begins is when a handler begins that is given to a core now.
func (p *pool) begins(now sim.Time) sim.Time {
	switch {
	case p.hpu != nil:
		return now + p.hpu.Dispatch
	case p.interval == 0:
		return now
	}
	at := max(now, p.next)
	p.next = at + p.interval
	return at
}

// round is after what time a handler looks again that waits in a loop whose
// rounds take no time: what the pool takes for a handler, and no less than the
// round's cycles would take on an HPU that charges them.
func (s *schedule) round(p *pool, cycles int64) sim.Time {
	return max(p.fixed, s.hpu.Clock.Cycles(max(cycles, 1)))
}

// poolOf is where a handler runs.
func (s *schedule) poolOf(t task) *pool { return &s.pools[t.in.handlers.pools[t.kind]] }

// queue starts a handler on the idle core with the fewest contexts in use, or
// makes it wait for one.
func (s *schedule) queue(t task) {
	p := s.poolOf(t)
	c := p.choose()
	if c == nil {
		p.tasks.push(t)
		s.waiting++
		return
	}
	s.start(c, t)
}

// choose returns the idle core with the fewest contexts in use, the lowest
// number first; nil: no core can take a task.
func (p *pool) choose() *core {
	best := fewest(nil, p.cores, p.idle)
	for w := 0; (best == nil || best.active > 0) && w < len(p.beyond); w++ {
		best = fewest(best, p.cores[64*(w+1):], p.beyond[w])
	}
	return best
}

// fewest returns the core with the fewest contexts in use, the first of them:
// best, or one of a set of others.
func fewest(best *core, cores []core, set uint64) *core {
	for ; set != 0; set &= set - 1 {
		c := &cores[bits.TrailingZeros64(set)]
		if best == nil || c.active < best.active {
			best = c
		}
		if c.active == 0 {
			break
		}
	}
	return best
}

// idleOf is the word of idle with the bit of a core.
func (p *pool) idleOf(c *core) *uint64 {
	if c.number < 64 {
		return &p.idle
	}
	return &p.beyond[c.number/64-1]
}

// busy notes that a core executes a handler.
func (p *pool) busy(c *core) {
	c.running = true
	*p.idleOf(c) &^= 1 << (c.number % 64)
}

func (s *schedule) nextTask(p *pool) task {
	s.waiting--
	return p.tasks.pop()
}

// start gives a task a context of an idle core.
func (s *schedule) start(c *core, t task) {
	r := &c.runs[0]
	for i := 1; r.active; i++ {
		r = &c.runs[i]
	}
	c.pool.busy(c)
	c.active++
	r.active = true
	r.task = t
	r.generation++
	if at := c.pool.begins(s.now()); at > s.now() {
		s.post(at, kindDispatched, uint64(r.index), nil)
		return
	}
	s.execute(r)
}

// execute runs the first segment of a handler.
func (s *schedule) execute(r *run) {
	r.began, r.start, r.since, r.gave = s.now(), s.now(), -1, -1
	r.charged, r.resumed, r.landed, r.failed.result = 0, false, false, hpu.OK
	if r.looks {
		r.looks, r.handles = false, r.handles[:0]
	}
	s.calls++
	r.number = s.calls
	if r.task.kind == payloadHandler {
		from, to := r.task.in.frame.Span(int(r.task.packet))
		s.buffered -= int64(to - from)
	}
	s.segmentRan(r, s.act.execute(r))
}

// resume goes on with a suspended handler on its core, which is idle or its own.
func (s *schedule) resume(r *run) {
	r.core.pool.busy(r.core)
	r.start, r.since, r.resumed = s.now(), -1, true
	s.segmentRan(r, s.act.resume(r))
}

// segmentRan books the core for the segment that has just been executed.
func (s *schedule) segmentRan(r *run, status hpu.Status) {
	r.status = status
	end := r.at(r.cycles)
	s.trace.segment(r, end)
	s.post(end, kindSegmentEnd, uint64(r.index), nil)
}

// idle gives a core that has finished a segment its next one: a handler whose
// suspension has ended, or the oldest task.
func (s *schedule) idle(c *core) {
	c.running = false
	switch p := c.pool; {
	case c.resume.len() > 0:
		s.resume(c.resume.pop())
	case c.active == len(c.runs):
	case s.waiting > 0 && p.tasks.len() > 0:
		s.start(c, s.nextTask(p))
	default:
		*p.idleOf(c) |= 1 << (c.number % 64)
	}
}

// resumable ends the suspension of a run with a result; it goes on when its core is idle.
func (s *schedule) resumable(r *run, result int64) {
	if poison.On {
		r.checkWaiting()
	}
	r.ready = result
	if r.core.running {
		r.core.resume.push(r)
		return
	}
	s.resume(r)
}

// build makes the processors: the HPUs, then the other pools by name.
func (s *schedule) build(pools Pools) {
	spec := s.hpu
	s.pools = []pool{{name: "HPU", hpu: spec}}
	for _, name := range pools.Names() {
		o := pools[name]
		p := pool{name: name, fixed: o.Invocation}
		if o.Kind == Hardware {
			p.fixed, p.interval = o.Latency, o.Latency/sim.Time(o.Depth)
		}
		s.pools = append(s.pools, p)
	}
	sizes := append([]hpu.Processors{{Number: spec.Cores, Contexts: spec.Contexts}}, pools.Processors()...)
	all, processors := 0, 0
	for _, n := range sizes {
		all += n.Number * n.Contexts
	}
	s.runs = make([]run, all)
	rest := s.runs
	for i := range rest {
		rest[i].index = i
	}
	for i := range s.pools {
		p := &s.pools[i]
		p.cores = make([]core, sizes[i].Number)
		p.beyond = make([]uint64, (len(p.cores)-1)/64)
		for k := range p.cores {
			c := &p.cores[k]
			c.pool, c.index, c.number = p, processors, k
			*p.idleOf(c) |= 1 << (k % 64)
			c.runs, rest = rest[:sizes[i].Contexts], rest[sizes[i].Contexts:]
			for r := range c.runs {
				c.runs[r].core = c
			}
			processors++
		}
	}
}

// serving returns the pools that run a library's handlers, by their kinds.
func (s *schedule) serving(serve Serve, library string) (pools [3]uint8) {
	for kind, name := range handlerKindNames {
		pool := serve.Pool(library, name)
		for i := range s.pools {
			if i > 0 && s.pools[i].name == pool {
				pools[kind] = uint8(i)
			}
		}
	}
	return pools
}
