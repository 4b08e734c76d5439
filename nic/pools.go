package nic

import (
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/sim"
)

// pool is a group of processors of one kind.
type pool struct {
	// Every segment needs these, so they lie side by side:
	// a bit for each of the first 64 cores: it executes nothing and has a free
	// context
	idle     uint64
	cores    []core
	hpu      *HPUSpec // for a pool of HPUs
	fixed    sim.Time // for another pool: the time of a handler
	after    sim.Time // for which a handler's end holds its core
	interval sim.Time // for a hardware pool: the time between two beginnings
	rate     sim.Rate // for a hardware pool: of the bytes of a packet; zero: they take no time
	next     sim.Time // for a hardware pool: when the next invocation may begin

	tasks  ring[task]
	beyond []uint64 // the same bits for the other cores
	name   string
	// firmware whose handlers do not all take the same time
	varied        bool
	ports         uint8 // of hardware: its own ways to host memory; 0: it has none
	quiet, follow sim.Time
	other         *otherWork // of firmware; nil: none
}

// time is how long the cycles of a segment take.
func (p *pool) time(cycles int64, resumed bool) sim.Time {
	switch {
	case p.hpu != nil:
		return p.hpu.Time(cycles)
	case resumed:
		return 0
	}
	return p.fixed
}

// first is how long firmware takes for a handler that has sent nothing yet.
// follows: it waited for its core.
func (p *pool) first(follows bool) sim.Time {
	if follows && p.follow > 0 {
		return p.follow
	}
	if p.quiet > 0 {
		return p.quiet
	}
	return p.fixed
}

// sending notes that a handler of firmware sends.
func (p *pool) sending(r *run) {
	if p.varied && (p.follow == 0 || !r.follows) {
		r.fixed = p.fixed
	}
}

// begins is the time when a handler begins that is given to a core now.
func (p *pool) begins(now sim.Time) sim.Time {
	switch {
	case p.hpu != nil && p.hpu.Home == "":
		return now + p.hpu.Dispatch.Time(p.hpu.Clock)
	case p.other != nil:
		return p.other.ends(now)
	case p.interval == 0:
		return now
	}
	at := max(now, p.next)
	p.next = at + p.interval
	return at
}

// otherWork is work of firmware that is not simulated.
type otherWork struct {
	rng   *rand.Rand
	share float64
	piece sim.Time
}

// ends returns when a core that is idle now is done with other work.
func (o *otherWork) ends(now sim.Time) sim.Time {
	if o.rng.Float64() >= o.share {
		return now
	}
	return now + sim.Time(o.rng.Float64()*float64(o.piece))
}

// round is the pause before a handler looks again, if it waits in a loop whose
// rounds take no time. It is the pool's time for a handler, and at least the
// time of the round's cycles on an HPU that charges them.
func (s *schedule) round(p *pool, cycles int64) sim.Time {
	return max(p.fixed, s.hpu.Clock.Cycles(max(cycles, 1)))
}

func (s *schedule) poolOf(t task) *pool {
	i := int(t.in.handlers.pools[t.kind])
	if i == 0 && s.homes != nil {
		i = int(t.cluster)
	}
	return &s.pools[i]
}

// queue lets a handler run that has just come.
func (s *schedule) queue(t task) {
	if s.homes != nil && t.in.handlers.pools[t.kind] == 0 {
		s.toCluster(t)
		return
	}
	s.ready(t)
}

// ready starts a handler on the idle core with the fewest contexts in use. If
// no core is idle, the handler waits.
func (s *schedule) ready(t task) {
	p := s.poolOf(t)
	if p.hpu != nil {
		s.core.used.Add(used.HPU)
	} else {
		s.core.used.Add(used.Pool)
	}
	if arbitrates(s, p) {
		s.waiting++
		s.tenants.push(t)
		s.tenants.fill(s, p)
		return
	}
	c := p.choose()
	if c == nil {
		p.tasks.push(t)
		s.waiting++
		return
	}
	s.start(c, t)
}

// arbitrates reports whether tenants decide which handler a pool runs next: they
// do for the HPUs, or else in front of their clusters.
func arbitrates(s *schedule, p *pool) bool {
	return s.tenants != nil && s.homes == nil && p.hpu != nil
}

// nextTask takes the handler that a pool is to run next. Not ok: there is none, or
// tenants have as many under way as they may.
func (s *schedule) nextTask(p *pool) (t task, ok bool) {
	if arbitrates(s, p) {
		t, ok = s.tenants.pop()
	} else if p.tasks.len() > 0 {
		t, ok = p.tasks.pop(), true
	}
	if ok {
		s.waiting--
	}
	return t, ok
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

// fewest returns the core with the fewest contexts in use, either best or one
// of a set of others. In a tie the first wins.
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

// idleOf is the word of idle bits that holds a core's bit.
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

// start gives a task a context of an idle core.
func (s *schedule) start(c *core, t task) {
	i := 0
	for c.runs[i] != nil && c.runs[i].active {
		i++
	}
	r := c.runs[i]
	if r == nil {
		r = s.newRun(c, int(c.first)+i)
		c.runs[i] = r
	}
	c.pool.busy(c)
	if c.active++; arbitrates(s, c.pool) {
		s.tenants.begins(t)
	}
	r.active = true
	r.task = t
	r.generation++
	if c.pool.varied {
		r.follows = c.follows
		r.fixed = c.pool.first(c.follows)
	}
	if at := c.pool.begins(s.now()); at > s.now() {
		s.post(at, kindDispatched, 0, r)
		return
	}
	s.execute(r)
}

// newRun returns the state of a context. It may have been another's: operations
// of handlers that have ended know its generation.
func (s *schedule) newRun(c *core, index int) *run {
	if !s.sparse {
		return &run{core: c, index: index}
	}
	r := s.core.runs.take()
	*r = run{core: c, index: index, generation: r.generation, handles: r.handles[:0]}
	return r
}

// release gives the state of an idle context back, if there are many NICs and
// no operation of its handlers is on its way.
func (s *schedule) release(r *run) {
	if !s.sparse || r.late > 0 {
		return
	}
	if r.ctx != nil {
		r.ctx.Release()
		r.ctx = nil
	}
	r.core.runs[r.index-int(r.core.first)] = nil
	s.core.runs.give(r)
}

// execute runs the first segment of a handler.
func (s *schedule) execute(r *run) {
	r.began, r.start, r.since, r.gave = s.now(), s.now(), -1, -1
	r.charged, r.resumed, r.landed, r.failed.result, r.sent, r.first = 0, false, false, hpu.OK, 0, false
	if r.looks {
		r.looks, r.handles = false, r.handles[:0]
	}
	if arbitrates(s, r.core.pool) { // its core has waited for the handler
		s.tenants.runs(r.task, s.hpu.Dispatch.Time(s.hpu.Clock))
	}
	s.calls++
	r.number = s.calls
	if r.task.kind == payloadHandler {
		from, to := r.task.in.frame.Span(int(r.task.packet))
		unbuffer(s, r.task.in, int64(to-from))
	}
	s.segmentRan(r, s.act.execute(r))
}

// resume continues a suspended handler on its core, which is idle or executes
// this handler.
func (s *schedule) resume(r *run) {
	r.core.pool.busy(r.core)
	if arbitrates(s, r.core.pool) {
		s.tenants.chosen(s.tenants.owner(r.task))
	}
	r.start, r.since, r.resumed = s.now(), -1, true
	s.segmentRan(r, s.act.resume(r))
}

// segmentRan books the core for the segment that has just been executed.
func (s *schedule) segmentRan(r *run, status hpu.Status) {
	r.status = status
	end := r.over()
	if s.tenants != nil && r.core.pool.hpu != nil {
		s.tenants.runs(r.task, end-r.start)
	}
	s.trace.segment(r, end)
	s.post(end, kindSegmentEnd, 0, r)
}

// idle gives a core that has finished a segment its next one: a handler whose
// suspension has ended, or the oldest task.
func (s *schedule) idle(c *core) {
	c.running = false
	switch p := c.pool; {
	case arbitrates(s, p):
		if !s.tenants.serve(s, c, nil) && int(c.active) < len(c.runs) {
			*p.idleOf(c) |= 1 << (c.number % 64)
		}
		s.tenants.fill(s, p) // the end of a handler may let several begin
	case c.resume.head != nil:
		s.resume(c.resume.pop())
	case int(c.active) == len(c.runs):
	default:
		if s.waiting > 0 {
			if t, ok := s.nextTask(p); ok {
				c.follows = true
				s.start(c, t)
				c.follows = false
				break
			}
		}
		*p.idleOf(c) |= 1 << (c.number % 64)
	}
}

// resumable ends the suspension of a run with a result. The run continues when
// its core is idle.
func (s *schedule) resumable(r *run, result int64) {
	if poison.On {
		r.checkWaiting()
	}
	r.ready = result
	if r.core.running {
		pause(s, r)
		return
	}
	s.resume(r)
}

// build makes the processors: the HPUs, then the other pools by name.
func (s *schedule) build(pools Pools) {
	spec := s.hpu
	s.pools = []pool{{name: "HPU", hpu: spec}}
	each := s.buildHomes()
	for _, name := range pools.Names() {
		o := pools[name]
		p := pool{name: name, fixed: o.Invocation, quiet: o.Quiet, follow: o.Follow, varied: o.Quiet > 0 || o.Follow > 0}
		if o.Kind == Hardware {
			p.fixed, p.interval, p.rate = o.Latency, o.Latency/sim.Time(o.Depth), o.Rate
		}
		if o.Ports > 0 {
			p.ports = s.bus.AddPorts(o.Ports, o.PortRate)
		}
		if o.OtherShare > 0 {
			p.other = &otherWork{s.engine.Rand("nic.pool."+name, int(s.rank)), o.OtherShare, o.OtherTime}
		}
		s.pools = append(s.pools, p)
	}
	sizes := slices.Repeat([]hpu.Processors{{Number: each, Contexts: spec.Contexts}}, spec.Cores/each)
	sizes = append(sizes, pools.Processors()...)
	all, processors := 0, 0
	for _, n := range sizes {
		all += n.Number * n.Contexts
	}
	s.runs = make([]*run, all)
	first := 0
	for i := range s.pools {
		p := &s.pools[i]
		if p.hpu != nil {
			p.after = spec.Finish.Time(spec.Clock) + spec.Feedback.Time(spec.Clock)
		}
		p.cores = make([]core, sizes[i].Number)
		p.beyond = make([]uint64, (len(p.cores)-1)/64)
		for k := range p.cores {
			c := &p.cores[k]
			c.pool, c.index, c.number, c.first = p, int32(processors), int16(k), int32(first)
			*p.idleOf(c) |= 1 << (k % 64)
			first += sizes[i].Contexts
			c.runs = s.runs[c.first:first:first]
			processors++
		}
	}
}

// serving returns the pools that run a library's handlers, by kind of handler.
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
