package goal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A collective lasts from its first send or computation to its last message:
// here the send begins behind a computation of 3 ns, is on its way for L, and
// keeps its receiver busy for o. A timeline beside it changes nothing.
func TestWindows(t *testing.T) {
	t.Parallel()
	s := read(t, "num_ranks 2\nrank 0 {\nw: calc 3\n//coll c reduce 8b root 1\ns: send 8b to 1\ns requires w\n}\nrank 1 {\n//coll c reduce 8b root 1\nrecv 8b from 0\n//coll end\ncalc 1\n}\n")
	require.Equal(t, []Contents{{Ranks: 2, Messages: 1, Bytes: 8}}, s.Contents())
	for _, model := range []Model{LogGOPS, ATLAHS} {
		p := Params{Model: model, L: 10, Overhead: 2, Eager: 100}
		w := make([]Window, 1)
		spans := 0
		_, err := NewSimulator(s).Run(p, WithTrace(func(Span) { spans++ }), WithWindows(w))
		require.NoError(t, err)
		require.Equal(t, []Window{{3, 3 + 2 + 10 + 2}}, w)
		alone := make([]Window, 1)
		_, err = NewSimulator(s).Run(p, WithWindows(alone))
		require.NoError(t, err)
		require.Equal(t, w, alone)
		before := spans
		_, err = NewSimulator(s).Run(p, WithTrace(func(Span) { spans++ }))
		require.NoError(t, err)
		require.Equal(t, 2*before, spans)
	}
}
