package bcast

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The tree of 8 ranks around root 0, largest subtree first; then around root 5, where rank 5 takes
// the place of rank 0 and so on around.
func TestChildrenOfEight(t *testing.T) {
	for rank, want := range [][]uint32{{4, 2, 1}, nil, {3}, nil, {6, 5}, nil, {7}, nil} {
		s := State{Rank: uint32(rank), Ranks: 8}
		require.Equal(t, want, s.Children(), rank)
		s = State{Rank: uint32(rank+5) % 8, Ranks: 8, Root: 5}
		for i := range want {
			want[i] = (want[i] + 5) % 8
		}
		require.Equal(t, want, s.Children(), rank)
	}
}

// Whatever the size and root, every rank but the root has exactly one parent, and no rank is more
// than the binomial depth away.
func TestTreeReachesEveryRankOnce(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		ranks := rapid.Uint32Range(1, 300).Draw(r, "ranks")
		root := rapid.Uint32Range(0, ranks-1).Draw(r, "root")
		depth := map[uint32]int{root: 0}
		for queue := []uint32{root}; len(queue) > 0; queue = queue[1:] {
			s := State{Rank: queue[0], Ranks: ranks, Root: root}
			for _, child := range s.Children() {
				require.NotContains(t, depth, child)
				depth[child] = depth[queue[0]] + 1
				require.LessOrEqual(t, depth[child], bits.Len32(ranks-1))
				queue = append(queue, child)
			}
		}
		require.Len(t, depth, int(ranks))
	})
}

func TestLargestTree(t *testing.T) {
	s := State{Ranks: 1 << 31, Rank: 3, Root: 3}
	require.Equal(t, uint32(1<<30), s.FirstDistance())
	require.Len(t, s.Children(), 31)
}
