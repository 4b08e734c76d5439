package report

import (
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	stdfont "golang.org/x/image/font"
)

// palette is that of Okabe and Ito, which people with any kind of colour vision
// can tell apart; its yellow is left out, being pale on white.
var palette = []color.RGBA{
	{0x00, 0x72, 0xB2, 0xFF}, // blue
	{0xD5, 0x5E, 0x00, 0xFF}, // vermilion
	{0x00, 0x9E, 0x73, 0xFF}, // green
	{0xCC, 0x79, 0xA7, 0xFF}, // purple
	{0xE6, 0x9F, 0x00, 0xFF}, // orange
	{0x56, 0xB4, 0xE9, 0xFF}, // sky
	{0x00, 0x00, 0x00, 0xFF}, // black
}

// Markers differ as well as colours, for print without colour. Corners are in
// units of the marker's radius.
var shapes = []shape{
	{},
	{{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}},
	{{-1.05, -0.8}, {1.05, -0.8}, {0, 1.1}},
	{{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}},
	{{-1.05, 0.8}, {1.05, 0.8}, {0, -1.1}},
}

// shape is a polygon, or a circle if it has no corners.
type shape []point

// path returns the outline of the shape around a point.
func (s shape) path(at vg.Point, radius vg.Length) vg.Path {
	var p vg.Path
	if len(s) == 0 {
		p.Move(vg.Point{X: at.X + radius, Y: at.Y})
		p.Arc(at, radius, 0, 2*math.Pi)
		p.Close()
		return p
	}
	for i, corner := range s {
		pt := vg.Point{X: at.X + vg.Length(corner.x)*radius, Y: at.Y + vg.Length(corner.y)*radius}
		if i == 0 {
			p.Move(pt)
		} else {
			p.Line(pt)
		}
	}
	p.Close()
	return p
}

var (
	ink   = color.Gray{0x20}
	faint = color.Gray{0x60}
	lines = color.Gray{0xE0}
)

// Sizes of a figure, in points.
const (
	panelWidth   vg.Length = 310
	panelHeight  vg.Length = 215
	singleWidth  vg.Length = 400
	singleHeight vg.Length = 260
	edge         vg.Length = 12
	gutter       vg.Length = 14
	markerRadius vg.Length = 2.6
	thumbWidth   vg.Length = 24
)

func style(size vg.Length, weight stdfont.Weight, c color.Color) text.Style {
	return text.Style{
		Color:   c,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight, Size: size},
		Handler: plot.DefaultTextHandler,
	}
}

var (
	titleStyle   = style(12, stdfont.WeightBold, ink)
	panelStyle   = style(10, stdfont.WeightBold, ink)
	labelStyle   = style(10, stdfont.WeightNormal, ink)
	tickStyle    = style(8.5, stdfont.WeightNormal, ink)
	captionStyle = style(8.5, stdfont.WeightNormal, faint)
)

// grid returns the numbers of panels side by side and above each other.
func (f *figure) grid() (columns, rows int) {
	columns = min(len(f.panels), 2)
	if len(f.panels) > 4 {
		columns = 3
	}
	return columns, (len(f.panels) + columns - 1) / columns
}

func (f *figure) bodySize() (width, height vg.Length) {
	if len(f.panels) == 1 {
		return singleWidth, singleHeight
	}
	columns, rows := f.grid()
	return vg.Length(columns)*panelWidth + vg.Length(columns-1)*gutter,
		vg.Length(rows)*panelHeight + vg.Length(rows-1)*gutter
}

// size returns the size of the whole picture.
func (f *figure) size() (width, height vg.Length) {
	width, height = f.bodySize()
	height += f.headHeight() + f.footHeight()
	return width + 2*edge, height + 2*edge
}

func (f *figure) headHeight() vg.Length {
	height := lineHeight(labelStyle) * vg.Length(len(f.legendRows()))
	if f.Title != "" {
		height += lineHeight(titleStyle)
	}
	if height > 0 {
		height += edge / 2
	}
	return height
}

func (f *figure) footHeight() vg.Length {
	n := len(f.captionLines())
	if n == 0 {
		return 0
	}
	return lineHeight(captionStyle)*vg.Length(n) + edge/2
}

func lineHeight(s text.Style) vg.Length { return s.Font.Size * 1.45 }

// captionLines breaks the caption to the width of the figure.
func (f *figure) captionLines() []string {
	width, _ := f.bodySize()
	var result []string
	line := ""
	for word := range strings.FieldsSeq(f.Caption) {
		longer := strings.TrimPrefix(line+" "+word, " ")
		if line != "" && captionStyle.Width(longer) > width {
			result = append(result, line)
			longer = word
		}
		line = longer
	}
	if line != "" {
		result = append(result, line)
	}
	return result
}

// legendRows breaks the legend to the width of the figure. One nameless series
// needs none.
func (f *figure) legendRows() [][]*curve {
	if len(f.series) == 1 && f.series[0].name == "" {
		return nil
	}
	width, _ := f.bodySize()
	rows := [][]*curve{nil}
	at := vg.Length(0)
	for _, c := range f.series {
		w := legendWidth(c)
		if at > 0 && at+w > width {
			rows = append(rows, nil)
			at = 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], c)
		at += w
	}
	return rows
}

func legendWidth(c *curve) vg.Length { return thumbWidth + 5 + labelStyle.Width(c.name) + 14 }

// draw draws title, legend, panels and caption from top to bottom.
func (f *figure) draw(on vg.CanvasSizer) {
	c := draw.New(on)
	c.FillPolygon(color.White, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}})
	inner := draw.Crop(c, edge, -edge, edge, -edge)
	y := inner.Max.Y
	if f.Title != "" {
		y -= lineHeight(titleStyle)
		inner.FillText(titleStyle, vg.Point{X: inner.Min.X, Y: y + 3}, f.Title)
	}
	for _, row := range f.legendRows() {
		y -= lineHeight(labelStyle)
		x := inner.Min.X
		for _, entry := range row {
			entry.thumbnail(&inner, vg.Point{X: x, Y: y})
			x += legendWidth(entry)
		}
	}
	f.drawPanels(draw.Crop(inner, 0, 0, f.footHeight(), -f.headHeight()))
	y = inner.Min.Y + f.footHeight() - edge/2
	for _, line := range f.captionLines() {
		y -= lineHeight(captionStyle)
		inner.FillText(captionStyle, vg.Point{X: inner.Min.X, Y: y + 3}, line)
	}
}

func (f *figure) drawPanels(c draw.Canvas) {
	columns, rows := f.grid()
	plots := make([][]*plot.Plot, rows)
	for i := range plots {
		plots[i] = make([]*plot.Plot, columns)
	}
	for i, p := range f.panels {
		outer := i+columns >= len(f.panels)
		plots[i/columns][i%columns] = f.plot(p, i%columns == 0, outer)
	}
	tiles := draw.Tiles{Cols: columns, Rows: rows, PadX: gutter, PadY: gutter}
	canvases := plot.Align(plots, tiles, c)
	for i, row := range plots {
		for j, p := range row {
			if p != nil {
				p.Draw(canvases[i][j])
			}
		}
	}
}

// plot sets up one panel; inner panels leave out the labels of the axes, which all
// share.
func (f *figure) plot(p *panel, leftmost, lowest bool) *plot.Plot {
	out := plot.New()
	out.BackgroundColor = nil
	out.Title.Text = p.name
	out.Title.TextStyle = panelStyle
	out.Title.TextStyle.XAlign, out.Title.TextStyle.YAlign = draw.XCenter, draw.YTop
	out.Title.Padding = 4
	f.x.apply(&out.X, lowest)
	f.y.apply(&out.Y, leftmost)
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = lines, lines
	grid.Horizontal.Width, grid.Vertical.Width = 0.5, 0.5
	out.Add(grid)
	for _, c := range p.curves {
		out.Add(c)
	}
	out.X.Min, out.X.Max, out.Y.Min, out.Y.Max = f.x.low, f.x.high, f.y.low, f.y.high
	return out
}

// apply gives a gonum axis its looks.
func (a *axis) apply(g *plot.Axis, labelled bool) {
	g.LineStyle = draw.LineStyle{Color: faint, Width: 0.6}
	g.Padding = 0
	g.Label.TextStyle.Font, g.Label.TextStyle.Color = labelStyle.Font, ink
	g.Label.Padding = 4
	if labelled {
		g.Label.Text = a.label()
	}
	g.Tick.Label.Font, g.Tick.Label.Color = tickStyle.Font, ink
	g.Tick.LineStyle = draw.LineStyle{Color: faint, Width: 0.6}
	g.Tick.Length = 4
	g.Tick.Marker = a
	if a.log {
		g.Scale = plot.LogScale{}
	}
}

func (c *curve) color() color.Color { return palette[c.style%len(palette)] }

func (c *curve) line() draw.LineStyle {
	s := draw.LineStyle{Color: c.color(), Width: 1.4}
	if c.published {
		s.Width, s.Dashes = 1, []vg.Length{4, 3}
	} else if c.style >= len(palette) {
		s.Dashes = []vg.Length{1.5, 2}
	}
	return s
}

// mark draws a marker on a white rim that sets it off from lines.
func (c *curve) mark(on *draw.Canvas, at vg.Point) {
	outline := shapes[c.style%len(shapes)]
	on.SetColor(color.White)
	on.Fill(outline.path(at, markerRadius+0.8))
	on.SetColor(c.color())
	if !c.published {
		on.Fill(outline.path(at, markerRadius))
		return
	}
	on.SetLineStyle(draw.LineStyle{Color: c.color(), Width: 1})
	on.Stroke(outline.path(at, markerRadius))
}

// Plot implements gonum's Plotter.
func (c *curve) Plot(on draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&on)
	points := make([]vg.Point, len(c.points))
	for i, pt := range c.points {
		points[i] = vg.Point{X: x(pt.x), Y: y(pt.y)}
	}
	on.StrokeLines(c.line(), points)
	for _, pt := range points {
		c.mark(&on, pt)
	}
}

// thumbnail draws a sample of the line and its name from at to the right.
func (c *curve) thumbnail(on *draw.Canvas, at vg.Point) {
	middle := at.Y + labelStyle.Font.Size*0.5
	on.StrokeLine2(c.line(), at.X, middle, at.X+thumbWidth, middle)
	c.mark(on, vg.Point{X: at.X + thumbWidth/2, Y: middle})
	on.FillText(labelStyle, vg.Point{X: at.X + thumbWidth + 5, Y: at.Y + labelStyle.Font.Size*0.18}, c.name)
}
