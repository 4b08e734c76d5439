package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// ticker posts an event to itself every nanosecond for ever.
type ticker struct {
	e  *Engine
	id ID
}

func (t *ticker) Handle(ev *Event) { t.e.Post(ev.Time+Nanosecond, t.id, t.id, 0, 0, 0, nil) }

func ticking() (*Engine, *ticker) {
	e := New(1)
	t := &ticker{e: e}
	t.id = e.Add("ticker", t)
	e.Post(0, t.id, t.id, 0, 0, 0, nil)
	return e, t
}

func TestLimitsEndRuns(t *testing.T) {
	for _, tc := range []struct {
		limits Limits
		want   string
	}{
		{Limits{Until: 5 * Nanosecond}, "incomplete: stopped by the limit of 5 ns of virtual time, at 5 ns after 6 events; one more was to come, at 6 ns"},
		{Limits{Events: 3}, "incomplete: stopped by the limit of 3 events, at 2 ns after 3 events; one more was to come, at 3 ns"},
		{Limits{Until: 5 * Nanosecond, Events: 4}, "incomplete: stopped by the limit of 4 events, at 3 ns after 4 events; one more was to come, at 4 ns"},
	} {
		e, _ := ticking()
		e.SetLimits(tc.limits)
		err := e.Run()
		require.EqualError(t, err, tc.want)
		require.Equal(t, err, e.Run(), "a run that was ended does not go on")
		e.Close()
	}
}

// An interruption by a limit of real time describes the run like the other
// limits.
func TestInterruptingLimitIsDescribed(t *testing.T) {
	e, ticker := ticking()
	e.Spawn(ticker.id, "host", func(p *Process) error { p.Park("a message"); return nil })
	e.Interrupt(&LimitError{Limit: "30s of real time"})
	err := e.Run()
	var limit *LimitError
	require.ErrorAs(t, err, &limit)
	require.Contains(t, err.Error(), "incomplete: stopped by the limit of 30s of real time, at 4.0")
	require.Contains(t, err.Error(), "one more was to come, at 4.0")
	require.Contains(t, err.Error(), "and 1 waited:\n  host waits since 0 s for a message")
	e.Close()
}

// A run that ends at its limit is complete, even if an unneeded timer lies
// beyond it.
func TestLimitLetsFinishWhatFits(t *testing.T) {
	e := New(1)
	id := e.Add("a", nil)
	waits := e.Spawn(id, "waits", func(p *Process) error {
		require.True(t, p.ParkUntil("a friend", Second))
		return nil
	})
	e.Spawn(id, "friend", func(p *Process) error {
		p.Sleep(10)
		waits.Wake()
		return nil
	})
	e.SetLimits(Limits{Until: 10, Events: 4}) // two starts, the end of the sleep, the wake
	require.NoError(t, e.Run())
	require.Equal(t, Time(10), e.Now())
	require.Equal(t, uint64(4), e.Handled())
	e.Close()
}
