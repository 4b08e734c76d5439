package portals

import (
	"encoding/binary"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// legalOn is the table of Portals 4.x §3.15.4: on which kinds of type an
// operation is defined: i integers, f floating point, c complex.
var legalOn = map[AtomicOp]string{
	OpMIN: "if", OpMAX: "if", OpSUM: "ifc", OpPROD: "ifc", OpLOR: "i", OpLAND: "i", OpBOR: "i", OpBAND: "i",
	OpLXOR: "i", OpBXOR: "i", OpSWAP: "ifc", OpCSWAP: "ifc", OpCSWAPNE: "ifc", OpCSWAPLE: "if", OpCSWAPLT: "if",
	OpCSWAPGE: "if", OpCSWAPGT: "if", OpMSWAP: "i",
}

// typeTable is kind, size in bytes and signedness of every type.
var typeTable = map[Datatype]struct {
	kind   byte
	size   int
	signed bool
}{
	Int8: {'i', 1, true}, Uint8: {'i', 1, false}, Int16: {'i', 2, true}, Uint16: {'i', 2, false},
	Int32: {'i', 4, true}, Uint32: {'i', 4, false}, Int64: {'i', 8, true}, Uint64: {'i', 8, false},
	Float: {'f', 4, true}, Double: {'f', 8, true}, LongDouble: {'f', 16, true},
	FloatComplex: {'c', 8, true}, DoubleComplex: {'c', 16, true}, LongDoubleComplex: {'c', 32, true},
}

func TestLegal(t *testing.T) {
	require.Len(t, legalOn, int(atomicOpCount))
	require.Len(t, typeTable, int(datatypeCount))
	for op := AtomicOp(0); op <= atomicOpCount; op++ {
		for typ := Datatype(0); typ <= datatypeCount; typ++ {
			want := false
			for _, k := range legalOn[op] {
				want = want || byte(k) == typeTable[typ].kind
			}
			require.Equal(t, want, Legal(op, typ), "%v on %v", op, typ)
			require.Equal(t, typeTable[typ].size, typ.Size(), "%v", typ)
		}
	}
}

// value reads a little-endian integer of any width.
func value(b []byte, signed bool) *big.Int {
	be := make([]byte, len(b))
	for i, v := range b {
		be[len(b)-1-i] = v
	}
	v := new(big.Int).SetBytes(be)
	if signed && b[len(b)-1]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}

// oracle computes an integer operation with numbers of any size.
func oracle(op AtomicOp, a, b, o *big.Int) *big.Int {
	yes := func(v bool) *big.Int { return big.NewInt(int64(truth(v))) }
	choose := func(swap bool) *big.Int {
		if swap {
			return b
		}
		return a
	}
	nz := func(v *big.Int) bool { return v.Sign() != 0 }
	r := new(big.Int)
	switch op {
	case OpMIN:
		return choose(b.Cmp(a) < 0)
	case OpMAX:
		return choose(b.Cmp(a) > 0)
	case OpSUM:
		return r.Add(a, b)
	case OpPROD:
		return r.Mul(a, b)
	case OpLOR:
		return yes(nz(a) || nz(b))
	case OpLAND:
		return yes(nz(a) && nz(b))
	case OpLXOR:
		return yes(nz(a) != nz(b))
	case OpBOR:
		return r.Or(a, b)
	case OpBAND:
		return r.And(a, b)
	case OpBXOR:
		return r.Xor(a, b)
	case OpSWAP:
		return b
	case OpCSWAP:
		return choose(o.Cmp(a) == 0)
	case OpCSWAPNE:
		return choose(o.Cmp(a) != 0)
	case OpCSWAPLE:
		return choose(o.Cmp(a) <= 0)
	case OpCSWAPLT:
		return choose(o.Cmp(a) < 0)
	case OpCSWAPGE:
		return choose(o.Cmp(a) >= 0)
	case OpCSWAPGT:
		return choose(o.Cmp(a) > 0)
	default: // MSWAP
		return r.Or(new(big.Int).AndNot(a, o), new(big.Int).And(b, o))
	}
}

// TestIntegers compares every integer operation on every integer type with
// arithmetic of unlimited width.
func TestIntegers(t *testing.T) {
	for op := range atomicOpCount {
		for typ := range datatypeCount {
			if typeTable[typ].kind != 'i' {
				continue
			}
			size, signed := typeTable[typ].size, typeTable[typ].signed
			rapid.Check(t, func(t *rapid.T) {
				elem := rapid.OneOf(
					rapid.SliceOfN(rapid.Byte(), size, size),
					rapid.SampledFrom([][]byte{make([]byte, size), bytesOf(0xff, size), append(make([]byte, size-1), 0x80), append(bytesOf(0xff, size-1), 0x7f)}),
				)
				a, b, o := elem.Draw(t, "target"), elem.Draw(t, "initiator"), elem.Draw(t, "operand")
				if rapid.Bool().Draw(t, "equal") {
					o = a
				}
				want := oracle(op, value(a, signed), value(b, signed), value(o, signed))
				got := append([]byte(nil), a...)
				combine(op, typ, got, b, o)
				mask := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(8*size)), big.NewInt(1))
				require.Equal(t, new(big.Int).And(want, mask).String(), value(got, false).String(), "%v %v: %x %x %x", op, typ, a, b, o)
			})
		}
	}
}

func bytesOf(v byte, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = v
	}
	return b
}

// TestFloats compares float and double, real and complex, with the machine's
// own arithmetic.
func TestFloats(t *testing.T) {
	number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 5e-324, 1, -1}))
	same := func(t *rapid.T, want float64, result f64) {
		got := float64(result)
		require.True(t, want == got && math.Signbit(want) == math.Signbit(got) || math.IsNaN(want) && math.IsNaN(got), "want %v, got %v", want, got)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b, c, d := number.Draw(t, "a"), number.Draw(t, "b"), number.Draw(t, "c"), number.Draw(t, "d")
		var x, y [16]byte
		run := func(op AtomicOp, typ Datatype) {
			f64(a).store(x[:])
			f64(b).store(x[8:])
			f64(c).store(y[:])
			f64(d).store(y[8:])
			combine(op, typ, x[:], y[:], nil)
		}
		run(OpSUM, Double)
		same(t, a+c, loadDouble(x[:]))
		same(t, b+d, loadDouble(x[8:]))
		run(OpPROD, Double)
		same(t, a*c, loadDouble(x[:]))
		run(OpPROD, DoubleComplex)
		// The textbook's product, unless it is NaN in both parts: see TestArithmeticAsC.
		if re, im := float64(a*c)-float64(b*d), float64(a*d)+float64(b*c); !math.IsNaN(re) || !math.IsNaN(im) {
			same(t, re, loadDouble(x[:]))
			same(t, im, loadDouble(x[8:]))
		}
		run(OpMIN, Double)
		if c < a {
			same(t, c, loadDouble(x[:]))
		} else {
			same(t, a, loadDouble(x[:]))
		}
		f, g := float32(a), float32(c)
		f32(f).store(x[:])
		f32(g).store(y[:])
		combine(OpPROD, Float, x[:4], y[:4], nil)
		same(t, float64(f*g), f64(loadFloat(x[:])))
	})
}

// extExact rounds ±n·2^k to the extended format with integer arithmetic only.
func extExact(neg bool, n *big.Int, k int) ext {
	if n.Sign() == 0 {
		return ext{neg: neg}
	}
	biased := max(k+n.BitLen()-1+extBias, 1)
	shift := biased - extBias - 63 - k
	q := new(big.Int)
	if shift <= 0 {
		q.Lsh(n, uint(-shift))
	} else {
		rest := new(big.Int)
		q.DivMod(n, new(big.Int).Lsh(big.NewInt(1), uint(shift)), rest)
		half := new(big.Int).Lsh(big.NewInt(1), uint(shift-1))
		if c := rest.Cmp(half); c > 0 || c == 0 && q.Bit(0) == 1 {
			q.Add(q, big.NewInt(1))
		}
	}
	if q.BitLen() > 64 {
		q.Rsh(q, 1)
		biased++
	}
	if q.BitLen() < 64 {
		return ext{neg: neg, man: q.Uint64()}
	}
	if biased >= extMaxExp {
		return ext{neg: neg, exp: extMaxExp, man: extInteger}
	}
	return ext{neg: neg, exp: biased, man: q.Uint64()}
}

func drawExt(t *rapid.T, label string) ext {
	x := ext{neg: rapid.Bool().Draw(t, label+" sign")}
	// Mantissas of few bits and exponents close together make exact ties and
	// results whose last bits decide.
	few := rapid.Map(rapid.IntRange(0, 15), func(v int) uint64 { return extInteger | uint64(v) })
	top := rapid.Map(rapid.IntRange(8, 15), func(v int) uint64 { return uint64(v) << 60 })
	x.exp = rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(extBias, extBias+3), rapid.IntRange(extBias-70, extBias+70), rapid.IntRange(extMaxExp-3, extMaxExp-1),
		rapid.IntRange(8100, 8300), rapid.IntRange(0, extMaxExp-1)).Draw(t, label+" exponent")
	x.man = rapid.OneOf(rapid.Uint64(), few, top, rapid.SampledFrom([]uint64{0, 1, extInteger, extInteger - 1, math.MaxUint64, 3 << 62})).Draw(t, label+" mantissa")
	if x.exp > 0 {
		x.man |= extInteger
	} else {
		x.man &^= extInteger
	}
	return x
}

func exact(x ext) (*big.Int, int) {
	n := new(big.Int).SetUint64(x.man)
	if x.neg {
		n.Neg(n)
	}
	return n, x.scale() - extBias - 63
}

// TestLongDouble compares the software arithmetic with exact integers.
func TestLongDouble(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := drawExt(t, "x"), drawExt(t, "y")
		var b [10]byte
		x.store(b[:])
		require.Equal(t, x, loadExt(b[:]))

		a, ka := exact(x)
		c, kc := exact(y)
		prod := new(big.Int).Mul(a, c)
		require.Equal(t, extExact(x.neg != y.neg, prod.Abs(prod), ka+kc), x.mul(y), "%v * %v", x, y)

		k := min(ka, kc)
		p := new(big.Int).Lsh(a, uint(ka-k))
		q := new(big.Int).Lsh(c, uint(kc-k))
		order, ordered := x.compare(y)
		require.True(t, ordered)
		require.Equal(t, p.Cmp(q), order, "%v ? %v", x, y)
		sum := new(big.Int).Add(p, q)
		neg := sum.Sign() < 0 || sum.Sign() == 0 && x.neg && y.neg && x.isZero()
		require.Equal(t, extExact(neg, sum.Abs(sum), k), x.add(y), "%v + %v", x, y)
	})
}

// TestLongDoubleRounding is one case for every way to round: what falls away is
// less than, exactly or more than half of the last bit, which is even or odd.
func TestLongDoubleRounding(t *testing.T) {
	one := ext{exp: extBias, man: extInteger}
	odd := ext{exp: extBias, man: extInteger | 1}
	part := func(man uint64, below int) ext { return ext{exp: extBias - below, man: man} }
	for _, c := range []struct {
		x, y ext
		man  uint64
	}{
		{one, part(extInteger, 64), extInteger},          // tie, even
		{odd, part(extInteger, 64), extInteger | 2},      // tie, odd
		{one, part(extInteger|1, 64), extInteger | 1},    // just more than a tie
		{one, part(^uint64(0), 65), extInteger},          // just less
		{odd, part(^uint64(0), 65), extInteger | 1},      // just less, odd
		{one, part(extInteger|1<<5, 64), extInteger | 1}, // decided by a bit that falls out far below
		{one, part(extInteger, 200), extInteger},         // far away
	} {
		require.Equal(t, ext{exp: extBias, man: c.man}, c.x.add(c.y), "%+v + %+v", c.x, c.y)
		require.Equal(t, ext{exp: extBias, man: c.man}, c.y.add(c.x), "%+v + %+v", c.y, c.x)
	}
}

func TestLongDoubleSpecial(t *testing.T) {
	inf, zero, one := ext{exp: extMaxExp, man: extInteger}, ext{}, ext{exp: extBias, man: extInteger}
	nan := func(x ext) { t.Helper(); require.True(t, x.isNaN()) }
	nan(inf.add(inf.negate()))
	nan(inf.mul(zero))
	nan(zero.mul(inf))
	nan(extNaN.add(one))
	nan(one.mul(extNaN))
	require.Equal(t, inf, inf.add(one))
	require.Equal(t, inf, one.add(inf))
	require.Equal(t, inf.negate(), inf.mul(one.negate()))
	require.Equal(t, extNaN, extNaN.negate())
	for _, x := range []ext{extNaN, one, inf} {
		order, ordered := x.compare(extNaN)
		require.False(t, ordered)
		require.Zero(t, order)
	}
	// Encodings the processor rejects count as NaN.
	var b [10]byte
	binary.LittleEndian.PutUint16(b[8:], 5)
	require.Equal(t, extNaN, loadExt(b[:]))
	binary.LittleEndian.PutUint16(b[8:], extMaxExp)
	require.Equal(t, extNaN, loadExt(b[:]))
}

// TestShiftSticky compares the shift with integers of any size: what falls out
// sets the last bit.
func TestShiftSticky(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.Uint64(), rapid.Map(rapid.IntRange(0, 63), func(i int) uint64 { return 1 << i }), rapid.Just(uint64(0)))
		hi, lo := word.Draw(t, "high"), word.Draw(t, "low")
		n := rapid.UintRange(0, 140).Draw(t, "shift")
		x := new(big.Int).SetUint64(hi)
		x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(lo))
		want := new(big.Int).Rsh(x, n)
		if new(big.Int).Lsh(want, n).Cmp(x) != 0 {
			want.Or(want, big.NewInt(1))
		}
		gotHi, gotLo := shiftSticky(hi, lo, n)
		got := new(big.Int).SetUint64(gotHi)
		got.Lsh(got, 64).Or(got, new(big.Int).SetUint64(gotLo))
		require.Equal(t, want.String(), got.String())
	})
}
