package patterns

import "fmt"

// Grid is a decomposition into parts in three dimensions. The part of rank r is
// (r mod X, r / X mod Y, r / (X Y)).
type Grid [3]int

// near is the largest relative difference between areas that are equal except
// for rounding.
const near = 1e-9

// NewGrid decomposes a box among ranks with the smallest faces between their
// parts. This is LAMMPS' rule; for cubes HPCG and miniFE give the same. Of
// several such decompositions it takes the one with the smallest sum of the
// three numbers, then with most parts in x, then in y.
func NewGrid(ranks int, box [3]float64) Grid {
	best, least := Grid{ranks, 1, 1}, -1.0
	for x := ranks; x >= 1; x-- {
		if ranks%x != 0 {
			continue
		}
		for y := ranks / x; y >= 1; y-- {
			if ranks/x%y != 0 {
				continue
			}
			g := Grid{x, y, ranks / x / y}
			a, b, c := box[0]/float64(x), box[1]/float64(y), box[2]/float64(g[2])
			faces := a*b + b*c + a*c
			if equal := least >= 0 && faces < least*(1+near) && x+y+g[2] < best[0]+best[1]+best[2]; least < 0 || faces < least*(1-near) || equal {
				best, least = g, faces
			}
		}
	}
	return best
}

// Ranks returns the number of parts.
func (g Grid) Ranks() int { return g[0] * g[1] * g[2] }

// String returns the grid as in 4x2x2.
func (g Grid) String() string { return fmt.Sprintf("%dx%dx%d", g[0], g[1], g[2]) }

// at returns the place of a rank.
func (g Grid) at(rank int) [3]int {
	return [3]int{rank % g[0], rank / g[0] % g[1], rank / (g[0] * g[1])}
}

// rank returns the rank at a place.
func (g Grid) rank(at [3]int) int { return (at[2]*g[1]+at[1])*g[0] + at[0] }

// beside returns the rank k places further on in a dimension of a periodic box.
func (g Grid) beside(at [3]int, k, by int) int {
	at[k] = ((at[k]+by)%g[k] + g[k]) % g[k]
	return g.rank(at)
}

// neighbour returns the rank in a direction, whose parts are -1, 0 or 1, of a
// box with ends. It returns false if there is none.
func (g Grid) neighbour(at, direction [3]int) (rank int, is bool) {
	for k := range at {
		at[k] += direction[k]
		if at[k] < 0 || at[k] >= g[k] {
			return 0, false
		}
	}
	return g.rank(at), true
}

// part returns how many of n cells belong to part i of p. If the parts cannot
// be equal, the first ones have one more.
// more if they cannot have the same.
func part(n, p, i int) int {
	size := n / p
	if i < n%p {
		size++
	}
	return size
}
