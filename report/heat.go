package report

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Heat is a matrix of colours: how much each line changes each column.
type Heat struct {
	Title   string
	Caption []string // below the picture, one paragraph each
	Columns []string // names above the matrix, written upwards
	Groups  []string // one for each column; a thin line stands between groups
	Lines   []HeatLine
	Aside   string // heading of the texts beside the lines
	Scale   string // legend for the colours
	Signs   string // legend for the signs
	Origin  Origin // for the seal; nil: none
	Cut     string // as in Table
}

// HeatLine is a line of the matrix.
type HeatLine struct {
	Name  string
	Aside string // beside the line, at its right end
	Faint bool   // the name is grey
	Rule  bool   // a line is drawn above it
	Cells []HeatCell
}

// HeatCell is a cell.
type HeatCell struct {
	// Factor chooses the colour: white at 1, darkest at half and at twice. NaN is
	// grey, 0 leaves the cell empty.
	Factor float64
	Sign   string // in the middle of the cell
}

// Sizes of a heat map, in points.
const (
	heatCell  vg.Length = 15
	heatSpace vg.Length = 5 // between matrix and names
	heatSteps           = 41
)

// scaleEnd stands behind the colours of the legend.
const scaleEnd = "2   "

// less and more are the darkest colours of factors below and above 1: blue and
// vermilion of the palette, which people with any kind of colour vision can
// distinguish.
var less, more, unsure = palette[0], palette[1], color.RGBA{0xC8, 0xC8, 0xC8, 0xFF}

// factorColour is the colour of a factor.
func factorColour(factor float64) color.RGBA {
	if math.IsNaN(factor) {
		return unsure
	}
	at := max(-1, min(1, math.Log2(factor)))
	dark := more
	if at < 0 {
		dark, at = less, -at
	}
	at = math.Sqrt(at) // so that small changes are seen, too
	mix := func(to uint8) uint8 { return uint8(math.Round(255 - at*(255-float64(to)))) }
	return color.RGBA{mix(dark.R), mix(dark.G), mix(dark.B), 0xFF}
}

// DrawFile draws h into a file, whose name ends in .svg or .png.
func (h *Heat) DrawFile(name string) error {
	return drawFile(name, h.picture, h.Origin, h.Cut)
}

// heatLayout has the sizes of the parts of a heat map.
type heatLayout struct {
	left, right, top     vg.Length // room for names and asides
	width, height        vg.Length
	title, caption, sign []string
}

// widest is the room that texts need.
func widest(style draw.TextStyle, texts ...string) (width vg.Length) {
	for _, text := range texts {
		width = max(width, style.Width(text)*wider)
	}
	return width
}

func (h *Heat) layout() heatLayout {
	var l heatLayout
	var names []string
	asides := []string{h.Aside}
	for _, line := range h.Lines {
		names, asides = append(names, line.Name), append(asides, line.Aside)
	}
	l.left, l.right, l.top = widest(tickStyle, names...)+heatSpace, widest(tickStyle, asides...)+heatSpace, widest(tickStyle, h.Columns...)+heatSpace
	inner := max(l.left+heatCell*vg.Length(len(h.Columns))+l.right, leastWidth, widest(labelStyle, "1/2 ")+scaleWidth+widest(labelStyle, scaleEnd+h.Scale))
	l.title, l.sign = broken(titleStyle, h.Title, inner), broken(labelStyle, h.Signs, inner)
	for _, text := range h.Caption {
		l.caption = append(l.caption, broken(captionStyle, text, inner)...)
	}
	l.width = inner + 2*edge
	l.height = 3*edge + l.headHeight() + l.top + heatCell*vg.Length(len(h.Lines)) + lineHeight(captionStyle)*vg.Length(len(l.caption))
	return l
}

// headHeight is the room for title and legends.
func (l *heatLayout) headHeight() vg.Length {
	return lineHeight(titleStyle)*vg.Length(len(l.title)) + lineHeight(labelStyle)*vg.Length(1+len(l.sign)) + edge
}

// picture draws the map in the format of the extension.
func (h *Heat) picture(extension string) ([]byte, error) {
	l := h.layout()
	if l.width > mostWidth || l.height > mostWidth {
		return nil, fmt.Errorf("the picture would be %.0f x %.0f points, more than %d either way", l.width, l.height, mostWidth)
	}
	if pixels := float64(l.width) * float64(l.height) * (diagramDPI / 72) * (diagramDPI / 72); extension == ".png" && pixels > mostPixels {
		return nil, fmt.Errorf("the picture would have %.0f million pixels, more than %.0f million: want a name that ends in .svg", pixels/1e6, mostPixels/1e6)
	}
	return paint(extension, l.width, l.height, diagramDPI, func(on vg.CanvasSizer) {
		c := draw.New(on)
		c.FillPolygon(color.White, rectangle(c.Min.X, c.Min.Y, c.Max.X, c.Max.Y))
		y := c.Max.Y - edge
		for _, line := range l.title {
			y -= lineHeight(titleStyle)
			c.FillText(titleStyle, vg.Point{X: edge, Y: y + 3}, line)
		}
		y -= lineHeight(labelStyle)
		h.legend(&c, vg.Point{X: edge, Y: y})
		for _, line := range l.sign {
			y -= lineHeight(labelStyle)
			c.FillText(labelStyle, vg.Point{X: edge, Y: y}, line)
		}
		h.matrix(&c, vg.Point{X: edge + l.left, Y: y - edge - l.top}, &l)
		y = edge + lineHeight(captionStyle)*vg.Length(len(l.caption))
		for _, line := range l.caption {
			y -= lineHeight(captionStyle)
			c.FillText(captionStyle, vg.Point{X: edge, Y: y + 3}, line)
		}
	})
}

// legend explains the colours.
func (h *Heat) legend(c *draw.Canvas, at vg.Point) {
	half := "1/2 "
	c.FillText(labelStyle, at, half)
	at.X += labelStyle.Width(half)
	for i := range heatSteps {
		left, right := at.X+scaleWidth*vg.Length(i)/heatSteps, at.X+scaleWidth*vg.Length(i+1)/heatSteps
		c.FillPolygon(factorColour(math.Exp2(2*(float64(i)+0.5)/heatSteps-1)), rectangle(left, at.Y, right, at.Y+scaleHeight))
	}
	c.FillText(labelStyle, vg.Point{X: at.X + scaleWidth + 4, Y: at.Y}, scaleEnd+h.Scale)
}

// matrix draws names, cells and asides. The upper left corner of the cells is at
// a place.
func (h *Heat) matrix(c *draw.Canvas, at vg.Point, l *heatLayout) {
	across := heatCell * vg.Length(len(h.Columns))
	down := heatCell * vg.Length(len(h.Lines))
	upward := tickStyle
	upward.Rotation, upward.YAlign = math.Pi/2, draw.YCenter
	for i, name := range h.Columns {
		x := at.X + heatCell*vg.Length(i)
		c.FillText(upward, vg.Point{X: x + heatCell/2, Y: at.Y + heatSpace}, name)
		if i > 0 && h.Groups[i] != h.Groups[i-1] {
			c.StrokeLine2(draw.LineStyle{Color: boxLine, Width: 0.8}, x, at.Y+heatSpace, x, at.Y-down)
		}
	}
	beside := tickStyle
	beside.YAlign = draw.YCenter
	c.FillText(beside, vg.Point{X: at.X + across + heatSpace, Y: at.Y + heatCell/2}, h.Aside)
	for i, line := range h.Lines {
		y := at.Y - heatCell*vg.Length(i)
		name := beside
		name.XAlign = draw.XRight
		if line.Faint {
			name.Color = boxLine
		}
		c.FillText(name, vg.Point{X: at.X - heatSpace, Y: y - heatCell/2}, line.Name)
		c.FillText(beside, vg.Point{X: at.X + across + heatSpace, Y: y - heatCell/2}, line.Aside)
		for k, cell := range line.Cells {
			h.cell(c, vg.Point{X: at.X + heatCell*vg.Length(k), Y: y}, cell)
		}
		if line.Rule {
			c.StrokeLine2(draw.LineStyle{Color: ink, Width: 1}, at.X-l.left, y, at.X+across+l.right, y)
		}
	}
}

// cell draws a cell whose upper left corner is at a place.
func (h *Heat) cell(c *draw.Canvas, at vg.Point, cell HeatCell) {
	corners := rectangle(at.X, at.Y-heatCell, at.X+heatCell, at.Y)
	if cell.Factor != 0 {
		c.FillPolygon(factorColour(cell.Factor), corners)
	}
	c.StrokeLines(draw.LineStyle{Color: lines, Width: 0.4}, append(corners, corners[0]))
	sign := labelStyle
	sign.XAlign, sign.YAlign = draw.XCenter, draw.YCenter
	if cell.Factor > 0 && math.Abs(math.Log2(cell.Factor)) > 0.4 {
		sign.Color = color.White
	}
	c.FillText(sign, vg.Point{X: at.X + heatCell/2, Y: at.Y - heatCell/2}, cell.Sign)
}
