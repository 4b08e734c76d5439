package proxy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/goal/proxy"
)

func schedule(t *testing.T, name string, ranks int) *goal.Schedule {
	p, err := proxy.Load(name)
	require.NoError(t, err)
	s, err := p.Schedule(ranks, 1, 0)
	require.NoError(t, err)
	return s
}

// sizes counts the messages of a rank by their length.
func sizes(s *goal.Schedule, rank int) map[uint64]int {
	count := make(map[uint64]int)
	for i := range s.Rank(rank).Len() {
		if op := s.Rank(rank).Op(i); op.Kind == goal.Send {
			count[op.Size]++
		}
	}
	return count
}

// The lengths that the sources of the applications give, derived by hand.
func TestMessagesOfTheApplications(t *testing.T) {
	// Two applications of the operator; 8 sides; 8^3/2 sites of 24 B, and three layers of them.
	require.Equal(t, map[uint64]int{256 * 24: 16, 3 * 256 * 24: 16}, sizes(schedule(t, "milc", 64), 0))

	// 8 x 8 ranks of 40 x 48 points, two layers of 8 B; rank 9 is inside, rank
	// 0 has no neighbour to the south.
	pop := schedule(t, "pop", 64)
	require.Equal(t, map[uint64]int{2 * 48 * 8: 2, 2 * 44 * 8: 2}, sizes(pop, 9))
	require.Equal(t, map[uint64]int{2 * 48 * 8: 2, 2 * 44 * 8: 1}, sizes(pop, 0))

	comd := map[uint64]int{12 * 12 * 1037: 2, 14 * 12 * 1037: 2, 14 * 14 * 1037: 2}
	require.Equal(t, comd, sizes(schedule(t, "comd", 72), 5))
	require.Equal(t, comd, sizes(schedule(t, "comd", 360), 359))

	// 9 x 8 ranks: 427 x 480 cells at most. Numbers of fields times depth: 5, 1, 1, 8, 12, 12.
	clover := map[uint64]int{}
	for _, n := range []uint64{5, 1, 1, 8, 12, 12} {
		clover[n*8*485] += 2
		clover[n*8*432] += 2
	}
	require.Equal(t, clover, sizes(schedule(t, "cloverleaf", 72), 10))
}

// Whatever the number of ranks, every receive finds its message, with its size.
func TestSchedulesFinish(t *testing.T) {
	for _, name := range proxy.Names() {
		p, err := proxy.Load(name)
		require.NoError(t, err)
		require.NotEmpty(t, p.Source, name)
		require.Equal(t, name, p.Name)
		for _, ranks := range []int{1, 2, 3, 7, 16, 60} {
			s, err := p.Schedule(ranks, 3, 1000)
			require.NoError(t, err)
			params := goal.DefaultParams()
			params.Eager = 0
			r, err := goal.NewSimulator(s).Run(params)
			require.NoError(t, err, "%s, %d ranks", name, ranks)
			require.Zero(t, r.Mismatched)
			require.GreaterOrEqual(t, r.MaxNS, int64(3*990), "computation, shares rounded down")
		}
	}
}

func TestGrid(t *testing.T) {
	for _, test := range []struct {
		ranks int
		grid  []int
	}{
		{1, []int{1, 1}},
		{64, []int{8, 8}},
		{72, []int{9, 8}},
		{360, []int{20, 18}},
		{7, []int{7, 1}},
		{72, []int{6, 4, 3}},
		{360, []int{10, 6, 6}},
		{64, []int{4, 4, 2, 2}},
	} {
		got := proxy.Grid(test.ranks, len(test.grid))
		product := 1
		for _, n := range got {
			product *= n
		}
		require.Equal(t, test.ranks, product)
		require.Equal(t, test.grid, got)
	}
}

func TestBadFiles(t *testing.T) {
	const rest = "phases: [{messages: [{dim: 0, unit: 8}]}]\n"
	for text, want := range map[string]string{
		"nome: x\n": "x.yaml:1: nome: unknown field, expected one of name, description, source, periodic, global, local, phases",
		"periodic: [true]\nlocal: [8]\nphases: [{during: -1}]\n":                                    "phases[0]: shares of computation are -1 and 0",
		"periodic: [true]\nlocal: [8]\nphases: [{messages: [{dim: 1}]}]\n":                          "phases[0].messages[0].dim: 1, expected 0 to 0",
		"periodic: [true]\nlocal: [8]\nphases: [{messages: [{dim: 0, side: left}]}]\n":              `side: "left", expected up, down`,
		"periodic: [true]\nlocal: [8]\nphases: [{messages: [{dim: 0, unit: -8}]}]\n":                "unit: -8 bytes",
		"periodic: [true]\nlocal: [8]\nphases: [{messages: [{dim: 0, pad: [1, 2]}]}]\n":             "pad: 2 numbers, expected 1 or none",
		"periodic: [true]\nlocal: [8]\nphases: [{messages: [{dim: 0, pad: [-1]}]}]\n":               "pad: -1 points",
		"periodic: [true]\nlocal: [8]\n":                                                            "phases: expected at least one",
		"periodic: [true]\n" + rest:                                                                 "global, local: expected one of them, with 1 numbers",
		"periodic: [true]\nlocal: [8]\nglobal: [8]\n" + rest:                                        "global, local: expected one of them",
		"periodic: [true]\nlocal: [0]\n" + rest:                                                     "0 points, expected 1 to",
		"local: [8]\n" + rest:                                                                       "periodic: expected a value",
		"periodic: [true]\nlocal: [8.5]\n" + rest:                                                   `x.yaml:2: local[0]: "8.5", expected a whole number`,
		"periodic: [true]\nlocal: [010]\n" + rest:                                                   `x.yaml:2: local[0]: "010", expected a whole number`,
		"periodic: [true, true]\nlocal: [9, 999999]\nphases: [{messages: [{dim: 0, unit: 99999}]}]": "",
	} {
		file := filepath.Join(t.TempDir(), "x.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		p, err := proxy.Load(file)
		if want != "" {
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, "x.yaml")
			continue
		}
		require.NoError(t, err)
		_, err = p.Schedule(4, 1, 0)
		require.ErrorContains(t, err, "message of 99998900001 B along dimension 0")
	}
	file := filepath.Join(t.TempDir(), "x.yaml")
	require.NoError(t, os.WriteFile(file, []byte("periodic: [true]\nlocal: [0]\nphases: [{messages: [{dim: 1}]}]\n"), 0o600))
	_, err := proxy.Load(file)
	for _, want := range []string{"x.yaml: local[0]: 0 points, expected 1 to", "phases[0].messages[0].dim: 1, expected 0 to 0"} {
		require.ErrorContains(t, err, want, "all at once")
	}
	require.NoError(t, os.WriteFile(file, []byte("periodic: [true]\nlocal: [8.5, many]\nphases: [{messages: [{dim: x, unit: 8, unit: 9}]}]\n"), 0o600))
	_, err = proxy.Load(file)
	require.EqualError(t, err, strings.ReplaceAll(`proxy: FILE:2: local[0]: "8.5", expected a whole number
proxy: FILE:2: local[1]: "many", expected a whole number
proxy: FILE:3: phases[0].messages[0].dim: "x", expected a whole number
proxy: FILE:3: phases[0].messages[0].unit: given twice`, "FILE", file), "and nothing that only follows")
	_, err = proxy.Load("linpack")
	require.ErrorContains(t, err, "expected one of cloverleaf, comd, milc, pop")
	_, err = proxy.Load("none.yaml")
	require.ErrorIs(t, err, os.ErrNotExist)
	p, err := proxy.Load("pop")
	require.NoError(t, err)
	_, err = p.Schedule(0, 1, 0)
	require.Error(t, err)
}
