package goal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// walk finds the end of work by steps of one ns.
func walk(detours []Detour, period, at, work int64) int64 {
	t := at
	for work > 0 {
		busy := false
		for _, d := range detours {
			busy = busy || d.Start <= t%period && t%period < d.Start+d.Duration
		}
		if !busy {
			work--
		}
		t++
	}
	return t
}

// This catches errors at the edges of detours and of the period.
func TestNoiseAgreesWithWalk(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var detours []Detour
		at := int64(0)
		for range rapid.IntRange(1, 5).Draw(t, "n") {
			d := Detour{at + rapid.Int64Range(0, 4).Draw(t, "gap"), rapid.Int64Range(0, 5).Draw(t, "duration")}
			detours = append(detours, d)
			at = d.Start + d.Duration
		}
		trace, err := NewNoiseTrace(detours)
		if err != nil {
			require.ErrorContains(t, err, "no time for work")
			return
		}
		n := trace.Noise(2, rapid.Uint64().Draw(t, "seed"), false)
		begin, work := rapid.Int64Range(0, 60).Draw(t, "t"), rapid.Int64Range(0, 60).Draw(t, "work")
		for r := range uint32(2) {
			want := walk(detours, trace.Period(), begin+n.offset[r], work) - n.offset[r]
			require.Equal(t, want, n.end(r, begin, work), "%v offset %d: %d+%d", detours, n.offset[r], begin, work)
		}
	})
}

func TestNoiseOffsets(t *testing.T) {
	t.Parallel()
	trace, err := ReadNoise(strings.NewReader("# start duration\n0\t10\n\n 90.4 9.6\n"), "trace")
	require.NoError(t, err)
	require.Equal(t, int64(100), trace.Period())
	together, apart := trace.Noise(50, 3, true), trace.Noise(50, 3, false)
	differ := 0
	for r := range together.offset {
		require.Equal(t, together.offset[0], together.offset[r])
		if apart.offset[r] != apart.offset[0] {
			differ++
		}
	}
	require.Greater(t, differ, 30)
	require.Equal(t, apart, trace.Noise(50, 3, false), "the seed decides")
}

func TestNoiseErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"10 5\n12 1\n":  "detour 1: start 12 ns",
		"10 5\n20\n":    "trace:2:1: 1 fields, expected a start and a duration",
		"10 5\n20 x":    `trace:2:4: expected a time of 0 to 576460752303423488 ns, found "x"`,
		"10 -5\n":       "trace:1:4: expected a time",
		"":              "no time for work",
		"0 5\n5 100\n":  "no time for work",
		"NaN 5\n5 10\n": "trace:1:1: expected a time",
	} {
		_, err := ReadNoise(strings.NewReader(text), "trace")
		require.ErrorContains(t, err, want)
	}
	s := generate(t, "gather", GenParams{Ranks: 3})
	trace, err := NewNoiseTrace([]Detour{{5, 5}})
	require.NoError(t, err)
	_, err = NewSimulator(s).Run(DefaultParams(), WithNoise(trace.Noise(2, 0, false)))
	require.ErrorContains(t, err, "noise for 2 ranks, expected 3")
}
