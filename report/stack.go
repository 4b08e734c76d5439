package report

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/spinsim/spinsim/sim"
)

// bar is a part of a stack.
type bar struct{ x, from, to float64 }

// pile stacks the parts of a row. Parts of zero length are left out.
func (f *figure) pile(t *Table, row, x, y int, stack []int, facet string) (drawn bool, err error) {
	values := t.rows[row]
	px, err := f.x.value(values[x])
	if err != nil {
		return false, err
	}
	all, ok := amount(t.Columns[y], values[y])
	if values[x] == nil || !ok || all <= 0 {
		return false, nil
	}
	f.x.include(px)
	f.y.include(0)
	f.y.include(1)
	sum := 0.0
	for _, column := range stack {
		part, ok := amount(t.Columns[column], values[column])
		if !ok || part < 0 {
			return false, fmt.Errorf("%s: a part of a stack, expected a number of at least 0", t.Columns[column].Key())
		}
		if part == 0 {
			continue
		}
		c := f.panel(facet).curve(f.style(t.Columns[column].title()))
		c.bars = append(c.bars, bar{px, sum / all, (sum + part) / all})
		sum += part
	}
	if math.Abs(sum-all) > all*1e-9 {
		return false, fmt.Errorf("%s is %g, and the parts that are to be its stack are %g", t.Columns[y].Key(), all, sum)
	}
	return true, nil
}

// amount returns a value in a unit that all columns of a kind share.
func amount(c Column, v any) (float64, bool) {
	if t, is := v.(sim.Time); is {
		return t.Nanoseconds(), true
	}
	return float(c, v)
}

// share gives every curve of bars the maximum number of neighbouring stacks.
func (f *figure) share() {
	var xs []float64
	for _, p := range f.panels {
		for _, c := range p.curves {
			for _, b := range c.bars {
				if !slices.Contains(xs, b.x) {
					xs = append(xs, b.x)
				}
			}
		}
	}
	for _, c := range f.series {
		c.places = len(xs)
	}
	for _, p := range f.panels {
		for _, c := range p.curves {
			c.places = len(xs)
		}
	}
}

// widen makes room for bars at both ends of an axis.
func (a *axis) widen() {
	if a.log {
		a.low, a.high = a.low/math.Sqrt2, a.high*math.Sqrt2
		return
	}
	space := (a.high - a.low) / 20
	a.low, a.high = a.low-space, a.high+space
}

// fill returns the colour of bars, a lighter one after the end of the palette.
func (c *curve) fill() color.Color {
	full := palette[c.colour%len(palette)]
	if c.colour < len(palette) {
		return full
	}
	light := func(part uint8) uint8 { return 0xff - (0xff-part)/3 }
	return color.RGBA{light(full.R), light(full.G), light(full.B), 0xff}
}

// drawBars draws the bars of a stack, at a third of the available width.
func (c *curve) drawBars(on *draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(on)
	half := (on.Max.X - on.Min.X) / vg.Length(6*max(3, c.places))
	for _, b := range c.bars {
		at, low, high := x(c.axes[0].at(b.x)), y(b.from), y(b.to)
		on.FillPolygon(c.fill(), rectangle(at-half, low, at+half, high))
	}
}

func rectangle(left, low, right, high vg.Length) []vg.Point {
	return []vg.Point{{X: left, Y: low}, {X: right, Y: low}, {X: right, Y: high}, {X: left, Y: high}}
}
