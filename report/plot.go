package report

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/internal/visible"
)

// Plot describes a drawing of a table: one line for each value of Series, one
// panel for each value of Facet. Columns are given by name or key. Facet may
// name several, separated by commas, for one panel for each combination.
type Plot struct {
	Title   string
	Caption string // below the picture: the source of the numbers
	// columns of numbers; X may be a text column: names side by side, and
	// points without lines
	X, Y   string
	Series string // "": one line
	Facet  string // "": one panel
	LogX   bool
	LogY   bool
	// Stack are columns whose values add up to Y. Bars show their shares of Y,
	// the first one lowest. The values of X must lie apart, so that the bars
	// have room. Series is ignored.
	Stack []string
	// Place gives the position of a published number of a column, in the
	// units of the axes. The function value returns our numbers of its row.
	// The column Y needs no entry. Numbers of other columns without an
	// entry are only in the caption.
	Place map[string]func(value func(column string) float64, published float64) (x, y float64)
}

// imageTypes are the file name extensions of [Table.PlotFile].
const imageTypes = ".svg, .png"

// pngDPI is the resolution of PNG files, enough to print at column width.
const pngDPI = 200

// PlotFile draws p into a file. The extension of its name selects the format,
// .svg or .png; another extension is an error. Other errors are a column
// without numbers, a negative value on a logarithmic axis, and two values for
// one point. Published numbers are drawn as hollow markers. The caption has
// them, and the origin of the table.
func (t *Table) PlotFile(name string, p Plot) error {
	err := CheckImage(name)
	if err != nil {
		return fmt.Errorf("plot %s: %w", name, err)
	}
	f, err := t.figure(p)
	if err != nil {
		return fmt.Errorf("plot %s: %w", name, err)
	}
	picture, err := f.picture(filepath.Ext(name))
	if err != nil {
		return fmt.Errorf("plot %s: %w", name, err)
	}
	if err := writePicture(name, picture, t.Origin, t.Cut); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
}

// writePicture writes a picture, with a seal if its origin makes one.
func writePicture(name string, picture []byte, of Origin, cut string) error {
	if of, ok := of.(seal.Sealer); ok {
		kind := seal.SVG
		if filepath.Ext(name) == ".png" {
			kind = seal.PNG
		}
		m, err := seal.Of(of, kind, cut)
		if err != nil {
			return err
		}
		picture = m.Picture(picture)
	}
	return file.Write(name, picture)
}

// SVG draws p like [Table.PlotFile], as an svg element for a page. The caption
// leaves out what the page itself shows: published numbers and the origin.
func (t *Table) SVG(p Plot) ([]byte, error) {
	f, err := t.figure(p)
	if err != nil {
		return nil, fmt.Errorf("plot: %w", err)
	}
	f.notes = nil
	picture, err := f.picture(".svg")
	if err != nil {
		return nil, fmt.Errorf("plot: %w", err)
	}
	// skip the declaration and a comment
	_, element, found := bytes.Cut(picture, []byte("<svg"))
	if !found {
		return nil, errors.New("plot: the picture is no svg")
	}
	return append([]byte("<svg"), element...), nil
}

// picture draws the figure in the format of the extension.
func (f *figure) picture(extension string) ([]byte, error) {
	width, height := f.size()
	return paint(extension, width, height, pngDPI, f.draw)
}

// paint returns a picture in the format of the extension. dpi is the resolution
// of PNG.
func paint(extension string, width, height vg.Length, dpi int, draw func(on vg.CanvasSizer)) ([]byte, error) {
	var out bytes.Buffer
	if extension == ".png" {
		canvas := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))}
		draw(canvas)
		_, err := canvas.WriteTo(&out)
		return out.Bytes(), err
	}
	canvas := vgsvg.New(width, height)
	draw(canvas)
	_, err := canvas.WriteTo(&out)
	// XML refuses the characters that visible replaces, and a page must not obey them
	return []byte(strings.ReplaceAll(visible.Text(out.String()), "font-family:Liberation Sans;", fontFamily)), err
}

// fontFamily names fonts of the same widths, for readers without the first.
const fontFamily = "font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"

// curve is one line of one panel.
type curve struct {
	name      string
	style     int // index of the series or mark
	colour    int // index in the palette
	published bool
	points    []point
	spans     []span // below the points
	bars      []bar
	places    int      // number of stacks in a panel; 0: points
	above     []*curve // curves drawn later in the same panel
	axes      [2]*axis // x, y
}

// point is a point in the units of the columns.
type point struct{ x, y float64 }

type panel struct {
	name   string
	curves []*curve
}

// figure is a plot ready to be drawn.
type figure struct {
	Plot
	x, y   axis
	panels []*panel
	series []*curve // one for each series and mark, for the legend
	notes  []string // for the caption
}

func (t *Table) figure(p Plot) (*figure, error) {
	f := &figure{Plot: p}
	x, err := t.column(p.X)
	if err != nil {
		return nil, err
	}
	y, err := t.column(p.Y)
	if err != nil {
		return nil, err
	}
	series, err := t.columns(p.Series)
	if err != nil {
		return nil, err
	}
	facet, err := t.columns(p.Facet)
	if err != nil {
		return nil, err
	}
	stack, err := t.columns(strings.Join(p.Stack, ","))
	if err != nil {
		return nil, err
	}
	kind := t.Columns[x].Kind
	f.x = axis{column: t.Columns[x], log: p.LogX, named: kind == Text || kind == Flag}
	f.y = axis{column: t.Columns[y], log: p.LogY, upright: true}
	add := func(row int) (bool, error) { return f.add(t, row, x, y, t.name(row, series), t.name(row, facet)) }
	if len(stack) > 0 {
		f.y = axis{column: Column{Name: "share_of_" + t.Columns[y].Name, Kind: Share}, upright: true}
		add = func(row int) (bool, error) { return f.pile(t, row, x, y, stack, t.name(row, facet)) }
	}
	left := 0
	for i := range t.rows {
		drawn, err := add(i)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
		if !drawn {
			left++
		}
	}
	if len(f.panels) == 0 {
		return nil, fmt.Errorf("no row has both %s and %s", t.Columns[x].Key(), t.Columns[y].Key())
	}
	if err := f.sort(); err != nil {
		return nil, err
	}
	if len(stack) == 0 {
		f.mark(t, x, series, facet)
	}
	return f, f.finish(t, left)
}

// finish fits the axes to the data and writes the notes. left is the number of
// rows that are not drawn.
func (f *figure) finish(t *Table, left int) error {
	for _, a := range []*axis{&f.x, &f.y} {
		low, high := a.low, a.high
		a.fit()
		if len(f.Stack) > 0 && a == &f.x {
			a.widen()
		}
		if math.IsInf(a.high-a.low, 0) || a.log && (a.low <= 0 || math.IsInf(a.high/a.low, 0)) {
			return fmt.Errorf("%s goes from %g to %g, too far for a picture", a.column.Key(), low, high)
		}
	}
	f.notes = t.Comparisons()
	if slices.ContainsFunc(f.panels, func(p *panel) bool {
		return slices.ContainsFunc(p.curves, func(c *curve) bool { return len(c.spans) > 0 })
	}) {
		f.notes = append(f.notes, "Lines with ends are ranges over what publications leave open, drawn beside their points.")
	}
	if left > 0 {
		f.notes = append(f.notes, fmt.Sprintf("%d of %d rows have no %s and are not drawn.", left, len(t.rows), f.y.column.title()))
	}
	if t.Origin != nil {
		f.notes = append(f.notes, t.Origin.Lines()...)
	}
	f.x.length, f.y.length = f.plotSize()
	f.share()
	for _, p := range f.panels {
		for i, c := range p.curves {
			c.axes = [2]*axis{&f.x, &f.y}
			c.above = p.curves[i+1:]
		}
	}
	return nil
}

// mark adds a curve of hollow markers for each column with published numbers
// and each series that has them.
func (f *figure) mark(t *Table, x int, series, facet []int) {
	t.eachPublished(func(row int, p *Published, column int) {
		place := f.Place[t.Columns[column].Name]
		if place == nil && t.Columns[column].Key() == f.y.column.Key() {
			place = func(value func(string) float64, published float64) (x, y float64) {
				return value(f.x.column.Key()), published
			}
		}
		if place == nil {
			return
		}
		atX, y := place(func(name string) float64 {
			c, err := t.column(name)
			if err != nil {
				return math.NaN()
			}
			if f.x.named && c == x {
				return f.x.place(alone(t.Columns[c], t.rows[row][c]))
			}
			v, ok := float(t.Columns[c], t.rows[row][c])
			if !ok {
				return math.NaN()
			}
			return v
		}, p.Value)
		if bad := atX + y; math.IsNaN(bad) || math.IsInf(bad, 0) || f.x.log && atX < 0 || f.y.log && y < 0 {
			return
		}
		of := f.style(t.name(row, series))
		like := f.style(strings.TrimPrefix(of.name+", published: "+t.Columns[column].title(), ", "))
		like.published, like.colour = true, of.colour
		c := f.panel(t.name(row, facet)).curve(like)
		if pt := (point{atX, y}); !slices.Contains(c.points, pt) {
			f.x.include(atX)
			f.y.include(y)
			c.points = append(c.points, pt)
		}
	})
}

// add adds a row of the table to its curve. Rows without a value are not drawn.
func (f *figure) add(t *Table, row, x, y int, series, facet string) (drawn bool, err error) {
	values := t.rows[row]
	px, errX := f.x.value(values[x])
	py, errY := f.y.value(values[y])
	for _, err := range []error{errX, errY} {
		if err != nil {
			return false, err
		}
	}
	if values[x] == nil || values[y] == nil {
		return false, nil
	}
	f.x.include(px)
	f.y.include(py)
	c := f.panel(facet).curve(f.style(series))
	c.points = append(c.points, point{px, py})
	f.addSpan(t, row, y, c, px)
	return true, nil
}

// columns returns the indices of the columns in a list separated by commas.
func (t *Table) columns(list string) ([]int, error) {
	if list == "" {
		return nil, nil
	}
	var indices []int
	for name := range strings.SplitSeq(list, ",") {
		i, err := t.column(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		indices = append(indices, i)
	}
	return indices, nil
}

// name returns the row's values in the given columns, as people read them.
func (t *Table) name(row int, columns []int) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = t.Columns[c].named(t.rows[row][c])
	}
	return strings.Join(parts, ", ")
}

func (f *figure) panel(name string) *panel {
	for _, p := range f.panels {
		if p.name == name {
			return p
		}
	}
	f.panels = append(f.panels, &panel{name: name})
	return f.panels[len(f.panels)-1]
}

// style returns the series with that name. Series are numbered by first
// appearance, so that each looks the same in every panel.
func (f *figure) style(name string) *curve {
	for _, c := range f.series {
		if c.name == name {
			return c
		}
	}
	c := &curve{name: name, style: len(f.series), colour: len(f.series)}
	f.series = append(f.series, c)
	return c
}

func (p *panel) curve(like *curve) *curve {
	for _, c := range p.curves {
		if c.name == like.name {
			return c
		}
	}
	c := *like
	p.curves = append(p.curves, &c)
	return &c
}

func (f *figure) sort() error {
	for _, p := range f.panels {
		for _, c := range p.curves {
			sort.SliceStable(c.points, func(i, j int) bool { return c.points[i].x < c.points[j].x })
			for i := 1; i < len(c.points); i++ {
				if c.points[i].x == c.points[i-1].x {
					return fmt.Errorf("two values of %s for %s %s%s: choose a series or facet that keeps them apart",
						f.y.column.Key(), f.x.column.Key(), f.x.said(c.points[i].x), whose(p.name, c.name))
				}
			}
		}
	}
	return nil
}

// whose names the panel and series of a point, if they have names.
func whose(names ...string) string {
	for _, name := range names {
		if name != "" {
			return fmt.Sprintf(" of %q", strings.Trim(strings.Join(names, ", "), ", "))
		}
	}
	return ""
}
