package datatype

import (
	"fmt"
	"slices"
)

// mostRuns is the most runs that Overlaps compares one by one.
const mostRuns = 1 << 24

// Overlaps reports whether count elements share a byte of memory: MPI forbids
// to receive into such elements (MPI-3.1 §4.1.11). Parts whose spans do not
// touch are compared as spans. Of other parts every run is compared, up to 2^24
// runs; with more it returns an error.
func (t *Type) Overlaps(count int) (bool, error) {
	p, err := t.Layout(count)
	if err != nil || p.Root == nil {
		return false, err
	}
	return p.Root.overlaps()
}

func (n *Node) overlaps() (bool, error) {
	switch n.Kind {
	case Leaf:
		return false, nil
	case Loop:
		if within, err := n.Child.overlaps(); within || err != nil {
			return within, err
		}
		if max(n.Stride, -n.Stride) >= n.Child.data.length() {
			return false, nil
		}
	default:
		spans := make([]span, len(n.Places))
		for i, at := range n.Places {
			if n.Kind == List {
				if within, err := n.Parts[i].overlaps(); within || err != nil {
					return within, err
				}
				spans[i] = n.Parts[i].data.moved(at)
			} else {
				spans[i] = n.run(i)
			}
		}
		if !touch(spans) {
			return false, nil
		}
		if n.Kind == Blocks {
			return true, nil
		}
	}
	all := n.pieces()
	if all > mostRuns {
		return false, fmt.Errorf("datatype: whether a type overlaps itself would take %d comparisons, more than %d", all, mostRuns)
	}
	spans := make([]span, 0, all)
	n.runs(0, 0, n.Size, func(at, n int64) { spans = append(spans, span{at, at + n}) })
	return touch(spans), nil
}

func (n *Node) run(i int) span {
	begin := int64(0)
	if i > 0 {
		begin = n.Ends[i-1]
	}
	return span{n.Places[i], n.Places[i] + n.Ends[i] - begin}
}

// touch reports whether two of the spans share a byte. It sorts them.
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

// pieces returns the number of runs, or a number above mostRuns.
func (n *Node) pieces() int64 {
	switch n.Kind {
	case Leaf:
		return 1
	case Loop:
		if each := n.Child.pieces(); n.Count <= mostRuns && each <= mostRuns {
			return n.Count * each
		}
		return mostRuns + 1
	case Blocks:
		return int64(len(n.Places))
	}
	all := int64(0)
	for _, p := range n.Parts {
		all += p.pieces()
	}
	return all
}
