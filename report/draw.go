package report

import (
	"image/color"
	"math"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	stdfont "golang.org/x/image/font"
)

// palette is the palette of Okabe and Ito, which people with any kind of colour
// vision can distinguish. Its yellow is left out: it is too pale on white.
var palette = []color.RGBA{
	{0x00, 0x72, 0xB2, 0xFF}, // blue
	{0xD5, 0x5E, 0x00, 0xFF}, // vermilion
	{0x00, 0x9E, 0x73, 0xFF}, // green
	{0xCC, 0x79, 0xA7, 0xFF}, // purple
	{0xE6, 0x9F, 0x00, 0xFF}, // orange
	{0x56, 0xB4, 0xE9, 0xFF}, // sky
	{0x00, 0x00, 0x00, 0xFF}, // black
}

// shapes are the markers. They differ, so that curves can be distinguished
// without colour. Corners are in units of the marker's radius.
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
	lineWidth    vg.Length = 1.4
	rim          vg.Length = 2.2 // visible edge of a curve below another
	hollow       vg.Length = 1.8 // how much larger the marker of a published number is
	margins      vg.Length = 48  // of a panel, for ticks and the axis label
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

// grid returns the number of panel columns and rows.
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
	height := lineHeight(labelStyle)*vg.Length(len(f.legendRows())) + lineHeight(titleStyle)*vg.Length(len(f.titleLines()))
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

// plotSize returns the approximate size of a panel without ticks and labels.
func (f *figure) plotSize() (width, height vg.Length) {
	if len(f.panels) == 1 {
		return singleWidth - margins, singleHeight - margins
	}
	return panelWidth - margins, panelHeight - margins
}

// titleLines wraps the title to the width of the figure.
func (f *figure) titleLines() []string {
	width, _ := f.bodySize()
	return broken(titleStyle, f.Title, width)
}

// captionLines wraps the caption and the notes to the width of the figure.
func (f *figure) captionLines() (result []string) {
	width, _ := f.bodySize()
	for _, text := range append([]string{f.Caption}, f.notes...) {
		result = append(result, broken(captionStyle, text, width)...)
	}
	return result
}

// wider is how much wider than measured a text may be. The reader of an SVG may
// not have Liberation Sans. DejaVu Sans is the widest common replacement.
const wider = 1.18

// broken wraps a text to a width: between words, or inside a word that is too
// long for a line.
func broken(style text.Style, text string, width vg.Length) (lines []string) {
	width /= wider
	line := ""
	for word := range strings.FieldsSeq(text) {
		longer := strings.TrimPrefix(line+" "+word, " ")
		if line != "" && style.Width(longer) > width {
			lines = append(lines, line)
			longer = word
		}
		line = longer
		for style.Width(line) > width && utf8.RuneCountInString(line) > 1 {
			n := len(line)
			for n > 1 && (style.Width(line[:n]) > width || !utf8.RuneStart(line[min(n, len(line)-1)]) && n < len(line)) {
				n--
			}
			lines = append(lines, line[:n])
			line = line[n:]
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// legendRows wraps the legend to the width of the figure. A single nameless
// series needs no legend.
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

func legendWidth(c *curve) vg.Length { return thumbWidth + 5 + labelStyle.Width(c.called()) + 14 }

// called returns the name of a curve in the legend, also for a nameless curve
// beside others.
func (c *curve) called() string {
	if c.name == "" {
		return "here"
	}
	return c.name
}

// draw draws title, legend, panels and caption from top to bottom.
func (f *figure) draw(on vg.CanvasSizer) {
	c := draw.New(on)
	c.FillPolygon(color.White, rectangle(c.Min.X, c.Min.Y, c.Max.X, c.Max.Y))
	inner := draw.Crop(c, edge, -edge, edge, -edge)
	y := inner.Max.Y
	for _, line := range f.titleLines() {
		y -= lineHeight(titleStyle)
		inner.FillText(titleStyle, vg.Point{X: inner.Min.X, Y: y + 3}, line)
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
	for _, row := range plots {
		level(row)
	}
	tiles := draw.Tiles{Cols: columns, Rows: rows, PadX: gutter, PadY: gutter}
	canvases := plot.Align(plots, tiles, c)
	for i, row := range plots {
		for j, p := range row {
			if p != nil {
				p.Draw(canvases[i][j])
				f.drawTitle(f.panels[i*columns+j], p.DataCanvas(canvases[i][j]))
			}
		}
	}
}

// level gives all titles in a row of panels the same number of lines.
func level(row []*plot.Plot) {
	most := ""
	for _, p := range row {
		if p != nil && len(p.Title.Text) > len(most) {
			most = p.Title.Text
		}
	}
	for _, p := range row {
		if p != nil {
			p.Title.Text = most
		}
	}
}

// panelLines returns the lines of a panel's title.
func (f *figure) panelLines(p *panel) []string {
	width, _ := f.plotSize()
	return broken(panelStyle, p.name, width)
}

// drawTitle writes the title of a panel above its data area, level with the
// titles beside it.
func (f *figure) drawTitle(p *panel, data draw.Canvas) {
	centred := panelStyle
	centred.XAlign = draw.XCenter
	lines := f.panelLines(p)
	for i, line := range lines {
		up := vg.Length(len(lines)-1-i)*lineHeight(panelStyle) + titlePadding
		data.FillText(centred, vg.Point{X: data.Center().X, Y: data.Max.Y + up}, line)
	}
}

const titlePadding vg.Length = 6

// plot sets up one panel. Inner panels have no axis labels: all panels share
// them.
func (f *figure) plot(p *panel, leftmost, lowest bool) *plot.Plot {
	out := plot.New()
	out.BackgroundColor = nil
	if n := len(f.panelLines(p)); n > 0 { // room for drawTitle
		out.Title.Text = " " + strings.Repeat("\n ", n-1)
	}
	out.Title.TextStyle = panelStyle
	out.Title.TextStyle.XAlign, out.Title.TextStyle.YAlign = draw.XCenter, draw.YTop
	out.Title.Padding = titlePadding
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

// apply sets the appearance of a gonum axis.
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

func (c *curve) color() color.Color { return palette[c.colour%len(palette)] }

func (c *curve) line() draw.LineStyle {
	s := draw.LineStyle{Color: c.color(), Width: lineWidth}
	if c.style >= len(palette) {
		s.Dashes = []vg.Length{1.5, 2}
	}
	return s
}

// mark draws a marker on a white rim, which separates it from lines.
func (c *curve) mark(on *draw.Canvas, at vg.Point, radius vg.Length) {
	outline := shapes[c.style%len(shapes)]
	if c.published { // a ring does not hide what lies below
		radius += hollow
		for _, s := range []draw.LineStyle{{Color: color.White, Width: 2.6}, {Color: c.color(), Width: 1.2}} {
			on.SetLineStyle(s)
			on.Stroke(outline.path(at, radius))
		}
		return
	}
	on.SetColor(color.White)
	on.Fill(outline.path(at, radius+0.8))
	on.SetColor(c.color())
	on.Fill(outline.path(at, radius))
}

// Plot implements gonum's Plotter. Where curves overlap, the lower ones are
// drawn wider, so that all are visible.
func (c *curve) Plot(on draw.Canvas, p *plot.Plot) {
	if c.places > 0 {
		c.drawBars(&on, p)
		return
	}
	points := c.paper(on, p)
	covered := make([]int, len(points))
	between := make([]int, len(points)) // between a point and the next one
	for _, other := range c.above {
		if other.published {
			continue
		}
		over := other.paper(on, p)
		for i, pt := range points {
			at := nearest(over, pt)
			if at < 0 {
				continue
			}
			covered[i]++
			if i+1 < len(points) && at+1 < len(over) && nearest(over[at+1:at+2], points[i+1]) == 0 {
				between[i]++
			}
		}
	}
	c.drawSpans(&on, p)
	if !c.published && !c.axes[0].named {
		for i := 0; i+1 < len(points); i++ {
			if c.axes[0].broken(c.points[i].x) || c.axes[1].broken(c.points[i].y) || c.axes[1].broken(c.points[i+1].y) {
				continue // the axis is broken there
			}
			style := c.line()
			style.Width += rim * vg.Length(between[i])
			on.StrokeLines(style, points[i:i+2])
		}
	}
	for i, pt := range points {
		c.mark(&on, pt, markerRadius+rim*vg.Length(covered[i]))
	}
}

// spanWidth and spanCap are the sizes of the line of a range and of its ends.
const (
	spanWidth vg.Length = 0.9
	spanCap   vg.Length = 2.4
	spanShift vg.Length = 3.2 // between curves, whose ranges overlap
)

// drawSpans draws ranges as thin lines with ends.
func (c *curve) drawSpans(on *draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(on)
	style := draw.LineStyle{Color: c.color(), Width: spanWidth}
	for _, s := range c.spans {
		at, low, high := x(c.axes[0].at(s.x))+spanShift*vg.Length(c.style%len(palette)), y(c.axes[1].at(s.low)), y(c.axes[1].at(s.high))
		on.StrokeLine2(style, at, low, at, high)
		on.StrokeLine2(style, at-spanCap, low, at+spanCap, low)
		on.StrokeLine2(style, at-spanCap, high, at+spanCap, high)
	}
}

// paper returns the points in canvas coordinates.
func (c *curve) paper(on draw.Canvas, p *plot.Plot) []vg.Point {
	x, y := p.Transforms(&on)
	points := make([]vg.Point, len(c.points))
	for i, pt := range c.points {
		points[i] = vg.Point{X: x(c.axes[0].at(pt.x)), Y: y(c.axes[1].at(pt.y))}
	}
	return points
}

// broken reports whether a value lies beyond the break of the axis.
func (a *axis) broken(f float64) bool { return a.zero > 0 && f == 0 }

// nearest returns the index of a point that looks the same as at, or -1.
func nearest(points []vg.Point, at vg.Point) int {
	for i, p := range points {
		if math.Hypot(float64(p.X-at.X), float64(p.Y-at.Y)) < float64(lineWidth) {
			return i
		}
	}
	return -1
}

// thumbnail draws a sample of the line and its name to the right of at.
func (c *curve) thumbnail(on *draw.Canvas, at vg.Point) {
	middle := at.Y + labelStyle.Font.Size*0.5
	switch {
	case c.places > 0:
		on.FillPolygon(c.fill(), rectangle(at.X+8, middle-4, at.X+thumbWidth, middle+4))
	case !c.published:
		on.StrokeLine2(c.line(), at.X, middle, at.X+thumbWidth, middle)
		fallthrough
	default:
		c.mark(on, vg.Point{X: at.X + thumbWidth/2, Y: middle}, markerRadius)
	}
	on.FillText(labelStyle, vg.Point{X: at.X + thumbWidth + 5, Y: at.Y + labelStyle.Font.Size*0.18}, c.called())
}
