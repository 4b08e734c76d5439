package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/runtime"
)

// The estimate of memory includes the samples on every rank. It follows the
// counts of repeats, also if these depend on the round and the rank.
func TestMemoryOfSamples(t *testing.T) {
	memory := func(steps string, breakdown bool) int64 {
		s, err := Parse("s.yaml", []byte("profile: spin-int\nranks: 3\nprograms: [{ranks: all, steps: [{mark: a}, "+steps+"]}]\n"))
		require.NoError(t, err)
		p, err := s.Plan(Options{Breakdown: breakdown})
		require.NoError(t, err)
		return p.Memory()
	}
	const one = "{measure: {name: x, since: a}}"
	none := memory("{sleep: 1ns}", false)
	require.Equal(t, none+3*sampleBytes, memory(one, false))
	require.Equal(t, none+3*1_000_000*sampleBytes, memory("{repeat: {times: 1000000, steps: ["+one+"]}}", false))
	require.Equal(t, none+3*1_000_000*(sampleBytes+measuredBytes), memory("{repeat: {times: 1000000, steps: ["+one+"]}}", true))
	require.Equal(t, none+3*(100+100*99/2)*sampleBytes, memory("{repeat: {times: 100, steps: [{repeat: {times: round, steps: ["+one+"]}}, "+one+"]}}", false))
	require.Greater(t, memory("{repeat: {times: 1000000000, steps: [{repeat: {times: 1000000000, steps: ["+one+"]}}]}}", false), int64(1)<<60)
}

// A run whose breakdown exceeds its memory ends with an error that explains it.
// A run without a breakdown succeeds.
func TestStepsThatTakeTooMuch(t *testing.T) {
	run := func(breakdown bool, room int64) error {
		s, err := Parse("s.yaml", []byte(`
profile: spin-int
ranks: 2
entries: [{name: there, ranks: 1, length: 1MiB}]
programs: [{ranks: 0, steps: [{put: {to: 1, entry: there, bytes: 1MiB, ack: ack}}, {wait: {acks: 1}}]}]
`))
		require.NoError(t, err)
		p, err := s.Plan(Options{Breakdown: breakdown})
		require.NoError(t, err)
		p.Bound(room)
		_, err = p.Run(t.Context(), runtime.Config{})
		return err
	}
	require.NoError(t, run(true, 0))
	require.NoError(t, run(true, 1<<20))
	require.NoError(t, run(false, 10<<10))
	require.ErrorContains(t, run(true, 10<<10), "--breakdown: its steps are held until the run ends, and take more than 10 KiB")
}
