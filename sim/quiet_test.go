package sim

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A sleep without another event before its end takes no event and no coroutine
// switch. Programs that sleep, park with and without a deadline, and wake each
// other behave the same as where each sleep is an event, also in runs that are
// cut into pieces or by limits.
func TestQuietSleeps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type step struct {
			what, whom int
			d          Time
		}
		programs := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			return step{rapid.IntRange(0, 3).Draw(t, "what"), rapid.IntRange(0, 2).Draw(t, "whom"), Time(rapid.IntRange(0, 4).Draw(t, "d"))}
		}), 1, 12), 1, 3).Draw(t, "programs")
		limits := Limits{Until: Time(rapid.IntRange(1, 40).Draw(t, "until")), Events: uint64(rapid.IntRange(1, 40).Draw(t, "events"))}
		if rapid.Bool().Draw(t, "unlimited") {
			limits = Limits{}
		}
		until := Time(rapid.IntRange(0, 20).Draw(t, "first run until"))
		run := func(slow bool) (log []string) {
			e := New(1)
			defer e.Close()
			e.slow = slow
			id := e.Add("node", nil)
			e.SetLimits(limits)
			all := make([]*Process, len(programs))
			for i, steps := range programs {
				all[i] = e.Spawn(id, fmt.Sprint(i), func(p *Process) error {
					for _, s := range steps {
						woken := false
						switch s.what {
						case 0, 1:
							p.Sleep(s.d)
						case 2:
							all[s.whom%len(all)].Wake()
						case 3:
							woken = p.ParkUntil("", p.Now()+s.d)
						}
						log = append(log, fmt.Sprint(i, s, p.Now(), e.Handled(), woken))
					}
					return nil
				})
			}
			log = append(log, fmt.Sprint(e.RunUntil(until), e.Now(), e.Handled()))
			return append(log, fmt.Sprint(e.Run(), e.Now(), e.Handled()))
		}
		require.Equal(t, run(true), run(false))
	})
}

// An interrupt also ends a program that is alone.
func TestQuietSleepsEnd(t *testing.T) {
	e, id := hosts(t)
	stop := errors.New("enough")
	e.Spawn(id, "p", func(p *Process) error {
		for k := 0; ; k++ {
			if k == 1000 {
				e.Interrupt(stop)
			}
			p.Sleep(1)
		}
	})
	require.ErrorIs(t, e.Run(), stop)
	require.Less(t, e.Now(), Time(10*interruptEvery))
}

// No other event is pending: a sleep neither posts an event nor leaves the
// program.
func TestQuietSleepPostsNothing(t *testing.T) {
	e, id := hosts(t)
	e.Spawn(id, "p", func(p *Process) error {
		before := e.actors[id].seq
		p.Sleep(5)
		require.Equal(t, before, e.actors[id].seq)
		e.Post(7, id, id, kindTimer, 0, 0, &Timer{})
		p.Sleep(2) // ends with that event
		require.Equal(t, before+2, e.actors[id].seq)
		return nil
	})
	require.NoError(t, e.Run())
	require.Equal(t, Time(7), e.Now())
}
