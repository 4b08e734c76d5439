package host

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// Owed work takes the core together with the next work. Everything ends at the
// same time as with one wait for each, for any interrupts, tasklets and other
// threads on the core, and the cores are busy with the same work. (Work of no
// length may be before or after an interrupt at its moment.)
func TestOwedWorkTakesTheSameTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type part struct{ owed, run sim.Time }
		programs := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) part {
			d := rapid.IntRange(1, 9)
			return part{sim.Time(d.Draw(t, "owed")), sim.Time(d.Draw(t, "run"))}
		}), 1, 6), 1, 2).Draw(t, "programs")
		interrupts := rapid.SliceOfN(rapid.IntRange(0, 60), 0, 6).Draw(t, "interrupts")
		cores := rapid.IntRange(1, 2).Draw(t, "cores")
		run := func(owe bool) (ends []sim.Time, work map[Work]bool, events uint64) {
			m := newMachine(cores, CPUSpec{Interrupt: 1, Softirq: 2})
			defer m.eng.Close()
			for i, parts := range programs {
				m.thread(i%cores, func(t *Thread) {
					for _, p := range parts {
						if owe {
							t.Owe(p.owed, "first")
						} else {
							t.Run(p.owed, "first")
						}
						t.Run(p.run, "second")
						ends = append(ends, t.Now())
					}
				})
			}
			tasklet := m.NewTasklet("tasklet", func(t *Thread) { t.Run(3, "tasklet") })
			for _, at := range interrupts {
				irq := m.RequestIRQ(at%cores, "irq", func(t *Thread) { t.Run(2, "handler"); tasklet.Schedule(t.Core()) })
				m.at(sim.Time(at), irq.Raise)
			}
			require.NoError(t, m.eng.Run())
			work = map[Work]bool{}
			for _, w := range m.Work() {
				work[w] = true
			}
			return ends, work, m.eng.Handled()
		}
		ends, work, events := run(false)
		endsOwed, workOwed, eventsOwed := run(true)
		require.Equal(t, ends, endsOwed)
		require.Equal(t, work, workOwed)
		require.LessOrEqual(t, eventsOwed, events)
		if cores >= len(programs) && len(interrupts) == 0 {
			require.Less(t, eventsOwed, events, "there is a wait less")
		}
	})
}

// A thread completes its owed work before it waits.
func TestOwedWorkIsDoneBeforeAWait(t *testing.T) {
	m := newMachine(1, CPUSpec{})
	var at []sim.Time
	th := m.thread(0, func(t *Thread) {
		t.Owe(5, "work")
		t.Spin("")
		at = append(at, t.Now())
		t.Owe(5, "work")
		t.SpinUntil("", 20)
		at = append(at, t.Now())
	})
	m.at(2, th.Wake)
	require.NoError(t, m.eng.Run())
	require.Equal(t, []sim.Time{5, 20}, at)
	require.Equal(t, []Work{{"work", Threads, 10, 2}}, m.Work())
	m.eng.Close()
}
