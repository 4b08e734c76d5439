package experiment

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// stepping is an experiment with an axis of terms.
func stepping() *Experiment {
	return &Experiment{
		Name: "stepping",
		Axes: []Axis{
			{Name: "term", Kind: report.Text, Of: []string{"ours", "one", "two"}, Default: "ours", Help: "a way", Terms: []Term{
				{}, {Help: "seven", Values: map[string]string{"a": "7"}}, {Help: "nine", Values: map[string]string{"b": "9"}, Set: []string{"host.message=77ns"}, WhatIf: true},
			}},
			{Name: "a", Kind: report.Count, Default: "1,2", Most: "10", Help: "a number"},
			{Name: "b", Kind: report.Count, Default: "3", Most: "10", Help: "another"},
		},
		Run: func(_ context.Context, p *Point) (Values, error) {
			return Values{"sum": p.Int("a") + p.Int("b"), "message": p.Profile.Host.Message.Nanoseconds()}, nil
		},
		Columns: []report.Column{{Name: "sum", Kind: report.Count, Help: "of both"}, {Name: "message", Kind: report.Number, Help: "of the profile"}},
	}
}

// Each term changes values of axes and fields of the profile, in addition to
// earlier terms. If it replaces several values, one point is left. A point made
// with At, and a sweep made again from its record, have the same.
func TestTermsComeOnTopOfEachOther(t *testing.T) {
	s, err := New(stepping())
	require.NoError(t, err)
	s.Profiles = []string{"spin-int"}
	require.NoError(t, s.Choose("term", "ours,one,two"))
	points, err := s.Points()
	require.NoError(t, err)
	results, err := s.Run(context.Background(), points, nil)
	require.NoError(t, err)
	var got [][]any
	for _, r := range results {
		got = append(got, []any{r.Point.Text("term"), r.Point.Int("a"), r.Point.Int("b"), r.Values["sum"]})
	}
	require.Equal(t, [][]any{{"ours", 1, 3, 4}, {"one", 7, 3, 10}, {"two", 7, 9, 16}, {"ours", 2, 3, 5}}, got)
	require.Equal(t, []any{77.0, false}, []any{results[2].Values["message"], results[1].Values["message"] == 77.0})

	one, err := stepping().At(points[0].Profile, Values{"term": "two"})
	require.NoError(t, err)
	require.Equal(t, []int{7, 9}, []int{one.Int("a"), one.Int("b")})

	again, _, err := RerunSweep(s.Record(), stepping(), nil)
	require.NoError(t, err)
	repeated, err := again.Points()
	require.NoError(t, err)
	require.Len(t, repeated, len(points))
}

// It is an error to choose a value that a term changes.
func TestTermsAreNotOverruled(t *testing.T) {
	for want, choose := range map[string]func(s *Sweep) error{ //lint:maporder each by itself
		"--a: one of --term changes it to 7":                   func(s *Sweep) error { return s.Choose("a", "5") },
		"--set host.message: two of --term changes it to 77ns": func(s *Sweep) error { return s.Set("host.message=1us") },
		"--b: two of --term changes it to 9":                   func(s *Sweep) error { return s.Choose("b", "9") },
	} {
		s, err := New(stepping())
		require.NoError(t, err)
		s.Profiles = []string{"spin-int"}
		require.NoError(t, choose(s))
		_, err = s.Points()
		require.NoError(t, err, "ours changes nothing")
		require.NoError(t, s.Choose("term", "ours,two"))
		_, err = s.Points()
		require.ErrorContains(t, err, want)
	}
}

// A definition is wrong if a term changes something that does not exist.
func TestWrongTerms(t *testing.T) {
	for want, change := range map[string]func(a *Axis){ //lint:maporder each by itself
		"nothing says what one is":                        func(a *Axis) { a.Terms[1].Help = "" },
		"2 terms for 3 values":                            func(a *Axis) { a.Terms = a.Terms[:2] },
		"the first value, ours, changes something":        func(a *Axis) { a.Terms[0].Values = map[string]string{"a": "1"} },
		`one changes "c", which is no other axis`:         func(a *Axis) { a.Terms[1].Values = map[string]string{"c": "1"} },
		`one changes axis a to "11", which is none of it`: func(a *Axis) { a.Terms[1].Values = map[string]string{"a": "11"} },
		`two sets "host.message", expected path=value`:    func(a *Axis) { a.Terms[2].Set = []string{"host.message"} },
	} {
		e := stepping()
		change(&e.Axes[0])
		require.ErrorContains(t, e.Check(), want)
	}
}

// The terms of npf lead to the published numbers: the last term comes within
// 6%, and closer than the first. The pages of npf-cold-ring and npf-ring-size
// have theirs, which TestFigurePages of cmd/spinsim looks at; the terms for the
// storage target and for 4 MiB take minutes of a core.
func TestWaysOfNPFMeet(t *testing.T) {
	for _, way := range []struct {
		of     *Experiment
		values map[string]string
		column string
	}{
		{builtin("npf-instances"), map[string]string{"instances": "3"}, "throughput"},
		{builtin("npf-latency"), map[string]string{"size": "4KiB", "runs": "500"}, "p95"},
	} {
		e, err := way.of.Preset("waterfall")
		require.NoError(t, err)
		s, err := New(e)
		require.NoError(t, err)
		for axis, list := range way.values { //lint:maporder each by itself
			require.NoError(t, s.Choose(axis, list))
		}
		points, err := s.Points()
		require.NoError(t, err)
		numbers := e.published()
		results, err := s.Run(context.Background(), []*Point{points[1], points[len(points)-1]}, nil)
		require.NoError(t, err)
		off := func(r *Result) float64 {
			for _, n := range numbers {
				if n.Column == way.column && fits(r.Point, n.At) && fits(r.Point, n.With) {
					is, _ := Magnitude(r.Values[way.column])
					if c, _ := e.column(way.column); c.Kind == report.Duration {
						is /= float64(sim.Microsecond)
					}
					return math.Abs(is/n.Value - 1)
				}
			}
			t.Fatalf("%s: nothing is published of %v", e.Name, r.Point)
			return 0
		}
		first, last := off(results[0]), off(results[1])
		require.Less(t, last, 0.06, "%s %v", e.Name, way.values)
		require.Greater(t, first, last, e.Name)
	}
}

// fits reports whether a point has the values, of axes and of the profile.
func fits(p *Point, values []report.Is) bool {
	for _, is := range values {
		if is.Column == ProfileColumn {
			if is.Value != profile.Undated(p.Profile.Name) {
				return false
			}
			continue
		}
		for i := range p.values {
			c := p.experiment.Axes[i].column()
			if (c.Name == is.Column || c.Key() == is.Column) && !c.Same(p.values[i], is.Value) {
				return false
			}
		}
	}
	return true
}

// A table explains its terms and marks what-ifs. A published number stands
// beside the term it belongs to. Without a chosen term there is no such note.
func TestTermsAreExplained(t *testing.T) {
	e := stepping()
	e.Published = []report.Published{{At: []report.Is{{Column: "b", Value: 9}}, Column: "sum", Value: 16, Source: "Nobody'01", Note: "checks"}, {At: []report.Is{{Column: "b", Value: 3}}, Column: "sum", Value: 4, Source: "Nobody'01", Note: "checks"}}
	sweep := func(terms string) (*Sweep, *report.Table) {
		s, err := New(e)
		require.NoError(t, err)
		s.Profiles = []string{"spin-int"}
		require.NoError(t, s.Choose("term", terms))
		points, err := s.Points()
		require.NoError(t, err)
		results, err := s.Run(context.Background(), points, nil)
		require.NoError(t, err)
		table, err := s.Table(results)
		require.NoError(t, err)
		return s, table
	}
	s, table := sweep("ours,two")
	require.Contains(t, s.Notes(nil), "Values of term, each with what those before it change: one: seven (--a 7); two, a what-if: nine (--b 9, --set host.message=77ns). A what-if was made for the published number and predicts nothing; no profile has it.")
	require.Equal(t, []string{
		"two, 9 b, spin-int: sum 16, published 16 (Nobody'01 (made for it)), 0.0%.",
		"ours, 3 b, spin-int: sum 4, published 4 (Nobody'01 (checks)), 0.0%.", "ours, 3 b, spin-int: sum 5, published 4 (Nobody'01 (checks)), +25.0%.",
	}, table.Comparisons())

	e.View.Quiet, e.View.Summary = []string{"term", "a", "b"}, []string{"sum"}
	for _, of := range []struct{ terms, everywhere, columns string }{{"two", "Everywhere: term two.", "a b sum"}, {"one", "Everywhere: term one, b 3.", "a sum"}, {"ours,one", "Everywhere: b 3.", "term a sum"}, {"ours", "Everywhere: term ours, b 3.", "a sum"}} {
		s, table = sweep(of.terms)
		summary, err := s.Summary(table)
		require.NoError(t, err)
		var names []string
		for _, c := range summary.Columns {
			if !strings.HasPrefix(c.Name, "sum_") {
				names = append(names, c.Name)
			}
		}
		require.Equal(t, of.columns, strings.Join(names, " "), of.terms)
		require.Equal(t, of.everywhere, s.Notes(nil)[0])
	}

	s, table = sweep("ours")
	require.NotContains(t, strings.Join(s.Notes(nil), "\n"), "what-if")
	require.Equal(t, "3 b, spin-int: sum 4, published 4 (Nobody'01 (checks)), 0.0%.", table.Comparisons()[0])
}
