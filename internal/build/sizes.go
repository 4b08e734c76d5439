package build

import "go/types"

// sizes are the sizes and alignments of the compiler of handlers, equal to C on
// wasm32. Without it, types.StdSizes puts fields after a struct into the gap at
// the struct's end.
type sizes struct{ basic types.StdSizes }

// wasmSizes has addresses of 4 bytes, and numbers of 8 bytes at multiples of 8.
var wasmSizes = sizes{types.StdSizes{WordSize: 4, MaxAlign: 8}}

// Alignof returns the alignment of a type.
func (s sizes) Alignof(t types.Type) int64 {
	switch u := t.Underlying().(type) {
	case *types.Array:
		return s.Alignof(u.Elem())
	case *types.Struct:
		most := int64(1)
		for f := range u.Fields() {
			most = max(most, s.Alignof(f.Type()))
		}
		return most
	}
	return s.basic.Alignof(t)
}

// Sizeof returns the size of a type, which is also the distance between two
// elements of an array.
func (s sizes) Sizeof(t types.Type) int64 {
	switch u := t.Underlying().(type) {
	case *types.Array:
		return max(u.Len(), 0) * s.Sizeof(u.Elem())
	case *types.Struct:
		end := int64(0)
		for f := range u.Fields() {
			end = roundUp(end, s.Alignof(f.Type())) + s.Sizeof(f.Type())
		}
		return roundUp(end, s.Alignof(t))
	}
	return s.basic.Sizeof(t)
}

// Offsetsof returns the offsets of the fields of a struct.
func (s sizes) Offsetsof(fields []*types.Var) []int64 {
	offsets, end := make([]int64, len(fields)), int64(0)
	for i, f := range fields {
		offsets[i] = roundUp(end, s.Alignof(f.Type()))
		end = offsets[i] + s.Sizeof(f.Type())
	}
	return offsets
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }
