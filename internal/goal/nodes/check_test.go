package nodes

import (
	"testing"

	"github.com/stretchr/testify/require"

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
