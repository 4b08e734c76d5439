package datatype

import (
	"cmp"
	"fmt"
)

// Type is a datatype. The zero value is no type.
type Type struct {
	combiner Combiner
	name     string // of a named type
	args     Contents

	size   int64
	bounds span // lower and upper bound
	data   span // from the first byte to just behind the last
	// the bounds were set by Resized or an array, here or in a part of the type
	// (MPI-3.1 §4.1.7: lb_marker, ub_marker)
	marked bool
	align  int64 // largest alignment of an element, in bytes; 0: no type
	layout Layout
}

// span is a range of bytes. Without data it is empty, at 0.
type span struct{ from, to int64 }

func (s span) length() int64 { return s.to - s.from }

func (s span) moved(by int64) span { return span{s.from + by, s.to + by} }

// covers returns the smallest span with both.
func (s span) covers(other span) span { return span{min(s.from, other.from), max(s.to, other.to)} }

// Size returns the number of bytes of data.
func (t *Type) Size() int64 { return t.size }

// Extent returns the lower bound and the distance to the upper bound. Elements
// of the type are this distance apart.
func (t *Type) Extent() (lb, extent int64) { return t.bounds.from, t.bounds.length() }

// TrueExtent returns the place where the data begins, and its length, without
// regard to bounds that were set.
func (t *Type) TrueExtent() (lb, extent int64) { return t.data.from, t.data.length() }

// String returns the name of a named type, else the constructor's name.
func (t *Type) String() string { return cmp.Or(t.name, t.combiner.String()) }

func named(name string, size int64) *Type {
	return &Type{
		combiner: Named, name: name, size: size, bounds: span{0, size}, data: span{0, size}, align: size,
		layout: Layout{Root: newLeaf(size)},
	}
}

// The named types, of C and Fortran. Sizes and alignments hold for x86-64 and
// AArch64.
var (
	Byte    = named("byte", 1)
	Char    = named("char", 1)
	Int8    = named("int8", 1)
	Int16   = named("int16", 2)
	Int32   = named("int32", 4)
	Int64   = named("int64", 8)
	Uint8   = named("uint8", 1)
	Uint16  = named("uint16", 2)
	Uint32  = named("uint32", 4)
	Uint64  = named("uint64", 8)
	Float32 = named("float32", 4)
	Float64 = named("float64", 8)
)

// NamedTypes returns all named types.
func NamedTypes() []*Type {
	return []*Type{Byte, Char, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64, Float32, Float64}
}

// Combiner is the constructor of a type.
type Combiner uint8

// Combiners (MPI-3.1 §4.1.13).
const (
	Named Combiner = iota
	CombinerDup
	CombinerContiguous
	CombinerVector
	CombinerHvector
	CombinerIndexed
	CombinerHindexed
	CombinerIndexedBlock
	CombinerHindexedBlock
	CombinerStruct
	CombinerSubarray
	CombinerDarray
	CombinerResized
)

// String returns the constructor's name.
func (c Combiner) String() string {
	return [...]string{
		"named", "dup", "contiguous", "vector", "hvector", "indexed", "hindexed", "indexed block", "hindexed block", "struct", "subarray",
		"darray", "resized",
	}[c]
}

// Contents are the arguments of a constructor in MPI's order: numbers,
// addresses and types (MPI-3.1 §4.1.13, MPI_TYPE_GET_CONTENTS).
type Contents struct {
	Integers  []int
	Addresses []int64
	Types     []*Type
}

// Envelope returns the constructor of the type and the number of its arguments
// of each kind.
func (t *Type) Envelope() (c Combiner, integers, addresses, types int) {
	return t.combiner, len(t.args.Integers), len(t.args.Addresses), len(t.args.Types)
}

// Contents returns the constructor's arguments. Do not change them. For a named
// type, which has none, it returns an error, as in MPI.
func (t *Type) Contents() (Contents, error) {
	if t.combiner == Named {
		return Contents{}, fmt.Errorf("datatype: %s is a named type: no constructor has made it", t)
	}
	return t.args, nil
}
