package host

import (
	"fmt"

	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/sim"
)

// Level is the priority of work on a core. A higher level interrupts a lower
// one, which later continues where it was.
type Level uint8

// Levels.
const (
	Threads   Level = iota // programs, kernel work for them, and kernel threads
	Softirq                // tasklets
	Interrupt              // interrupt handlers
	levels    = iota
)

// String names a level as the tables of a report do.
func (l Level) String() string { return [...]string{"threads", "softirq", "interrupt"}[l] }

// CPUSpec gives the costs of switching between kinds of work on a core. The
// zero value costs nothing.
type CPUSpec struct {
	// Interrupt is the time from the rise of the line to the handler plus the time
	// from its return to the interrupted work, at most 1 s. PART'22 counts it as
	// part of a handler's 1 us.
	Interrupt sim.Time `yaml:"interrupt"`
	// Softirq is the time to start a tasklet, at most 1 s.
	Softirq sim.Time `yaml:"softirq"`
	// SoftirqRounds is how often a core processes newly scheduled tasklets before
	// it leaves the rest to its thread ksoftirqd, which takes turns with other
	// threads, 0 to 2^20. It stops earlier if a thread waits for the core and none
	// was interrupted there. Linux: 10 (MAX_SOFTIRQ_RESTART, kernel/softirq.c). 0,
	// or absent: there is no such thread, and threads wait until no tasklet is
	// left.
	SoftirqRounds int `yaml:"softirq_rounds,omitempty"`
	// SoftirqTime is the longest time for those rounds, at most 1 s. A round that
	// has begun is completed. It has no effect without SoftirqRounds. Linux: 2 ms
	// (MAX_SOFTIRQ_TIME).
	SoftirqTime sim.Time `yaml:"softirq_time,omitempty"`
	// ContextSwitch is the time until a woken thread is back on its core, at most
	// 1 s. A thread that spins pays none.
	ContextSwitch sim.Time `yaml:"context_switch"`
}

// CPU is the cores of a node. A core does one thing at a time. Within a level,
// work is done in the order of arrival, each completely before the next. A
// higher level may interrupt it: then the work ends later by the time of the
// interruption.
type CPU struct {
	engine *sim.Engine
	owner  sim.ID
	cores  int32
	spec   *CPUSpec // the same for all nodes
	first  Core     // most nodes of a large cluster need no other
	others []Core   // nil: nobody has needed them
	work   []Work
	busy   [levels]sim.Time
	shown  *shownCPU
	used   used.Set // what has happened on the node
}

// shownCPU is a CPU in a timeline.
type shownCPU struct {
	tracks []sim.TrackID
	group  string // of the tracks
	rank   int
	follow sim.Follower // receives more than tracks show; nil: none
}

// Core is one core of a CPU.
type Core struct {
	free    [levels]sim.Time // per level: when all work given so far is done
	queue   []*Thread        // work below interrupts that is not done, unordered
	system  *system          // nil: the core was never interrupted
	busy    sim.Time
	index   int32
	threads int32 // of level Threads, ever started on the core
}

// Work is the time of the cores under one name.
type Work struct {
	What  string
	Level Level
	Time  sim.Time // of all cores
	Count int64    // how many times
}

// Init makes c n idle cores of actor id. group is their group in a timeline,
// where they are called "CPU 0" and so on.
func (c *CPU) Init(eng *sim.Engine, id sim.ID, n int, spec *CPUSpec, group string, rank int) {
	*c = CPU{engine: eng, owner: id, spec: spec, cores: int32(n)}
	if !eng.Tracing() {
		return
	}
	c.shown = &shownCPU{group: group, rank: rank}
	c.shown.follow, _ = eng.Tracer().(sim.Follower)
	for i := range n {
		c.shown.tracks = append(c.shown.tracks, eng.Tracer().Track(group, rank, fmt.Sprintf("CPU %d", i)))
	}
}

// core returns a core by its number.
func (c *CPU) core(i int) *Core {
	if i == 0 {
		return &c.first
	}
	if c.others == nil {
		c.others = make([]Core, c.cores-1)
		for k := range c.others {
			c.others[k].index = int32(k + 1)
		}
	}
	return &c.others[i-1]
}

// Use notes what happens on the node for the first time: see package used.
func (c *CPU) Use(f used.Fact) { c.used.Add(f) }

// Used returns what has happened on the node.
func (c *CPU) Used() used.Set { return c.used }

// Cores returns the number of cores.
func (c *CPU) Cores() int { return int(c.cores) }

// Busy returns the working time of all cores, including work accepted for
// later.
func (c *CPU) Busy() sim.Time {
	var sum sim.Time
	for _, b := range c.busy {
		sum = sum.Plus(b)
	}
	return sum
}

// Busiest returns the part of Busy of the core that works most.
func (c *CPU) Busiest() sim.Time {
	most := c.first.busy
	for i := range c.others {
		most = max(most, c.others[i].busy)
	}
	return most
}

// BusyAt returns the part of Busy at one level.
func (c *CPU) BusyAt(l Level) sim.Time { return c.busy[l] }

// Work lists the work of the cores, in the order in which each name came first.
// The times add up to Busy. The list is valid until the cores work again.
func (c *CPU) Work() []Work { return c.work }

// charge records that the core of t is busy for d.
func (c *CPU) charge(t *Thread, what string, d sim.Time) {
	l := t.level
	c.busy[l], t.core.busy = c.busy[l].Plus(d), t.core.busy.Plus(d)
	for i := range c.work {
		if w := &c.work[i]; w.What == what && w.Level == l {
			w.Time = w.Time.Plus(d)
			w.Count++
			return
		}
	}
	c.work = append(c.work, Work{what, l, d, 1})
}

// span draws an interval on the timeline.
func (c *CPU) span(t *Thread, what string, from, to sim.Time) {
	if c.shown == nil {
		return
	}
	track := c.shown.tracks[t.core.index]
	process := sim.Arg{Key: "process", Text: t.name}
	if t.kernel {
		c.engine.Tracer().Span(track, what, from, to, t.flow, process, sim.Arg{Key: "kernel", Num: 1})
		return
	}
	c.engine.Tracer().Span(track, what, from, to, t.flow, process)
}

// hold gives the core to t for d, after all earlier work of the same level and
// all work of higher levels. It records the beginning and the end. Work of
// lower levels on the core is delayed by d.
func (c *Core) hold(t *Thread, now, d sim.Time) {
	start := now
	for l := t.level; l < levels; l++ {
		start = max(start, c.free[l])
	}
	t.start, t.end = start, start.Later(d)
	c.free[t.level] = t.end
	if t.level < Interrupt {
		c.queue = append(c.queue, t)
	}
	if t.level == Threads || t.end == start {
		return
	}
	d = t.end - start
	for l := range t.level {
		if c.free[l] > start {
			c.free[l] = c.free[l].Later(d)
		}
	}
	for _, q := range c.queue {
		if q.level < t.level && q.end > start {
			if q.start >= start {
				q.start = q.start.Later(d)
			} else {
				q.stolen = q.stolen.Plus(d)
			}
			q.end = q.end.Later(d)
		}
	}
}

// done removes t from the core's list.
func (c *Core) done(t *Thread) {
	for i, q := range c.queue {
		if q == t {
			last := len(c.queue) - 1
			c.queue[i], c.queue[last] = c.queue[last], nil
			c.queue = c.queue[:last]
			return
		}
	}
}
