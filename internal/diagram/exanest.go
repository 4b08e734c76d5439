// Package diagram draws networks.
package diagram

import (
	"fmt"
	"math"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/report"
)

// Sizes, in points.
const (
	board  = 92.0 // width of a QFDB
	head   = 20.0 // its name and its router
	height = board + head
	mpsoc  = 30.0
	router = 12.0
	inset  = 6.0 // distance of MPSoCs from the edge of their board
	lane   = 40.0
	xPitch = board + lane
	yPitch = height + lane
	apart  = 2.2  // distance of a direction of a link from the middle of both
	ringX  = 5.0  // distance from the boards of the line that closes a ring
	ringY  = 17.0 // likewise
)

// most is the largest number of QFDBs in a picture: 4,096 MPSoCs.
const most = 1024

// drawing is a system in the making.
type drawing struct {
	fabric.QFDBs
	load func(link string) float64
	d    report.Diagram
}

// ExaNeSt draws the QFDBs of a network of kind exanest. Columns are X and rows
// are Y. Boards of further groups stand behind the boards of the first, up and
// to the right. Each direction of a link has its own line, on the right of its
// way. The line's colour shows its load or, without loads, its kind. load
// returns a link's load by name, from 0 to 1; it is nil if there are no loads.
func ExaNeSt(spec fabric.Spec, load func(link string) float64) (*report.Diagram, error) {
	q, ok := spec.QFDBs()
	if !ok {
		return nil, fmt.Errorf("fabric.kind: %q, expected %s: other networks have no picture", spec.Kind, fabric.ExaNeSt)
	}
	if q.Boards() > most {
		return nil, fmt.Errorf("%v has %d QFDBs, more than the %d that a picture can show", q, q.Boards(), most)
	}
	g := &drawing{QFDBs: q, load: load}
	g.d.Kinds = []string{"in a QFDB", "between QFDBs", "to the router and back"}
	for z := q.Z - 1; z >= 0; z-- {
		for y := range q.Y {
			for x := range q.X {
				g.board(fabric.Place{X: x, Y: y, Z: z})
			}
		}
	}
	for l := range spec.BoardLinks() {
		w := report.Wire{Load: -1, Path: g.path(&l)}
		switch {
		case load != nil:
			w.Load = load(l.Name())
		case l.Dim >= 0:
			w.Kind = 1
		case l.From.F == fabric.RouterF || l.To.F == fabric.RouterF:
			w.Kind = 2
		}
		g.d.Wires = append(g.d.Wires, w)
	}
	return &g.d, nil
}

// corner returns the lower left corner of a board.
func (g *drawing) corner(p fabric.Place) (x, y float64) {
	z := float64(p.Z)
	return float64(p.X*g.Z)*xPitch + z*xPitch, float64((g.Y-1-p.Y)*g.Z)*yPitch + z*yPitch
}

// middle returns the middle of an MPSoC, or of the router if F is 4.
func (g *drawing) middle(p fabric.Place) (x, y float64) {
	x, y = g.corner(p)
	left, right, low, high := x+inset+mpsoc/2, x+board-inset-mpsoc/2, y+inset+mpsoc/2, y+board-inset-mpsoc/2
	switch p.F {
	case 0: // the network MPSoC stands below the router, as in the report's figures at the upper right
		return right, high
	case 1:
		return left, high
	case 2:
		return left, low
	case 3:
		return right, low
	}
	return right, y + height - head/2
}

func (g *drawing) board(p fabric.Place) {
	x, y := g.corner(p)
	g.d.Boxes = append(g.d.Boxes, report.Box{X: x, Y: y, Width: board, Height: height, Label: g.Board(p)})
	for f := range 4 {
		p.F = f
		x, y := g.middle(p)
		g.d.Boxes = append(g.d.Boxes, report.Box{X: x - mpsoc/2, Y: y - mpsoc/2, Width: mpsoc, Height: mpsoc, Label: fmt.Sprintf("F%d", f+1), Small: true, Accent: f == 0})
	}
	p.F = 4
	x, y = g.middle(p)
	g.d.Boxes = append(g.d.Boxes, report.Box{X: x - router/2, Y: y - router/2, Width: router, Height: router, Label: "R", Small: true, Accent: true})
}

// path returns the way of a link in the picture.
func (g *drawing) path(l *fabric.BoardLink) [][2]float64 {
	switch l.Dim {
	case 0:
		return g.row(l)
	case 1:
		return g.column(l)
	case 2:
		return g.depth(l)
	}
	fx, fy := g.middle(l.From)
	tx, ty := g.middle(l.To)
	dx, dy := sign(tx-fx), sign(ty-fy)
	from, to := mpsoc/2, mpsoc/2 // from the middle of an end to its edge
	if l.From.F == fabric.RouterF {
		from = router / 2
	}
	if l.To.F == fabric.RouterF {
		to = router / 2
	}
	return aside(1, [2]float64{fx + dx*from, fy + dy*from}, [2]float64{tx - dx*to, ty - dy*to})
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// aside returns a straight line, moved to the right of its way by n widths.
func aside(n float64, from, to [2]float64) [][2]float64 {
	dx, dy := sign(to[0]-from[0]), sign(to[1]-from[1])
	n *= apart
	if dx != 0 && dy != 0 {
		n /= math.Sqrt2
	}
	return [][2]float64{{from[0] + dy*n, from[1] - dx*n}, {to[0] + dy*n, to[1] - dx*n}}
}

// closes reports whether a link closes a ring, from one end of its row to the
// other, and how far out the line of its direction runs.
func closes(from, to, length int, l *fabric.BoardLink) (is bool, out float64) {
	if l.Up {
		out = 2 * apart
	}
	return length > 2 && l.Up != (to > from), out
}

// row draws a link in X: straight between neighbours, or below the boards from
// one end of the ring to the other.
func (g *drawing) row(l *fabric.BoardLink) [][2]float64 {
	fx, y := g.corner(l.From)
	tx, _ := g.corner(l.To)
	left, right := min(fx, tx), max(fx, tx)+board
	is, out := closes(l.From.X, l.To.X, g.X, l)
	if !is {
		at := y + 0.62*height
		if fx < tx {
			return aside(1, [2]float64{fx + board, at}, [2]float64{tx, at})
		}
		return aside(1, [2]float64{fx, at}, [2]float64{tx + board, at})
	}
	at := y + 0.5*height - out
	out += ringX
	return [][2]float64{{left, at}, {left - out, at}, {left - out, y - out}, {right + out, y - out}, {right + out, at}, {right, at}}
}

// column draws a link in Y: straight between neighbours, or beside the boards
// from one end of the ring to the other.
func (g *drawing) column(l *fabric.BoardLink) [][2]float64 {
	x, fy := g.corner(l.From)
	_, ty := g.corner(l.To)
	low, high := min(fy, ty), max(fy, ty)+height
	is, out := closes(l.From.Y, l.To.Y, g.Y, l)
	if !is {
		at := x + 0.3*board
		if fy < ty {
			return aside(1, [2]float64{at, fy + height}, [2]float64{at, ty})
		}
		return aside(1, [2]float64{at, fy}, [2]float64{at, ty + height})
	}
	at := x + 0.15*board - out
	out += ringY
	return [][2]float64{{at, low}, {at, low - out}, {x - out, low - out}, {x - out, high + out}, {at, high + out}, {at, high}}
}

// depth draws a link in Z: straight from a board's upper right corner to the
// board behind, or around the boards from one end of the ring to the other. The
// second of two links between the same boards runs outside the first.
func (g *drawing) depth(l *fabric.BoardLink) [][2]float64 {
	near, far := l.From, l.To
	if near.Z > far.Z {
		near, far = far, near
	}
	nx, ny := g.corner(near)
	fx, fy := g.corner(far)
	is, out := closes(l.From.Z, l.To.Z, g.Z, l)
	if is {
		at := [2]float64{nx + 0.8*board - out, fy + 0.2*height + out}
		return [][2]float64{{at[0], ny + height}, at, {fx, at[1]}}
	}
	n := 1.0
	if g.Z == 2 && !l.Up {
		n = 3
	}
	if l.From == near {
		return aside(n, [2]float64{nx + board, ny + height}, [2]float64{fx, fy})
	}
	return aside(n, [2]float64{fx, fy}, [2]float64{nx + board, ny + height})
}
