//go:build !tinygo

package graph

import (
	"container/heap"
	"fmt"
)

// Solve returns the distance of each vertex from a root: in edges, by a queue,
// or, weighted, in weights, by Dijkstra's algorithm with a heap. A distance of
// 2^32 - 1 or more is an error.
func (g *Graph) Solve(root int, weighted bool) ([]uint32, error) {
	distance := make([]uint32, g.Vertices)
	for v := range distance {
		distance[v] = None
	}
	distance[root] = 0
	if weighted {
		return distance, g.dijkstra(root, distance)
	}
	queue := []uint32{uint32(root)}
	for ; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		for _, to := range g.Target[g.Start[v]:g.Start[v+1]] {
			if distance[to] == None {
				distance[to] = distance[v] + 1
				queue = append(queue, to)
			}
		}
	}
	return distance, nil
}

func (g *Graph) dijkstra(root int, distance []uint32) error {
	q := &frontier{{0, uint32(root)}}
	for q.Len() > 0 {
		at := heap.Pop(q).(reached)
		if at.distance >= None {
			return fmt.Errorf("vertex %d is %d from vertex %d, expected less than %d", at.vertex, at.distance, root, uint64(None))
		}
		if uint64(distance[at.vertex]) < at.distance {
			continue
		}
		distance[at.vertex] = uint32(at.distance)
		for i := g.Start[at.vertex]; i < g.Start[at.vertex+1]; i++ {
			to, d := g.Target[i], at.distance+uint64(g.Weight[i])
			if d < uint64(distance[to]) {
				distance[to] = uint32(d)
				heap.Push(q, reached{d, to})
			} else if distance[to] == None {
				heap.Push(q, reached{d, to})
			}
		}
	}
	return nil
}

// reached is a vertex and a distance at which it was reached.
type reached struct {
	distance uint64
	vertex   uint32
}

// frontier is a heap of reached vertices.
type frontier []reached

func (f frontier) Len() int           { return len(f) }
func (f frontier) Less(i, j int) bool { return f[i].distance < f[j].distance }
func (f frontier) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *frontier) Push(x any)        { *f = append(*f, x.(reached)) }
func (f *frontier) Pop() any {
	last := len(*f) - 1
	x := (*f)[last]
	*f = (*f)[:last]
	return x
}
