package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "%s differs; -update writes it anew", file)
}

func render(t require.TestingT, table *Table, f Format) []byte {
	var out bytes.Buffer
	require.NoError(t, table.Write(&out, f))
	return out.Bytes()
}

// kinds has one column of each kind and, in its second row, no values.
func kinds() *Table {
	t := New(
		Column{Name: "name", Kind: Text, Help: "Any text."},
		Column{Name: "events", Kind: Count, Help: "How many."},
		Column{Name: "buffer", Unit: "B", Kind: Size, Help: "How large."},
		Column{Name: "time", Unit: "us", Kind: Duration, Help: "How long."},
		Column{Name: "bandwidth", Unit: "GiB/s", Kind: Number, Help: "How fast."},
		Column{Name: "speedup", Kind: Ratio, Help: "How much faster."},
		Column{Name: "use", Kind: Share, Help: "How busy."},
		Column{Name: "offloaded", Kind: Flag, Help: "Whether a handler ran."},
	)
	t.Add(`a "b", <c>`, 1234567, 65536, 12345*sim.Picosecond, 8.7, 1.354, 0.0725, true)
	t.Add("none", nil, nil, nil, nil, nil, nil, nil)
	t.Add("", -5, int64(1500), sim.Millisecond, 46.125, 1234.5, 1.0, false)
	return t
}

func TestFormatsGolden(t *testing.T) {
	for _, f := range Formats {
		if f == ParquetFormat {
			continue // TestParquetIsReadBack
		}
		golden(t, "kinds."+string(f), render(t, kinds(), f))
	}
	wide, err := pingPong().Pivot(Pivot{Rows: []string{"profile", "size"}, Series: "mode", Value: "latency", Versus: "rdma"})
	require.NoError(t, err)
	golden(t, "pingpong.table", render(t, wide, TextFormat))
	golden(t, "pingpong.csv", render(t, wide, CSVFormat))
}

func TestHelpGolden(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, WriteHelp(&out, append(pingPong().Columns, kinds().Columns...)))
	for line := range strings.SplitSeq(out.String(), "\n") {
		require.LessOrEqual(t, len(line), helpWidth)
	}
	golden(t, "help.txt", out.Bytes())
}

// Exported values read back as they were measured, to the picosecond. In CSV a
// text is visible, and may have an apostrophe in front.
func TestExportIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]string{"ps", "ns", "us", "ms", "s"}).Draw(t, "unit")
		at := sim.Time(rapid.Int64Range(-math.MaxInt64, math.MaxInt64).Draw(t, "time"))
		f := rapid.Float64Range(-1e300, 1e300).Draw(t, "number")
		s := rapid.String().Draw(t, "text")
		table := New(Column{Name: "t", Unit: unit, Kind: Duration}, Column{Name: "n", Kind: Number}, Column{Name: "s", Kind: Text})
		table.Add(at, f, s)

		records, err := csv.NewReader(bytes.NewReader(render(t, table, CSVFormat))).ReadAll()
		require.NoError(t, err)
		require.Equal(t, []string{"t_" + unit, "n", "s"}, records[0])
		back, err := sim.ParseTime(records[1][0] + unit)
		require.NoError(t, err)
		require.Equal(t, at, back)
		number, err := strconv.ParseFloat(records[1][1], 64)
		require.NoError(t, err)
		require.Equal(t, f, number)
		checkField(t, records[1][2], s)

		var rows []map[string]any
		require.NoError(t, json.Unmarshal(render(t, table, JSONFormat), &rows))
		require.Equal(t, f, rows[0]["n"])
		require.Equal(t, s, rows[0]["s"])
		var row map[string]any
		require.NoError(t, json.Unmarshal(render(t, table, NDJSONFormat), &row))
		require.Equal(t, rows[0], row)
	})
}

func TestEmptyTable(t *testing.T) {
	table := New(Column{Name: "x", Kind: Count})
	require.Equal(t, "x\n", string(render(t, table, CSVFormat)))
	require.Equal(t, "[]\n", string(render(t, table, JSONFormat)))
	require.Empty(t, render(t, table, NDJSONFormat))
	require.NotPanics(t, func() { render(t, table, TextFormat) })
}

func TestFormatNames(t *testing.T) {
	f, err := ParseFormat("ndjson")
	require.NoError(t, err)
	require.Equal(t, NDJSONFormat, f)
	_, err = ParseFormat("xml")
	require.EqualError(t, err, `unknown format "xml", expected one of table, markdown, csv, json, ndjson, parquet`)
}

// Columns follow the requested order, also for a value that the first rows do
// not have. Other columns follow.
func TestPivotOrder(t *testing.T) {
	table := New(Column{Name: "size", Kind: Count}, Column{Name: "mode", Kind: Text}, Column{Name: "t", Kind: Number})
	for _, row := range [][]any{{1, "z", 1.0}, {1, "c", 2.0}, {2, "b", 3.0}, {2, "a", 4.0}} {
		table.Add(row...)
	}
	wide, err := table.Pivot(Pivot{Rows: []string{"size"}, Series: "mode", Value: "t", Order: []any{"a", "none", "b", "c"}})
	require.NoError(t, err)
	var names []string
	for _, c := range wide.Columns {
		names = append(names, c.Name)
	}
	require.Equal(t, []string{"size", "a", "b", "c", "z"}, names)
	require.Equal(t, "size,a,b,c,z\n1,,,2,1\n2,4,3,,\n", string(render(t, wide, CSVFormat)))
}

func TestPivotErrors(t *testing.T) {
	for _, tc := range []struct {
		pivot Pivot
		want  string
	}{
		{Pivot{Series: "modus", Value: "latency"}, `no column "modus", there are profile, size_B, mode, latency_ns`},
		{Pivot{Rows: []string{"size"}, Series: "mode", Value: "latency"}, "two rows for rdma of rdma_ns"},
		{Pivot{Rows: []string{"profile", "size"}, Series: "mode", Value: "latency", Versus: "tcp"}, `no mode "tcp"`},
	} {
		_, err := pingPong().Pivot(tc.pivot)
		require.ErrorContains(t, err, tc.want)
	}
}

// A ratio has two decimals. If they would show 0.00, it has two digits.
func TestSmallRatios(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00×", 1.356: "1.36×", 0.01: "0.01×", 0.0099: "0.0099×", 0.001891: "0.0019×", -0.00012: "-0.00012×", 12345: "12,345.00×"} {
		require.Equal(t, want, show(Column{Kind: Ratio}, scale{}, v))
	}
}

func TestMistakesPanic(t *testing.T) {
	table := New(Column{Name: "t", Unit: "ns", Kind: Duration})
	require.Panics(t, func() { table.Add(1) }, "a time is a sim.Time, not a number of something")
	require.Panics(t, func() { table.Add() })
	require.Panics(t, func() { New(Column{Name: "t", Kind: Duration}) }, "no unit")
	require.Panics(t, func() { New(Column{Name: "a"}, Column{Name: "a"}) })
}

// everything is a plot with all features.
var everything = Plot{
	Title: "Ping-pong", Caption: strings.Repeat("Where the numbers come from. ", 8),
	X: "size", Y: "latency_ns", Series: "mode", Facet: "profile", LogX: true, LogY: true,
}

func TestPlotFiles(t *testing.T) {
	dir := t.TempDir()
	svg := filepath.Join(dir, "a.svg")
	require.NoError(t, pingPong().PlotFile(svg, everything))
	first, err := os.ReadFile(svg)
	require.NoError(t, err)
	require.NoError(t, pingPong().PlotFile(svg, everything))
	second, err := os.ReadFile(svg)
	require.NoError(t, err)
	require.Equal(t, first, second, "same table, same bytes")
	for _, text := range []string{">4<", ">256Ki<", ">0.5<", ">size (B)<", ">latency (µs)<", ">spin-int<", ">sPIN stream<", "sans-serif"} {
		require.Contains(t, string(first), text)
	}
	require.Equal(t, 1, strings.Count(string(first), ">latency (µs)<"), "panels share the axis")

	picture := filepath.Join(dir, "a.png")
	require.NoError(t, pingPong().PlotFile(picture, everything))
	file, err := os.Open(picture)
	require.NoError(t, err)
	config, err := png.DecodeConfig(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	require.Greater(t, config.Width, 1500, "fit for print")
}

// A list of columns gives one panel to each combination of values, named by
// them.
func TestFacetsOfTwoColumns(t *testing.T) {
	table := New(Column{Name: "profile"}, Column{Name: "size", Unit: "B", Kind: Size}, Column{Name: "wait", Unit: "ns", Kind: Duration},
		Column{Name: "ranks", Kind: Count}, Column{Name: "time", Unit: "ns", Kind: Duration})
	for ranks := 2; ranks <= 64; ranks *= 2 {
		for _, size := range []int{8, 64 << 10} {
			table.Add("spin-dis", size, 50*sim.Nanosecond, ranks, sim.Time(ranks*size))
		}
	}
	f, err := table.figure(Plot{X: "ranks", Y: "time", Facet: "profile, size, wait"})
	require.NoError(t, err)
	require.Len(t, f.panels, 2)
	require.Equal(t, "spin-dis, 8 B, 50 ns", f.panels[0].name)
	_, err = table.figure(Plot{X: "ranks", Y: "time", Facet: "profile"})
	require.EqualError(t, err, `two values of time_ns for ranks 2 of "spin-dis": choose a series or facet that keeps them apart`)
}

func TestPlotErrors(t *testing.T) {
	dir := t.TempDir()
	change := func(f func(*Plot)) Plot {
		p := everything
		f(&p)
		return p
	}
	for _, tc := range []struct {
		file string
		plot Plot
		want string
	}{
		{"a.pdf", everything, `cannot draw ".pdf" files, want a name that ends in one of .svg, .png`},
		{"a.svg", change(func(p *Plot) { p.Y = "mode" }), "column mode of kind text has no numbers"},
		{"a.svg", change(func(p *Plot) { p.X = "bytes" }), `no column "bytes"`},
		{"a.svg", change(func(p *Plot) { p.Facet = "" }), "two values of latency_ns for size_B 4"},
	} {
		err := pingPong().PlotFile(filepath.Join(dir, tc.file), tc.plot)
		require.ErrorContains(t, err, tc.want)
		require.NoFileExists(t, filepath.Join(dir, tc.file))
	}
	zero := New(Column{Name: "x", Kind: Count}, Column{Name: "y", Kind: Number})
	file := filepath.Join(dir, "zero.svg")
	require.ErrorContains(t, zero.PlotFile(file, Plot{X: "x", Y: "y"}), "no row has both x and y")
	zero.Add(1, -1.0)
	require.ErrorContains(t, zero.PlotFile(file, Plot{X: "x", Y: "y", LogY: true}), "row 1: y is -1, which a logarithmic axis cannot show")
	far := New(Column{Name: "x", Kind: Number}, Column{Name: "y", Kind: Number})
	far.Add(1e-160, 1.0)
	far.Add(4.4e170, 2.0)
	require.ErrorContains(t, far.PlotFile(file, Plot{X: "x", Y: "y", LogX: true}), "x goes from 1e-160 to 4.4e+170, too far for a picture")
	require.NoError(t, far.PlotFile(file, Plot{X: "x", Y: "y"}))
	far.Add(-1.7e308, 3.0)
	far.Add(1.7e308, 4.0)
	require.ErrorContains(t, far.PlotFile(file, Plot{X: "x", Y: "y"}), "too far for a picture")
}

// labelsOf returns the axis labels for values from low to high.
func labelsOf(a axis, low, high float64) string {
	a.include(low)
	a.include(high)
	a.fit()
	a.length = panelWidth - margins
	var out []string
	for _, tick := range a.Ticks(a.low, a.high) {
		if tick.Label != "" {
			out = append(out, tick.Label)
		}
	}
	return strings.Join(out, " ")
}

func TestTicks(t *testing.T) {
	size := Column{Name: "size", Unit: "B", Kind: Size}
	ranks := Column{Name: "ranks", Kind: Count}
	time := Column{Name: "time", Unit: "ns", Kind: Duration}
	use := Column{Name: "use", Kind: Share}
	for _, tc := range []struct {
		axis      axis
		low, high float64
		want      string
	}{
		{axis{column: size, log: true}, 8, 1 << 20, "8 32 128 512 2Ki 8Ki 32Ki 128Ki 512Ki"},
		{axis{column: ranks, log: true}, 2, 1024, "2 4 8 16 32 64 128 256 512 1024"},
		{axis{column: ranks, log: true}, 3, 1000, "5 10 20 50 100 200 500 1000"},
		{axis{column: time, log: true}, 1, 1e6, "0.001 0.01 0.1 1 10 100 1000"},
		{axis{column: time}, 100, 900, "0 200 400 600 800"},
		{axis{column: time}, 0, 50_000, "0 10 20 30 40 50"},
		{axis{column: use, upright: true}, 0.1, 1, "0% 20% 40% 60% 80% 100%"},
	} {
		require.Equal(t, tc.want, labelsOf(tc.axis, tc.low, tc.high))
	}
}
