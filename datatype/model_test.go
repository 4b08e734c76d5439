package datatype_test

import (
	"slices"

	"github.com/spinsim/spinsim/datatype"
)

// entry is a basic element at a displacement, or a marker (MPI-3.1 §4.1.1 and §4.1.7).
type entry struct {
	at   int64
	size int64
}

// typemap is MPI's definition of a type, taken literally.
type typemap struct {
	entries []entry
	low     []int64 // lb_markers
	high    []int64 // ub_markers
}

func (m *typemap) size() (n int64) {
	for _, e := range m.entries {
		n += e.size
	}
	return n
}

func (m *typemap) data() (from, to int64) {
	for i, e := range m.entries {
		if i == 0 {
			from, to = e.at, e.at+e.size
		}
		from, to = min(from, e.at), max(to, e.at+e.size)
	}
	return from, to
}

// bounds computes equation 4.1 of MPI-3.1 with the markers of §4.1.7.
func (m *typemap) bounds() (lb, ub int64) {
	lb, ub = m.data()
	align := int64(1)
	for _, e := range m.entries {
		align = max(align, e.size)
	}
	for (ub-lb)%align != 0 {
		ub++
	}
	if len(m.low) > 0 {
		lb, ub = slices.Min(m.low), slices.Max(m.high)
	}
	return lb, ub
}

func (m *typemap) extent() int64 {
	lb, ub := m.bounds()
	return ub - lb
}

// put appends a copy of another map, moved by at.
func (m *typemap) put(at int64, other *typemap) {
	for _, e := range other.entries {
		m.entries = append(m.entries, entry{e.at + at, e.size})
	}
	for i := range other.low {
		m.low = append(m.low, other.low[i]+at)
		m.high = append(m.high, other.high[i]+at)
	}
}

// mapOf interprets a type by envelope and contents, without the package's own
// layout.
func mapOf(t *datatype.Type) *typemap {
	c, _, _, _ := t.Envelope()
	if c == datatype.Named {
		return &typemap{entries: []entry{{0, t.Size()}}}
	}
	args, err := t.Contents()
	if err != nil {
		panic(err)
	}
	m, old, n := &typemap{}, mapOf(args.Types[0:1:1][0]), args.Integers
	ex := old.extent()
	elements := func(at int64, count int) {
		for i := range count {
			m.put(at+int64(i)*ex, old)
		}
	}
	switch c {
	case datatype.CombinerDup:
		return old
	case datatype.CombinerContiguous:
		elements(0, n[0])
	case datatype.CombinerVector:
		for i := range n[0] {
			elements(int64(i)*int64(n[2])*ex, n[1])
		}
	case datatype.CombinerHvector:
		for i := range n[0] {
			elements(int64(i)*args.Addresses[0], n[1])
		}
	case datatype.CombinerIndexed:
		for i := range n[0] {
			elements(int64(n[1+n[0]+i])*ex, n[1+i])
		}
	case datatype.CombinerHindexed:
		for i := range n[0] {
			elements(args.Addresses[i], n[1+i])
		}
	case datatype.CombinerIndexedBlock:
		for i := range n[0] {
			elements(int64(n[2+i])*ex, n[1])
		}
	case datatype.CombinerHindexedBlock:
		for i := range n[0] {
			elements(args.Addresses[i], n[1])
		}
	case datatype.CombinerStruct:
		for i := range n[0] {
			old = mapOf(args.Types[i])
			ex = old.extent()
			elements(args.Addresses[i], n[1+i])
		}
	case datatype.CombinerResized:
		return &typemap{old.entries, []int64{args.Addresses[0]}, []int64{args.Addresses[0] + args.Addresses[1]}}
	case datatype.CombinerSubarray:
		return subarray(old, n)
	case datatype.CombinerDarray:
		return darray(old, n)
	}
	return m
}

// whole returns the map with an array's bounds.
func whole(m *typemap, elements int, ex int64) *typemap {
	return &typemap{m.entries, []int64{0}, []int64{int64(elements) * ex}}
}

// each calls f for all indices of an array, in the order of its elements.
func each(sizes []int, fortran bool, f func(index []int, place int)) {
	index, all := make([]int, len(sizes)), 1
	for _, n := range sizes {
		all *= n
	}
	for place := range all {
		left := place
		for i := range sizes {
			d := len(sizes) - 1 - i
			if fortran {
				d = i
			}
			index[d], left = left%sizes[d], left/sizes[d]
		}
		f(index, place)
	}
}

func product(n []int) int {
	all := 1
	for _, v := range n {
		all *= v
	}
	return all
}

func subarray(old *typemap, n []int) *typemap {
	dims := n[0]
	sizes, sub, starts := n[1:1+dims], n[1+dims:1+2*dims], n[1+2*dims:1+3*dims]
	m := &typemap{}
	each(sizes, n[1+3*dims] == 1, func(index []int, place int) {
		for d, i := range index {
			if i < starts[d] || i >= starts[d]+sub[d] {
				return
			}
		}
		m.put(int64(place)*old.extent(), &typemap{entries: old.entries})
	})
	return whole(m, product(sizes), old.extent())
}

func darray(old *typemap, n []int) *typemap {
	rank, dims := n[1], n[2]
	sizes, distributions, arguments, processes := n[3:3+dims], n[3+dims:3+2*dims], n[3+2*dims:3+3*dims], n[3+3*dims:3+4*dims]
	m := &typemap{}
	each(sizes, n[3+4*dims] == 1, func(index []int, place int) {
		owner := 0
		for d, i := range index {
			length := arguments[d]
			if distributions[d] == int(datatype.DistributeNone) {
				length = sizes[d]
			} else if length < 0 {
				length = 1
				if distributions[d] == int(datatype.DistributeBlock) {
					length = (sizes[d] + processes[d] - 1) / processes[d]
				}
			}
			owner = owner*processes[d] + i/length%processes[d]
		}
		if owner == rank {
			m.put(int64(place)*old.extent(), &typemap{entries: old.entries})
		}
	})
	return whole(m, product(sizes), old.extent())
}

// places returns the bytes of count elements in stream order.
func (m *typemap) places(count int) []int64 {
	all := make([]int64, 0, m.size()*int64(count))
	for i := range count {
		for _, e := range m.entries {
			for b := range e.size {
				all = append(all, int64(i)*m.extent()+e.at+b)
			}
		}
	}
	return all
}
