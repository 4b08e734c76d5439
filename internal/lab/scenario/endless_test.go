package scenario

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/sim"
)

// nothing are steps that take no time and have no event; times is how often each repeats at most.
func nothing(times int) []string {
	return []string{
		fmt.Sprintf("{repeat: {times: %d, steps: [{mark: a}]}}", times),
		fmt.Sprintf("{repeat: {times: %d, steps: [{repeat: {times: 3, steps: [{mark: a}, {mark: b}]}}]}}", times),
	}
}

// planned is a scenario of one program.
func planned(t *testing.T, steps string, o Options) *Plan {
	s, err := Parse("s.yaml", []byte("profile: spin-int\nranks: 2\nprograms: [{ranks: 0, steps: ["+steps+"]}]\n"))
	require.NoError(t, err)
	p, err := s.Plan(o)
	require.NoError(t, err)
	return p
}

// A billion rounds of no steps are none.
func TestRepeatOfNothing(t *testing.T) {
	const empty = "{repeat: {times: 1073741824, steps: []}}"
	for _, steps := range []string{empty, "{repeat: {times: 1073741824, steps: [" + empty + ", " + empty + "]}}"} {
		result, err := planned(t, steps, Options{}).Run(t.Context(), nil)
		require.NoError(t, err)
		require.Zero(t, result.End)
	}
}

// Rounds in which no time passes end by a limit of events, by one of real time, and by a signal.
func TestRoundsWithoutTimeEnd(t *testing.T) {
	for _, steps := range nothing(maxCount) {
		_, err := planned(t, steps, Options{Limits: sim.Limits{Events: 100}}).Run(t.Context(), nil)
		require.ErrorContains(t, err, "stopped by the limit of 100 events")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, &sim.LimitError{Limit: "10ms"})
		defer cancel()
		_, err = planned(t, steps, Options{}).Run(ctx, nil)
		require.ErrorContains(t, err, "stopped by the limit of 10ms")
		signal, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		_, err = planned(t, steps, Options{}).Run(signal, nil)
		require.ErrorIs(t, err, context.Canceled)
	}
	for _, steps := range nothing(5000) { // what the engine gets in between is no time
		result, err := planned(t, steps, Options{Limits: sim.Limits{Until: sim.Nanosecond}}).Run(t.Context(), nil)
		require.NoError(t, err)
		require.Zero(t, result.End)
	}
}
