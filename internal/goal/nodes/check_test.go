package nodes

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/mpi"
)

// The checks of a run find any byte that differs, and any message in place of
// another.
func TestCheckFindsEveryByte(t *testing.T) {
	s := mpi.Status{Source: 3, Tag: 9, Sequence: 17}
	for _, n := range []int{0, 1, 7, 8, 9, 31, 1000} {
		b := make([]byte, n)
		fill(0, b, s)
		require.NoError(t, checkPart(0, b, s))
		for i := range b {
			b[i] ^= 1 << (i % 8)
			require.Error(t, checkPart(0, b, s), "byte %d of %d", i, n)
			b[i] ^= 1 << (i % 8)
		}
	}
	b := make([]byte, 8)
	fill(0, b, s)
	for _, other := range []mpi.Status{{Source: 4, Tag: 9, Sequence: 17, Bytes: 8}, {Source: 3, Tag: 8, Sequence: 17, Bytes: 8}, {Source: 3, Tag: 9, Sequence: 18, Bytes: 8}} {
		require.ErrorContains(t, checkPart(0, b, other), "bytes 0 to 7 of 8")
	}
}

func TestOrderIsChecked(t *testing.T) {
	p := &player{nics: &interfaces{ranks: 8}, rank: 5, posted: []uint32{2, 0, 1, 3}, sequence: []uint32{4, 7, 1, 0}, from: []uint32{6, 6, 6, 8}, tags: []uint32{1, 1, 1, 1}}
	require.NoError(t, p.ordered())
	p.sequence[0] = 9
	require.EqualError(t, p.ordered(), "rank 5: message 7 from rank 6 with tag 1 came to a later receive than one sent after it")
}

func TestPoolGivesMemoryAgain(t *testing.T) {
	require.Equal(t, []int{6, 6, 6, 7, 10, 11}, []int{classOf(0), classOf(1), classOf(64), classOf(65), classOf(1024), classOf(1025)})
}

// A barrier that a rank leaves before another enters it is an error with both times.
func TestBarriersAreChecked(t *testing.T) {
	s, err := goal.ReadText(strings.NewReader("num_ranks 2\nrank 0 {\n//coll b barrier 0b\ncalc 0\n}\nrank 1 {\n//coll b barrier 0b\ncalc 0\n}\n"), goal.ReadOptions{})
	require.NoError(t, err)
	cfg := &Config{Calls: map[string]bool{"b": true}}
	players := []*player{{windows: map[int]Window{0: {1000, 3000}}}, {windows: map[int]Window{0: {3000, 4000}}}, {}}
	require.NoError(t, checkBarriers(s, cfg, players))
	players[1].windows[0] = Window{3001, 4000}
	require.EqualError(t, checkBarriers(s, cfg, players), "nodes: barrier b: a rank left it at 3 ns, before another entered it at 3.001 ns")
	require.NoError(t, checkBarriers(s, &Config{}, players), "messages of the schedule are what they are")
}
