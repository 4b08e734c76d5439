package datatype

import (
	"fmt"
	"slices"
)

// mostRuns is how many runs Overlaps looks at one by one.
const mostRuns = 1 << 24

// Overlaps tells whether count elements have a byte of memory more than once: MPI forbids to receive into them (MPI-3.1 §4.1.11). Parts whose
// spans are apart are compared as spans; of others every run is, up to 2^24 of them: an error above.
func (t *Type) Overlaps(count int) (bool, error) {
	p, err := t.elements(count)
	if err != nil || p.node == nil {
		return false, err
	}
	return p.node.overlaps()
}

func (n *node) overlaps() (bool, error) {
	switch n.kind {
	case leaf:
		return false, nil
	case loop:
		if within, err := n.child.overlaps(); within || err != nil {
			return within, err
		}
		if max(n.stride, -n.stride) >= n.child.data.length() {
			return false, nil
		}
	default:
		spans := make([]span, len(n.places))
		for i, at := range n.places {
			if n.kind == list {
				if within, err := n.parts[i].overlaps(); within || err != nil {
					return within, err
				}
				spans[i] = n.parts[i].data.moved(at)
			} else {
				spans[i] = n.run(i)
			}
		}
		if !touch(spans) {
			return false, nil
		}
		if n.kind == blocks {
			return true, nil
		}
	}
	all := n.pieces()
	if all > mostRuns {
		return false, fmt.Errorf("datatype: whether a type overlaps itself would take %d comparisons, more than %d", all, mostRuns)
	}
	spans := make([]span, 0, all)
	n.runs(0, 0, n.size, func(at, n int64) { spans = append(spans, span{at, at + n}) })
	return touch(spans), nil
}

// run is one of blocks.
func (n *node) run(i int) span {
	begin := int64(0)
	if i > 0 {
		begin = n.ends[i-1]
	}
	return span{n.places[i], n.places[i] + n.ends[i] - begin}
}

// touch tells whether two spans have a byte in common; it sorts them.
func touch(spans []span) bool {
	slices.SortFunc(spans, func(a, b span) int {
		switch {
		case a.from < b.from:
			return -1
		case a.from > b.from:
			return 1
		}
		return 0
	})
	for i := 1; i < len(spans); i++ {
		if spans[i].from < spans[i-1].to {
			return true
		}
	}
	return false
}

// pieces is the number of runs, or more than mostRuns.
func (n *node) pieces() int64 {
	switch n.kind {
	case leaf:
		return 1
	case loop:
		if each := n.child.pieces(); n.count <= mostRuns && each <= mostRuns {
			return n.count * each
		}
		return mostRuns + 1
	case blocks:
		return int64(len(n.places))
	}
	all := int64(0)
	for _, p := range n.parts {
		all += p.pieces()
	}
	return all
}
