package goal

import (
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type node struct{ rank, i int }

type channel struct {
	from, to int
	tag      uint64
}

// knowledge returns, for each rank, the ranks whose data has reached it. Each
// send passes on the initial data of its rank and the data of earlier receives.
// knowledge fails if sends and receives do not pair up by size, or if they wait
// for each other in a cycle when no message is eager.
func knowledge(t require.TestingT, s *Schedule) []*big.Int {
	next := map[node][]node{}
	indegree := map[node]int{}
	edge := func(a, b node) {
		next[a] = append(next[a], b)
		indegree[b]++
	}
	open := map[channel][]node{}
	for r, v := range s.All() {
		for i := range v.Len() {
			for _, x := range slices.AppendSeq(slices.Collect(v.AfterDone(i)), v.AfterStart(i)) {
				edge(node{r, i}, node{r, x})
			}
			if op := v.Op(i); op.Kind == Send {
				c := channel{r, int(op.Peer), op.Tag}
				open[c] = append(open[c], node{r, i})
			}
		}
	}
	rank := make([]*big.Int, s.Ranks())
	at := map[node]*big.Int{}
	var ready []node
	for r, v := range s.All() {
		rank[r] = new(big.Int).SetBit(new(big.Int), r, 1)
		for i := range v.Len() {
			n, op := node{r, i}, v.Op(i)
			at[n] = new(big.Int).Set(rank[r])
			if op.Kind == Recv {
				c := channel{int(op.Peer), r, op.Tag}
				require.NotEmpty(t, open[c], "receive without send: %v", s.Ref(r, i))
				from := open[c][0]
				open[c] = open[c][1:]
				require.Equal(t, s.Rank(from.rank).Op(from.i).Size, op.Size)
				edge(from, n)
			}
			if indegree[n] == 0 {
				ready = append(ready, n)
			}
		}
	}
	for c, left := range open {
		require.Empty(t, left, "sends without receive: %v", c)
	}
	// Receives of later ranks may have added an edge since.
	ready = slices.DeleteFunc(ready, func(n node) bool { return indegree[n] > 0 })
	seen := 0
	for ; seen < len(ready); seen++ {
		n := ready[seen]
		rank[n.rank].Or(rank[n.rank], at[n])
		for _, x := range next[n] {
			at[x].Or(at[x], at[n])
			if indegree[x]--; indegree[x] == 0 {
				ready = append(ready, x)
			}
		}
	}
	require.Equal(t, s.Len(), seen, "operations wait for each other")
	return rank
}

// Data must reach the ranks that the pattern's name promises, for any number of
// ranks, any root, and also with rendezvous.
func TestPatternsDeliver(t *testing.T) {
	t.Parallel()
	const (
		nothing     = iota
		fromRoot    // every rank gets the data of the root
		toRoot      // the root gets the data of every rank
		everywhere  // every rank gets the data of every rank
		roundabouts // as fromRoot; with more than one rank the root gets its own back
	)
	delivers := map[string]int{
		"allreduce-recdoub": everywhere, "allreduce-ring": everywhere, "alltoall-linear": everywhere,
		"alltoall-pairwise": everywhere, "barrier-dissemination": everywhere, "barrier-linear": everywhere,
		"bcast-binary": fromRoot, "bcast-binomial": fromRoot, "dissemination": everywhere, "gather": toRoot,
		"halo2d": nothing, "halo3d": nothing, "permutation": nothing, "reduce-binomial": toRoot,
		"ring-double": roundabouts, "ring-pipelined": fromRoot, "scatter": fromRoot,
	}
	require.Len(t, Patterns(), len(delivers))
	for _, q := range Patterns() {
		want, ok := delivers[q.Name]
		require.True(t, ok, q.Name)
		t.Run(q.Name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				p := GenParams{
					Ranks: rapid.IntRange(1, 20).Draw(t, "ranks"), Size: rapid.Uint64Range(0, 300).Draw(t, "size"),
					Ways: rapid.IntRange(0, 4).Draw(t, "ways"), Segment: rapid.Uint64Range(0, 100).Draw(t, "segment"),
					Iterations: rapid.IntRange(0, 3).Draw(t, "iterations"),
					CalcNS:     rapid.SampledFrom([]uint64{0, 7}).Draw(t, "calc"), Seed: rapid.Uint64().Draw(t, "seed"),
				}
				p.Root = rapid.IntRange(0, p.Ranks-1).Draw(t, "root")
				s, err := Generate(q.Name, p)
				require.NoError(t, err)
				know := knowledge(t, s)
				all := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(p.Ranks)), big.NewInt(1))
				for r, k := range know {
					switch {
					case want == everywhere, want == toRoot && r == p.Root:
						require.Equal(t, all, k, "rank %d", r)
					case want == fromRoot, want == roundabouts:
						require.Equal(t, uint(1), k.Bit(p.Root), "rank %d", r)
					}
				}
				params := DefaultParams()
				params.Eager = rapid.SampledFrom([]uint64{0, 50, 1000}).Draw(t, "eager")
				_, err = NewSimulator(s).Run(params)
				require.NoError(t, err)
			})
		})
	}
}

// A pattern that is too large is refused before its operations are counted, and
// none that is not too large.
func TestTooLargeAtOnce(t *testing.T) {
	t.Parallel()
	for _, name := range quadratic {
		for n := 1; n < 20; n++ {
			is, err := Operations(name, GenParams{Ranks: n})
			require.NoError(t, err)
			require.GreaterOrEqual(t, is, 2*n*(n-1), name)
		}
		_, err := Operations(name, GenParams{Ranks: MaxGenerated}) // 2^29 for each of the ranks
		require.ErrorIs(t, err, ErrTooLarge)
	}
}

// The numbers of messages and bytes are known for each pattern. This catches a
// pattern that delivers, but is not the named one.
func TestPatternVolumes(t *testing.T) {
	t.Parallel()
	const n, size = 11, 1000
	for _, c := range []struct {
		pattern  string
		p        GenParams
		messages int
		bytes    uint64
	}{
		{"allreduce-recdoub", GenParams{}, 2*3 + 8*3, (2*3 + 8*3) * size},
		{"allreduce-ring", GenParams{}, n * 2 * (n - 1), 2 * (n - 1) * size},
		{"alltoall-linear", GenParams{}, n * (n - 1), n * (n - 1) * size},
		{"alltoall-pairwise", GenParams{}, n * (n - 1), n * (n - 1) * size},
		{"barrier-dissemination", GenParams{}, n * 4, n * 4 * size},
		{"barrier-linear", GenParams{}, 2 * (n - 1), 2 * (n - 1) * size},
		{"bcast-binary", GenParams{}, n - 1, (n - 1) * size},
		{"bcast-binomial", GenParams{}, n - 1, (n - 1) * size},
		// distances 1, 2, 3 and 4, 8
		{"dissemination", GenParams{Ways: 3}, n * (3 + 2), n * (3 + 2) * size},
		{"gather", GenParams{}, n - 1, (n - 1) * size},
		{"halo2d", GenParams{Iterations: 3}, 3 * 2 * 10, 3 * 2 * 10 * size}, // 11 x 1
		{"reduce-binomial", GenParams{}, n - 1, (n - 1) * size},
		{"ring-double", GenParams{}, 2 * n, 2 * n * size},
		{"ring-pipelined", GenParams{Segment: 300}, (n - 1) * 4, (n - 1) * size},
		{"scatter", GenParams{}, n - 1, (n - 1) * size},
	} {
		c.p.Ranks, c.p.Size = n, size
		st := Stat(generate(t, c.pattern, c.p))
		require.Equal(t, c.messages, st.Sends, c.pattern)
		require.Equal(t, c.messages, st.Recvs, c.pattern)
		require.Equal(t, c.bytes, st.Bytes, c.pattern)
	}
	require.Equal(t, []int{4, 3, 2}, gridSize(24, 3))
	require.Equal(t, []int{13, 1}, gridSize(13, 2))
	require.Equal(t, []int{1024, 1024}, gridSize(1<<20, 2))
}

func TestPermutationSeeds(t *testing.T) {
	t.Parallel()
	one := binaryOf(t, generate(t, "permutation", GenParams{Ranks: 40, Size: 8, Seed: 1}))
	require.Equal(t, one, binaryOf(t, generate(t, "permutation", GenParams{Ranks: 40, Size: 8, Seed: 1})))
	require.NotEqual(t, one, binaryOf(t, generate(t, "permutation", GenParams{Ranks: 40, Size: 8, Seed: 2})))
}

func TestGenerateErrors(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		pattern string
		p       GenParams
	}{
		`unknown pattern "star", expected one of allreduce-recdoub, `: {"star", GenParams{Ranks: 1}},
		"goal: ranks: 0, expected 1":                                  {"gather", GenParams{}},
		"goal: root: 3, expected 0 to 2":                              {"gather", GenParams{Ranks: 3, Root: 3}},
		"goal: ways: -1, expected":                                    {"gather", GenParams{Ranks: 3, Ways: -1}},
	} {
		_, err := Generate(c.pattern, c.p)
		require.ErrorContains(t, err, want)
	}
}
