package goal

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func read(t testing.TB, text string) *Schedule {
	t.Helper()
	s, err := ReadText(strings.NewReader(text), ReadOptions{})
	require.NoError(t, err)
	return s
}

// Jobs that share no node have the times that they have alone.
func TestMergedJobsRunAsAlone(t *testing.T) {
	t.Parallel()
	jobs := []*Schedule{
		generate(t, "allreduce-ring", GenParams{Ranks: 5, Size: 100000}), generate(t, "halo2d", GenParams{Ranks: 9, Size: 70000, Iterations: 2, CalcNS: 7}),
		generate(t, "reduce-binomial", GenParams{Ranks: 3, Size: 8}),
	}
	for _, places := range [][][]int{
		Packed(jobs), Strided(jobs),
		{{20, 0, 3, 7, 9}, {1, 2, 4, 5, 6, 8, 10, 11, 12}, {13, 19, 14}},
	} {
		all, err := Merge(jobs, places)
		require.NoError(t, err)
		together, err := NewSimulator(all).Run(DefaultParams())
		require.NoError(t, err)
		for j, s := range jobs {
			alone, err := NewSimulator(s).Run(DefaultParams())
			require.NoError(t, err)
			for r, node := range places[j] {
				require.Equal(t, alone.FinishNS[r], together.FinishNS[node], "job %d rank %d", j, r)
			}
		}
	}
	require.Equal(t, [][]int{{0, 3, 6, 8, 10}, {1, 4, 7, 9, 11, 12, 13, 14, 15}, {2, 5}}, Strided([]*Schedule{jobs[0], jobs[1], generate(t, "gather", GenParams{Ranks: 2})}))
}

// On shared nodes labels, tags, dependencies and processors stay apart.
func TestMergedJobsShareNodes(t *testing.T) {
	t.Parallel()
	text := "num_ranks 2\nrank 0 {\na: calc 10 cpu 1\nb: send 8b to 1 tag 3\nb requires a\n}\nrank 1 {\nrecv 8b from 0 tag 3\n}\n"
	jobs := []*Schedule{read(t, text), read(t, text)}
	all, err := Merge(jobs, [][]int{{0, 1}, {1, 0}})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, WriteText(&out, all))
	require.Equal(t, `num_ranks 2

rank 0 {
j1_a: calc 10 cpu 1
j1_b: send 8b to 1 tag 3
recv 8b from 1 tag 7 cpu 2
j1_b requires j1_a
}

rank 1 {
recv 8b from 0 tag 3
j2_a: calc 10 cpu 2
j2_b: send 8b to 0 tag 7 cpu 1
j2_b requires j2_a
}
`, out.String())
	_, err = NewSimulator(all).Run(DefaultParams())
	require.NoError(t, err)

	wild := read(t, "num_ranks 1\nrank 0 {\nw: recv 8b from 0 tag -1\nsend 8b to 0\n}\n")
	_, err = Merge([]*Schedule{wild, jobs[0]}, [][]int{{0}, {0, 1}})
	require.ErrorContains(t, err, "job 1, rank 0 w (line 3): recv 8b from 0 tag -1: a job with the tag -1 cannot share a node")
	_, err = Merge([]*Schedule{wild, jobs[0]}, [][]int{{0}, {2, 1}})
	require.NoError(t, err)
	high := read(t, "num_ranks 1\nrank 0 {\ncalc 1 cpu 200\n}\n")
	_, err = Merge([]*Schedule{high, high}, [][]int{{4}, {4}})
	require.ErrorContains(t, err, "job 2, rank 0 operation 0 (line 3): calc 1 cpu 200: the jobs on node 4 use more than 256 processors")
	tag := read(t, "num_ranks 1\nrank 0 {\nrecv 8b from 0 tag 18446744073709551614\n}\n")
	_, err = Merge([]*Schedule{tag, high}, [][]int{{4}, {4}})
	require.ErrorContains(t, err, "more than 64 bits")
}

func TestWrongPlaces(t *testing.T) {
	t.Parallel()
	jobs := []*Schedule{generate(t, "gather", GenParams{Ranks: 2}), generate(t, "gather", GenParams{Ranks: 3})}
	for want, places := range map[string][][]int{
		"places for 1 jobs, expected 2":                               {{0, 1}},
		"2 nodes for job 2, expected 3, one for each of its ranks":    {{0, 1}, {2, 3}},
		"node -1 for job 1, expected 0 to 16777215":                   {{0, -1}, {2, 3, 4}},
		"node 16777216 for job 2":                                     {{0, 1}, {2, 3, MaxNodes}},
		"node 2 for the ranks 0 and 2 of job 2, expected one rank of": {{0, 1}, {2, 3, 2}},
	} {
		_, err := Merge(jobs, places)
		require.ErrorContains(t, err, want)
	}
}
