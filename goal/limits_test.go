package goal

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/sim"
)

// endless is a text that begins with begin and repeats line for ever.
type endless struct{ begin, line string }

func (e *endless) Read(b []byte) (int, error) {
	n := copy(b, e.begin)
	e.begin = e.begin[n:]
	for n < len(b) {
		m := copy(b[n:], e.line)
		n += m
		if m < len(e.line) {
			e.begin = e.line[m:]
		}
	}
	return n, nil
}

// A text that never ends is an error, whatever its lines are.
func TestEndlessText(t *testing.T) {
	const most = 1 << 20
	for _, line := range []string{"calc 1\n", "// nothing\n", "/* a\n*/ \n", "\n", "} rank 0 {\n", "send 8b to 0\n"} {
		_, err := readText(&endless{"num_ranks 1\nrank 0 {\n", line}, ReadOptions{File: "x.goal"}, most, blockLen)
		require.Error(t, err, line)
		if line != "} rank 0 {\n" { // a second block is an error earlier
			require.Regexp(t, `^x.goal:[0-9]+:[0-9]+: more than 1048576 bytes of text`, err.Error(), line)
		}
	}
	_, err := ReadText(&endless{"", "x"}, ReadOptions{File: "x.goal"})
	require.ErrorContains(t, err, "x.goal:1:1048577: line of more than 1048576 bytes")

	whole := "num_ranks 1\nrank 0 {\n" + strings.Repeat("calc 1\n", 100) + "}\n"
	s, err := readText(strings.NewReader(whole), ReadOptions{}, len(whole), blockLen)
	require.NoError(t, err)
	require.Equal(t, 100, s.Len())
	_, err = readText(strings.NewReader(whole), ReadOptions{}, len(whole)-1, 8)
	require.ErrorContains(t, err, "bytes of text")
}

// The error of a run that a limit ends gives its progress: everything up to the
// limit is done, and nothing after it.
func TestLimitSaysWhen(t *testing.T) {
	s, err := ReadText(strings.NewReader("num_ranks 1\nrank 0 {\na: calc 100\nb: calc 100\nb requires a\nc: calc 100\nc requires b\n}\n"), ReadOptions{})
	require.NoError(t, err)
	for until, at := range map[int64]int64{50: 0, 99: 0, 100: 100, 150: 100} {
		_, err := NewSimulator(s).Run(DefaultParams(), WithLimits(sim.Limits{Until: sim.Time(until) * sim.Nanosecond}))
		var limit *sim.LimitError
		require.ErrorAs(t, err, &limit)
		require.Equal(t, sim.Time(at)*sim.Nanosecond, limit.At)
		require.Equal(t, sim.Time(at+100)*sim.Nanosecond, limit.Next)
	}
}
