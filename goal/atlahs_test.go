package goal

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func atlahsParams() Params {
	p := DefaultParams()
	p.Model = ATLAHS
	return p
}

// A message of s bytes is sent at o + (s-1) O, arrives at + L + (s-1) G, and is
// received g + o + (s-1) O later. Of a rendezvous the sender is free then.
func TestATLAHSMessage(t *testing.T) {
	t.Parallel()
	p := atlahsParams()
	p.ByteGap, _ = ParseByteTime("0.04")
	p.ByteOverhead = PerByte(1)
	m := NewSimulator(generate(t, "gather", GenParams{Ranks: 2, Size: 60001, Root: 1}))
	res, err := m.Run(p)
	require.NoError(t, err)
	sent := int64(1500 + 60000)
	received := sent + 2500 + 2400 + 1000 + 1500 + 60000
	require.Equal(t, []int64{sent, received}, res.FinishNS)
	p.Eager = 60000
	res, err = m.Run(p)
	require.NoError(t, err)
	require.Equal(t, []int64{received, received}, res.FinishNS)

	var spans []Span
	_, err = m.Run(p, WithTrace(func(s Span) { spans = append(spans, s) }))
	require.NoError(t, err)
	last := spans[len(spans)-1]
	require.Equal(t, []int64{received - 61500, received}, []int64{last.Start, last.End})
	_, _, err = m.CriticalPath(p)
	require.ErrorContains(t, err, "LogGOPS model only")
}

// A run leaves nothing behind for one of the other model, and a repeated one
// allocates nothing.
func TestModelsTakeTurns(t *testing.T) {
	m := NewSimulator(generate(t, "alltoall-linear", GenParams{Ranks: 12, Size: 70000}))
	of := make(map[Model][]int64)
	for range 2 {
		for _, p := range []Params{DefaultParams(), atlahsParams()} {
			res, err := m.Run(p)
			require.NoError(t, err)
			if of[p.Model] == nil {
				of[p.Model] = slices.Clone(res.FinishNS)
			}
			require.Equal(t, of[p.Model], res.FinishNS)
		}
	}
	require.NotEqual(t, of[LogGOPS], of[ATLAHS])
	require.Zero(t, testing.AllocsPerRun(3, func() { _, _ = m.Run(atlahsParams()) }))
}

func TestATLAHSOverflow(t *testing.T) {
	t.Parallel()
	m := NewSimulator(generate(t, "gather", GenParams{Ranks: 40, Size: 8}))
	p := atlahsParams()
	p.Gap = MaxCost
	_, err := m.Run(p)
	require.ErrorIs(t, err, ErrOverflow)
	p.Gap = 1000
	_, err = m.Run(p)
	require.NoError(t, err)
	p.Model = 7
	require.ErrorContains(t, p.Validate(), "model")
}

// The heap gives every event once, in order of time.
func TestTimeHeap(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	var h timeHeap
	var in, out []int64
	for range 1000 {
		if rng.IntN(3) > 0 || len(h) == 0 {
			e := event{time: rng.Int64N(50), key: uint64(len(in))}
			in = append(in, e.time)
			h.push(e)
			continue
		}
		least := slices.MinFunc(h, func(a, b event) int { return int(a.time - b.time) }).time
		e := h.pop()
		require.Equal(t, least, e.time)
		out = append(out, e.time)
	}
	for len(h) > 0 {
		out = append(out, h.pop().time)
	}
	slices.Sort(in)
	slices.Sort(out)
	require.Equal(t, in, out)
}
