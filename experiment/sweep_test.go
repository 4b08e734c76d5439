package experiment

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/count"
	"github.com/spinsim/spinsim/handlers/sum"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

var errNotKnown = errors.New("the answer is not known")

// drawAxis draws an axis with its values.
func drawAxis(t *rapid.T, i int) Axis {
	a := Axis{Name: fmt.Sprintf("axis-%d", i), Kind: rapid.SampledFrom(axisKinds).Draw(t, "kind")}
	var values []string
	one := map[report.Kind]func() string{
		report.Text:     func() string { return rapid.StringMatching(`[a-z"';é{ ]{0,3}[a-z]`).Draw(t, "text") },
		report.Count:    func() string { return fmt.Sprint(rapid.IntRange(0, 1<<40).Draw(t, "count")) },
		report.Size:     func() string { return fmt.Sprint(rapid.IntRange(0, 1<<40).Draw(t, "size")) },
		report.Duration: func() string { return fmt.Sprintf("%dps", rapid.Int64Range(0, int64(sim.Horizon)).Draw(t, "time")) },
		report.Number: func() string {
			return fmt.Sprintf("%de%d", rapid.IntRange(-1000, 1000).Draw(t, "number"), rapid.IntRange(-300, 300).Draw(t, "exponent"))
		},
		report.Share: func() string { return fmt.Sprintf("%.2f%%", float64(rapid.IntRange(0, 10_000).Draw(t, "share"))/100) },
		report.Flag:  func() string { return fmt.Sprint(rapid.Bool().Draw(t, "flag")) },
	}[a.Kind]
	for range rapid.IntRange(1, 3).Draw(t, "values") {
		text := strings.TrimSpace(one())
		v, err := a.parse(text)
		require.NoError(t, err)
		if known, err := a.list(strings.Join(values, ",")); values == nil || err == nil && !slices.Contains(known, v) {
			values = append(values, text)
		}
	}
	a.Default = strings.Join(values, ",")
	if a.Kind == report.Count && rapid.IntRange(0, 4).Draw(t, "field") == 0 {
		a.Field, a.Default = "hpu.cores", "2,4"
	}
	return a
}

// drawExperiment draws a definition, and its measurements.
func drawExperiment(t *rapid.T) *Experiment {
	e := &Experiment{Name: "drawn", Short: "of a test"}
	fields := 0
	for i := range rapid.IntRange(1, 3).Draw(t, "axes") {
		a := drawAxis(t, i)
		if a.Field != "" {
			fields++
		}
		if fields > 1 {
			a.Field = "" // two axes would set the same field
		}
		e.Axes = append(e.Axes, a)
	}
	e.Columns = []report.Column{
		{Name: "took", Unit: rapid.SampledFrom([]string{"ps", "ns", "us", "s"}).Draw(t, "unit"), Kind: report.Duration},
		{Name: "rate", Unit: "Mpps", Kind: report.Number},
		{Name: "note"},
	}
	first := &e.Axes[0]
	base := strings.Split(first.Default, ",")[0]
	e.Relative = []Relative{
		{Column: report.Column{Name: "ratio", Kind: report.Ratio}, Of: "took", Axis: first.Name, Base: base},
		{Column: report.Column{Name: "share", Kind: report.Share}, Of: "rate", Axis: first.Name, Base: base},
		{Column: report.Column{Name: "change", Kind: report.Change}, Of: "took", Axis: first.Name, Base: base},
	}
	if rapid.Bool().Draw(t, "series") {
		e.View = View{Value: "took", Series: []string{first.Name}, Base: base}
	}
	slots := rapid.IntRange(0, 2).Draw(t, "slots")
	e.Slots = Always([]*handlers.Slot{count.TargetSlot, sum.TargetSlot}[:slots]...)
	if rapid.Bool().Draw(t, "some") {
		e.Points = func(p *Point) (bool, error) { return len(p.key(-1, nil))%3 != 0 || p.device == 0, nil }
	}
	least := sim.Time(rapid.IntRange(0, 5).Draw(t, "least"))
	e.Run = func(_ context.Context, p *Point) (Values, error) {
		v := Values{"took": least + sim.Time(len(p.String())), "rate": float64(len(p.key(-1, nil))), "note": p.String()}
		if p.device == 1 {
			v["rate"] = nil
		}
		return v, nil
	}
	if rapid.Bool().Draw(t, "published") {
		e.Published = []report.Published{{Column: "took", Value: 3, Source: "a test"}, {Column: "rate", Value: 0, Source: "a test", At: []report.Is{{Column: "profile", Value: "spin-int"}}}}
	}
	return e
}

// For any experiment: no two rows of its CSV have the same key (name, profile,
// axes, and provenance). Every row has its provenance. The same sweep gives the
// same bytes with any number of goroutines, and its record makes it again.
// Tables for people, plots and waterfalls can be made from it.
func TestAnyExperiment(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.yaml")
	require.NoError(t, os.WriteFile(own, []byte("base: spin-int\nname: own\nnic: {match_header: 10ns}\n"), 0o600))
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		e := drawExperiment(t)
		s, err := New(e)
		require.NoError(t, err)
		s.Profiles = rapid.SampledFrom([][]string{{"spin-int"}, {"spin-dis", "spin-int"}, {"spin-int", own}}).Draw(t, "profiles")
		s.Overrides = rapid.SampledFrom([][]string{nil, {"dma.latency=1ns"}}).Draw(t, "overrides")
		s.Seed = rapid.Uint64().Draw(t, "seed")
		if rapid.Bool().Draw(t, "mine") {
			put(s, count.TargetSlot.Name, &handlers.Library{Name: "mine.wasm", Path: "mine.wasm", Wasm: count.Library.Wasm})
		}
		points, err := s.Points()
		if err != nil {
			require.Regexp(t, "^drawn has no point with these values|^mine.wasm runs at no point of this sweep", err.Error())
			return
		}
		results, err := s.Run(context.Background(), points, nil)
		require.NoError(t, err)
		table, err := s.Table(results)
		require.NoError(t, err)
		rows := rowsOf(t, table)
		require.Len(t, rows, len(points))

		keys := []string{"benchmark", "profile"}
		for i := range e.Axes {
			keys = append(keys, e.Axes[i].column().Key())
		}
		for _, c := range provenance.Columns() {
			keys = append(keys, c.Key())
		}
		seen := map[string]bool{}
		for i, row := range rows {
			key := ""
			for _, k := range keys {
				require.Contains(t, row, k)
				key += row[k] + "\x00"
			}
			require.False(t, seen[key], "two rows %q", key)
			seen[key] = true
			requireProvenance(t, s, points[i], row)
		}
		picture := ""
		if rapid.IntRange(0, 7).Draw(t, "plot") == 0 { // the slowest output
			picture = filepath.Join(dir, "plot.svg")
		}
		requireForPeople(t, s, table, results, picture)
		requireAgain(t, s, table)
	})
}

// requireProvenance requires that a row has its provenance.
func requireProvenance(t *rapid.T, s *Sweep, p *Point, row map[string]string) {
	one, err := provenance.NewProfile(p.Profile)
	require.NoError(t, err)
	require.Equal(t, provenance.Short(one.SHA256), row["profile_hash"])
	for _, o := range append(slices.Clone(s.Overrides), p.fields()...) {
		require.Contains(t, strings.Fields(row["overrides"]), o)
	}
	require.Equal(t, fmt.Sprint(s.Seed), row["seed"])
	require.NotEmpty(t, row["version"])
	var names, hashes []string
	for _, m := range p.Modules() {
		names, hashes = append(names, m.Name), append(hashes, provenance.Short(provenance.Hash(m.Wasm)))
	}
	if s.Handlers != nil && len(names) > 0 {
		require.Contains(t, names, "mine.wasm")
	}
	require.Equal(t, []string{strings.Join(names, " "), strings.Join(hashes, " ")}, []string{row["handler"], row["handler_hash"]})
}

// requireForPeople makes the output for people.
func requireForPeople(t *rapid.T, s *Sweep, table *report.Table, results []*Result, picture string) {
	summary, err := s.Summary(table)
	require.NoError(t, err)
	require.Positive(t, summary.Len())
	summary.Answer, summary.Notes = s.Answer(results), s.Notes(results)
	for _, format := range report.Formats {
		require.NoError(t, summary.Write(&strings.Builder{}, format))
		var whole bytes.Buffer
		require.NoError(t, table.Write(&whole, format))
		v, err := seal.Check(&whole)
		require.NoError(t, err)
		people := format == report.TextFormat || format == report.MarkdownFormat
		require.Equal(t, people, v.State == seal.Unsealed, "%s: %s", format, v.Wrong)
		require.Equal(t, !people, v.State == seal.Whole, "%s: %s", format, v.Wrong)
	}
	if picture == "" {
		return
	}
	plot := s.Plot()
	if c, found := s.grid.experiment.column(plot.X); found && c.Kind != report.Text && len(table.Columns) > 0 {
		if err := table.PlotFile(picture, plot); err != nil {
			require.ErrorContains(t, err, "too far for a picture")
		}
	}
}

// A plot of one number along names only has the names side by side. Of two
// kinds of names, one is the lines.
func TestPlotAlongNames(t *testing.T) {
	s, err := New(builtin("pingpong"))
	require.NoError(t, err)
	s.Profiles = []string{"spin-int"}
	require.Equal(t, []string{"bytes", "mode"}, []string{s.Plot().X, s.Plot().Series})
	require.NoError(t, s.Choose("size", "8"))
	require.Equal(t, []string{"mode", "", "profile,bytes"}, []string{s.Plot().X, s.Plot().Series, s.Plot().Facet})
	require.NoError(t, s.Set("hpu.costs=a15,scalar"))
	require.Equal(t, []string{"hpu_costs", "mode", "profile,bytes"}, []string{s.Plot().X, s.Plot().Series, s.Plot().Facet})
	require.NoError(t, s.Set("hpu.cores=1,2"))
	require.Equal(t, []string{"hpu_cores", "mode"}, []string{s.Plot().X, s.Plot().Series}, "numbers, where there are several")
	require.Equal(t, "mode,noise", sweepOf(t, builtin("npf-latency"), nil).Plot().Series, "lines of several series are told apart by all of them")
	require.Equal(t, "1 HPU", builtin("hpus").Axis("hpus").show(1))
	require.Equal(t, "durable true", builtin("raid5").Axis("durable").show(true))
	require.Equal(t, "1000000", s.grid.experiment.Axis("size").write(1e6))
}

// requireAgain makes the sweep again from its record.
func requireAgain(t *rapid.T, s *Sweep, table *report.Table) {
	var was, is strings.Builder
	require.NoError(t, table.Write(&was, report.JSONFormat))
	record, err := provenance.Read([]byte(was.String()))
	require.NoError(t, err)
	again, notes, err := RerunSweep(record, s.grid.experiment, func(path string) ([]byte, error) { return count.Library.Wasm, nil })
	require.NoError(t, err)
	require.Empty(t, notes)
	points, err := again.Points()
	require.NoError(t, err)
	results, err := again.Run(context.Background(), points, nil)
	require.NoError(t, err)
	same, err := again.Table(results)
	require.NoError(t, err)
	require.NoError(t, same.Write(&is, report.JSONFormat))
	if was.String() != is.String() {
		list, err := provenance.Differences([]byte(was.String()), []byte(is.String()))
		t.Fatalf("made again: %v %v", list, err)
	}
}

// Points are in the order of the axes, the first fastest. The profile has the
// fields of axes.
func TestOrderOfPoints(t *testing.T) {
	s, err := New(builtin("hpus"))
	require.NoError(t, err)
	for axis, list := range map[string]string{"size": "4KiB,64", "hpus": "4,2", "handler-time": "1us,50ns"} {
		require.NoError(t, s.Choose(axis, list))
	}
	s.Profiles = []string{"spin-int", "spin-dis"}
	points, err := s.Points()
	require.NoError(t, err)
	var got []string
	for _, p := range points {
		got = append(got, p.String())
		require.Equal(t, []int{p.Int("hpus"), p.Int("size")}, []int{p.Profile.HPU.Cores, int(p.Profile.Fabric.MTU)})
	}
	require.Len(t, got, 16)
	require.Equal(t, []string{
		"spin-int, 1 µs, 4 HPUs, spin-stream, 2 ranks, 4 KiB", "spin-int, 50 ns, 4 HPUs, spin-stream, 2 ranks, 4 KiB",
		"spin-int, 1 µs, 2 HPUs, spin-stream, 2 ranks, 4 KiB", "spin-int, 50 ns, 2 HPUs, spin-stream, 2 ranks, 4 KiB",
		"spin-int, 1 µs, 4 HPUs, spin-stream, 2 ranks, 64 B",
	}, got[:5])
	require.Equal(t, "spin-dis, 1 µs, 4 HPUs, spin-stream, 2 ranks, 4 KiB", got[8])
}

// Errors in a sweep are found before anything runs.
func TestWrongSweeps(t *testing.T) {
	for want, spoil := range map[string]func(s *Sweep){
		"no profile given":                   func(s *Sweep) { s.Profiles = nil },
		"--profile: spin-int is given twice": func(s *Sweep) { s.Profiles = []string{"spin-int", "spin-dis", "spin-int"} },
		`no profile "x"`:                     func(s *Sweep) { s.Profiles = []string{"x"} },
		"expected wazero or wasmtime":        func(s *Sweep) { s.Engine = "v8" },
		"--links: follows one run, but this sweep has 4: choose one value for --mode, --size": func(s *Sweep) { s.Traced = "--links" },
		"mine.wasm runs at no point of this sweep: slot x.y is not used there":                func(s *Sweep) { put(s, "x.y", &handlers.Library{Name: "mine.wasm"}) },
		"own has no point with these values: mode a,b; size 8B,64B": func(s *Sweep) {
			s.grid.experiment.Points = func(*Point) (bool, error) { return false, nil }
		},
		"own has no point with these values: mode a,b; size 8B,64B: it is too early": func(s *Sweep) {
			s.grid.experiment.Points = func(*Point) (bool, error) { return false, &NoPoint{errors.New("it is too early")} }
		},
		"--size: own has no point of 64 B with the values of the other flags: a and b take 8 B": func(s *Sweep) {
			s.grid.experiment.Points = func(p *Point) (bool, error) {
				return p.Int("size") == 8, map[bool]error{false: &NoPoint{errors.New("a and b take 8 B")}}[p.Int("size") == 8]
			}
			require.NoError(t, s.Choose("size", "8,64"))
		},
		"--mode: own has no point of b with the values of the other flags": func(s *Sweep) {
			s.grid.experiment.Points = func(p *Point) (bool, error) { return p.Text("mode") == "a", nil }
			require.NoError(t, s.Choose("mode", "a,b"))
		},
		"profile spin-int: it is Monday": func(s *Sweep) {
			s.grid.experiment.Points = func(p *Point) (bool, error) { return true, fmt.Errorf("profile %s: it is Monday", p.Profile.Name) }
		},
		"dma.latency: own measures at several, choose them with --size": func(s *Sweep) {
			s.grid.experiment.Axes[1].Field, s.Overrides = "dma.latency", []string{"dma.latency=1ns"}
		},
		`dma.latencee: no field "latencee"`: func(s *Sweep) { s.grid.experiment.Axes[1].Field = "dma.latencee" },
		"more than 1000000 points":          func(s *Sweep) { s.grid.values[0], s.grid.values[1] = make([]any, 1001), make([]any, 1000) },
	} {
		s, err := New(definition())
		require.NoError(t, err)
		spoil(s)
		_, err = s.Points()
		require.ErrorContains(t, err, want)
	}
	// values that nobody has asked for need no point, and others need only one
	some := definition()
	some.Points = func(p *Point) (bool, error) { return p.Int("size") == 8 || p.Text("mode") == "a", nil }
	s, err := New(some)
	require.NoError(t, err)
	require.NoError(t, s.Choose("mode", "a,b"))
	points, err := s.Points()
	require.NoError(t, err)
	require.Len(t, points, 3)
	untraced := definition()
	untraced.Untraced = true
	s, err = New(untraced)
	require.NoError(t, err)
	s.Traced = "--pcap"
	_, err = s.Points()
	require.ErrorContains(t, err, "--pcap: follows one run, but a point of own takes several")
}

// Rows of two devices with one name could not be told apart.
func TestProfilesHaveDifferentNames(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for _, name := range []string{"a.yaml", "b.yaml"} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte("base: spin-int\nname: mine\n"), 0o600))
		files = append(files, file)
	}
	s, err := New(definition())
	require.NoError(t, err)
	s.Profiles = files
	_, err = s.Points()
	require.EqualError(t, err, fmt.Sprintf("profiles %s and %s are both named mine: their rows could not be told apart", files[0], files[1]))
}

// Published numbers without a profile stand beside every unchanged profile, and
// no other.
func TestPublishedOfAnyProfile(t *testing.T) {
	e := definition()
	e.Source = "a paper"
	e.Published = []report.Published{
		{Column: "latency", Value: 1, At: []report.Is{{Column: "size", Value: 8}}},
		{Column: "latency", Value: 2, At: []report.Is{{Column: "profile", Value: "spin-dis"}, {Column: "size", Value: 64}}, Source: "another"},
	}
	own := filepath.Join(t.TempDir(), "own.yaml")
	require.NoError(t, os.WriteFile(own, []byte("base: spin-int\nname: own\n"), 0o600))
	s, err := New(e)
	require.NoError(t, err)
	s.Profiles = []string{"spin-int", "spin-dis", own}
	points, err := s.Points()
	require.NoError(t, err)
	results, err := s.Run(t.Context(), points, nil)
	require.NoError(t, err)
	table, err := s.Table(results)
	require.NoError(t, err)
	var got []string
	for _, row := range rowsOf(t, table) {
		got = append(got, strings.Join([]string{row["profile"], row["mode"], row["size"], row["latency_published_ns"], row["published_source"]}, " "))
	}
	require.Equal(t, []string{
		"spin-int a 8 1 a paper", "spin-int b 8 1 a paper", "spin-int a 64  ", "spin-int b 64  ",
		"spin-dis a 8 1 a paper", "spin-dis b 8 1 a paper", "spin-dis a 64 2 another", "spin-dis b 64 2 another",
		"own a 8  ", "own b 8  ", "own a 64  ", "own b 64  ",
	}, got)
}

// A relative value needs two rows. If the other point is not measured, there is
// none.
func TestRelativeValues(t *testing.T) {
	e := definition()
	e.Run = func(_ context.Context, p *Point) (Values, error) {
		return Values{"latency": map[string]sim.Time{"a": 4, "b": 1}[p.Text("mode")] * sim.Time(p.Int("size"))}, nil
	}
	for kind, name := range map[report.Kind]string{report.Ratio: "ratio", report.Share: "saved", report.Change: "longer"} {
		e.Relative = append(e.Relative, Relative{Column: report.Column{Name: name, Kind: kind}, Of: "latency", Axis: "mode", Base: "a"})
	}
	for modes, want := range map[string][][]string{
		"a,b": {{"1", "", ""}, {"4", "0.75", "-0.75"}},
		"b":   {{"", "", ""}},
	} {
		s, err := New(e)
		require.NoError(t, err)
		require.NoError(t, s.Choose("mode", modes))
		require.NoError(t, s.Choose("size", "8"))
		points, err := s.Points()
		require.NoError(t, err)
		results, err := s.Run(t.Context(), points, nil)
		require.NoError(t, err)
		table, err := s.Table(results)
		require.NoError(t, err)
		for i, row := range rowsOf(t, table) {
			got := []string{row["ratio"], row["saved"], row["longer"]}
			require.Equal(t, want[i], got, modes)
		}
	}
}

// The profile of a point is loaded with the fields of axes, for every origin.
// At and a sweep give the same.
func TestAxesSetFields(t *testing.T) {
	device, err := profile.Load("spin-int", "hpu.contexts=1")
	require.NoError(t, err)
	p, err := builtin("hpus").At(device, Values{"hpus": 16, "size": "512"})
	require.NoError(t, err)
	want, err := profile.Load("spin-int", "hpu.contexts=1", "hpu.cores=16", "fabric.mtu=512")
	require.NoError(t, err)
	diff, err := profile.Diff(want, p.Profile)
	require.NoError(t, err)
	require.Empty(t, diff)
	require.Equal(t, want.Origin, p.Profile.Origin)
	require.Equal(t, 4, device.HPU.Cores, "the device given is not changed")
}

// If an axis varies, rows have its value, even if the experiment does not name
// it for people.
func TestRowsCanBeToldApart(t *testing.T) {
	for _, choices := range [][]string{
		{"scan", "row", "8,64", "size", "4KiB", "terms", "1,2", "mode", "spin", "selectivity", "1%"},
		{"txlog", "count", "1,2", "size", "8", "op", "transaction", "ranks", "2"},
	} {
		e, err := Find(choices[0])
		require.NoError(t, err)
		s := sweepOf(t, e, nil, choices[1:]...)
		points, err := s.Points()
		require.NoError(t, err)
		results, err := s.Run(t.Context(), points, nil)
		require.NoError(t, err)
		table, err := s.Table(results)
		require.NoError(t, err)
		summary, err := s.Summary(table)
		require.NoError(t, err)
		var b strings.Builder
		require.NoError(t, summary.Write(&b, "csv"))
		for i := 1; i < len(choices); i += 2 {
			if strings.Contains(choices[i+1], ",") {
				require.Contains(t, strings.Split(strings.SplitN(b.String(), "\n", 2)[0], ","), choices[i])
			}
		}
	}
}

// Handlers that need longer packets than the device has are refused before
// anything runs, with any other values.
func TestDevicesOfShortPackets(t *testing.T) {
	for name, expected := range map[string]string{
		"kv":   "profile exanest: fabric.mtu: 256 B, expected at least 512 for handlers of kv; other values of --mode need no handlers",
		"scan": "profile exanest: fabric.mtu: 256 B, expected at least 2064 for handlers of scan; other values of --mode need no handlers",
	} {
		e, err := Find(name)
		require.NoError(t, err)
		s := sweepOf(t, e, nil)
		s.Profiles = []string{"exanest"}
		_, err = s.Points()
		require.EqualError(t, err, expected)
		require.NoError(t, s.Choose("mode", "host,rdma"))
		_, err = s.Points()
		require.NoError(t, err)
	}
}

// rowsOf are the rows of a table's CSV, by the keys of the columns.
func rowsOf(t require.TestingT, table *report.Table) (rows []map[string]string) {
	var out bytes.Buffer
	require.NoError(t, table.Write(&out, report.CSVFormat))
	r := csv.NewReader(&out)
	r.Comment = '#'
	records, err := r.ReadAll()
	require.NoError(t, err)
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, key := range records[0] {
			require.NotContains(t, row, key, "two columns")
			row[key] = record[i]
		}
		rows = append(rows, row)
	}
	return rows
}
