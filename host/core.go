package host

import (
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// Level is how urgent work on a core is: a higher one takes the core from a
// lower one, which goes on where it was.
type Level uint8

// Levels.
const (
	Threads   Level = iota // programs, the kernel on their behalf, and kernel threads
	Softirq                // tasklets
	Interrupt              // interrupt handlers
	levels    = iota
)

// String names a level as tables do.
func (l Level) String() string { return [...]string{"threads", "softirq", "interrupt"}[l] }

// CPUSpec is what an operating system's cores pay for going from one thing to
// the next. With zeros they pay nothing.
type CPUSpec struct {
	// Interrupt is from the line's rise to the handler and from its return back
	// to what ran before, in all, at most 1 s. PART'22 counts it as part of a
	// handler's 1 us.
	Interrupt sim.Time `yaml:"interrupt"`
	// Softirq is what a core needs to get to a tasklet, at most 1 s.
	Softirq sim.Time `yaml:"softirq"`
	// SoftirqRounds is how often a core goes through tasklets that were scheduled meanwhile before
	// its thread for them, ksoftirqd, goes on in turn with others, 0 to 2^20. It ends sooner if a
	// thread waits for a core on which none was interrupted. Linux: 10 (MAX_SOFTIRQ_RESTART,
	// kernel/softirq.c). 0, or absent: no thread, threads wait until no tasklet is left.
	SoftirqRounds int `yaml:"softirq_rounds,omitempty"`
	// SoftirqTime is how long it does so at most, a round that has begun not counted, up to 1 s; of
	// no consequence without SoftirqRounds. Linux: 2 ms (MAX_SOFTIRQ_TIME).
	SoftirqTime sim.Time `yaml:"softirq_time,omitempty"`
	// ContextSwitch is what a thread that was woken needs to be on its core
	// again, at most 1 s. One that waits busily pays none.
	ContextSwitch sim.Time `yaml:"context_switch"`
}

// CPU is the cores of a node. A core does one thing at a time; what it is given
// at a level it does in that order, and each is done before the next begins,
// unless a higher level takes the core meanwhile: then it ends later by what
// was taken.
type CPU struct {
	engine *sim.Engine
	owner  sim.ID
	spec   CPUSpec
	cores  []Core
	work   []Work
	busy   [levels]sim.Time
	tracks []sim.TrackID
	group  string // of its tracks
	rank   int
	follow sim.Follower // nil: nobody wants to know more than tracks show
}

// Core is one core of a CPU.
type Core struct {
	free    [levels]sim.Time // when all is done that was given to a level so far
	queue   []*Thread        // what is below interrupts and not done, in no order
	system  *system          // nil: nobody has interrupted it
	index   int
	threads int // of their level that were ever started on it
}

// Work is what cores have been busy with under one name.
type Work struct {
	What  string
	Level Level
	Time  sim.Time // of all cores
	Count int64    // how many times
}

// Init makes c n idle cores of the actor id. group names them in a timeline,
// where they are called "CPU 0" and so on.
func (c *CPU) Init(eng *sim.Engine, id sim.ID, n int, spec CPUSpec, group string, rank int) {
	*c = CPU{engine: eng, owner: id, spec: spec, cores: make([]Core, n), group: group, rank: rank}
	for i := range c.cores {
		c.cores[i].index = i
	}
	if !eng.Tracing() {
		return
	}
	c.follow, _ = eng.Tracer().(sim.Follower)
	for i := range c.cores {
		c.tracks = append(c.tracks, eng.Tracer().Track(group, rank, fmt.Sprintf("CPU %d", i)))
	}
}

// Cores is how many there are.
func (c *CPU) Cores() int { return len(c.cores) }

// Busy is the time that all cores have worked, what they have accepted for later included.
func (c *CPU) Busy() sim.Time {
	var sum sim.Time
	for _, b := range c.busy {
		sum = sum.Plus(b)
	}
	return sum
}

// BusyAt is the part of Busy of a level.
func (c *CPU) BusyAt(l Level) sim.Time { return c.busy[l] }

// Work lists what the cores have done, in the order in which each kind came
// first. Their times add up to Busy. It is valid until the cores work on.
func (c *CPU) Work() []Work { return c.work }

// charge notes that a core is busy with something for d.
func (c *CPU) charge(l Level, what string, d sim.Time) {
	c.busy[l] = c.busy[l].Plus(d)
	for i := range c.work {
		if w := &c.work[i]; w.What == what && w.Level == l {
			w.Time = w.Time.Plus(d)
			w.Count++
			return
		}
	}
	c.work = append(c.work, Work{what, l, d, 1})
}

// span draws something on the timeline.
func (c *CPU) span(t *Thread, what string, from, to sim.Time) {
	if c.tracks == nil {
		return
	}
	process := sim.Arg{Key: "process", Text: t.name}
	if t.kernel {
		c.engine.Tracer().Span(c.tracks[t.core.index], what, from, to, t.flow, process, sim.Arg{Key: "kernel", Num: 1})
		return
	}
	c.engine.Tracer().Span(c.tracks[t.core.index], what, from, to, t.flow, process)
}

// hold gives the core to t for d, as soon as what the same level was given
// before and all higher levels are done, and notes when that begins and ends.
// What is on the core at a lower level stops for so long.
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

// done takes t off the core's list.
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
