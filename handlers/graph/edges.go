//go:build !tinygo

// On the host's side package graph has graphs for the library graph. It makes
// and reads them, solves them on one core, and checks solutions, as the
// Graph500 benchmark does ("Graph 500 Benchmark Specification", graph500.org).
package graph

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/spinsim/spinsim/internal/memory"
)

// MaxVertices is the largest number of vertices, MaxWeight the largest weight
// of an edge.
const (
	MaxVertices = 1 << 26
	MaxWeight   = 1 << 20
)

// None is the distance and the parent of a vertex that was not reached.
const None = 1<<32 - 1

// Graph is an undirected graph. Each edge is stored in both directions, as
// often as it was given. It is read-only.
type Graph struct {
	Vertices int
	Start    []uint64 // where each vertex's edges begin, and the end of the last
	Target   []uint32
	Weight   []uint32 // from 1; breadth-first search counts all as 1
	Loops    []uint32 // vertices with an edge to themselves, one for each such edge
}

// Edge is an edge in a list from which a graph is made.
type Edge struct{ From, To, Weight uint32 }

// New makes a graph with this many vertices from edges of weight 1 or more.
func New(vertices int, list []Edge) *Graph {
	// two words for each: a file of ten bytes can name the last vertex
	memory.Ask(16 * int64(vertices))
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

// Edges returns the number of edges, each counted once.
func (g *Graph) Edges() int { return len(g.Target)/2 + len(g.Loops) }

// Degree returns how many edges lead from a vertex to others.
func (g *Graph) Degree(v int) int { return int(g.Start[v+1] - g.Start[v]) }

// Traversed returns how many edges have a reached end, each counted once.
// Graph500 divides this number by the time.
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

// Probabilities of R-MAT's quadrants, and edges for each vertex, as in
// Graph500.
const (
	quadrantA = 0.57
	quadrantB = 0.19
	quadrantC = 0.19

	Factor = 16
)

// heaviest is the largest weight that RMAT draws, as in GAP (Beamer, Asanović,
// Patterson, "The GAP Benchmark Suite", 2015).
const heaviest = 255

// RMAT makes Graph500's graph with 2^scale vertices and factor times as many
// edges (Chakrabarti, Zhan, Faloutsos, "R-MAT", SDM'04). The numbers of
// vertices are drawn at random, too. Graph500 draws weights evenly from [0, 1).
// Here they are whole, from 1 to 255, because handlers have whole distances.
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

// Root returns root number number, from 0, that a seed draws for a search: a
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

// First returns the first vertex with an edge to another one, or 0 if there is
// none. Lists of edges often begin at 1.
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

// weight returns the weight of edge i, or 1 if weights do not count.
func (g *Graph) weight(i uint64, weighted bool) uint64 {
	if weighted {
		return uint64(g.Weight[i])
	}
	return 1
}

// Validate checks that distances and parents are a tree of shortest paths from
// a root, by the rules of Graph500. The tree has no cycles and begins at the
// root. A vertex and its parent are the ends of an edge of the graph, and its
// weight is the difference of their distances. No vertex is farther than any of
// its edges allows. The tree has exactly the vertices that are connected with
// the root.
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

// validate checks the edges of one vertex.
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

// acyclic checks that every vertex with a parent reaches the root through its
// parents.
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
