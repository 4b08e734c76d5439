package experiment

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/report"
)

// modelled is an experiment without a device, with a table of n rows a point.
func modelled() *Experiment {
	return &Experiment{
		Name: "squares", Deviceless: true, Undivided: "nothing is simulated",
		Axes:    []Axis{{Name: "n", Kind: report.Count, Default: "2"}},
		Columns: []report.Column{{Name: "sum", Kind: report.Count}},
		Details: []Detail{{Name: "each", Columns: []report.Column{{Name: "i", Kind: report.Count}, {Name: "square", Kind: report.Count}}}},
		Memory:  func(*Point) int64 { return 0 },
		Run: func(_ context.Context, p *Point) (Values, error) {
			var rows Rows
			sum := 0
			for i := range p.Int("n") {
				rows = append(rows, []any{i, i * i})
				sum += i * i
			}
			return Values{"sum": sum, "each": rows}, nil
		},
	}
}

// A point has as many rows in a further table as it returns, also none, and
// each stands behind the values of the point. A kept result is the same.
func TestDetailRows(t *testing.T) {
	s, err := New(modelled())
	require.NoError(t, err)
	require.NoError(t, s.Choose("n", "0,2,3"))
	points, err := s.Points()
	require.NoError(t, err)
	results, err := s.Run(context.Background(), points, nil)
	require.NoError(t, err)
	all, err := s.Table(results)
	require.NoError(t, err)
	require.Equal(t, 3, all.Len())
	require.Equal(t, [][]any{
		{"squares", int64(2), int64(0), int64(0)},
		{"squares", int64(2), int64(1), int64(1)},
		{"squares", int64(3), int64(0), int64(0)},
		{"squares", int64(3), int64(1), int64(1)},
		{"squares", int64(3), int64(2), int64(4)},
	}, all.Further[0].Rows())
	require.Nil(t, s.Record().Seed)
	require.Empty(t, s.Record().Profiles)

	folder, err := OpenKept(t.TempDir())
	require.NoError(t, err)
	defer folder.Close() //nolint:errcheck // of a test
	for range 2 {
		s.Checkpoint = folder
		again, err := s.Run(context.Background(), points, nil)
		require.NoError(t, err)
		require.Equal(t, results[2].Values, again[2].Values)
		require.Empty(t, again[0].Values["each"])
	}
}

// Rows that do not fit their table are errors of Run with the place.
func TestDetailRowsAreChecked(t *testing.T) {
	for want, wrong := range map[string]any{
		"no value for table each":                                nil,
		"a string for table each, expected Rows":                 "x",
		"1 values in row 2 of table each, expected 2":            Rows{{1, 2}, {3}},
		"a string for column square of table each, which has ki": Rows{{1, "x"}},
	} {
		e := modelled()
		e.Run = func(context.Context, *Point) (Values, error) {
			v := Values{"sum": 0, "each": wrong}
			if wrong == nil {
				delete(v, "each")
			}
			return v, nil
		}
		p, err := e.At(nil, nil)
		require.NoError(t, err)
		_, err = e.Measure(context.Background(), p)
		require.ErrorContains(t, err, want)
	}
}

// What cannot be is refused in the definition.
func TestDetailsAreExamined(t *testing.T) {
	for want, change := range map[string]func(e *Experiment){
		`name "rows"`:                 func(e *Experiment) { e.Details[0].Name = "rows" },
		"the name is taken":           func(e *Experiment) { e.Details[0].Name = "sum" },
		"two columns n":               func(e *Experiment) { e.Details[0].Columns[0].Name = "n" },
		`View.Programs: no table "x"`: func(e *Experiment) { e.View.Programs = "x" },
		"without a device":            func(e *Experiment) { e.Profiles = []string{"spin-int"} },
		"no kind of value":            nil,
	} {
		e := modelled()
		if change == nil {
			require.NoError(t, e.Check())
			continue
		}
		change(e)
		require.ErrorContains(t, e.Check(), want)
	}
	s, err := New(modelled())
	require.NoError(t, err)
	s.Overrides = []string{"hpu.cores=2"}
	_, err = s.Points()
	require.ErrorContains(t, err, "squares simulates no device, so it has no profile")
}
