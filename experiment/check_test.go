package experiment

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// definition is a right definition, for tests to spoil.
func definition() *Experiment {
	return &Experiment{
		Name: "own", Short: "a test", Profiles: []string{"spin-int"},
		Axes: []Axis{
			{Name: "mode", Kind: report.Text, Of: []string{"a", "b"}},
			{Name: "size", Kind: report.Size, Default: "8,64"},
		},
		Run: func(_ context.Context, p *Point) (Values, error) {
			return Values{"latency": sim.Time(p.Int("size") + len(p.Text("mode")))}, nil
		},
		Columns: []report.Column{{Name: "latency", Unit: "ns", Kind: report.Duration}},
	}
}

// Every experiment of spinsim is right, and is found by its name.
func TestExperimentsAreRight(t *testing.T) {
	for _, e := range append(All(), definition()) {
		require.NoError(t, e.examine(), e.Name)
		require.NoError(t, e.Check(), e.Name)
	}
	for _, e := range All() {
		found, err := Find(e.Name)
		require.NoError(t, err)
		require.Same(t, e, found)
		require.NotEmpty(t, e.Source, "%s: Source: expected the publication that it reproduces, as \"sPIN'17 §5\"", e.Name)
		for _, c := range e.TableColumns() {
			require.NotEmpty(t, c.Help, "%s: %s", e.Name, c.Key())
		}
	}
	_, err := Find("nonsense")
	var names []string
	for _, e := range All() {
		names = append(names, e.Name)
	}
	require.EqualError(t, err, `no experiment "nonsense", expected one of `+strings.Join(names, ", "))
}

// wrongDefinitions spoil a definition. Each has the expected error.
var wrongDefinitions = []struct {
	spoil func(e *Experiment)
	want  string
}{
	{func(e *Experiment) { e.Name = "" }, `experiment without a name: name "", expected a-z, 0-9 and -, a letter first`},
	{func(e *Experiment) { e.Name = "Own Latency" }, `name "Own Latency", expected a-z`},
	{func(e *Experiment) { e.Axes = nil }, "experiment own: no axes: what varies from point to point?"},
	{func(e *Experiment) { e.Columns = nil }, "no columns: what is measured?"},
	{func(e *Experiment) { e.Run = nil }, "no function Run"},

	{func(e *Experiment) { e.Axes[1].Name = "mode" }, "axis mode: there are two of that name"},
	{func(e *Experiment) { e.Axes[1].Name = "" }, `axis 2: name ""`},
	{func(e *Experiment) { e.Axes[1].Name = "seed" }, "axis seed: the name is taken: commands have a flag --seed"},
	{func(e *Experiment) { e.Axes[1].Kind = report.Ratio }, "axis size: kind ratio, expected one of [text count bytes time number share yes/no]"},
	{func(e *Experiment) { e.Axes[1].Kind = report.Kind(99) }, "axis size: kind Kind(99), expected one of"},
	{func(e *Experiment) { e.Axes[1].Kind, e.Axes[1].Unit = report.Duration, "fortnights" }, `axis size: column size: unit "fortnights" of a time, expected one of ps, ns, us, ms, s`},
	{func(e *Experiment) { e.Axes[0].Unit = "ns" }, `unit "ns", but a column of kind text has none`},
	{func(e *Experiment) { e.Axes[0].Of = []string{"a", "b,c"} }, `axis mode: value "b,c": expected text without a comma`},
	{func(e *Experiment) { e.Axes[0].Of = []string{"a", "a"} }, `axis mode: values by default "a,a": a is given twice`},
	{func(e *Experiment) { e.Axes[0].Default = "c" }, `axis mode: values by default "c": unknown value "c", expected one of a, b`},
	{func(e *Experiment) { e.Axes[0].Least = "a" }, "axis mode: a range of values of kind text"},
	{func(e *Experiment) { e.Axes[1].Default = "many" }, `axis size: values by default "many": size "many": expected a number of bytes`},
	{func(e *Experiment) { e.Axes[1].Least, e.Axes[1].Most = "64", "8" }, "axis size: the least value 64 is above the largest 8"},
	{func(e *Experiment) { e.Axes[1].Most = "x" }, `axis size: the largest value: size "x"`},
	{func(e *Experiment) { e.Axes[1].Multiple = "0" }, `axis size: a multiple of "0", expected a value above 0`},
	{func(e *Experiment) { e.Axes[1].Most = "16" }, `axis size: values by default "8,64": 64 B, expected 0 B to 16 B`},
	{func(e *Experiment) { e.Axes[1].Default = "" }, `axis size: values by default "": list "": no value`},

	{func(e *Experiment) { e.Columns[0].Name = "two words" }, `column "two words": expected a name of letters, digits and _`},
	{func(e *Experiment) { e.Columns[0].Unit = "furlongs" }, `column latency: unit "furlongs" of a time, expected one of ps, ns, us, ms, s`},
	{func(e *Experiment) { e.Columns = append(e.Columns, e.Columns[0]) }, "two columns latency_ns"},
	{func(e *Experiment) { e.Columns[0].Name, e.Columns[0].Unit, e.Columns[0].Kind = "size", "", report.Size }, "two columns size"},
	{func(e *Experiment) { e.Columns[0] = report.Column{Name: "seed", Kind: report.Count} }, "two columns seed"},
	{func(e *Experiment) { e.Columns = append(e.Columns, report.Column{Name: "latency", Kind: report.Count}) }, "two columns of the name latency"},

	{func(e *Experiment) {
		e.Relative = []Relative{{Column: report.Column{Name: "x", Kind: report.Ratio}, Of: "rate", Axis: "mode", Base: "a"}}
	}, `column x is relative to "rate", which is none of Columns`},
	{func(e *Experiment) {
		e.Relative = []Relative{{Column: report.Column{Name: "x", Kind: report.Count}, Of: "latency", Axis: "mode", Base: "a"}}
	}, "column x is relative and of kind count, expected ratio, share or change"},
	{func(e *Experiment) {
		e.Relative = []Relative{{Column: report.Column{Name: "x", Kind: report.Share}, Of: "latency", Axis: "ranks", Base: "a"}}
	}, `along "ranks", which is none of the axes`},
	{func(e *Experiment) {
		e.Relative = []Relative{{Column: report.Column{Name: "x", Kind: report.Share}, Of: "latency", Axis: "mode", Base: "c"}}
	}, `column x: base "c" of axis mode: unknown value "c", expected one of a, b`},

	{func(e *Experiment) { e.View.Value = "rate" }, `View.Value: "rate" is none of Columns`},
	{func(e *Experiment) { e.View.X = "rate" }, `View.X: no column "rate"`},
	{func(e *Experiment) { e.View.Parts = []string{"rate"} }, `View.Parts: no column "rate"`},
	{func(e *Experiment) { e.View.Quiet = []string{"rate"} }, `View.Quiet: no axis "rate"`},
	{func(e *Experiment) { e.Presets = []Preset{{Name: "A b"}} }, `preset 1: name "A b", expected a-z, 0-9 and -, a letter first`},
	{func(e *Experiment) { e.Presets = []Preset{{Name: "a"}, {Name: "a"}} }, "preset a: there are two of that name"},
	{func(e *Experiment) { e.Presets = []Preset{{Name: "a", Values: map[string]string{"rate": "1"}}} }, `preset a: no axis "rate"`},
	{func(e *Experiment) { e.Presets = []Preset{{Name: "a", Values: map[string]string{"size": "x"}}} }, `preset a: axis size: size "x": expected a number of bytes`},
	{func(e *Experiment) { e.Presets = []Preset{{Name: "a", View: &View{X: "rate"}}} }, `preset a: View.X: no column "rate"`},
	{func(e *Experiment) { e.View.Summary = []string{"rate"} }, `View.Summary: no column "rate"`},
	{func(e *Experiment) { e.View.Series = []string{"rate"} }, `View.Series: no axis "rate"`},
	{func(e *Experiment) { e.View.Series = []string{"mode", "mode"} }, "View.Series: mode is named twice"},
	{func(e *Experiment) { e.View.Base = "a" }, "there is no axis in View.Series"},
	{func(e *Experiment) { e.View.Series, e.View.Base = []string{"size"}, "some" }, `View.Base: base "some" of axis size: size "some": expected a number of bytes`},

	{func(e *Experiment) { e.Published = []report.Published{{Column: "rate", Source: "s"}} }, `published number 1: no column "rate"`},
	{func(e *Experiment) { e.Published = []report.Published{{Column: "mode", Source: "s"}} }, "published number 1: column mode has no numbers"},
	{func(e *Experiment) { e.Published = []report.Published{{Column: "latency"}} }, "published number 1: no source"},
	{func(e *Experiment) {
		e.Published = []report.Published{{Column: "latency", Source: "s", At: []report.Is{{Column: "size", Value: "8"}}}}
	}, "published number 1: column size of kind bytes has no value that is a string"},
	{func(e *Experiment) {
		e.Columns = append(e.Columns, report.Column{Name: "latency_published", Unit: "ns", Kind: report.Duration})
		e.Published = []report.Published{{Column: "latency", Source: "s"}}
	}, "its place is a column latency_published_ns, but there is one of that name"},
}

// Every use of a wrong definition is an error. It names the experiment, the
// wrong part, and the expected value.
func TestWrongDefinitions(t *testing.T) {
	for _, tc := range wrongDefinitions {
		e := definition()
		tc.spoil(e)
		require.ErrorContains(t, e.Check(), tc.want)
		_, err := New(e)
		require.ErrorContains(t, err, tc.want)
		_, err = e.At(nil, nil)
		require.ErrorContains(t, err, tc.want)
	}
	// One error has everything that is wrong.
	e := definition()
	e.Run, e.Axes[0].Name, e.Axes[1].Default = nil, "seed", "x"
	for _, want := range []string{"no function Run", "axis seed: ", "axis size: "} {
		require.ErrorContains(t, e.Check(), want)
	}
}

// The values of Run are checked against the columns.
func TestValuesFitTheColumns(t *testing.T) {
	for want, values := range map[string]Values{
		"experiment own: Run has returned no value for column latency":                  {},
		"experiment own: Run has returned a int for column latency of kind time":        {"latency": 5},
		`experiment own: Run has returned a value for "rate", which is none of Columns`: {"latency": sim.Time(1), "rate": 1.0},
		"own, profile spin-int, a, 8 B: the answer is not known":                        nil,
		"": {"latency": nil},
	} {
		e := definition()
		e.Run = func(context.Context, *Point) (Values, error) {
			if values == nil {
				return nil, errNotKnown
			}
			return values, nil
		}
		s, err := New(e)
		require.NoError(t, err)
		points, err := s.Points()
		require.NoError(t, err)
		_, err = s.Run(t.Context(), points[:1], nil)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, want)
	}
}

// listsOfAxes are lists of values of the axes of variety, with their values or
// the error.
var listsOfAxes = []struct {
	axis, list string
	want       []any
	err        string
}{
	{"ranks", "2,4,..,64", []any{2, 4, 8, 16, 32, 64}, ""},
	{"ranks", "1", nil, "1, expected 2 to 64"},
	{"ranks", "1,65", nil, "1, expected 2 to 64; 65, expected 2 to 64"},
	{"ranks", "2.5", nil, `"2.5" is not a whole number`},
	{"ranks", "2,3,2", nil, "2 is given twice"},
	{"ranks", "", nil, `list "": no value`},
	{"size", "16,1KiB", []any{16, 1024}, ""},
	{"size", "1KiB,1024", nil, "1 KiB is given twice"},
	{"size", "8", nil, "8 B, expected 16 B to 1 MiB"},
	{"size", "24", nil, "24 B, expected a multiple of 16 B"},
	{"wait", "50ns,100ns,..,400ns", []any{50 * sim.Nanosecond, 100 * sim.Nanosecond, 200 * sim.Nanosecond, 400 * sim.Nanosecond}, ""},
	{"wait", "-5ns", nil, "-5 ns, expected 0 s to 1 ms"},
	{"wait", "1ns", nil, "1 ns, expected a multiple of 2 ns"},
	{"wait", "soon", nil, `time "soon": want a number and a unit of s, ms, µs, ns, ps`},
	{"loss", "0,0.1%,..,10%", nil, `list "0,0.1%,..,10%": cannot go on after 0, 0.001: expected a whole ratio or three values with equal steps`},
	{"loss", "1e-3,1e-2", []any{0.001, 0.01}, ""},
	{"loss", "1%", []any{0.01}, ""},
	{"loss", "2", nil, "200%, expected 0% to 100%"},
	{"loss", "NaN", nil, `"NaN" is not a number`},
	{"factor", "1,2,3.5", []any{1.0, 2.0, 3.5}, ""},
	{"factor", "0.25", nil, "0.25 GHz, expected at least 0.5 GHz"},
	{"factor", "50%", nil, `"50%" is not a number`},
	{"offset", "-1e300", []any{-1e300}, ""},
	{"offset", "inf", nil, `"inf" is not a number`},
	{"mode", "b, a", []any{"b", "a"}, ""},
	{"mode", "c", nil, `unknown value "c", expected one of a, b`},
	{"mode", "", nil, `unknown value "", expected one of a, b`},
	{"ports", "48", []any{48}, ""},
	{"ports", "24", nil, "24, expected one of 36, 48"},
	{"cached", "true,false", []any{true, false}, ""},
	{"cached", "maybe", nil, `"maybe": expected true or false`},
	{"file", "", nil, "an empty file"},
}

// variety is a definition with an axis of every kind.
func variety() *Experiment {
	e := definition()
	e.Axes = []Axis{
		{Name: "ranks", Kind: report.Count, Least: "2", Most: "64", Default: "2"},
		{Name: "size", Kind: report.Size, Least: "16B", Most: "1MiB", Multiple: "16"},
		{Name: "wait", Kind: report.Duration, Most: "1ms", Multiple: "2ns", Default: "1us"},
		{Name: "loss", Kind: report.Share, Least: "0", Most: "1", Default: "0"},
		{Name: "factor", Kind: report.Number, Unit: "GHz", Least: "0.5", Default: "1"},
		{Name: "offset", Kind: report.Number, Default: "-3.5"},
		{Name: "mode", Kind: report.Text, Of: []string{"a", "b"}},
		{Name: "ports", Kind: report.Count, Of: []string{"36", "48"}},
		{Name: "cached", Kind: report.Flag},
		{Name: "file", Kind: report.Text, Default: "x"},
	}
	return e
}

// A wrong value of an axis is an error with the expected values. A wrong name
// is a programmer's mistake, and the panic lists the names.
func TestValuesOfAxes(t *testing.T) {
	e := variety()
	s, err := New(e)
	require.NoError(t, err)
	for _, tc := range listsOfAxes {
		got, err := e.Axis(tc.axis).Parse(tc.list)
		if tc.err != "" {
			require.EqualError(t, err, tc.err, "%s %s", tc.axis, tc.list)
			require.EqualError(t, s.Choose(tc.axis, tc.list), tc.err)
			continue
		}
		require.NoError(t, err, "%s %s", tc.axis, tc.list)
		require.Equal(t, tc.want, got, "%s %s", tc.axis, tc.list)
		a := e.Axis(tc.axis)
		for i, text := range a.texts(got) { // exactly as they are read
			back, err := a.parse(text)
			require.NoError(t, err)
			require.Equal(t, got[i], back, text)
		}
	}
	require.EqualError(t, s.Choose("colour", "red"), `no axis "colour", there are ranks, size, wait, loss, factor, offset, mode, ports, cached, file`)

	points, err := s.Points()
	require.NoError(t, err)
	p := points[0]
	require.Equal(t, []any{2, 16, sim.Microsecond, 0.0, "a", false}, []any{p.Int("ranks"), p.Int("size"), p.Time("wait"), p.Float("loss"), p.Text("mode"), p.Flag("cached")})
	require.PanicsWithValue(t, `experiment: own has no axis "rank", there are ranks, size, wait, loss, factor, offset, mode, ports, cached, file`, func() { p.Int("rank") })
	require.PanicsWithValue(t, "experiment: axis mode of own has values of type string, not int", func() { p.Int("mode") })

	_, err = e.At(points[0].Profile, Values{"colour": 1})
	require.ErrorContains(t, err, `no axis "colour"`)
	_, err = e.At(points[0].Profile, Values{"ranks": "many"})
	require.EqualError(t, err, `experiment own: axis ranks: "many" is not a whole number`)
	_, err = e.At(points[0].Profile, Values{"ranks": 2.0})
	require.EqualError(t, err, "experiment own: axis ranks: a float64, expected a value of kind count")
}

// The help of modes describes those that the experiment has, and no other.
func TestModeAxis(t *testing.T) {
	a := ModeAxis(ModeHost, "mine", ModeSpin)
	require.Equal(t, []string{"host", "mine", "spin"}, a.Of)
	require.Equal(t, "who does the work: host (the host), mine, spin (handlers)", a.Help)
}
