package identify

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/ledger"
)

// together is a study of a device whose rows are twice as large as published with
// today's answers, farther with one or two of three others, and exact with all
// three. Each further answer makes all rows larger by its factor.
func together(t require.TestingT, three []int, factors []float64) *Study {
	var text strings.Builder
	text.WriteString("question\twhat\talternative\tset\tsource\n")
	for q := range factors {
		fmt.Fprintf(&text, "q%d\t\ttoday\t\tours\nq%d\t\tother\tq%d=1\tours\n", q, q, q)
	}
	list, err := ledger.ParseQuestions(text.String())
	require.NoError(t, err)
	s := &Study{Questions: list}
	for i := range 4 {
		v, err := ledger.ParseValue(strconv.Itoa(100<<i), ledger.Exact)
		require.NoError(t, err)
		s.Rows = append(s.Rows, Row{&ledger.Row{ID: fmt.Sprint("r", i), Published: v}, "e"})
	}
	s.Measure = func(_ context.Context, settings [][]string) ([]Outcome, error) {
		out := make([]Outcome, len(settings))
		for i, set := range settings {
			by, some := 1.0, 0
			for q, f := range factors {
				switch {
				case !slices.Contains(set, fmt.Sprintf("q%d=1", q)):
				case slices.Contains(three, q):
					some++
				default:
					by *= f
				}
			}
			out[i].Ours = map[string]ledger.Ours{}
			for k := range s.Rows {
				out[i].Ours[s.Rows[k].ID] = ledger.Ours{Numbers: []float64{float64(int(100)<<k) * by * []float64{2, 2.6, 3, 1}[some]}}
			}
		}
		return out, nil
	}
	return s
}

// Three answers that help only together are found, wherever they stand among
// others that help never. No sequence of steps finds them.
func TestThreeAnswersTogether(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		factors := rapid.SliceOfN(rapid.Float64Range(1.05, 2), 3, asked).Draw(r, "factors")
		three := rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}[:len(factors)]).Draw(r, "questions")[:3]
		s := together(r, three, factors)
		f, err := s.find(context.Background())
		require.NoError(r, err)
		path, err := (&search{s, f.of, every}).greedy(context.Background(), f.today)
		require.NoError(r, err)
		require.Empty(r, path)
		slices.Sort(three)
		require.Equal(r, []string{fmt.Sprintf("q%d=1", three[0]), fmt.Sprintf("q%d=1", three[1]), fmt.Sprintf("q%d=1", three[2])}, f.verdict.Set)
	})
}

// Any three levels of different factors occur together in a row, if there are
// enough rows. A sample draws enough for as many questions as it asks, if each has
// two answers.
func TestCovering(t *testing.T) {
	missing := func(levels []int, rows [][]int) (n int) {
		for a := range levels {
			for b := range a {
				for c := range b {
					had := map[[3]int]bool{}
					for _, row := range rows {
						had[[3]int{row[a], row[b], row[c]}] = true
					}
					n += levels[a]*levels[b]*levels[c] - len(had)
				}
			}
		}
		return n
	}
	rapid.Check(t, func(r *rapid.T) {
		levels := rapid.SliceOfN(rapid.IntRange(2, 4), 0, 8).Draw(r, "levels")
		rows := covering(levels, 10_000)
		require.Zero(r, missing(levels, rows))
		if len(rows) > 0 {
			require.Equal(r, make([]int, len(levels)), rows[0], "today's answers")
			require.Positive(r, missing(levels, rows[:len(rows)-1]), "each row has something new")
			some := rapid.IntRange(0, len(rows)).Draw(r, "some")
			require.True(r, slices.EqualFunc(rows[:some], covering(levels, some), slices.Equal))
		}
	})
	most := slices.Repeat([]int{2}, asked)
	require.Zero(t, missing(most, covering(most, drawn)))
}
