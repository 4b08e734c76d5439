package experiment

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/report"
)

// counting is a sweep over the numbers from 0 to n-1.
func counting(t require.TestingT, n, workers int, run func(i int) error) (*Sweep, []*Point) {
	s, err := New(&Experiment{
		Name: "counting", Short: "of a test", Source: "none", Profiles: []string{"spin-int"},
		Axes:    []Axis{{Name: "number", Kind: report.Count, Default: "0"}},
		Columns: []report.Column{{Name: "took", Kind: report.Count}},
		Run: func(_ context.Context, p *Point) (Values, error) {
			return Values{"took": p.Int("number")}, run(p.Int("number"))
		},
	})
	require.NoError(t, err)
	list := "0"
	for i := 1; i < n; i++ {
		list += fmt.Sprintf(",%d", i)
	}
	require.NoError(t, s.Choose("number", list))
	s.Workers = workers
	points, err := s.Points()
	require.NoError(t, err)
	return s, points
}

// The last point, which is the largest in a sweep over sizes, does not begin
// last.
func TestTheLastPointBeginsAtOnce(t *testing.T) {
	const n = 8
	last := make(chan struct{})
	var begun, before atomic.Int32
	s, points := counting(t, n, 2, func(i int) error {
		switch begun.Add(1); i {
		case 0:
			<-last
		case n - 1:
			before.Store(begun.Load())
			close(last)
		}
		return nil
	})
	results, err := s.Run(t.Context(), points, nil)
	require.NoError(t, err)
	require.LessOrEqual(t, before.Load(), int32(2), "points that had begun when the last one did")
	for i, r := range results {
		require.Equal(t, i, r.Values["took"])
	}
}

// With any schedule of the workers, the error is the error of the first point
// that fails, and every point before it was measured.
func TestTheFirstErrorInOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n, workers := rapid.IntRange(1, 20).Draw(r, "points"), rapid.IntRange(1, 4).Draw(r, "workers")
		fails := rapid.SliceOfN(rapid.Bool(), n, n).Draw(r, "fails")
		first := n
		for i := n - 1; i >= 0; i-- {
			if fails[i] {
				first = i
			}
		}
		ran := make([]atomic.Int32, n)
		s, points := counting(r, n, workers, func(i int) error {
			ran[i].Add(1)
			if fails[i] {
				return fmt.Errorf("number %d.", i)
			}
			return nil
		})
		_, err := s.Run(t.Context(), points, nil)
		if first == n {
			require.NoError(r, err)
		} else {
			require.ErrorContains(r, err, fmt.Sprintf("number %d.", first))
		}
		for i := range min(first+1, n) {
			require.Equal(r, int32(1), ran[i].Load(), i)
		}
	})
}
