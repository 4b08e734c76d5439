package host

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// busy is a tasklet of length d that schedules itself until it has run so many
// times.
func (m *machine) busy(name string, d sim.Time, times int, done *sim.Time) *Tasklet {
	k := m.NewTasklet(name, nil)
	k.f = func(t *Thread) {
		t.Run(d, name)
		if times--; times > 0 {
			k.Schedule(t.Core())
			return
		}
		*done = t.Now()
	}
	return k
}

// A tasklet of 10 has 20 rounds from 5 on. A program that computes 100 from 0
// on continues when a limit is reached: after four rounds or, with 25 of time,
// after the third. Then ksoftirqd needs 7 to switch, and each of its passes has
// as many rounds. A program that wakes at 32 on an idle core gets it at the end
// of that round, 35, and ksoftirqd follows.
func TestTaskletsLeaveTheCore(t *testing.T) {
	for _, c := range []struct {
		name           string
		spec           CPUSpec
		computes       bool
		program, tasks sim.Time // ends
	}{
		{"no bound", CPUSpec{ContextSwitch: 7}, true, 300, 205},
		{"four rounds", CPUSpec{ContextSwitch: 7, SoftirqRounds: 4, SoftirqTime: 1000}, true, 100 + 40, 140 + 4*(7+40)},
		{"25", CPUSpec{ContextSwitch: 7, SoftirqRounds: 10, SoftirqTime: 25}, true, 100 + 30, 130 + 5*(7+30) + 7 + 20},
		{"wakes, no bound", CPUSpec{ContextSwitch: 7}, false, 205 + 7, 205},
		{"wakes", CPUSpec{ContextSwitch: 7, SoftirqRounds: 100, SoftirqTime: 1000}, false, 35 + 7, 42 + 7 + 17*10},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(1, c.spec)
			var program, tasks sim.Time
			m.at(5, func() { m.busy("pages", 10, 20, &tasks).Schedule(0) })
			m.thread(0, func(t *Thread) {
				if c.computes {
					t.Run(100, "compute")
				} else {
					t.Sleep(32)
				}
				program = t.Now()
			})
			require.NoError(t, m.eng.Run())
			require.Equal(t, []sim.Time{c.program, c.tasks}, []sim.Time{program, tasks})
			m.eng.Close()
		})
	}
}

// For any tasklets, a program that wakes on a core where no other works waits
// for at most one round of them, and all tasklets end.
func TestNobodyStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := CPUSpec{SoftirqRounds: rapid.IntRange(1, 12).Draw(t, "rounds"), SoftirqTime: sim.Time(rapid.IntRange(0, 200).Draw(t, "time"))}
		m := newMachine(1, spec)
		defer m.eng.Close()
		round := sim.Time(0)
		ends := make([]sim.Time, rapid.IntRange(1, 4).Draw(t, "tasklets"))
		for i := range ends {
			d := sim.Time(rapid.IntRange(1, 30).Draw(t, "work"))
			k := m.busy(fmt.Sprint(i), d, rapid.IntRange(1, 60).Draw(t, "times"), &ends[i])
			round += d
			m.at(sim.Time(rapid.IntRange(0, 100).Draw(t, "at")), func() { k.Schedule(0) })
		}
		most := sim.Time(0)
		m.thread(0, func(t *Thread) {
			for i := range sim.Time(30) {
				at := 10 + 40*i
				if at < t.Now() {
					continue
				}
				t.Sleep(at)
				t.Run(1, "work")
				most = max(most, t.Now()-at-1)
			}
		})
		require.NoError(t, m.eng.Run())
		require.LessOrEqual(t, most, round)
		for i, end := range ends {
			require.NotZero(t, end, "tasklet %d", i)
		}
	})
}
