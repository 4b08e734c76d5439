package datatype

import "slices"

// Order is the order of an array's dimensions in memory.
type Order uint8

// Orders.
const (
	OrderC       Order = iota // the last index is the fastest
	OrderFortran              // the first index is the fastest
)

// arrayed checks that an argument has n values, one for each of dims
// dimensions.
func arrayed(c Combiner, what string, dims, n int) error {
	if n != dims {
		return invalid(c, "%d %s for %d dimensions", n, what, dims)
	}
	return nil
}

// fastestFirst returns the indices of dimensions, the one with adjacent
// elements first.
func fastestFirst(dims int, o Order) []int {
	all := make([]int, dims)
	for i := range all {
		all[i] = i
		if o == OrderC {
			all[i] = dims - 1 - i
		}
	}
	return all
}

// Subarray is a part of an array of elements. sizes are the sizes of the array,
// subsizes the sizes of the part, and starts the place where it starts in each
// dimension. Its extent is the extent of the whole array (MPI-3.1 §4.1.3).
func Subarray(sizes, subsizes, starts []int, o Order, t *Type) (*Type, error) {
	const c = CombinerSubarray
	dims := len(sizes)
	if err := first(present(c, t), arrayed(c, "sizes of the part", dims, len(subsizes)), arrayed(c, "starts", dims, len(starts)), ordered(c, o)); err != nil {
		return nil, err
	}
	if dims == 0 {
		return nil, invalid(c, "no dimension")
	}
	for i := range sizes {
		if sizes[i] < 1 || subsizes[i] < 1 || subsizes[i] > sizes[i] || starts[i] < 0 || starts[i] > sizes[i]-subsizes[i] {
			return nil, invalid(c, "dimension %d: %d elements from %d on of %d, expected a part of them", i, subsizes[i], starts[i], sizes[i])
		}
	}
	integers := append([]int{dims}, slices.Concat(sizes, subsizes, starts, []int{int(o)})...)
	args := Contents{Integers: integers, Types: []*Type{t}}
	var a arithmetic
	part, at, stride := t, int64(0), t.bounds.length()
	for _, d := range fastestFirst(dims, o) {
		var err error
		if part, err = Hvector(subsizes[d], 1, stride, part); err != nil {
			return nil, invalid(c, "size or bounds are beyond %d bytes", int64(most))
		}
		at = a.sum(at, a.mul(int64(starts[d]), stride))
		stride = a.mul(stride, int64(sizes[d]))
	}
	return placed(c, args, &a, part, at, stride)
}

// placed moves a part of an array to its place and sets the array's bounds.
func placed(c Combiner, args Contents, a *arithmetic, of *Type, at, extent int64) (*Type, error) {
	if !a.over {
		if moved, err := Hindexed([]int{1}, []int64{at}, of); err == nil {
			return resized(*moved, c, args, 0, extent)
		}
	}
	return nil, invalid(c, "size or bounds are beyond %d bytes", int64(most))
}

func ordered(c Combiner, o Order) error {
	if o > OrderFortran {
		return invalid(c, "order %d, expected C or Fortran", o)
	}
	return nil
}

// Distribution is a way to distribute a dimension of an array over processes.
type Distribution uint8

// Distributions (MPI-3.1 §4.1.4).
const (
	DistributeNone   Distribution = iota // one process has all elements
	DistributeBlock                      // each process has one block
	DistributeCyclic                     // blocks go round
)

// DefaultDistribution is the argument that lets MPI choose the block: blocks as
// equal as possible for DistributeBlock, or one element for DistributeCyclic.
const DefaultDistribution = -1

// Dimension is a dimension of a distributed array.
type Dimension struct {
	Elements     int
	Distribution Distribution
	Argument     int // elements of a block, or DefaultDistribution; DistributeNone ignores it
	Processes    int
}

// Darray is the part of a distributed array that belongs to process rank of
// size. The processes form a grid in C's order. Its extent is the extent of the
// whole array (MPI-3.1 §4.1.4).
func Darray(size, rank int, dims []Dimension, o Order, t *Type) (*Type, error) {
	const c = CombinerDarray
	if err := first(present(c, t), ordered(c, o), grid(c, size, rank, dims)); err != nil {
		return nil, err
	}
	coordinates := make([]int, len(dims))
	for i, left := len(dims)-1, rank; i >= 0; i-- {
		coordinates[i], left = left%dims[i].Processes, left/dims[i].Processes
	}
	var a arithmetic
	part, at, stride := t, int64(0), t.bounds.length()
	for _, i := range fastestFirst(len(dims), o) {
		d := dims[i]
		first, dealt, err := d.deal(coordinates[i], stride, part)
		if err != nil {
			return nil, invalid(c, "size or bounds are beyond %d bytes", int64(most))
		}
		part = dealt
		at = a.sum(at, a.mul(int64(first), stride))
		stride = a.mul(stride, int64(d.Elements))
	}
	return placed(c, Contents{Integers: darrayIntegers(size, rank, dims, o), Types: []*Type{t}}, &a, part, at, stride)
}

// darrayIntegers lists the arguments in MPI's order: each argument for all
// dimensions.
func darrayIntegers(size, rank int, dims []Dimension, o Order) []int {
	all := []int{size, rank, len(dims)}
	for _, of := range []func(d Dimension) int{
		func(d Dimension) int { return d.Elements },
		func(d Dimension) int { return int(d.Distribution) },
		func(d Dimension) int { return d.Argument },
		func(d Dimension) int { return d.Processes },
	} {
		for _, d := range dims {
			all = append(all, of(d))
		}
	}
	return append(all, int(o))
}

func grid(c Combiner, size, rank int, dims []Dimension) error {
	if len(dims) == 0 {
		return invalid(c, "no dimension")
	}
	left := size
	for i, d := range dims {
		switch {
		case d.Elements < 1 || d.Processes < 1:
			return invalid(c, "dimension %d: %d elements on %d processes, expected at least one of each", i, d.Elements, d.Processes)
		case d.Distribution > DistributeCyclic:
			return invalid(c, "dimension %d: distribution %d, expected none, block or cyclic", i, d.Distribution)
		case d.Distribution == DistributeNone && d.Processes != 1:
			return invalid(c, "dimension %d: %d processes for one that is not distributed, expected 1", i, d.Processes)
		case d.Distribution != DistributeNone && d.Argument != DefaultDistribution && d.Argument < 1:
			return invalid(c, "dimension %d: blocks of %d elements, expected at least 1", i, d.Argument)
		case d.Distribution == DistributeBlock && d.Argument != DefaultDistribution && d.Argument < (d.Elements-1)/d.Processes+1:
			return invalid(c, "dimension %d: blocks of %d elements on %d processes do not hold %d", i, d.Argument, d.Processes, d.Elements)
		case size < 1 || left%d.Processes != 0:
			return invalid(c, "the grid of processes is not of %d", size)
		}
		left /= d.Processes
	}
	if left != 1 || rank < 0 || rank >= size {
		return invalid(c, "rank %d of %d in a grid of %d, expected one of them", rank, size, size/max(left, 1))
	}
	return nil
}

// deal returns the part of a dimension that belongs to a process, and the index
// of its first element. Elements are stride bytes apart.
func (d Dimension) deal(process int, stride int64, of *Type) (first int, dealt *Type, err error) {
	length := d.Argument
	switch {
	case d.Distribution == DistributeNone:
		length = d.Elements
	case length != DefaultDistribution:
	case d.Distribution == DistributeBlock:
		length = (d.Elements-1)/d.Processes + 1
	default:
		length = 1
	}
	if length >= d.Elements { // one block; avoids products that overflow
		if process > 0 {
			dealt, err = Contiguous(0, of)
			return 0, dealt, err
		}
		dealt, err = Hvector(d.Elements, 1, stride, of)
		return 0, dealt, err
	}
	var a arithmetic
	// elements from one block of the process to its next block
	turn := a.mul(int64(length), int64(d.Processes))
	begin := a.mul(int64(length), int64(process))
	if a.over || begin >= int64(d.Elements) {
		dealt, err = Contiguous(0, of)
		return 0, dealt, err
	}
	first = int(begin)
	whole, rest := 0, d.Elements-first
	if int64(rest) >= turn {
		whole = int(int64(rest) / turn)
		rest -= int(int64(whole) * turn)
	}
	if rest >= length {
		whole, rest = whole+1, 0
	}
	one, err := Hvector(length, 1, stride, of)
	if err != nil {
		return 0, nil, err
	}
	last, err := Hvector(rest, 1, stride, of)
	if err != nil {
		return 0, nil, err
	}
	all, err := Hvector(whole, 1, a.mul(turn, stride), one)
	if err != nil || a.over {
		return 0, nil, invalid(CombinerDarray, "beyond")
	}
	dealt, err = Struct([]int{1, 1}, []int64{0, a.mul(a.mul(turn, int64(whole)), stride)}, []*Type{all, last})
	return first, dealt, err
}
