package sim

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Nothing happens beyond the horizon: the run returns the error and keeps the
// time of its last event.
func TestHorizonEndsTheRun(t *testing.T) {
	e := New(1)
	id := e.Add("a", nil)
	e.Spawn(id, "sleeper", func(p *Process) error {
		p.SleepUntil(Horizon)
		p.Sleep(1)
		return nil
	})
	err := e.Run()
	require.ErrorIs(t, err, ErrHorizon)
	require.EqualError(t, err, "a at 4611686.018427387903 s: virtual time would go on beyond 4611686.018427387903 s, the most that a run may have")
	require.Equal(t, Horizon, e.Now())
	e.Close()
}

// The longest sleep does not wrap around, and a deadline beyond the horizon is
// no deadline.
func TestLengthsDoNotWrapAround(t *testing.T) {
	e := New(1)
	id := e.Add("a", nil)
	parked := e.Spawn(id, "parked", func(p *Process) error {
		require.True(t, p.ParkUntil("a friend", MaxTime))
		p.Sleep(5)
		p.Sleep(MaxTime)
		return nil
	})
	e.Spawn(id, "friend", func(p *Process) error {
		p.Sleep(10)
		parked.Wake()
		return nil
	})
	require.ErrorIs(t, e.Run(), ErrHorizon)
	require.Equal(t, Time(15), e.Now())
	e.Close()
}

// Later and Plus are sums where a sum exists, and else stay at their ends.
func TestSumsStayInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.Custom(func(t *rapid.T) Time {
			return rapid.OneOf(
				rapid.SampledFrom([]Time{0, 1, Horizon - 1, Horizon, Horizon + 1, MaxTime - 1, MaxTime}),
				rapid.Map(rapid.Int64Range(0, int64(MaxTime)), func(v int64) Time { return Time(v) }),
			).Draw(t, "time")
		})
		a, b := times.Draw(t, "a"), times.Draw(t, "b")
		require.Equal(t, Time(min(uint64(a)+uint64(b), uint64(MaxTime))), a.Plus(b))
		if a <= Horizon {
			require.Equal(t, Time(min(uint64(a)+uint64(b), uint64(Horizon)+1)), a.Later(b))
		} else {
			require.Equal(t, Horizon+1, a.Later(b))
		}
	})
}
