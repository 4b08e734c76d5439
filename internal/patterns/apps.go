package patterns

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// App is an application.
type App string

// The applications.
const (
	HPCG   App = "hpcg"
	LAMMPS App = "lammps" // rhodopsin
	MiniFE App = "minife"
)

// Apps lists the applications.
func Apps() []App { return []App{HPCG, LAMMPS, MiniFE} }

// Scaling is how the problem grows with the number of ranks.
type Scaling string

// The scalings.
const (
	Weak   Scaling = "weak"   // each rank's problem stays the same
	Strong Scaling = "strong" // the whole problem stays the same
)

// Scalings lists the scalings.
func Scalings() []Scaling { return []Scaling{Weak, Strong} }

// Problem is the computation of an application.
type Problem struct {
	App     App
	Scaling Scaling
	// Size is the size of a rank's problem or of the whole problem: for HPCG
	// points and for miniFE elements in each dimension; for LAMMPS how many
	// copies of the 32,000 atoms stand side by side. Zero means DefaultSize.
	Size [3]int
}

// DefaultSize returns TR-488's sizes. HPCG has 104^3 points a rank, or 256 x
// 256 x 128 in all. LAMMPS has 32,000 atoms a rank; for strong scaling TR-488
// gives no number, so this is LAMMPS' own benchmark of 32,000. MiniFE has 64^3
// elements a rank, which are 512^3 on 512 ranks, or 264^3 in all.
func (p Problem) DefaultSize() [3]int {
	weak := p.Scaling == Weak
	switch {
	case p.App == HPCG && weak:
		return [3]int{104, 104, 104}
	case p.App == HPCG:
		return [3]int{256, 256, 128}
	case p.App == MiniFE && weak:
		return [3]int{64, 64, 64}
	case p.App == MiniFE:
		return [3]int{264, 264, 264}
	}
	return [3]int{1, 1, 1}
}

// Plan returns the plan of one of ranks ranks. It fails if the problem cannot
// be divided among them.
func (p Problem) Plan(rank, ranks int) (*Plan, error) {
	if ranks < 1 || rank < 0 || rank >= ranks {
		return nil, fmt.Errorf("patterns: rank %d of %d", rank, ranks)
	}
	if p.Size == ([3]int{}) {
		p.Size = p.DefaultSize()
	}
	if min(p.Size[0], p.Size[1], p.Size[2]) < 1 || p.Scaling != Weak && p.Scaling != Strong {
		return nil, fmt.Errorf("patterns: %s: size %v, scaling %q, expected a size above 0 in each dimension, and %s or %s", p.App, p.Size, p.Scaling, Weak, Strong)
	}
	switch p.App {
	case HPCG:
		return p.hpcg(rank, ranks)
	case LAMMPS:
		return p.lammps(rank, ranks), nil
	case MiniFE:
		return p.minife(rank, ranks)
	}
	return nil, fmt.Errorf("patterns: no application %q, expected one of %v", p.App, strings.Trim(fmt.Sprint(Apps()), "[]"))
}

// Matrices have 27 points a row, each a value of 8 B and an index of 4 B;
// vectors have elements of 8 B.
const (
	points      = 27
	entryBytes  = 12
	vectorBytes = 8
)

// pass is the work of a product of a matrix with a vector, or of half a
// symmetric Gauss-Seidel step: it reads the matrix and one vector and writes
// another.
func pass(rows int64) Work {
	return Work{2 * points * rows, (points*entryBytes + 2*vectorBytes) * rows}
}

// dot and update are the work of a dot product and of w = a x + b y.
func dot(rows int64) Work    { return Work{2 * rows, 2 * vectorBytes * rows} }
func update(rows int64) Work { return Work{2 * rows, 3 * vectorBytes * rows} }

// halo is an exchange of the outermost points of a part with all neighbours, up
// to 26.
func halo(g Grid, at, n [3]int, w Work) Step {
	s := Step{Work: w}
	for i := range points {
		d := [3]int{i%3 - 1, i/3%3 - 1, i/9 - 1}
		peer, ok := g.neighbour(at, d)
		if d == [3]int{} || !ok {
			continue
		}
		bytes := vectorBytes
		for k := range d {
			if d[k] == 0 {
				bytes *= n[k]
			}
		}
		s.Sends = append(s.Sends, Message{peer, bytes})
	}
	s.Receives = s.Sends // parts that touch have faces of the same size
	return s
}

// local returns the grid and the part of a rank. With weak scaling all parts
// are alike, and the grid is as near to a cube as the ranks allow.
func (p Problem) local(rank, ranks int) (g Grid, at, n [3]int) {
	box := [3]float64{1, 1, 1}
	if p.Scaling == Strong {
		box = [3]float64{float64(p.Size[0]), float64(p.Size[1]), float64(p.Size[2])}
	}
	g = NewGrid(ranks, box)
	at, n = g.at(rank), p.Size
	if p.Scaling == Strong {
		for k := range n {
			n[k] = part(p.Size[k], g[k], at[k])
		}
	}
	return g, at, n
}

// levels is the number of levels of HPCG's multigrid cycle.
const levels = 4

func (p Problem) hpcg(rank, ranks int) (*Plan, error) {
	g, at, n := p.local(rank, ranks)
	for k := range n {
		if n[k]%(1<<(levels-1)) != 0 || p.Scaling == Strong && p.Size[k]%g[k] != 0 {
			return nil, fmt.Errorf("patterns: hpcg: %v points for %d ranks, %v: parts must be alike and multiples of %d in each dimension", p.Size, ranks, g, 1<<(levels-1))
		}
	}
	plan := &Plan{Grid: g}
	plan.cycle(at, n, 0)
	rows := int64(n[0]) * int64(n[1]) * int64(n[2])
	plan.Steps = append(
		plan.Steps,
		Step{Work: dot(rows), Reduce: 8}, // r z
		Step{Work: update(rows)},         // p
		halo(g, at, n, pass(rows)),       // A p
		Step{Work: dot(rows), Reduce: 8}, // p A p
		Step{Work: update(rows).plus(update(rows)).plus(dot(rows)), Reduce: 8}, // x, r, r r
	)
	return plan, nil
}

// cycle adds a level of the multigrid cycle and the levels below: a symmetric
// Gauss-Seidel step, the residual, the level below and a step again.
func (p *Plan) cycle(at, n [3]int, level int) {
	rows := int64(n[0]) * int64(n[1]) * int64(n[2])
	smooth := halo(p.Grid, at, n, pass(rows).plus(pass(rows)))
	p.Steps = append(p.Steps, smooth)
	if level == levels-1 {
		return
	}
	p.Steps = append(p.Steps, halo(p.Grid, at, n, pass(rows)))
	p.cycle(at, [3]int{n[0] / 2, n[1] / 2, n[2] / 2}, level+1)
	p.Steps = append(p.Steps, smooth)
}

func (p Problem) minife(rank, ranks int) (*Plan, error) {
	if p.Scaling == Weak { // elements of all ranks; there is one node more than elements at the end
		g := NewGrid(ranks, [3]float64{1, 1, 1})
		for k := range p.Size {
			p.Size[k] *= g[k]
		}
		p.Scaling = Strong
	}
	g, at, n := p.local(rank, ranks)
	for k := range n {
		if n[k] < 1 {
			return nil, fmt.Errorf("patterns: minife: %v elements for %d ranks, %v: expected one for each rank in each dimension", p.Size, ranks, g)
		}
		if at[k] == g[k]-1 {
			n[k]++
		}
	}
	rows := int64(n[0]) * int64(n[1]) * int64(n[2])
	return &Plan{Grid: g, Steps: []Step{
		{Work: dot(rows), Reduce: 8},
		{Work: update(rows)},
		halo(g, at, n, pass(rows)),
		{Work: dot(rows), Reduce: 8},
		{Work: update(rows).plus(update(rows))},
	}}, nil
}

// LAMMPS' rhodopsin benchmark (bench/log.6Oct16.rhodo.fixed.icc.1).
const (
	rhodoAtoms      = 32000
	rhodoCutoff     = 12.0   // Å, of ghosts: 10 Å and 2 Å of skin
	rhodoReach      = 10.0   // Å, within which pairs interact
	rhodoNeighbours = 375.88 // neighbours of an atom in a list, each pair once
	// share of the time for pairs; bonds, PPPM, lists and integration take the
	// rest, which counts as more of the same work
	rhodoPairShare = 0.7142
	atomBytes      = 24 // three coordinates
)

// Operations for a pair (pair_lj_charmm_coul_long): the distance for a pair in
// the list; the force for a pair within reach, half of it for the switching
// function and the table of Coulomb forces. Bytes are the neighbour's number,
// position and force.
const (
	distanceOperations = 9
	forceOperations    = 45
	pairBytes          = 4 + 2*atomBytes
)

var rhodoBox = [3]float64{55, 77, 72.7261} // Å

func (p Problem) lammps(rank, ranks int) *Plan {
	box := [3]float64{rhodoBox[0] * float64(p.Size[0]), rhodoBox[1] * float64(p.Size[1]), rhodoBox[2] * float64(p.Size[2])}
	g := NewGrid(ranks, box)
	if p.Scaling == Weak { // one more box for every rank, as in.rhodo.scaled replicates it
		g = NewGrid(ranks, [3]float64{1, 1, 1})
		for k := range box {
			box[k] *= float64(g[k])
		}
	}
	at := g.at(rank)
	length := [3]float64{box[0] / float64(g[0]), box[1] / float64(g[1]), box[2] / float64(g[2])}
	density := rhodoAtoms / (rhodoBox[0] * rhodoBox[1] * rhodoBox[2])
	atoms := density * length[0] * length[1] * length[2]

	forward := swaps(g, at, length, density)
	plan := &Plan{Grid: g, Steps: slices.Clone(forward)}
	const part = rhodoReach / rhodoCutoff
	const within = part * part * part
	pair := rhodoNeighbours * (distanceOperations + within*forceOperations)
	plan.Steps = append(plan.Steps, Step{Work: Work{int64(atoms * pair / rhodoPairShare), int64(atoms * rhodoNeighbours * pairBytes)}})
	for _, f := range slices.Backward(forward) { // forces go back the way that positions came
		plan.Steps = append(plan.Steps, Step{Receives: f.Sends, Sends: f.Receives})
	}
	// temperature; its tensor; the virial
	plan.Steps = append(plan.Steps, Step{Reduce: 8}, Step{Reduce: 48}, Step{Reduce: 48})
	return plan
}

// swaps returns the exchanges of ghosts. There is one to each side in each
// dimension, or several if the cutoff is longer than a part. Exchanges in later
// dimensions also carry the ghosts of earlier ones. A rank that is its own
// neighbour sends no message to itself.
func swaps(g Grid, at [3]int, length [3]float64, density float64) (steps []Step) {
	wide := length
	for k := range length {
		area := wide[(k+1)%3] * wide[(k+2)%3]
		for left := rhodoCutoff; left > 0; left -= length[k] {
			atoms := int(math.Round(density * area * min(left, length[k])))
			for _, side := range []int{-1, 1} {
				if g[k] > 1 {
					steps = append(steps, Step{
						Sends:    []Message{{g.beside(at, k, side), atoms * atomBytes}},
						Receives: []Message{{g.beside(at, k, -side), atoms * atomBytes}},
					})
				}
			}
		}
		wide[k] += 2 * rhodoCutoff
	}
	return steps
}
