package nic

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// A delay in cycles follows the clock, a time does not; a profile that is written
// has what was read.
func TestDelayRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1e6).Draw(t, "n")
		d := Delay{Fixed: sim.Time(n)}
		if rapid.Bool().Draw(t, "cycles") {
			d = Delay{Cycles: n}
			require.Equal(t, 25*d.Time(1e9), d.Time(40e6))
		} else {
			require.Equal(t, d.Time(1e9), d.Time(40e6))
		}
		var again Delay
		require.NoError(t, again.UnmarshalText([]byte(d.String())))
		require.Equal(t, d, again)
	})
}

func TestDelayText(t *testing.T) {
	for text, want := range map[string]Delay{
		"16 cycles": {Cycles: 16}, "3cycles": {Cycles: 3}, "1 cycle": {Cycles: 1}, "0 cycles": {}, "16ns": {Fixed: 16 * sim.Nanosecond}, "0": {},
	} {
		var s struct{ A Delay }
		require.NoError(t, yaml.Unmarshal([]byte("a: "+text), &s), text)
		require.Equal(t, want, s.A, text)
	}
	for text, want := range map[string]string{
		"1.5 cycles": `"1.5 cycles", expected a whole number of cycles`,
		"-1 cycles":  `"-1 cycles", expected a whole number of cycles`,
		"16":         `time "16": want a number and a unit of s, ms, µs, ns, ps, or of cycles`,
	} {
		var d Delay
		require.EqualError(t, d.UnmarshalText([]byte(text)), want)
	}
	require.ErrorContains(t, (&Delay{Cycles: 2e9}).check(1e9), "2000000000 cycles, expected a time or a number of cycles, 0 to 1 s")
}
