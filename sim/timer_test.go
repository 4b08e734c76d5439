package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// alarm notes when its timers expire.
type alarm struct {
	e    *Engine
	rang []Event
	do   func(ev *Event)
}

func (a *alarm) Handle(ev *Event) {
	a.rang = append(a.rang, *ev)
	if a.do != nil {
		a.do(ev)
	}
}

func TestTimer(t *testing.T) {
	e := New(1)
	a := &alarm{e: e}
	id := e.Add("alarm", a)
	var off, later, earlier, again Timer
	for i, x := range []*Timer{&off, &later, &earlier, &again} {
		x.Init(e, id, Kind(7+i), x)
	}
	off.Set(900)
	off.Stop()
	later.Set(10)
	later.Set(40)
	earlier.Set(50)
	earlier.Set(20)
	again.Set(30)
	again.Stop()
	again.Set(35)
	due, set := again.Due()
	require.Equal(t, []any{Time(35), true}, []any{due, set})
	require.NoError(t, e.Run())
	var got []Time
	for _, ev := range a.rang {
		got = append(got, ev.Time, Time(ev.Kind))
		require.Same(t, []*Timer{&off, &later, &earlier, &again}[ev.Kind-7], ev.P)
	}
	require.Equal(t, []Time{20, 9, 35, 10, 40, 8}, got)
	require.Equal(t, Time(40), e.Now(), "what was taken back does not move the end of the run")
	require.Equal(t, uint64(3), e.Handled())
	_, set = again.Due()
	require.False(t, set)

	e.SetLimits(Limits{Until: 100})
	later.Set(80)
	earlier.Set(90)
	earlier.Set(200)
	off.Set(300)
	off.Stop()
	require.ErrorContains(t, e.Run(), "stopped by the limit of 100 ps of virtual time, at 80 ps")
}

// Any number of timers, set, postponed and stopped at any time, expire as if
// each setting had its own event, kept in a list.
func TestTimersAgainstList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := New(1)
		a := &alarm{e: e}
		id := e.Add("alarm", a)
		const none = Time(-1)
		timers, due := make([]Timer, 4), []Time{none, none, none, none}
		last := Time(0)
		const tick = Kind(100)
		a.do = func(ev *Event) {
			for k, at := range due { // missed expirations
				require.False(rt, at != none && at < ev.Time, "timer %d is due at %v, and it is %v", k, at, ev.Time)
			}
			if ev.Kind != tick {
				require.Equal(rt, due[ev.Kind], ev.Time, "timer %d", ev.Kind)
				due[ev.Kind] = none
				last = ev.Time
				return
			}
			last = ev.Time
			for range rapid.IntRange(1, 3).Draw(rt, "steps") {
				k := rapid.IntRange(0, len(timers)-1).Draw(rt, "timer")
				if rapid.IntRange(0, 2).Draw(rt, "what") == 0 {
					timers[k].Stop()
					due[k] = none
					continue
				}
				due[k] = ev.Time + Time(rapid.Int64Range(0, 30).Draw(rt, "in"))
				timers[k].Set(due[k])
			}
		}
		for k := range timers {
			timers[k].Init(e, id, Kind(k), nil)
		}
		at := Time(0)
		for range rapid.IntRange(1, 20).Draw(rt, "ticks") {
			at += Time(rapid.Int64Range(0, 20).Draw(rt, "pause"))
			e.Post(at, id, id, tick, 0, 0, nil)
		}
		require.NoError(rt, e.Run())
		require.Equal(rt, []Time{none, none, none, none}, due)
		require.Equal(rt, last, e.Now())
		require.Equal(rt, uint64(len(a.rang)), e.Handled())
	})
}

func TestTimerDoesNotAllocate(t *testing.T) {
	e := New(1)
	id := e.Add("alarm", &ringer{})
	var x Timer
	x.Init(e, id, 1, nil)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		x.Set(e.Now() + 100)
		x.Set(e.Now() + 200)
		x.Set(e.Now() + 50)
		if err := e.RunUntil(e.Now() + 150); err != nil {
			t.Fatal(err)
		}
	}))
}

type ringer struct{}

func (*ringer) Handle(*Event) {}
