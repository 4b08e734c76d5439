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

// Known answers with L 2500, o 1500, g 1000, G 6, O 0, S 65535 (LogGOPS'10
// simulator). A message of 8 bytes takes o + L + o + 7 G = 5542 ns from send to
// end of receive; 6 levels take 33252 ns.
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

// Clocks must not wrap around: at most 8 computations of 2^59 ns fit.
func TestOverflow(t *testing.T) {
	t.Parallel()
	chain := func(n int, size uint64) *Simulator {
		b := NewBuilder()
		b.Rank(0)
		for range n {
			b.Calc(size)
		}
		s, err := b.Schedule()
		require.NoError(t, err)
		return NewSimulator(s)
	}
	res, err := chain(8, 1<<59).Run(DefaultParams())
	require.NoError(t, err)
	require.Equal(t, int64(1)<<62, res.MaxNS)
	for _, m := range []*Simulator{chain(9, 1<<59), chain(1000, 1<<59), chain(1, 1<<63)} {
		_, err = m.Run(DefaultParams())
		require.ErrorIs(t, err, ErrOverflow)
	}
	// A run that was broken off leaves nothing behind.
	m := NewSimulator(generate(t, "gather", GenParams{Ranks: 100, Size: 8}))
	p := DefaultParams()
	before, err := m.Run(p)
	require.NoError(t, err)
	want := before.MaxNS
	p.Overhead = 1 << 59
	_, err = m.Run(p)
	require.ErrorIs(t, err, ErrOverflow)
	after, err := m.Run(DefaultParams())
	require.NoError(t, err)
	require.Equal(t, want, after.MaxNS)

	p = DefaultParams()
	p.Gap, p.L = -1, 1<<62
	_, err = chain(1, 1).Run(p)
	require.ErrorContains(t, err, "goal: L: 4611686018427387904 ns, expected 0 to")
	require.ErrorContains(t, err, "goal: g: -1 ns")
}

func TestBuilderErrors(t *testing.T) {
	t.Parallel()
	for want, build := range map[string]func(b *Builder){
		"needs at least 1 rank":                         func(*Builder) {},
		"operation before the first rank":               func(b *Builder) { b.Calc(1) },
		"rank -1 is out of range":                       func(b *Builder) { b.Rank(-1) },
		"rank 0 is defined twice":                       func(b *Builder) { b.Rank(0); b.Rank(0) },
		"peer -2 is out of range":                       func(b *Builder) { b.Rank(0); b.Send(1, -2, 0) },
		"rank 2 of 1 ranks":                             func(b *Builder) { b.Rank(2) },
		"dependency of operation 1 on 0 in a rank of 1": func(b *Builder) { b.Rank(0); b.Requires(1, b.Calc(1)) },
		"rank 0 operation 0: peer 1 of 1 ranks":         func(b *Builder) { b.Rank(0); b.Send(1, 1, 0) },
		"rank 0 operation 0: unknown kind 9":            func(b *Builder) { b.Rank(0); b.Add(Op{Kind: 9}) },
	} {
		b := NewBuilder()
		build(b)
		_, err := b.Schedule()
		require.ErrorContains(t, err, want)
	}
}
