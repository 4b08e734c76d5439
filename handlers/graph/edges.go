//go:build !tinygo

// On the host's side package graph has graphs for the library graph: it makes
// and reads them, solves them on one core, and looks whether a solution is one,
// as the Graph500 benchmark does ("Graph 500 Benchmark Specification",
// graph500.org).
package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/spinsim/spinsim/internal/memory"
)

// MaxVertices is the most that a graph has, MaxWeight the largest weight of an edge.
const (
	MaxVertices = 1 << 26
	MaxWeight   = 1 << 20
)

// None is the distance and the parent of a vertex that was not reached.
const None = 1<<32 - 1

// Graph is an undirected graph: each edge is there in both directions, as often
// as it was given. It is read-only.
type Graph struct {
	Vertices int
	Start    []uint64 // of each vertex's edges, and behind the last
	Target   []uint32
	Weight   []uint32 // from 1; breadth-first search counts all as 1
	Loops    []uint32 // vertices of edges that lead to themselves, which are no others' business
}

// Edge is one of a list from which a graph is made.
type Edge struct{ From, To, Weight uint32 }

// New makes a graph of edges between vertices below a number, of weights from 1.
func New(vertices int, list []Edge) *Graph {
	memory.Ask(16 * int64(vertices)) // two words of each: a file of ten bytes can name the last vertex
	g := &Graph{Vertices: vertices, Start: make([]uint64, vertices+1)}
	for _, e := range list {
		if e.From == e.To {
			g.Loops = append(g.Loops, e.From)
			continue
		}
		g.Start[e.From+1]++
		g.Start[e.To+1]++
	}
	for v := range vertices {
		g.Start[v+1] += g.Start[v]
	}
	n := g.Start[vertices]
	memory.Ask(8 * int64(n))
	g.Target, g.Weight = make([]uint32, n), make([]uint32, n)
	next := append([]uint64(nil), g.Start[:vertices]...)
	put := func(from, to, weight uint32) {
		g.Target[next[from]], g.Weight[next[from]] = to, weight
		next[from]++
	}
	for _, e := range list {
		if e.From != e.To {
			put(e.From, e.To, e.Weight)
			put(e.To, e.From, e.Weight)
		}
	}
	return g
}

// Edges is how many there are, each counted once.
func (g *Graph) Edges() int { return len(g.Target)/2 + len(g.Loops) }

// Degree is how many edges lead from a vertex to others.
func (g *Graph) Degree(v int) int { return int(g.Start[v+1] - g.Start[v]) }

// Traversed is how many edges have an end that was reached, each counted once:
// what Graph500 divides by the time.
func (g *Graph) Traversed(distance []uint32) (n int) {
	for v, d := range distance {
		if d != None {
			n += g.Degree(v)
		}
	}
	n /= 2
	for _, v := range g.Loops {
		if distance[v] != None {
			n++
		}
	}
	return n
}

// Probabilities of R-MAT's quadrants, and edges for each vertex: those of Graph500.
const (
	quadrantA = 0.57
	quadrantB = 0.19
	quadrantC = 0.19

	Factor = 16
)

// heaviest is the largest weight that RMAT draws, as GAP's does (Beamer,
// Asanović, Patterson, "The GAP Benchmark Suite", 2015).
const heaviest = 255

// RMAT makes Graph500's graph of 2^scale vertices and factor times as many
// edges (Chakrabarti, Zhan, Faloutsos, "R-MAT", SDM'04). Which vertex has which
// number is drawn, too. Graph500 draws weights evenly from [0, 1); these are
// whole, from 1 to 255, since handlers have whole distances.
func RMAT(scale, factor int, seed uint64) *Graph {
	rng := rand.New(rand.NewPCG(seed, uint64(scale)))
	vertices := 1 << scale
	name := rng.Perm(vertices)
	list := make([]Edge, factor*vertices)
	for i := range list {
		from, to := 0, 0
		for range scale {
			from, to = from<<1, to<<1
			switch x := rng.Float64(); {
			case x < quadrantA:
			case x < quadrantA+quadrantB:
				to++
			case x < quadrantA+quadrantB+quadrantC:
				from++
			default:
				from++
				to++
			}
		}
		list[i] = Edge{uint32(name[from]), uint32(name[to]), 1 + rng.Uint32N(heaviest)}
	}
	return New(vertices, list)
}

// Root returns the number-th root, from 0, that a seed draws for a search: a
// vertex with an edge to another one, if any has.
func (g *Graph) Root(number int, seed uint64) int {
	rng := rand.New(rand.NewPCG(seed, 1<<63|uint64(number)))
	v := rng.IntN(g.Vertices)
	for range g.Vertices {
		if g.Degree(v) > 0 {
			break
		}
		v = (v + 1) % g.Vertices
	}
	return v
}

// First returns the first vertex with an edge to another one, 0 if none has:
// lists of edges often begin at 1.
func (g *Graph) First() int {
	for v := range g.Vertices {
		if g.Degree(v) > 0 {
			return v
		}
	}
	return 0
}

// Heaviest returns the largest weight of an edge.
func (g *Graph) Heaviest() uint32 {
	if len(g.Weight) == 0 {
		return 0
	}
	return slices.Max(g.Weight)
}

// weight is that of edge i, if weights count.
func (g *Graph) weight(i uint64, weighted bool) uint64 {
	if weighted {
		return uint64(g.Weight[i])
	}
	return 1
}

// Validate looks whether distances and parents are a tree of shortest paths
// from a root, by the rules of Graph500: the tree has no cycles and begins at
// the root; a vertex and its parent are the ends of an edge of the graph, whose
// weight is the difference of their distances; no edge leads to a vertex that
// is farther than this edge allows; and the tree has all vertices that the root
// is connected with, and no others.
func (g *Graph) Validate(root int, distance, parent []uint32, weighted bool) error {
	if distance[root] != 0 || parent[root] != uint32(root) {
		return fmt.Errorf("the root, %d, has distance %d and parent %d", root, distance[root], parent[root])
	}
	if err := g.acyclic(root, parent); err != nil {
		return err
	}
	for v := range g.Vertices {
		if err := g.validate(v, distance, parent, weighted, v == root); err != nil {
			return err
		}
	}
	return nil
}

// validate looks at the edges of one vertex.
func (g *Graph) validate(v int, distance, parent []uint32, weighted, found bool) error {
	if (distance[v] == None) != (parent[v] == None) {
		return fmt.Errorf("vertex %d has distance %d and parent %d", v, distance[v], parent[v])
	}
	for i := g.Start[v]; i < g.Start[v+1]; i++ {
		to, w := g.Target[i], g.weight(i, weighted)
		if (distance[v] == None) != (distance[to] == None) {
			return fmt.Errorf("vertices %d and %d are neighbours, and their distances are %d and %d", v, to, distance[v], distance[to])
		}
		if distance[v] == None {
			continue
		}
		if uint64(distance[v]) > uint64(distance[to])+w {
			return fmt.Errorf("vertex %d has distance %d, and its neighbour %d by an edge of %d has %d", v, distance[v], to, w, distance[to])
		}
		found = found || parent[v] == to && uint64(distance[v]) == uint64(distance[to])+w
	}
	if distance[v] != None && !found {
		return fmt.Errorf("vertex %d at distance %d has parent %d, to which no edge of that length leads", v, distance[v], parent[v])
	}
	return nil
}

// acyclic looks whether all who have a parent come to the root by their parents.
func (g *Graph) acyclic(root int, parent []uint32) error {
	const under, done = 1, 2
	state := make([]uint8, g.Vertices)
	state[root] = done
	var path []uint32
	for v := range g.Vertices {
		if parent[v] == None {
			continue
		}
		path = path[:0]
		for at := uint32(v); state[at] != done; at = parent[at] {
			if state[at] == under {
				return fmt.Errorf("vertex %d is its own ancestor", at)
			}
			if parent[at] >= uint32(g.Vertices) {
				return fmt.Errorf("vertex %d has parent %d, expected a vertex below %d", at, parent[at], g.Vertices)
			}
			state[at] = under
			path = append(path, at)
		}
		for _, at := range path {
			state[at] = done
		}
	}
	return nil
}
