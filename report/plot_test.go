package report

import (
	"fmt"
	"image/color"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// drawn returns a plot as SVG.
func drawn(t *testing.T, table *Table, p Plot) string {
	f, err := table.figure(p)
	require.NoError(t, err)
	out, err := f.picture(".svg")
	require.NoError(t, err)
	return string(out)
}

func sizesTable(rows ...any) *Table {
	t := New(Column{Name: "mode"}, Column{Name: "cores", Kind: Count, Each: "HPUs"}, Column{Name: "bytes", Kind: Size}, Column{Name: "time", Unit: "ns", Kind: Duration})
	for i := 0; i < len(rows); i += 4 {
		t.Add(rows[i : i+4]...)
	}
	return t
}

// A message without payload has a place on a logarithmic axis: left of the
// others, behind a break.
func TestZeroOnLogarithmicAxis(t *testing.T) {
	table := sizesTable("a", 4, 0, 5*sim.Nanosecond, "a", 4, 8, 6*sim.Nanosecond, "a", 4, 64, 7*sim.Nanosecond)
	p := Plot{X: "bytes", Y: "time", LogX: true, LogY: true}
	f, err := table.figure(p)
	require.NoError(t, err)
	require.Equal(t, 2.0, f.x.at(0), "a quarter of the smallest size")
	require.Equal(t, 8.0, f.x.at(8))
	var labels []string
	for _, tick := range f.x.Ticks(f.x.low, f.x.high) {
		labels = append(labels, tick.Label)
	}
	require.Equal(t, []string{"0", "8", "16", "32", "64"}, labels, "nothing is marked between 0 and 8")
	require.Contains(t, drawn(t, table, p), ">0<")
	require.NotContains(t, drawn(t, sizesTable("a", 4, 8, 6*sim.Nanosecond), p), ">0<")
	drawn(t, sizesTable("a", 4, 0, sim.Time(0)), p) // only zero
}

// Names stand side by side in their order, without lines between points.
// Published numbers stand at the same place. If there are many names, every
// second is a line lower.
func TestNamesAlongAnAxis(t *testing.T) {
	table := sizesTable("b", 1, 8, 5*sim.Nanosecond, "a", 1, 8, 6*sim.Nanosecond)
	require.NoError(t, table.SetPublished([]Published{{At: []Is{{Column: "mode", Value: "a"}}, Column: "time", Value: 7, Source: "X"}}))
	f, err := table.figure(Plot{X: "mode", Y: "time", LogX: true, Facet: "cores"})
	require.NoError(t, err)
	require.Equal(t, []point{{0, 5}, {1, 6}}, f.panels[0].curves[0].points)
	require.Equal(t, []point{{1, 7}}, f.panels[0].curves[1].points)
	picture := drawn(t, table, Plot{X: "mode", Y: "time", Facet: "cores"})
	require.Regexp(t, `(?s)>b<.*>a<`, picture)
	require.Contains(t, picture, ">1 HPU<")
	require.Contains(t, picture, ">here<", "beside what was published")
	_, err = sizesTable("a", 1, 8, 5*sim.Nanosecond, "a", 2, 8, 6*sim.Nanosecond).figure(Plot{X: "mode", Y: "time"})
	require.ErrorContains(t, err, "two values of time_ns for mode a:")

	var rows []any
	for _, name := range []string{"a quite long name", "another quite long name", "one more quite long name", "the last quite long name"} {
		rows = append(rows, name, 1, 8, 5*sim.Nanosecond)
	}
	f, err = sizesTable(rows...).figure(Plot{X: "mode", Y: "time"})
	require.NoError(t, err)
	var labels []string
	for _, tick := range f.x.Ticks(f.x.low, f.x.high) {
		labels = append(labels, tick.Label)
	}
	require.Equal(t, []string{"a quite long name", "\nanother quite long name", "one more quite long name", "\nthe last quite long name"}, labels)
}

// Sizes that are no powers of two have round labels in binary units.
func TestEvenSizes(t *testing.T) {
	var rows []any
	for _, gib := range []int{3, 5, 6, 7} {
		rows = append(rows, "a", 1, gib<<30, 5*sim.Nanosecond)
	}
	f, err := sizesTable(rows...).figure(Plot{X: "bytes", Y: "time"})
	require.NoError(t, err)
	var labels []string
	for _, tick := range f.x.Ticks(f.x.low, f.x.high) {
		labels = append(labels, tick.Label)
	}
	require.Equal(t, []string{"3Gi", "4Gi", "5Gi", "6Gi", "7Gi"}, labels)
}

// Counted uses the singular for one.
func TestCounted(t *testing.T) {
	for many, one := range map[string]string{
		"ranks": "rank", "HPUs": "HPU", "hpu cores": "hpu core", "ranks per node": "rank per node", "processes": "process", "loss": "loss", "turn": "turn", "clients": "client",
	} {
		require.Equal(t, one, Counted(1, many))
		require.Equal(t, many, Counted(2, many))
	}
	for f, text := range map[float64]string{1e20: "1e20", 1.5e6: "1.5e6", 1e-7: "1e-7", 5: "5"} {
		require.Equal(t, text, shortNumber(f))
	}
}

// Legends and panels name what a number counts.
func TestNamesOfNumbers(t *testing.T) {
	table := sizesTable("a", 4, 8, 5*sim.Nanosecond, "a", 8, 8, 6*sim.Nanosecond)
	picture := drawn(t, table, Plot{X: "bytes", Y: "time", Series: "cores", Facet: "mode"})
	require.Contains(t, picture, ">4 HPUs<")
	require.Contains(t, picture, ">8 HPUs<")
}

// A stack shows shares of a column, in the order of its parts. Parts of zero
// length are left out. Parts that do not add up are an error.
func TestStack(t *testing.T) {
	table := New(Column{Name: "bytes", Kind: Size}, Column{Name: "time", Unit: "ns", Kind: Duration}, Column{Name: "work", Unit: "us", Kind: Duration},
		Column{Name: "nothing", Unit: "ns", Kind: Duration}, Column{Name: "wait", Unit: "ns", Kind: Duration})
	table.Add(8, 4*sim.Microsecond, sim.Microsecond, sim.Time(0), 3*sim.Microsecond)
	table.Add(64, 10*sim.Microsecond, 5*sim.Microsecond, sim.Time(0), 5*sim.Microsecond)
	table.Add(128, nil, nil, nil, nil)
	p := Plot{X: "bytes", Y: "time", LogX: true, LogY: true, Stack: []string{"work", "nothing", "wait"}}
	wrong := New(table.Columns...)
	wrong.Add(8, 4*sim.Microsecond, sim.Nanosecond, sim.Time(0), 3*sim.Microsecond)
	_, err := wrong.figure(p)
	require.EqualError(t, err, "row 1: time_ns is 4000, and the parts that are to be its stack are 3001")
	f, err := table.figure(p) // units of time may differ
	require.NoError(t, err)
	require.Len(t, f.panels[0].curves, 2)
	require.Equal(t, []bar{{8, 0, 0.25}, {64, 0, 0.5}}, f.panels[0].curves[0].bars)
	require.Equal(t, []bar{{8, 0.25, 1}, {64, 0.5, 1}}, f.panels[0].curves[1].bars)
	picture := drawn(t, table, p)
	for _, want := range []string{">work<", ">wait<", ">share of time<", ">100%<", ">1 of 3 rows have no share of time and are not drawn.<"} {
		require.Contains(t, picture, want)
	}
	require.NotContains(t, picture, ">nothing<")
	p.LogX = false
	drawn(t, table, p)
	table.Add(256, sim.Microsecond, 2*sim.Microsecond, -sim.Microsecond, sim.Time(0))
	_, err = table.figure(p)
	require.EqualError(t, err, "row 4: nothing_ns: a part of a stack, expected a number of at least 0")
	p.Stack = []string{"none"}
	_, err = table.figure(p)
	require.Error(t, err)
}

// The caption names what cannot be drawn, and the origin of the table.
func TestCaptionSaysWhatIsMissing(t *testing.T) {
	table := sizesTable("a", 4, 8, 5*sim.Nanosecond, "a", 4, 16, nil)
	table.Origin = origin{"v1"}
	picture := drawn(t, table, Plot{X: "bytes", Y: "time", Caption: "Words."})
	for _, want := range []string{">1 of 2 rows have no time and are not drawn.<", ">made by v1<", ">Words.<"} {
		require.Contains(t, picture, want)
	}
}

// A published number is a hollow marker: on the axis of its column, or at the
// plot's Place.
func TestPublishedMarks(t *testing.T) {
	table := New(Column{Name: "mode"}, Column{Name: "ranks", Kind: Count}, Column{Name: "time", Unit: "ns", Kind: Duration}, Column{Name: "saved", Kind: Share})
	table.Add("host", 2, 100*sim.Nanosecond, nil)
	table.Add("nic", 2, 60*sim.Nanosecond, 0.4)
	at := []Is{{"mode", "nic"}, {"ranks", 2}}
	require.NoError(t, table.SetPublished([]Published{
		{At: at, Column: "saved", Value: 0.1, Source: "Paper"}, {At: at, Column: "time", Value: 80, Source: "Paper"},
	}))
	p := Plot{X: "ranks", Y: "time", Series: "mode", Place: map[string]func(func(string) float64, float64) (float64, float64){
		"saved": func(value func(string) float64, published float64) (x, y float64) {
			return value("ranks"), value("time") * (1 - published) / (1 - value("saved"))
		},
	}}
	f, err := table.figure(p)
	require.NoError(t, err)
	marks := map[string]point{}
	for _, c := range f.panels[0].curves {
		if c.published {
			require.Len(t, c.points, 1)
			marks[c.name] = c.points[0]
			require.Equal(t, 1, c.colour, "that of nic")
		}
	}
	require.Equal(t, map[string]point{"nic, published: saved": {2, 90}, "nic, published: time": {2, 80}}, marks)
	picture := drawn(t, table, p)
	require.Contains(t, picture, ">nic, published: saved<")
	require.Contains(t, picture, ">nic, 2 ranks: saved 40.0%, published 10.0% (Paper), +30.0 points.<")
}

// No series is hidden by others, even if they share many points: every colour
// is in the panel.
func TestNoSeriesIsHidden(t *testing.T) {
	for _, series := range [][][4]int{
		{{100, 100, 100, 100}, {100, 100, 100, 100}},
		{{100, 100, 100, 400}, {100, 100, 100, 400}, {100, 100, 101, 400}},
		{{100, 100, 100, 100}, {100, 100, 100, 100}, {100, 100, 100, 100}, {100, 100, 100, 100}, {100, 100, 100, 100}},
		{{100, 100, 100, 100}, {100, 100, 100, 100}, {101, 101, 101, 100}, {100, 100, 100, 100}, {100, 100, 100, 400}},
		{{100, 101, 100, 101}, {101, 100, 101, 100}, {100, 101, 100, 101}, {101, 100, 101, 100}},
	} {
		table := sizesTable()
		n := len(series)
		for s, ys := range series {
			for x, y := range ys {
				table.Add(fmt.Sprint("mode", s), 4, 8*(x+1), sim.Time(y)*sim.Nanosecond)
			}
		}
		f, err := table.figure(Plot{X: "bytes", Y: "time", Series: "mode", LogX: true, LogY: true})
		require.NoError(t, err)
		width, height := f.size()
		canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(200))
		f.draw(canvas)
		picture := canvas.Image()
		seen := map[color.RGBA]int{}
		bounds := picture.Bounds()
		top := int(float64(bounds.Dy()) * float64((f.headHeight()+edge)/height)) // below the legend
		for y := top; y < bounds.Max.Y; y++ {
			for x := bounds.Min.X; x < bounds.Max.X; x++ {
				r, g, b, _ := picture.At(x, y).RGBA()
				seen[color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 0xFF}]++
			}
		}
		for s := range n {
			require.Greater(t, seen[palette[s]], 60, "pixels of series %d of %d", s, n)
		}
	}
}

// Titles are wrapped to the available width, without loss.
func TestLongTitles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-zµ-ω,-]{1,90}`), 1, 12).Draw(t, "words")
		text := strings.Join(words, " ")
		lines := broken(panelStyle, text, panelWidth-margins)
		for _, line := range lines {
			require.LessOrEqual(t, panelStyle.Width(line), panelWidth-margins, line)
		}
		require.Equal(t, strings.ReplaceAll(text, " ", ""), strings.ReplaceAll(strings.Join(lines, ""), " ", ""))
	})
	long := strings.Repeat("a long title ", 20)
	table := sizesTable(long, 4, 8, 5*sim.Nanosecond)
	f, err := table.figure(Plot{X: "bytes", Y: "time", Facet: "mode", Title: long})
	require.NoError(t, err)
	require.Greater(t, len(f.titleLines()), 2)
	one, err := table.figure(Plot{X: "bytes", Y: "time", Facet: "mode", Title: "short"})
	require.NoError(t, err)
	require.Greater(t, f.headHeight(), one.headHeight(), "there is room for them")
}

// Every axis is readable: it has at least two labels, in order and without
// overlap, however close the values are.
func TestAxesCanBeRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := axis{
			column: rapid.SampledFrom([]Column{
				{Name: "size", Kind: Size}, {Name: "n", Kind: Count}, {Name: "t", Unit: "ns", Kind: Duration}, {Name: "f", Kind: Number},
			}).Draw(t, "column"),
			log: rapid.Bool().Draw(t, "log"), upright: rapid.Bool().Draw(t, "upright"),
		}
		low := float64(rapid.IntRange(1, 1<<20).Draw(t, "low"))
		a.include(low)
		if rapid.Bool().Draw(t, "close") {
			a.include(low + float64(rapid.IntRange(0, 10).Draw(t, "more")))
		} else {
			a.include(low * math.Pow(2, float64(rapid.IntRange(0, 20).Draw(t, "doublings"))))
		}
		if rapid.Bool().Draw(t, "nought") {
			a.include(0)
		}
		a.fit()
		a.length = panelWidth - margins
		if a.upright {
			a.length = panelHeight - margins
		}
		labelled, before, free := 0, math.Inf(-1), vg.Length(math.Inf(-1))
		for _, tick := range a.Ticks(a.low, a.high) {
			require.Greater(t, tick.Value, before)
			before = tick.Value
			if tick.Label == "" {
				continue
			}
			labelled++
			at := (tick.Value - a.low) / (a.high - a.low)
			if a.log {
				at = math.Log(tick.Value/a.low) / math.Log(a.high/a.low)
			}
			half := tickStyle.Width(tick.Label) / 2
			if a.upright {
				half = tickStyle.Font.Size / 2
			}
			require.GreaterOrEqual(t, vg.Length(at)*a.length-half, free)
			free = vg.Length(at)*a.length + half
		}
		require.GreaterOrEqual(t, labelled, 2, "%v to %v", a.low, a.high)
	})
}

// A single value has its own label, and so have a few close ones. Sizes are
// powers of two or multiples of them.
func TestTicksOfFewValues(t *testing.T) {
	for _, c := range []struct {
		column Column
		log    bool
		values []float64
		want   []string
	}{
		{Column{Name: "bytes", Kind: Size}, true, []float64{65536}, []string{"32Ki", "64Ki", "128Ki"}},
		{Column{Name: "bytes", Kind: Size}, true, []float64{98304, 65536, 131072}, []string{"64Ki", "96Ki", "128Ki"}},
		{Column{Name: "bytes", Kind: Size}, false, []float64{100}, []string{"50", "100", "200"}},
		{Column{Name: "ranks", Kind: Count}, false, []float64{7}, []string{"7", "14"}},
		{Column{Name: "share", Kind: Share}, false, []float64{0.2, 0.25, 0.3}, []string{"20%", "25%", "30%"}},
		// µs
		{Column{Name: "time", Kind: Duration, Unit: "ns"}, false, []float64{100000, 120000}, []string{"100", "120"}},
	} {
		a := axis{column: c.column, log: c.log, length: 300}
		for _, v := range c.values {
			a.include(v)
		}
		a.fit()
		var got []string
		for _, tick := range a.Ticks(a.low, a.high) {
			if tick.Label != "" {
				got = append(got, tick.Label)
			}
		}
		require.Equal(t, c.want, got, "%v", c.values)
	}
}

// Titles of panels side by side begin at one height. Text is wrapped with room
// for a wider font.
func TestTitlesAreLevel(t *testing.T) {
	table := New(Column{Name: "side"}, Column{Name: "bytes", Kind: Size}, Column{Name: "time", Unit: "us", Kind: Duration})
	for i, side := range []string{"destination", "source", strings.Repeat("both of them ", 12)} {
		for k := range 3 {
			table.Add(side, 4096<<(2*k), sim.Time(27+i*i*1000+100*k)*sim.Microsecond)
		}
	}
	f, err := table.figure(Plot{X: "bytes", Y: "time_us", Facet: "side", LogX: true, LogY: true})
	require.NoError(t, err)
	svg, err := f.picture(".svg")
	require.NoError(t, err)
	height := func(text string) (y float64) {
		m := regexp.MustCompile(`(?s)<text x="[^"]*" y="([^"]*)"[^>]*>` + text + `<`).FindStringSubmatch(string(svg))
		require.NotNil(t, m, text)
		y, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		return y
	}
	require.InDelta(t, height("destination"), height("source"), 1)
	const width = 200
	for _, line := range broken(titleStyle, strings.Repeat("word ", 100), width) {
		require.LessOrEqual(t, titleStyle.Width(line)*wider, vg.Length(width))
	}
}
