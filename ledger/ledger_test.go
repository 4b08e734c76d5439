package ledger

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Twice as much is as far as half as much, further is not nearer, and what the
// publication gives is at no distance.
func TestDistance(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		published := rapid.Float64Range(1e-6, 1e9).Draw(r, "published")
		factor := rapid.Float64Range(1.001, 1e6).Draw(r, "factor")
		n := Number{published, published * 0.9999, published * 1.0001}
		require.InEpsilon(t, factor-1, n.Distance(published*factor), 1e-6)
		require.InEpsilon(t, factor-1, n.Distance(published/factor), 1e-6)
		require.Greater(t, n.Distance(published*factor*1.1), n.Distance(published*factor))
		require.Zero(t, n.Distance(published))
	})
}

func TestValues(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, k := range []struct {
		text     string
		p        Precision
		want     []Number
		ours     float64
		distance float64
	}{
		{"38", Exact, []Number{{38, 37.5, 38.5}}, 37.6, 0},
		{"38", Exact, []Number{{38, 37.5, 38.5}}, 76, 1},
		{"40", Exact, []Number{{40, 39.5, 40.5}}, 44, 0.1},
		{"40", About, []Number{{40, 35, 45}}, 44, 0},
		{"~40", Exact, []Number{{40, 35, 45}}, 30, 1.0 / 3},
		{"1.30", About, []Number{{1.3, 1.295, 1.305}}, 1.3, 0},
		{"1e3", Exact, []Number{{1000, 500, 1500}}, 2000, 1},
		{"<=1.9", Exact, []Number{{nan, -inf, 1.9}}, 0.1, 0},
		{"<=1.9", Exact, []Number{{nan, -inf, 1.9}}, 3.8, 1},
		{">5", Exact, []Number{{nan, 5, inf}}, 4, 0.25},
		{"4..20", Exact, []Number{{nan, 4, 20}}, 2, 1},
		{"4..20", Exact, []Number{{nan, 4, 20}}, 20, 0},
		{"5", Exact, []Number{{5, 4.5, 5.5}}, -5, inf},
		{"-4", Exact, []Number{{-4, -4.5, -3.5}}, -8, 1},
		{"0", Exact, []Number{{0, -0.5, 0.5}}, 0.4, 0},
		{"0", Exact, []Number{{0, -0.5, 0.5}}, 1, inf},
		{"1.5; 2", Exact, []Number{{1.5, 1.45, 1.55}, {2, 1.5, 2.5}}, 3, 1},
		{"a < b", Exact, nil, 0, 0},
		{"20..4", Exact, nil, 0, 0},
		{"8 or 16", Exact, nil, 0, 0},
		{"NaN", Exact, nil, 0, 0},
	} {
		v, err := ParseValue(k.text, k.p)
		require.NoError(t, err)
		require.Len(t, v.Numbers, len(k.want), k.text)
		for i, n := range v.Numbers {
			require.InDeltaSlice(t, []float64{k.want[i].Low, k.want[i].High}, []float64{n.Low, n.High}, 1e-9, k.text)
			require.Equal(t, math.IsNaN(k.want[i].Best), math.IsNaN(n.Best), k.text)
		}
		if len(v.Numbers) > 0 {
			require.InDelta(t, k.distance, v.Numbers[0].Distance(k.ours), 1e-9, k.text)
		}
	}
	zero, err := ParseValue("0", Exact)
	require.NoError(t, err)
	require.True(t, zero.Claim())
	_, err = ParseValue(" ", Exact)
	require.EqualError(t, err, "value: empty, expected numbers or a claim")
}

// Every row has an id of its own, a known kind, and what its class needs.
func TestRows(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Publications() {
		require.NotEmpty(t, p.Rows, p.Tag)
		for _, r := range p.Rows {
			require.False(t, seen[r.ID], "%s is there twice", r.ID)
			seen[r.ID] = true
			require.Contains(t, []Kind{Parameter, Result, Claim}, r.Kind, r.ID)
			require.NotEmpty(t, r.Quantity, r.ID)
			require.Contains(t, Classes(), r.Class, r.ID)
			if r.Class != Predicted {
				require.NotEmpty(t, strings.TrimSpace(r.Why), "%s: %s", r.ID, r.Class)
			}
			if r.Same != "" {
				other, ok := Find(r.Same)
				require.True(t, ok, "%s repeats %s", r.ID, r.Same)
				require.Empty(t, other.Same, "%s repeats %s, which is a repetition", r.ID, r.Same)
				require.NotEqual(t, Parameter, other.Kind, r.ID)
			}
			found, ok := Find(r.ID)
			require.True(t, ok)
			require.Equal(t, r.Quantity, found.Quantity)
		}
	}
}

// A score counts each row once: no repetition, no what-if, no row that set a
// parameter. A share is as far as its ratio, a published 0 is a claim, and a row
// of two numbers has the mean of their logarithms.
func TestScore(t *testing.T) {
	number := func(id, value string, class Class, same string) Row {
		v, err := ParseValue(value, Exact)
		require.NoError(t, err)
		return Row{ID: id, Published: v, Class: class, Same: same}
	}
	p := Publication{Rows: []Row{
		number("near", "100", Predicted, ""),
		number("far", "10", Predicted, ""),
		number("again", "10", Predicted, "far"),
		number("made", "10", WhatIf, ""),
		number("set", "10", Sets, ""),
		number("share", "2.0", Predicted, ""), // in %, and ours is 1%
		number("two", "10; 10", Predicted, ""),
		number("bound", "<=5", Predicted, ""),
		number("zero", "0", Predicted, ""),
		number("order", "a < b", Predicted, ""),
		number("open", "7", Predicted, ""),
		number("gone", "7", NotModeled, ""),
		number("check", "10", Checked, ""),
	}}
	ours := map[string]*Measured{}
	for id, text := range map[string]string{
		"near": "100.2", "far": "30", "again": "30", "made": "10", "set": "10", "share": "1", "two": "10; 15", "bound": "6", "zero": "0.2", "order": "false", "check": "11",
	} {
		o, err := ParseOurs(text)
		require.NoError(t, err)
		ours[id] = &Measured{ID: id, Ours: o}
	}
	s, err := p.Score(Predicted, ours)
	require.NoError(t, err)
	// 0, 0.2, 0.22 (the root of 1.5), 1, 2
	require.Equal(t, 5, s.Numbers)
	require.InDelta(t, math.Sqrt(1.5)-1, s.Median, 1e-9)
	require.InDelta(t, 1.6, s.P90, 1e-9)
	require.Equal(t, Score{Numbers: 5, Median: s.Median, P90: s.P90, Beyond: 2, Claims: 2, Hold: 1, Open: 1}, s)
	s, err = p.Score(Checked, ours)
	require.NoError(t, err)
	require.InDelta(t, 0.1, s.Median, 1e-9)
	ours["near"].Ours = Ours{Holds: true}
	_, err = p.Score(Predicted, ours)
	require.EqualError(t, err, "near: ours is true, published 100")
}

// What is written about measurements can be read.
func TestMeasured(t *testing.T) {
	list := []Measured{
		{ID: "a", Ours: Ours{Numbers: []float64{1.5, 1.0 / 3}}, Command: "spinsim compare x", Inputs: "0123", Seconds: 0.02},
		{ID: "b", Ours: Ours{Holds: true}, Command: "spinsim compare y", How: "y is less than z", Inputs: "4567", Seconds: 12},
	}
	text := FormatMeasured(list)
	again, err := ParseMeasured(text)
	require.NoError(t, err)
	require.Equal(t, text, FormatMeasured(again))
	require.Equal(t, "1.5; 0.333333", again[0].Ours.String())
	require.InDelta(t, 0.1, again[0].Seconds, 0)
	require.InDelta(t, 100, again[1].Seconds, 0)
	require.Equal(t, "y is less than z", again[1].How)
	for _, wrong := range []string{"", measuredColumns + "a\t1\n", measuredColumns + "a\tmany\t1\t0\tc\t\n", measuredColumns + "a\t1\tlong\t0\tc\t\n"} {
		_, err := ParseMeasured(wrong)
		require.Error(t, err, wrong)
	}
	for id, m := range AllMeasured() {
		row, ok := Find(id)
		require.True(t, ok, id)
		_, err := row.Off(m.Ours)
		require.NoError(t, err)
	}
}

// What is excluded is an alternative of a question, and not today's answer, by a
// row that is evidence.
func TestExcluded(t *testing.T) {
	list, err := Excluded()
	require.NoError(t, err)
	require.NotEmpty(t, list)
	for _, x := range list {
		questions, err := Questions(x.Publication)
		require.NoError(t, err)
		i := slices.IndexFunc(questions, func(q Question) bool { return q.ID == x.Question })
		require.GreaterOrEqual(t, i, 0, "%v: no such question", x)
		require.True(t, slices.ContainsFunc(questions[i].Alternatives[1:], func(a Alternative) bool { return a.Name == x.Alternative }), "%v: no other answer of that name", x)
		row, ok := Find(x.Row)
		require.True(t, ok, "%v: no such row", x)
		require.Contains(t, []Class{Predicted, Checked}, row.Class, "%v", x)
	}
}

// Three medians are of the same rows: those that have been left out, that are
// measured, and that are fresh. What is kept comes back.
func TestNearScore(t *testing.T) {
	var p Publication
	measured, near := map[string]*Measured{}, map[string]*Near{}
	for i, id := range []string{"a", "b", "c", "stale", "unmeasured", "untried"} {
		v, err := ParseValue("100", Exact)
		require.NoError(t, err)
		p.Rows = append(p.Rows, Row{ID: id, Class: Predicted, Published: v})
		if id != "unmeasured" {
			measured[id] = &Measured{ID: id, Ours: Ours{Numbers: []float64{[]float64{100, 150, 200, 1e9, 0, 1e9}[i]}}}
		}
		if id != "untried" {
			near[id] = &Near{id, []float64{0, 0.1, 0.2, 9, 9, 9}[i], []float64{0, 0.3, math.Inf(1), 9, 9, 9}[i], "hash", "spinsim identify p"}
		}
	}
	s, err := p.NearScore(measured, near, func(id string) bool { return id != "stale" })
	require.NoError(t, err)
	require.Equal(t, 3, s.Rows)
	require.InDelta(t, 0.5, s.Today, 1e-9)
	require.InDelta(t, 0.1, s.Fitted, 1e-9)
	require.InDelta(t, 0.3, s.LeftOut, 1e-9)

	back, err := ParseNear(FormatNear([]Near{*near["b"], *near["c"]}))
	require.NoError(t, err)
	require.Equal(t, []Near{*near["b"], *near["c"]}, back)
	_, err = ParseNear(nearColumns + "a\t-1\t0\th\tc\n")
	require.ErrorContains(t, err, "line 2: distances -1 and 0")
}
