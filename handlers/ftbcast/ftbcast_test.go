package ftbcast_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/handlers/bcast"
	"github.com/spinsim/spinsim/handlers/ftbcast"
)

// The graph of 12 ranks in the publication (ISPA'07, Figure 2): 1, 2, 4 and 8
// in both directions, of which 8 is 4 the other way.
func TestGraphOfTwelve(t *testing.T) {
	require.Equal(t, []uint32{1, 2, 4, 8, 10, 11}, ftbcast.Graph(12))
	require.Len(t, ftbcast.Graph(64), 11, "what docs/ftbcast.md says")
	require.Empty(t, ftbcast.Graph(1))
	require.Equal(t, []uint32{1}, ftbcast.Graph(2))
	require.Equal(t, []uint32{1, 2}, ftbcast.Graph(3))
	require.Len(t, ftbcast.Graph(ftbcast.MaxRanks), ftbcast.MaxNeighbours-1, "half way around is one distance")
	require.Len(t, ftbcast.Graph(ftbcast.MaxRanks-1), ftbcast.MaxNeighbours)
}

// Fewer failed ranks than neighbours leave nobody alone (ISPA'07, §3), counted on the graph itself.
func TestConnectivity(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		ranks := rapid.Uint32Range(2, 700).Draw(r, "ranks")
		root := rapid.Uint32Range(0, ranks-1).Draw(r, "root")
		failed := map[uint32]bool{}
		near := rapid.Bool().Draw(r, "near") // a rank's neighbours are the worst to lose
		victim := rapid.Uint32Range(0, ranks-1).Draw(r, "victim")
		graph := ftbcast.Graph(ranks)
		for len(failed) < len(graph)-1 {
			rank := rapid.Uint32Range(0, ranks-1).Draw(r, "failed")
			if near {
				rank = (victim + graph[rank%uint32(len(graph))]) % ranks
			}
			if rank != root {
				failed[rank] = true
			} else if near || len(failed) >= int(ranks)-1 {
				break
			}
		}
		reached := map[uint32]bool{root: true}
		for queue := []uint32{root}; len(queue) > 0; queue = queue[1:] {
			neighbours, _ := ftbcast.NeighboursOf(queue[0], root, ranks)
			for _, n := range neighbours {
				if !reached[n] && !failed[n] {
					reached[n] = true
					queue = append(queue, n)
				}
			}
		}
		require.Len(r, reached, int(ranks)-len(failed), "%d ranks, root %d, without %v", ranks, root, failed)
	})
}

// Copies take the way of the binomial tree first, and then all others of the
// graph, each once, none to the root.
func TestOrderOfNeighbours(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		ranks := rapid.Uint32Range(1, 300).Draw(r, "ranks")
		root, rank := rapid.Uint32Range(0, ranks-1).Draw(r, "root"), rapid.Uint32Range(0, ranks-1).Draw(r, "rank")
		tree := bcast.State{Rank: rank, Ranks: ranks, Root: root}
		list, children := ftbcast.NeighboursOf(rank, root, ranks)
		require.Equal(r, append([]uint32{}, tree.Children()...), append([]uint32{}, list[:children]...))
		var all []uint32
		for _, d := range ftbcast.Graph(ranks) {
			if to := (rank + d) % ranks; to != root {
				all = append(all, to)
			}
		}
		require.ElementsMatch(r, all, list)
	})
}
