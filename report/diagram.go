package report

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Diagram is a drawing of boxes and wires, such as a network. Places are in
// points, x to the right and y up.
type Diagram struct {
	Title   string
	Caption []string // below the picture, one paragraph each
	Boxes   []Box    // background boxes first
	Wires   []Wire   // below the boxes' labels and above the boxes
	Kinds   []string // names of the wires without a load, by their Kind, for the legend
	Load    string   // legend for the colours of loads; "": no wire has a load
	Full    float64  // load of the darkest colour, above 0 to 1; 0: 1
	Origin  Origin   // of the network, for the seal; nil: none
	Cut     string   // as in Table
}

// Box is a rectangle.
type Box struct {
	X, Y, Width, Height float64 // of its lower left corner
	Label               string
	Small               bool // small label in the middle; otherwise at the upper edge
	Accent              bool // highlighted
}

// Wire is a line between two places.
type Wire struct {
	Path [][2]float64
	// Load is from 0 to 1. Below 0 the wire has no load, and the colour of
	// its kind.
	Load float64
	Kind int
}

// DrawFile draws d into a file, whose name ends in .svg or .png.
func (d *Diagram) DrawFile(name string) error {
	return drawFile(name, d.picture, d.Origin, d.Cut)
}

// drawFile writes what picture makes for the end of the file's name.
func drawFile(name string, picture func(ext string) ([]byte, error), origin Origin, cut string) error {
	if err := CheckImage(name); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	drawn, err := picture(filepath.Ext(name))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return writePicture(name, drawn, origin, cut)
}

// Sizes of a diagram, in points.
const (
	wireWidth   vg.Length = 1.5
	scaleWidth  vg.Length = 200
	scaleHeight vg.Length = 9
	leastWidth  vg.Length = 420 // room for title and caption
	mostWidth             = 14000
	diagramDPI            = 150
	mostPixels            = 60e6
)

// loadColours are the colours of the loads 0, 1/4, 1/2, 3/4 and 1. They go from
// light to dark, so that they can be distinguished without colour vision.
var loadColours = []color.RGBA{
	{0xD8, 0xDE, 0xE6, 0xFF}, {0xF6, 0xC9, 0x6B, 0xFF}, {0xEE, 0x8A, 0x2E, 0xFF}, {0xC8, 0x3B, 0x1E, 0xFF}, {0x5E, 0x06, 0x1C, 0xFF},
}

var (
	boxFill    = color.Gray{0xF7}
	accentFill = color.RGBA{0xFB, 0xDD, 0xA8, 0xFF}
	boxLine    = color.Gray{0xA0}
)

// loadColour returns the colour of a load.
func loadColour(load float64) color.RGBA {
	at := max(0, min(1, load)) * float64(len(loadColours)-1)
	i := min(int(at), len(loadColours)-2)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + (at-float64(i))*(float64(b)-float64(a)))) }
	a, b := loadColours[i], loadColours[i+1]
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 0xFF}
}

func (d *Diagram) full() float64 {
	if d.Full <= 0 {
		return 1
	}
	return d.Full
}

// bounds returns the bounds of all boxes and wires.
func (d *Diagram) bounds() (low, high vg.Point) {
	low, high = vg.Point{X: vg.Inch * 1e6, Y: vg.Inch * 1e6}, vg.Point{X: -vg.Inch * 1e6, Y: -vg.Inch * 1e6}
	take := func(x, y float64) {
		low = vg.Point{X: min(low.X, vg.Length(x)), Y: min(low.Y, vg.Length(y))}
		high = vg.Point{X: max(high.X, vg.Length(x)), Y: max(high.Y, vg.Length(y))}
	}
	for _, b := range d.Boxes {
		take(b.X, b.Y)
		take(b.X+b.Width, b.Y+b.Height)
	}
	for _, w := range d.Wires {
		for _, p := range w.Path {
			take(p[0], p[1])
		}
	}
	return low, high
}

// picture draws the diagram in the format of the extension.
func (d *Diagram) picture(extension string) ([]byte, error) {
	low, high := d.bounds()
	inner := max(high.X-low.X, leastWidth)
	var caption []string
	for _, text := range d.Caption {
		caption = append(caption, broken(captionStyle, text, inner)...)
	}
	title := broken(titleStyle, d.Title, inner)
	legend := lineHeight(labelStyle) + edge/2
	head := lineHeight(titleStyle)*vg.Length(len(title)) + legend
	width := inner + 2*edge
	height := high.Y - low.Y + head + lineHeight(captionStyle)*vg.Length(len(caption)) + 3*edge
	if width > mostWidth || height > mostWidth {
		return nil, fmt.Errorf("the picture would be %.0f x %.0f points, more than %d either way", width, height, mostWidth)
	}
	if pixels := float64(width) * float64(height) * (diagramDPI / 72) * (diagramDPI / 72); extension == ".png" && pixels > mostPixels {
		return nil, fmt.Errorf("the picture would have %.0f million pixels, more than %.0f million: want a name that ends in .svg", pixels/1e6, mostPixels/1e6)
	}
	return paint(extension, width, height, diagramDPI, func(on vg.CanvasSizer) {
		c := draw.New(on)
		c.FillPolygon(color.White, rectangle(c.Min.X, c.Min.Y, c.Max.X, c.Max.Y))
		y := c.Max.Y - edge
		for _, line := range title {
			y -= lineHeight(titleStyle)
			c.FillText(titleStyle, vg.Point{X: edge, Y: y + 3}, line)
		}
		d.legend(&c, vg.Point{X: edge, Y: y - legend + edge/2 + 2})
		d.body(&c, vg.Point{X: edge - low.X + (inner-(high.X-low.X))/2, Y: height - edge - head - edge/2 - high.Y})
		y = edge + lineHeight(captionStyle)*vg.Length(len(caption))
		for _, line := range caption {
			y -= lineHeight(captionStyle)
			c.FillText(captionStyle, vg.Point{X: edge, Y: y + 3}, line)
		}
	})
}

// legend explains the colours of wires. It begins at a place and extends to the
// right.
func (d *Diagram) legend(c *draw.Canvas, at vg.Point) {
	if d.Load != "" {
		const steps = 50
		for i := range steps {
			left, right := at.X+scaleWidth*vg.Length(i)/steps, at.X+scaleWidth*vg.Length(i+1)/steps
			c.FillPolygon(loadColour((float64(i)+0.5)/steps), rectangle(left, at.Y, right, at.Y+scaleHeight))
		}
		c.FillText(labelStyle, vg.Point{X: at.X + scaleWidth + 6, Y: at.Y}, fmt.Sprintf("0 to %.3g%%: %s", 100*d.full(), d.Load))
		return
	}
	for i, name := range d.Kinds {
		c.StrokeLine2(draw.LineStyle{Color: palette[i%len(palette)], Width: 2 * wireWidth}, at.X, at.Y+scaleHeight/2, at.X+thumbWidth, at.Y+scaleHeight/2)
		c.FillText(labelStyle, vg.Point{X: at.X + thumbWidth + 5, Y: at.Y}, name)
		at.X += thumbWidth + 5 + labelStyle.Width(name) + 14
	}
}

// body draws boxes, then wires, then labels.
func (d *Diagram) body(c *draw.Canvas, origin vg.Point) {
	for _, b := range d.Boxes {
		x, y := origin.X+vg.Length(b.X), origin.Y+vg.Length(b.Y)
		corners := rectangle(x, y, x+vg.Length(b.Width), y+vg.Length(b.Height))
		fill := color.Color(boxFill)
		switch {
		case b.Accent:
			fill = accentFill
		case b.Small:
			fill = color.White
		}
		c.FillPolygon(fill, corners)
		c.StrokeLines(draw.LineStyle{Color: boxLine, Width: 0.6}, append(corners, corners[0]))
	}
	for _, w := range d.Wires {
		s := draw.LineStyle{Color: palette[w.Kind%len(palette)], Width: wireWidth}
		if w.Load >= 0 {
			s.Color = loadColour(w.Load / d.full())
			s.Width = wireWidth * vg.Length(0.8+w.Load/d.full())
		}
		points := make([]vg.Point, len(w.Path))
		for i, p := range w.Path {
			points[i] = vg.Point{X: origin.X + vg.Length(p[0]), Y: origin.Y + vg.Length(p[1])}
		}
		c.StrokeLines(s, points)
	}
	for _, b := range d.Boxes {
		x, y := origin.X+vg.Length(b.X), origin.Y+vg.Length(b.Y)
		s, at := labelStyle, vg.Point{X: x + 4, Y: y + vg.Length(b.Height) - labelStyle.Font.Size - 2}
		if b.Small {
			s = tickStyle
			s.XAlign, s.YAlign = draw.XCenter, draw.YCenter
			at = vg.Point{X: x + vg.Length(b.Width)/2, Y: y + vg.Length(b.Height)/2}
		}
		c.FillText(s, at, b.Label)
	}
}
