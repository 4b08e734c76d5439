package scenario

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// nothing lists steps that take no time and have no event. times is the most
// repetitions of each.
func nothing(times int) []string {
	return []string{
		fmt.Sprintf("{repeat: {times: %d, steps: [{mark: a}]}}", times),
		fmt.Sprintf("{repeat: {times: %d, steps: [{repeat: {times: 3, steps: [{mark: a}, {mark: b}]}}]}}", times),
	}
}

// planned returns the plan of a scenario with one program.
func planned(t *testing.T, steps string, o Options) *Plan {
	s, err := Parse("s.yaml", []byte("profile: spin-int\nranks: 2\nprograms: [{ranks: 0, steps: ["+steps+"]}]\n"))
	require.NoError(t, err)
	p, err := s.Plan(o)
	require.NoError(t, err)
	return p
}

// A billion rounds without steps take no time.
func TestRepeatOfNothing(t *testing.T) {
	const empty = "{repeat: {times: 1073741824, steps: []}}"
	for _, steps := range []string{empty, "{repeat: {times: 1073741824, steps: [" + empty + ", " + empty + "]}}"} {
		result, err := planned(t, steps, Options{}).Run(t.Context(), runtime.Config{})
		require.NoError(t, err)
		require.Zero(t, result.End)
	}
}

// A limit of events, a limit of real time, or a signal ends rounds that take no
// time.
func TestRoundsWithoutTimeEnd(t *testing.T) {
	for _, steps := range nothing(maxCount) {
		_, err := planned(t, steps, Options{}).Run(t.Context(), runtime.Config{Limits: sim.Limits{Events: 100}})
		require.ErrorContains(t, err, "stopped by the limit of 100 events")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, &sim.LimitError{Limit: "10ms"})
		defer cancel()
		_, err = planned(t, steps, Options{}).Run(ctx, runtime.Config{})
		require.ErrorContains(t, err, "stopped by the limit of 10ms")
		signal, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		_, err = planned(t, steps, Options{}).Run(signal, runtime.Config{})
		require.ErrorIs(t, err, context.Canceled)
	}
	for _, steps := range nothing(5000) { // the engine's events in between take no time
		result, err := planned(t, steps, Options{}).Run(t.Context(), runtime.Config{Limits: sim.Limits{Until: sim.Nanosecond}})
		require.NoError(t, err)
		require.Zero(t, result.End)
	}
}
