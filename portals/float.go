package portals

import (
	"encoding/binary"
	"math"
)

// Floating-point elements are computed as in C on x86-64. Every product and
// every sum is rounded to nearest, and products of complex numbers follow C11
// Annex G. A NaN from a sum or a product has one form, the processor's default,
// so that results are the same on every machine.

// number is a real type as SUM and PROD need it.
type number[T any] interface {
	add(y T) T
	mul(y T) T
	negate() T
	isNaN() bool
	isInf() bool
	isNegative() bool
	// constant returns 0, 1 or an infinity, with a sign.
	constant(c constant, negative bool) T
	store(b []byte)
}

type constant uint8

const (
	zero constant = iota
	one
	infinity
)

// f32 and f64 are the types of the processor; ext is the third. The conversions
// of products prevent the compiler from fusing them with a following sum.
type (
	f32 float32
	f64 float64
)

func (x f32) add(y f32) f32    { return x + y }
func (x f32) mul(y f32) f32    { return f32(float32(x) * float32(y)) }
func (x f32) negate() f32      { return -x }
func (x f32) isNaN() bool      { return x != x }
func (x f32) isInf() bool      { return math.IsInf(float64(x), 0) }
func (x f32) isNegative() bool { return math.Signbit(float64(x)) }

func (f32) constant(c constant, negative bool) f32 { return f32(f64(0).constant(c, negative)) }

func (x f32) store(b []byte) {
	v := math.Float32bits(float32(x))
	if x.isNaN() {
		v = 0xffc00000
	}
	binary.LittleEndian.PutUint32(b, v)
}

func (x f64) add(y f64) f64    { return x + y }
func (x f64) mul(y f64) f64    { return f64(float64(x) * float64(y)) }
func (x f64) negate() f64      { return -x }
func (x f64) isNaN() bool      { return x != x }
func (x f64) isInf() bool      { return math.IsInf(float64(x), 0) }
func (x f64) isNegative() bool { return math.Signbit(float64(x)) }

func (f64) constant(c constant, negative bool) f64 {
	v := 0.0
	switch c {
	case one:
		v = 1
	case infinity:
		v = math.Inf(1)
	case zero:
	}
	if negative {
		v = math.Copysign(v, -1)
	}
	return f64(v)
}

func (x f64) store(b []byte) {
	v := math.Float64bits(float64(x))
	if x.isNaN() {
		v = 0xfff8 << 48
	}
	binary.LittleEndian.PutUint64(b, v)
}

func loadFloat(b []byte) f32  { return f32(math.Float32frombits(binary.LittleEndian.Uint32(b))) }
func loadDouble(b []byte) f64 { return f64(math.Float64frombits(binary.LittleEndian.Uint64(b))) }

// combineFloat combines one real element. If a NaN leaves the order undefined,
// MIN and MAX do not change the target.
func combineFloat(op AtomicOp, t Datatype, d, s []byte) {
	if op == OpMIN || op == OpMAX {
		order, ordered := compareElements(t, s, d)
		if ordered && (op == OpMIN && order < 0 || op == OpMAX && order > 0) {
			copy(d[:t.valueSize()], s)
		}
		return
	}
	switch t {
	case Float:
		combineReal(op, loadFloat(d), loadFloat(s), d)
	case Double:
		combineReal(op, loadDouble(d), loadDouble(s), d)
	default: // LongDouble
		combineReal(op, loadExt(d), loadExt(s), d)
	}
}

func combineReal[T number[T]](op AtomicOp, a, b T, d []byte) {
	if op == OpSUM {
		a.add(b).store(d)
	} else {
		a.mul(b).store(d)
	}
}

// combineComplex adds or multiplies.
func combineComplex(op AtomicOp, t Datatype, d, s []byte) {
	half := t.Size() / 2
	switch t {
	case FloatComplex:
		combineParts(op, loadFloat(d), loadFloat(d[half:]), loadFloat(s), loadFloat(s[half:]), d)
	case DoubleComplex:
		combineParts(op, loadDouble(d), loadDouble(d[half:]), loadDouble(s), loadDouble(s[half:]), d)
	default: // LongDoubleComplex
		combineParts(op, loadExt(d), loadExt(d[half:]), loadExt(s), loadExt(s[half:]), d)
	}
}

func combineParts[T number[T]](op AtomicOp, a, b, c, d T, dst []byte) {
	re, im := a.add(c), b.add(d)
	if op == OpPROD {
		re, im = mulComplex(a, b, c, d)
	}
	re.store(dst)
	im.store(dst[len(dst)/2:])
}

// mulComplex is (a + ib)(c + id). The textbook formula gives NaN + iNaN for
// infinity times a finite non-zero number. C11 G.5.1 asks for an infinity
// instead. A complex number is infinite if one part is, even if the other is a
// NaN.
func mulComplex[T number[T]](a, b, c, d T) (re, im T) {
	ac, bd, ad, bc := a.mul(c), b.mul(d), a.mul(d), b.mul(c)
	re, im = ac.add(bd.negate()), ad.add(bc)
	if !re.isNaN() || !im.isNaN() {
		return re, im
	}
	recovered := false
	if a.isInf() || b.isInf() {
		a, b, c, d = onAxis(a), onAxis(b), withoutNaN(c), withoutNaN(d)
		recovered = true
	}
	if c.isInf() || d.isInf() {
		c, d, a, b = onAxis(c), onAxis(d), withoutNaN(a), withoutNaN(b)
		recovered = true
	}
	// Finite factors whose products overflow, next to a NaN.
	if !recovered && (ac.isInf() || bd.isInf() || ad.isInf() || bc.isInf()) {
		a, b, c, d = withoutNaN(a), withoutNaN(b), withoutNaN(c), withoutNaN(d)
		recovered = true
	}
	if recovered {
		inf := a.constant(infinity, false)
		re = inf.mul(a.mul(c).add(b.mul(d).negate()))
		im = inf.mul(a.mul(d).add(b.mul(c)))
	}
	return re, im
}

// onAxis returns the direction of one part of an infinite number: 1 or -1 for
// an infinity, otherwise 0.
func onAxis[T number[T]](x T) T {
	if x.isInf() {
		return x.constant(one, x.isNegative())
	}
	return x.constant(zero, x.isNegative())
}

// withoutNaN replaces a NaN by 0.
func withoutNaN[T number[T]](x T) T {
	if x.isNaN() {
		return x.constant(zero, x.isNegative())
	}
	return x
}
