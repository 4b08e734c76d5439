package chakra

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// queue orders the nodes of a trace as they begin if messages take no time. It
// is a heap of nodes whose dependencies are done, the earliest first, and of
// those the one with the smallest id.
type queue struct {
	heap    []uint32
	ready   []int64  // when each node is ready, ns
	waiting []uint32 // on how many nodes each one waits
	first   []uint32 // where the list of the nodes behind each one begins
	behind  []uint32
}

// chain reports whether each node waits for the one before.
func (t *trace) chain() bool {
	for i := 1; i < len(t.nodes); i++ {
		if !slices.Contains(t.before(i), uint64(i-1)) {
			return false
		}
	}
	return true
}

// order calls begin for each node after those that it depends on, in the order
// in which they begin.
func (t *trace) order(q *queue, begin func(i int) error) error {
	q.fill(t)
	var cpu, gpu int64 // when they are free
	done := 0
	for len(q.heap) > 0 {
		i := int(q.pop())
		done++
		if err := begin(i); err != nil {
			return err
		}
		n, end := &t.nodes[i], q.ready[i]
		switch {
		case n.cpu && n.computes():
			end = later(max(end, cpu), n.ns())
			cpu = end
		case n.kind == comp:
			end = later(max(end, gpu), n.ns())
			gpu = end
		}
		for _, next := range q.behind[q.first[i]:q.first[i+1]] {
			q.ready[next] = max(q.ready[next], end)
			if q.waiting[next]--; q.waiting[next] == 0 {
				q.push(next)
			}
		}
	}
	if done < len(t.nodes) {
		return t.circle(q)
	}
	return nil
}

// later adds durations without running over.
func later(t, d int64) int64 { return min(t, math.MaxInt64/2) + min(d, math.MaxInt64/4) }

// computes reports whether the node keeps a processor busy.
func (n *node) computes() bool { return n.kind == comp || n.cpu && n.kind >= send }

// ns is how long the node keeps a processor busy.
func (n *node) ns() int64 { return max(1, int64(n.micros)*1000) }

// fill sorts the dependencies of a trace by the node that releases them.
func (q *queue) fill(t *trace) {
	n := len(t.nodes)
	q.ready, q.waiting = zeros(q.ready, n), zeros(q.waiting, n)
	q.first, q.behind = zeros(q.first, n+1), zeros(q.behind, len(t.deps))
	for _, d := range t.deps {
		q.first[d]++
	}
	sum := uint32(0)
	for i, c := range q.first {
		sum += c
		q.first[i] = sum
	}
	q.heap = q.heap[:0]
	for i := n - 1; i >= 0; i-- {
		for _, d := range t.before(i) {
			q.first[d]--
			q.behind[q.first[d]] = uint32(i)
			q.waiting[i]++
		}
	}
	for i := range n {
		if q.waiting[i] == 0 {
			q.push(uint32(i))
		}
	}
}

func zeros[T int64 | uint32](in []T, n int) []T {
	in = room(in[:0], n)[:n]
	clear(in)
	return in
}

func (q *queue) less(a, b uint32) bool {
	return q.ready[a] < q.ready[b] || q.ready[a] == q.ready[b] && a < b
}

func (q *queue) push(i uint32) {
	q.heap = append(q.heap, i)
	for at := len(q.heap) - 1; at > 0; {
		up := (at - 1) / 2
		if !q.less(i, q.heap[up]) {
			break
		}
		q.heap[at], q.heap[up], at = q.heap[up], i, up
	}
}

func (q *queue) pop() uint32 {
	top, last := q.heap[0], len(q.heap)-1
	i := q.heap[last]
	q.heap = q.heap[:last]
	for at := 0; at < last; {
		down := 2*at + 1
		if down >= last {
			q.heap[at] = i
			break
		}
		if down+1 < last && q.less(q.heap[down+1], q.heap[down]) {
			down++
		}
		if !q.less(q.heap[down], i) {
			q.heap[at] = i
			break
		}
		q.heap[at], at = q.heap[down], down
		q.heap[at] = i
	}
	return top
}

// maxShown bounds the nodes of a circle that an error lists.
const maxShown = 10

// circle returns the error that names nodes which wait for each other. Behind
// every node that never began is another one; following them leads into a
// circle.
func (t *trace) circle(q *queue) error {
	at := 0
	for q.waiting[at] == 0 {
		at++
	}
	seen := make(map[int]int)
	var path []int
	for {
		if from, again := seen[at]; again {
			path = path[from:]
			break
		}
		seen[at] = len(path)
		path = append(path, at)
		for _, d := range t.before(at) {
			if q.waiting[d] > 0 {
				at = int(d)
				break
			}
		}
	}
	list := make([]string, 0, maxShown+1)
	for _, i := range path[1:] {
		if len(list) == maxShown {
			list = append(list, "…")
			break
		}
		list = append(list, fmt.Sprint(t.nodes[i].id))
	}
	list = append(list, fmt.Sprint(t.nodes[path[0]].id))
	return t.at(&t.nodes[path[0]], "a circle of dependencies: it waits for %s", strings.Join(list, ", which waits for "))
}
