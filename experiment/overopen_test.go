package experiment

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/ledger"
)

// Each admissible answer, measured by its override alone, lies within the range
// of --over-open, and the range is wider than a point.
func TestOverOpenHoldsEveryAnswer(t *testing.T) {
	sweep := func(set ...string) *Sweep {
		s, err := New(builtin("pingpong"))
		require.NoError(t, err)
		s.Profiles = []string{"spin-int"}
		s.Overrides = set
		require.NoError(t, s.Choose("size", "8,4KiB"))
		return s
	}
	measured := func(s *Sweep) []*Result {
		points, err := s.Points()
		require.NoError(t, err)
		results, err := s.Run(context.Background(), points, nil)
		require.NoError(t, err)
		return results
	}
	s := sweep()
	today := measured(s)
	o, err := newOverOpen(s)
	require.NoError(t, err)
	require.NoError(t, o.measure(context.Background(), io.Discard, s, today))
	low, high := o.span(builtin("pingpong").value())
	for i, r := range today {
		require.LessOrEqual(t, low[i], float64(r.Time("latency")))
		require.GreaterOrEqual(t, high[i], float64(r.Time("latency")))
		require.Greater(t, high[i]/low[i], 1.1)
	}
	tried := 0
	for _, a := range o.answers {
		set := Assignments{Set: a.set}
		one := sweep()
		require.NoError(t, set.Apply(one))
		for i, r := range measured(one) {
			require.LessOrEqual(t, low[i], float64(r.Time("latency")), a.set)
			require.GreaterOrEqual(t, high[i], float64(r.Time("latency")), a.set)
		}
		tried++
	}
	require.GreaterOrEqual(t, tried, 5)
}

// What the user has chosen is not open any more, and an experiment of nobody's
// publication has nothing that is.
func TestOverOpenLeavesWhatIsChosen(t *testing.T) {
	s, err := New(builtin("pingpong"))
	require.NoError(t, err)
	s.Profiles = []string{"spin-int"}
	all, err := newOverOpen(s)
	require.NoError(t, err)
	path := ""
	for _, a := range all.answers {
		if r, err := (&ledger.Alternative{Set: a.set}).Range(); err == nil && r == nil && len(a.set) == 1 {
			path = a.set[0]
		}
	}
	require.NotEmpty(t, path)
	s.Overrides = []string{path}
	fewer, err := newOverOpen(s)
	require.NoError(t, err)
	require.Less(t, len(fewer.answers), len(all.answers))
	for _, a := range fewer.answers {
		require.NotContains(t, a.set, path)
	}
	own, err := New(definition())
	require.NoError(t, err)
	_, err = newOverOpen(own)
	require.EqualError(t, err, "nothing is known to be open for own")
}

// Answers that rows of the ledger exclude are left out, and counted.
func TestOverOpenLeavesOutWhatIsExcluded(t *testing.T) {
	excluded, err := ledger.Excluded()
	require.NoError(t, err)
	s, err := New(builtin("pagefault"))
	require.NoError(t, err)
	o, err := newOverOpen(s)
	require.NoError(t, err)
	n := 0
	for _, x := range excluded {
		if x.Publication == "part" {
			n++
		}
		for _, a := range o.answers {
			require.False(t, a.question == x.Question && a.name == x.Alternative, "%v", x)
		}
	}
	require.Equal(t, n, o.excluded)
	require.Positive(t, n)
}
