package portals

import (
	"encoding/binary"
	"fmt"
)

// AtomicOp is an atomic operation (ptl_op_t, Portals 4.x §3.15.4).
type AtomicOp uint8

// Atomic operations. The first ten belong to Atomic and FetchAtomic, the others
// to Swap. "Target" is the value in the target's memory, "initiator" the value
// of the put descriptor, "operand" the argument of Swap.
const (
	OpMIN     AtomicOp = iota // PTL_MIN: the smaller
	OpMAX                     // PTL_MAX: the larger
	OpSUM                     // PTL_SUM: the sum, integers modulo their width
	OpPROD                    // PTL_PROD: the product, integers modulo their width
	OpLOR                     // PTL_LOR: logical or, 0 or 1
	OpLAND                    // PTL_LAND: logical and, 0 or 1
	OpBOR                     // PTL_BOR: bitwise or
	OpBAND                    // PTL_BAND: bitwise and
	OpLXOR                    // PTL_LXOR: logical exclusive or, 0 or 1
	OpBXOR                    // PTL_BXOR: bitwise exclusive or
	OpSWAP                    // PTL_SWAP: the initiator's value
	OpCSWAP                   // PTL_CSWAP: the initiator's value if operand = target
	OpCSWAPNE                 // PTL_CSWAP_NE: if operand ≠ target
	OpCSWAPLE                 // PTL_CSWAP_LE: if operand ≤ target
	OpCSWAPLT                 // PTL_CSWAP_LT: if operand < target
	OpCSWAPGE                 // PTL_CSWAP_GE: if operand ≥ target
	OpCSWAPGT                 // PTL_CSWAP_GT: if operand > target
	OpMSWAP                   // PTL_MSWAP: the initiator's bits where operand has 1
	atomicOpCount
)

// AtomicOpNames are the C names of atomic operations without PTL_.
var AtomicOpNames = []string{
	"MIN", "MAX", "SUM", "PROD", "LOR", "LAND", "BOR", "BAND", "LXOR", "BXOR", "SWAP",
	"CSWAP", "CSWAP_NE", "CSWAP_LE", "CSWAP_LT", "CSWAP_GE", "CSWAP_GT", "MSWAP",
}

// String returns the C name without its prefix.
func (o AtomicOp) String() string { return nameOf(AtomicOpNames, int(o)) }

func (o AtomicOp) isSwap() bool       { return o >= OpSWAP }
func (o AtomicOp) needsOperand() bool { return o > OpSWAP }

// Datatype is the type of the elements of an atomic operation (ptl_datatype_t,
// Portals 4.x §3.15.4). Elements are little-endian. A long double is the 80-bit
// extended format of the x86-64 ABI in 16 bytes. Its last 6 bytes are padding,
// and arithmetic does not change the target's padding. A complex number is its
// real part followed by its imaginary part.
type Datatype uint8

// Datatypes.
const (
	Int8              Datatype = iota // PTL_INT8_T
	Uint8                             // PTL_UINT8_T
	Int16                             // PTL_INT16_T
	Uint16                            // PTL_UINT16_T
	Int32                             // PTL_INT32_T
	Uint32                            // PTL_UINT32_T
	Float                             // PTL_FLOAT
	Int64                             // PTL_INT64_T
	Uint64                            // PTL_UINT64_T
	Double                            // PTL_DOUBLE
	FloatComplex                      // PTL_FLOAT_COMPLEX
	DoubleComplex                     // PTL_DOUBLE_COMPLEX
	LongDouble                        // PTL_LONG_DOUBLE
	LongDoubleComplex                 // PTL_LONG_DOUBLE_COMPLEX
	datatypeCount
)

// DatatypeNames are the C names of datatypes without PTL_.
var DatatypeNames = []string{
	"INT8_T", "UINT8_T", "INT16_T", "UINT16_T", "INT32_T", "UINT32_T", "FLOAT", "INT64_T", "UINT64_T", "DOUBLE",
	"FLOAT_COMPLEX", "DOUBLE_COMPLEX", "LONG_DOUBLE", "LONG_DOUBLE_COMPLEX",
}

var datatypeSizes = [datatypeCount]uint8{1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 8, 16, 16, 32}

// String returns the C name without its prefix.
func (t Datatype) String() string { return nameOf(DatatypeNames, int(t)) }

// Size returns the bytes of one element, 0 for an unknown type.
func (t Datatype) Size() int {
	if t >= datatypeCount {
		return 0
	}
	return int(datatypeSizes[t])
}

// valueSize is Size without the padding of a long double.
func (t Datatype) valueSize() int {
	if t == LongDouble {
		return extBytes
	}
	return t.Size()
}

func (t Datatype) integer() bool {
	return t <= Uint32 || t == Int64 || t == Uint64
}

func (t Datatype) signed() bool {
	return t == Int8 || t == Int16 || t == Int32 || t == Int64
}

func (t Datatype) complex() bool {
	return t == FloatComplex || t == DoubleComplex || t == LongDoubleComplex
}

// part is the type of the two halves of a complex type.
func (t Datatype) part() Datatype {
	switch t {
	case FloatComplex:
		return Float
	case DoubleComplex:
		return Double
	}
	return LongDouble
}

// Legal reports whether the standard defines the operation on the type.
func Legal(op AtomicOp, t Datatype) bool {
	if op >= atomicOpCount || t >= datatypeCount {
		return false
	}
	switch op {
	case OpLOR, OpLAND, OpBOR, OpBAND, OpLXOR, OpBXOR, OpMSWAP:
		return t.integer()
	case OpMIN, OpMAX, OpCSWAPLE, OpCSWAPLT, OpCSWAPGE, OpCSWAPGT:
		return !t.complex()
	}
	return true
}

// checkAtomic returns the reason why an atomic request is invalid, "" if it is
// valid.
func checkAtomic(kind OpKind, op AtomicOp, t Datatype, length uint64) string {
	switch {
	case op.isSwap() != (kind == OpSwap):
		return fmt.Sprintf("operation %v is not for %v", op, kind)
	case !Legal(op, t):
		return fmt.Sprintf("operation %v is not defined on %v", op, t)
	case op.needsOperand() && length != uint64(t.Size()):
		return fmt.Sprintf("length %d, %v takes one element of %d", length, op, t.Size())
	case length%uint64(t.Size()) != 0:
		return fmt.Sprintf("length %d is no multiple of %d, the size of %v", length, t.Size(), t)
	}
	return ""
}

// Add adds src to dst, elements of a type, as OpSUM does.
func Add(t Datatype, dst, src []byte) { combine(OpSUM, t, dst, src, nil) }

// combine applies an operation to all elements of dst.
func combine(op AtomicOp, t Datatype, dst, src, operand []byte) {
	if op == OpSWAP {
		copy(dst, src)
		return
	}
	size := t.Size()
	if op.needsOperand() {
		swapElement(op, t, dst[:size], src[:size], operand[:size])
		return
	}
	for i := 0; i < len(dst); i += size {
		d, s := dst[i:i+size], src[i:i+size]
		switch {
		case t.integer():
			storeUint(d, combineInt(op, loadInt(d, t.signed()), loadInt(s, t.signed()), t.signed()))
		case t.complex():
			combineComplex(op, t, d, s)
		default:
			combineFloat(op, t, d, s)
		}
	}
}

func loadInt(b []byte, signed bool) uint64 {
	switch len(b) {
	case 1:
		if signed {
			return uint64(int8(b[0]))
		}
		return uint64(b[0])
	case 2:
		if v := binary.LittleEndian.Uint16(b); signed {
			return uint64(int16(v))
		} else {
			return uint64(v)
		}
	case 4:
		if v := binary.LittleEndian.Uint32(b); signed {
			return uint64(int32(v))
		} else {
			return uint64(v)
		}
	}
	return binary.LittleEndian.Uint64(b)
}

func storeUint(b []byte, v uint64) {
	switch len(b) {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

func compareInt(a, b uint64, signed bool) int {
	if signed {
		a ^= 1 << 63
		b ^= 1 << 63
	}
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func truth(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

// combineInt combines values extended to 64 bits.
func combineInt(op AtomicOp, a, b uint64, signed bool) uint64 {
	switch op {
	case OpMIN:
		if compareInt(b, a, signed) < 0 {
			return b
		}
		return a
	case OpMAX:
		if compareInt(b, a, signed) > 0 {
			return b
		}
		return a
	case OpSUM:
		return a + b
	case OpPROD:
		return a * b
	case OpLOR:
		return truth(a != 0 || b != 0)
	case OpLAND:
		return truth(a != 0 && b != 0)
	case OpLXOR:
		return truth((a != 0) != (b != 0))
	case OpBOR:
		return a | b
	case OpBAND:
		return a & b
	default: // OpBXOR
		return a ^ b
	}
}

// swapElement performs one conditional or masked swap.
func swapElement(op AtomicOp, t Datatype, d, s, operand []byte) {
	if op == OpMSWAP {
		for i, mask := range operand {
			d[i] = d[i]&^mask | s[i]&mask
		}
		return
	}
	order, ordered := compareElements(t, operand, d)
	var swap bool
	switch op {
	case OpCSWAP:
		swap = ordered && order == 0
	case OpCSWAPNE:
		swap = !ordered || order != 0
	case OpCSWAPLE:
		swap = ordered && order <= 0
	case OpCSWAPLT:
		swap = ordered && order < 0
	case OpCSWAPGE:
		swap = ordered && order >= 0
	default: // OpCSWAPGT
		swap = ordered && order > 0
	}
	if swap {
		copy(d, s)
	}
}

// compareElements compares two elements. ordered is false if one is a NaN.
// Complex numbers are only equal (0) or different (1).
func compareElements(t Datatype, a, b []byte) (order int, ordered bool) {
	switch {
	case t.integer():
		return compareInt(loadInt(a, t.signed()), loadInt(b, t.signed()), t.signed()), true
	case t.complex():
		half := t.Size() / 2
		re, ok1 := compareElements(t.part(), a[:half], b[:half])
		im, ok2 := compareElements(t.part(), a[half:], b[half:])
		return int(truth(re != 0 || im != 0)), ok1 && ok2
	case t == Float:
		return compareFloat(float64(loadFloat(a)), float64(loadFloat(b)))
	case t == Double:
		return compareFloat(float64(loadDouble(a)), float64(loadDouble(b)))
	default:
		return loadExt(a).compare(loadExt(b))
	}
}

func compareFloat(a, b float64) (int, bool) {
	switch {
	case a < b:
		return -1, true
	case a > b:
		return 1, true
	}
	return 0, a == b
}
