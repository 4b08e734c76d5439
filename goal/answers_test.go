package goal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func generate(t testing.TB, pattern string, p GenParams) *Schedule {
	t.Helper()
	s, err := Generate(pattern, p)
	require.NoError(t, err)
	return s
}

// Known answers with L 2500, o 1500, g 1000, G 6, O 0, S 65535 (LogGOPS'10 simulator). A message of 8 bytes takes
// o + L + o + 7 G = 5542 ns from send to end of receive; 6 levels take 33252 ns.
func TestKnownAnswers(t *testing.T) {
	t.Parallel()
	run := func(pattern string, p GenParams) Result {
		m := NewSimulator(generate(t, pattern, p))
		res, err := m.Run(DefaultParams())
		require.NoError(t, err)
		return res
	}
	require.Equal(t, []int64{34914, 24776, 13138, 13138, 1500, 1500, 1500, 1500},
		run("reduce-binomial", GenParams{Ranks: 8, Size: 1024}).FinishNS)
	bcast := run("bcast-binomial", GenParams{Ranks: 64, Size: 8})
	require.Equal(t, int64(33252), bcast.FinishNS[63])
	require.Equal(t, bcast.FinishNS[63], bcast.MaxNS)
	require.Equal(t, int64(33252), run("dissemination", GenParams{Ranks: 64, Size: 8}).FinishNS[63])
	require.Equal(t, int64(605494), run("gather", GenParams{Ranks: 2, Size: 100000, Root: 1}).FinishNS[1])
}
