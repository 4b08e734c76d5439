package datatype

// assembly makes a type of blocks. All constructors use it (MPI-3.1 §4.1.2).
type assembly struct {
	arithmetic
	t      *Type
	filled bool // it has data
	parts  []Layout
}

func assemble(c Combiner, args Contents) *assembly {
	return &assembly{t: &Type{combiner: c, args: args, align: 1}}
}

// block is count elements of a type, one extent apart, at a displacement in
// bytes.
type block struct {
	at    int64
	count int
	of    *Type
}

// add adds times copies of a block, stride bytes apart.
func (a *assembly) add(b block, times int, stride int64) {
	if b.count == 0 || times == 0 {
		return
	}
	extent := b.of.bounds.length()
	inner, outer := a.mul(int64(b.count-1), extent), a.mul(int64(times-1), stride)
	// In each direction, the first or the last copy is the farthest.
	low := a.sum(b.at, a.sum(min(0, inner), min(0, outer)))
	high := a.sum(b.at, a.sum(max(0, inner), max(0, outer)))
	a.t.size = a.sum(a.t.size, a.mul(a.mul(int64(b.count), int64(times)), b.of.size))
	a.t.align = max(a.t.align, b.of.align)
	if b.of.marked {
		bounds := span{a.sum(b.of.bounds.from, low), a.sum(b.of.bounds.to, high)}
		if a.t.marked {
			bounds = bounds.covers(a.t.bounds)
		}
		a.t.bounds, a.t.marked = bounds, true
	}
	if b.of.size == 0 {
		return
	}
	data := span{a.sum(b.of.data.from, low), a.sum(b.of.data.to, high)}
	if a.filled {
		data = data.covers(a.t.data)
	}
	a.t.data, a.filled = data, true
	if !a.over {
		p := repeated(int64(times), stride, repeated(int64(b.count), extent, b.of.layout))
		a.parts = append(a.parts, Layout{p.At + b.at, p.Root})
	}
}

// done returns the type, or an error if its numbers do not fit.
func (a *assembly) done() (*Type, error) {
	t := a.t
	if !t.marked {
		t.bounds = t.data
		if over := t.data.length() % t.align; over != 0 {
			t.bounds.to = a.sum(t.bounds.to, t.align-over)
		}
	}
	if a.over {
		return nil, invalid(t.combiner, "size or bounds are beyond %d bytes", int64(most))
	}
	t.layout = listed(a.parts)
	return t, nil
}

// Dup returns a copy of a type.
func Dup(t *Type) (*Type, error) {
	if err := present(CombinerDup, t); err != nil {
		return nil, err
	}
	d := *t
	d.combiner, d.name, d.args = CombinerDup, "", Contents{Types: []*Type{t}}
	return &d, nil
}

// Contiguous is count elements, one extent apart.
func Contiguous(count int, t *Type) (*Type, error) {
	const c = CombinerContiguous
	if err := first(present(c, t), nonnegative(c, "count", count)); err != nil {
		return nil, err
	}
	a := assemble(c, Contents{Integers: []int{count}, Types: []*Type{t}})
	a.add(block{0, count, t}, 1, 0)
	return a.done()
}

// Vector is count blocks of length elements. Blocks start stride extents apart.
func Vector(count, length, stride int, t *Type) (*Type, error) {
	const c = CombinerVector
	if err := first(present(c, t), nonnegative(c, "count", count), nonnegative(c, "block length", length)); err != nil {
		return nil, err
	}
	a := assemble(c, Contents{Integers: []int{count, length, stride}, Types: []*Type{t}})
	a.add(block{0, length, t}, count, a.mul(int64(stride), t.bounds.length()))
	return a.done()
}

// Hvector is Vector with a stride in bytes.
func Hvector(count, length int, stride int64, t *Type) (*Type, error) {
	const c = CombinerHvector
	if err := first(present(c, t), nonnegative(c, "count", count), nonnegative(c, "block length", length)); err != nil {
		return nil, err
	}
	a := assemble(c, Contents{Integers: []int{count, length}, Addresses: []int64{stride}, Types: []*Type{t}})
	a.add(block{0, length, t}, count, a.in(stride))
	return a.done()
}

// Indexed is blocks with a number of elements (lengths) and a displacement in
// extents each.
func Indexed(lengths, displacements []int, t *Type) (*Type, error) {
	const c = CombinerIndexed
	if err := first(present(c, t), matches(c, len(lengths), len(displacements)), nonnegative(c, "length of block", lengths...)); err != nil {
		return nil, err
	}
	a := assemble(c, Contents{Integers: joined(lengths, displacements), Types: []*Type{t}})
	for i, n := range lengths {
		a.add(block{a.mul(int64(displacements[i]), t.bounds.length()), n, t}, 1, 0)
	}
	return a.done()
}

// Hindexed is Indexed with displacements in bytes.
func Hindexed(lengths []int, displacements []int64, t *Type) (*Type, error) {
	const c = CombinerHindexed
	if err := first(present(c, t), matches(c, len(lengths), len(displacements)), nonnegative(c, "length of block", lengths...)); err != nil {
		return nil, err
	}
	a := assemble(c, Contents{Integers: joined(lengths), Addresses: append([]int64(nil), displacements...), Types: []*Type{t}})
	for i, n := range lengths {
		a.add(block{a.in(displacements[i]), n, t}, 1, 0)
	}
	return a.done()
}

// IndexedBlock is blocks of length elements, displacements in extents.
func IndexedBlock(length int, displacements []int, t *Type) (*Type, error) {
	const c = CombinerIndexedBlock
	if err := first(present(c, t), nonnegative(c, "block length", length)); err != nil {
		return nil, err
	}
	a := assemble(c, Contents{Integers: append([]int{len(displacements), length}, displacements...), Types: []*Type{t}})
	for _, d := range displacements {
		a.add(block{a.mul(int64(d), t.bounds.length()), length, t}, 1, 0)
	}
	return a.done()
}

// HindexedBlock is IndexedBlock with displacements in bytes.
func HindexedBlock(length int, displacements []int64, t *Type) (*Type, error) {
	const c = CombinerHindexedBlock
	if err := first(present(c, t), nonnegative(c, "block length", length)); err != nil {
		return nil, err
	}
	a := assemble(c, Contents{Integers: []int{len(displacements), length}, Addresses: append([]int64(nil), displacements...), Types: []*Type{t}})
	for _, d := range displacements {
		a.add(block{a.in(d), length, t}, 1, 0)
	}
	return a.done()
}

// Struct is blocks with a type each. Displacements are in bytes.
func Struct(lengths []int, displacements []int64, types []*Type) (*Type, error) {
	const c = CombinerStruct
	err := first(matches(c, len(lengths), len(displacements)), matches(c, len(lengths), len(types)), present(c, types...),
		nonnegative(c, "length of block", lengths...))
	if err != nil {
		return nil, err
	}
	a := assemble(c, Contents{joined(lengths), append([]int64(nil), displacements...), append([]*Type(nil), types...)})
	for i, n := range lengths {
		a.add(block{a.in(displacements[i]), n, types[i]}, 1, 0)
	}
	return a.done()
}

// Resized is the type with another lower bound and another extent, which may be
// negative. The upper bound is lb + extent.
func Resized(t *Type, lb, extent int64) (*Type, error) {
	const c = CombinerResized
	if err := present(c, t); err != nil {
		return nil, err
	}
	return resized(*t, c, Contents{Addresses: []int64{lb, extent}, Types: []*Type{t}}, lb, extent)
}

func resized(t Type, c Combiner, args Contents, lb, extent int64) (*Type, error) {
	var a arithmetic
	t.combiner, t.name, t.args, t.marked = c, "", args, true
	if t.bounds = (span{a.in(lb), a.sum(lb, a.in(extent))}); a.over {
		return nil, invalid(c, "bounds are beyond %d bytes", int64(most))
	}
	return &t, nil
}

// joined returns the count of blocks and then the lists, as
// MPI_TYPE_GET_CONTENTS does.
func joined(lists ...[]int) []int {
	all := []int{len(lists[0])}
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}
