package host

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// machine is cores without a node.
type machine struct {
	CPU
	eng *sim.Engine
	id  sim.ID
	ran []ran
}

// ran is one piece of work of a core.
type ran struct {
	core       int
	level      Level
	asked, d   sim.Time
	start, end sim.Time
	stolen     sim.Time
}

func newMachine(cores int, spec CPUSpec) *machine {
	m := &machine{eng: sim.New(1)}
	m.id = m.eng.Add("node", m)
	m.Init(m.eng, m.id, cores, &spec, "Rank", 0)
	return m
}

const kindCall sim.Kind = 1

func (m *machine) Handle(e *sim.Event) { e.P.(func())() }

// at makes f run at a time, outside all threads.
func (m *machine) at(t sim.Time, f func()) { m.eng.Post(t, m.id, m.id, kindCall, 0, 0, f) }

func (m *machine) thread(core int, f func(t *Thread)) *Thread {
	t := new(Thread)
	m.Spawn(t, core, "program", nil, func(t *Thread) error { f(t); return nil })
	return t
}

// run makes t work and records it.
func (m *machine) run(t *Thread, d sim.Time) {
	asked := t.Now()
	t.Run(d, t.Level().String())
	m.ran = append(m.ran, ran{core: t.Core(), level: t.Level(), asked: asked, d: d, start: t.start, end: t.end, stolen: t.stolen})
}

// An interrupt of 1 comes at 3, followed by a tasklet of 2. During the tasklet
// another interrupt of 4 comes at 5. A thread that computes 10 from 0 on ends
// at 17, and one of 5 after it at 22.
func TestInterruptsTakeTheCore(t *testing.T) {
	m := newMachine(1, CPUSpec{})
	ends := map[string]sim.Time{}
	m.thread(0, func(t *Thread) { t.Run(10, "compute"); ends["first"] = t.Now() })
	m.thread(0, func(t *Thread) { t.Run(5, "compute"); ends["second"] = t.Now() })
	tasklet := m.NewTasklet("pages", func(t *Thread) { t.Run(1, "a"); t.Run(1, "a"); ends["tasklet"] = t.Now() })
	soon := m.RequestIRQ(0, "nic", func(t *Thread) {
		tasklet.Schedule(t.Core())
		tasklet.Schedule(t.Core()) // no more than once
		t.Run(1, "handler")
		ends["interrupt"] = t.Now()
	})
	later := m.RequestIRQ(0, "disk", func(t *Thread) { t.Run(4, "handler"); ends["disk"] = t.Now() })
	m.at(3, func() { soon.Raise(); soon.Raise() })
	m.at(5, later.Raise)
	require.NoError(t, m.eng.Run())
	require.Equal(t, map[string]sim.Time{"interrupt": 4, "disk": 9, "tasklet": 10, "first": 17, "second": 22}, ends)
	require.Equal(t, []Work{{"compute", Threads, 15, 2}, {"handler", Interrupt, 5, 2}, {"a", Softirq, 2, 2}}, m.Work())
	require.Equal(t, []sim.Time{22, 5, 2, 15}, []sim.Time{m.Busy(), m.BusyAt(Interrupt), m.BusyAt(Softirq), m.BusyAt(Threads)})
	m.eng.Close()
}

// The operating system pays to enter a handler or a tasklet, and to return to a
// thread that waited. It does not pay for a thread that spun or did not have to
// wait.
func TestSwitchesCost(t *testing.T) {
	m := newMachine(1, CPUSpec{Interrupt: 2, Softirq: 3, ContextSwitch: 7})
	var at []sim.Time
	note := func(t *Thread) { at = append(at, t.Now()) }
	var sleeper, spinner *Thread
	tasklet := m.NewTasklet("", func(t *Thread) { t.Run(1, "tasklet"); note(t); sleeper.Wake() })
	irq := m.RequestIRQ(0, "", func(t *Thread) { t.Run(1, "handler"); note(t); tasklet.Schedule(0) })
	sleeper = m.thread(0, func(t *Thread) {
		t.Wait("the tasklet")
		note(t)
		t.Wake()
		t.Wait("nothing: it was woken")
		note(t)
		t.Sleep(t.Now() + 1)
		note(t)
		spinner.Wake()
	})
	spinner = m.thread(0, func(t *Thread) { t.Spin("the other"); note(t) })
	m.at(10, irq.Raise)
	require.NoError(t, m.eng.Run())
	require.Equal(t, []sim.Time{13, 17, 24, 24, 32, 32}, at)
	m.eng.Close()
}

// While a tasklet waits, the next one runs. The first continues when it is
// woken and the second waits or ends. It never runs twice at once, and runs
// once more if it was scheduled while it ran.
func TestTaskletsWait(t *testing.T) {
	m := newMachine(2, CPUSpec{})
	var log []string
	var waiting *Thread
	note := func(t *Thread, what string) { log = append(log, what+" "+t.Now().String()) }
	ready, runs := false, 0
	first := m.NewTasklet("", nil)
	first.f = func(t *Thread) {
		runs++
		note(t, "first begins")
		for waiting = t; !ready; {
			t.Wait("readiness")
		}
		note(t, "first goes on")
		t.Run(3, "first")
		note(t, "first ends")
	}
	second := m.NewTasklet("", func(t *Thread) {
		note(t, "second begins")
		first.Schedule(1) // on another core, but it is running
		t.Run(10, "second")
		note(t, "second ends")
	})
	m.at(1, func() { first.Schedule(0); second.Schedule(0) })
	m.at(5, func() { ready = true; waiting.Wake() })
	require.NoError(t, m.eng.Run())
	require.Equal(t, []string{
		"first begins 1 ps", "second begins 1 ps", "second ends 11 ps", "first goes on 11 ps", "first ends 14 ps",
		"first begins 14 ps", "first goes on 14 ps", "first ends 17 ps",
	}, log)
	require.Equal(t, 2, runs)
	m.eng.Close()
}

// An interrupt handler must not wait.
func TestInterruptHandlersDoNotWait(t *testing.T) {
	m := newMachine(1, CPUSpec{})
	m.RequestIRQ(0, "", func(t *Thread) { t.Wait("godot") }).Raise()
	require.Panics(t, func() { _ = m.eng.Run() })
	m.eng.Close()
}

// For any arrivals: a piece of work takes its own time plus the interruptions
// by higher levels. It begins when the core has no earlier work of the same or
// a higher level. Every busy time of the cores belongs to some work.
func TestCoresAgainstTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(rapid.IntRange(1, 2).Draw(t, "cores"), CPUSpec{})
		defer m.eng.Close()
		short := func(what string) sim.Time { return sim.Time(rapid.IntRange(0, 12).Draw(t, what)) }
		core := func() int { return rapid.IntRange(0, m.Cores()-1).Draw(t, "core") }
		var tasklets []*Tasklet
		for range rapid.IntRange(0, 3).Draw(t, "tasklets") {
			pieces := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 3).Draw(t, "pieces")
			running := false
			tasklets = append(tasklets, m.NewTasklet("", func(th *Thread) {
				require.False(t, running, "twice at once")
				running = true
				for _, d := range pieces {
					m.run(th, sim.Time(d))
				}
				running = false
			}))
		}
		for range rapid.IntRange(0, 3).Draw(t, "lines") {
			d, behind := short("handler"), rapid.IntRange(0, 4).Draw(t, "behind")
			irq := m.RequestIRQ(core(), "", func(th *Thread) {
				m.run(th, d)
				if behind < len(tasklets) {
					tasklets[behind].Schedule(th.Core())
				}
				m.run(th, d/2)
			})
			for range rapid.IntRange(0, 5).Draw(t, "raised") {
				m.at(10*short("at"), irq.Raise)
			}
		}
		for range rapid.IntRange(0, 3).Draw(t, "threads") {
			pieces := rapid.SliceOfN(rapid.IntRange(0, 20), 0, 5).Draw(t, "work")
			m.thread(core(), func(th *Thread) {
				for i, d := range pieces {
					if i%2 == 0 {
						m.run(th, sim.Time(d))
					} else {
						th.Sleep(th.Now() + sim.Time(d))
					}
				}
			})
		}
		require.NoError(t, m.eng.Run())
		var all sim.Time
		for _, r := range m.ran {
			all += r.d
			require.Equal(t, r.d, r.end-r.start-m.took(r, r.start, r.end, r.level+1), "%+v", r)
			require.Equal(t, r.stolen, m.took(r, r.start, r.end, r.level+1), "%+v", r)
			require.Equal(t, r.start-r.asked, m.took(r, r.asked, r.start, r.level), "%+v waits for nothing", r)
		}
		require.Equal(t, all, m.Busy())
	})
}

// took returns how long, within an interval, the core of r did other work of a
// level or above. At the level of r only earlier work counts.
func (m *machine) took(r ran, from, to sim.Time, least Level) sim.Time {
	var pieces [][2]sim.Time
	for _, o := range m.ran {
		if o.core == r.core && o.level >= least && o != r && max(o.start, from) < min(o.end, to) {
			pieces = append(pieces, [2]sim.Time{max(o.start, from), min(o.end, to)})
		}
	}
	slices.SortFunc(pieces, func(a, b [2]sim.Time) int { return int(a[0] - b[0]) })
	var sum sim.Time
	for _, p := range pieces {
		if p[0] = max(p[0], from); p[1] > p[0] {
			sum += p[1] - p[0]
			from = p[1]
		}
	}
	return sum
}

// A thread that works allocates nothing.
func TestWorkAllocatesNothing(t *testing.T) {
	m := newMachine(1, CPUSpec{ContextSwitch: 1})
	m.thread(0, func(th *Thread) {
		th.Run(1, "work")
		require.Zero(t, testing.AllocsPerRun(100, func() { th.Run(1, "work"); th.Sleep(th.Now() + 5) }))
	})
	irq := m.RequestIRQ(0, "", func(th *Thread) { th.Run(1, "handler") })
	irq.Raise()
	require.NoError(t, m.eng.Run())
	require.Zero(t, testing.AllocsPerRun(100, func() { irq.Raise(); _ = m.eng.RunUntil(m.eng.Now() + 10) }))
	m.eng.Close()
}
