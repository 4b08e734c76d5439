package mpi

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/spinsim/spinsim/runtime"
)

// Type is the element type of a reduction.
type Type struct {
	name string
	size int
	kind uint8
}

// The types that predefined operations take. They are little endian.
var (
	Int32   = Type{"int32", 4, kindInt32}
	Int64   = Type{"int64", 8, kindInt64}
	Float32 = Type{"float32", 4, kindFloat32}
	Float64 = Type{"float64", 8, kindFloat64}
)

const (
	kindInt32 uint8 = iota
	kindInt64
	kindFloat32
	kindFloat64
	kinds
	kindOther = kinds
)

// NewType returns a type for the program's own operations, with elements of
// size bytes, 1 to 1 GiB.
func NewType(name string, size int) (Type, error) {
	if size < 1 || size > 1<<30 {
		return Type{}, fmt.Errorf("mpi: type %s of %d B, expected 1 to %d B", name, size, 1<<30)
	}
	return Type{name, size, kindOther}, nil
}

// String returns the name.
func (t Type) String() string { return t.name }

// Size returns the bytes of an element.
func (t Type) Size() int { return t.size }

// Op is an operation of reductions. It counts as associative.
type Op struct {
	name     string
	commutes bool
	kernels  [kinds]kernel
	own      kernel
}

// kernel computes dst = left op right for whole elements; dst is one of the two.
type kernel func(dst, left, right []byte)

// NewOp returns an operation of the program. f computes dst = left op right for
// vectors of elements; dst is one of the two. If the operation does not
// commute, the operands come in the order of ranks. All ranks must use the same
// name.
func NewOp(name string, commutes bool, f func(dst, left, right []byte)) *Op {
	return &Op{name: name, commutes: commutes, own: f}
}

// String returns the name.
func (o *Op) String() string { return o.name }

func (o *Op) apply(t Type, dst, left, right []byte) {
	if o.own != nil {
		o.own(dst, left, right)
		return
	}
	o.kernels[t.kind](dst, left, right)
}

// combine computes acc = acc op v, or v op acc, on a process's core. It reads
// two vectors and writes one.
func (o *Op) combine(p *runtime.Proc, acc, v runtime.View, before bool, t Type) {
	dst, other := acc.WriteFrom(v)
	left, right := dst, other
	if before {
		left, right = other, dst
	}
	o.apply(t, dst, left, right)
	runtime.Pass(p, acc, acc, v)
}

// check returns an error if the operation is not defined for a type.
func (o *Op) check(t Type) error {
	switch {
	case o == nil || t.size == 0:
		return fmt.Errorf("a reduction needs an operation and a type")
	case o.own == nil && (t.kind == kindOther || o.kernels[t.kind] == nil):
		return fmt.Errorf("%s is not defined for %s", o.name, t.name)
	}
	return nil
}

// The operations. Integers wrap around. Min and Max of floating-point numbers
// follow IEEE 754-2019: a NaN wins, and -0 is below 0. A NaN result always has
// the same bits, so that no result depends on the order of the operands.
var (
	Sum  = number("sum", func(a, b uint32) uint32 { return a + b }, func(a, b uint64) uint64 { return a + b }, func(a, b float64) float64 { return a + b }, func(a, b float32) float32 { return a + b })
	Prod = number("prod", func(a, b uint32) uint32 { return a * b }, func(a, b uint64) uint64 { return a * b }, func(a, b float64) float64 { return a * b }, func(a, b float32) float32 { return a * b })
	Min  = number("min",
		func(a, b uint32) uint32 { return uint32(min(int32(a), int32(b))) }, func(a, b uint64) uint64 { return uint64(min(int64(a), int64(b))) },
		func(a, b float64) float64 { return min(a, b) }, func(a, b float32) float32 { return min(a, b) })
	Max = number("max",
		func(a, b uint32) uint32 { return uint32(max(int32(a), int32(b))) }, func(a, b uint64) uint64 { return uint64(max(int64(a), int64(b))) },
		func(a, b float64) float64 { return max(a, b) }, func(a, b float32) float32 { return max(a, b) })
	LAnd = number("land", func(a, b uint32) uint32 { return truth[uint32](a != 0 && b != 0) }, func(a, b uint64) uint64 { return truth[uint64](a != 0 && b != 0) }, nil, nil)
	LOr  = number("lor", func(a, b uint32) uint32 { return truth[uint32](a != 0 || b != 0) }, func(a, b uint64) uint64 { return truth[uint64](a != 0 || b != 0) }, nil, nil)
	BAnd = number("band", func(a, b uint32) uint32 { return a & b }, func(a, b uint64) uint64 { return a & b }, nil, nil)
	BOr  = number("bor", func(a, b uint32) uint32 { return a | b }, func(a, b uint64) uint64 { return a | b }, nil, nil)
	BXor = number("bxor", func(a, b uint32) uint32 { return a ^ b }, func(a, b uint64) uint64 { return a ^ b }, nil, nil)
)

// Ops lists the operations.
func Ops() []*Op { return []*Op{Sum, Prod, Min, Max, LAnd, LOr, BAnd, BOr, BXor} }

func truth[T uint32 | uint64](b bool) T {
	if b {
		return 1
	}
	return 0
}

// number makes an operation from scalar functions. The floating-point ones may
// be nil.
func number(name string, i32 func(a, b uint32) uint32, i64 func(a, b uint64) uint64, f64 func(a, b float64) float64, f32 func(a, b float32) float32) *Op {
	o := &Op{name: name, commutes: true}
	o.kernels[kindInt32], o.kernels[kindInt64] = words(i32), doubles(i64)
	if f32 != nil {
		o.kernels[kindFloat32] = words(func(a, b uint32) uint32 {
			x := f32(math.Float32frombits(a), math.Float32frombits(b))
			if x != x {
				return math.Float32bits(float32(math.NaN()))
			}
			return math.Float32bits(x)
		})
		o.kernels[kindFloat64] = doubles(func(a, b uint64) uint64 {
			x := f64(math.Float64frombits(a), math.Float64frombits(b))
			if x != x {
				return math.Float64bits(math.NaN())
			}
			return math.Float64bits(x)
		})
	}
	return o
}

func words(f func(a, b uint32) uint32) kernel {
	return func(dst, left, right []byte) {
		for i := 0; i+4 <= len(dst); i += 4 {
			put32(dst[i:], f(get32(left[i:]), get32(right[i:])))
		}
	}
}

func doubles(f func(a, b uint64) uint64) kernel {
	return func(dst, left, right []byte) {
		for i := 0; i+8 <= len(dst); i += 8 {
			put64(dst[i:], f(get64(left[i:]), get64(right[i:])))
		}
	}
}

func get32(b []byte) uint32    { return binary.LittleEndian.Uint32(b) }
func get64(b []byte) uint64    { return binary.LittleEndian.Uint64(b) }
func put32(b []byte, x uint32) { binary.LittleEndian.PutUint32(b, x) }
func put64(b []byte, x uint64) { binary.LittleEndian.PutUint64(b, x) }
