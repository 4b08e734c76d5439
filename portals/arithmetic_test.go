package portals

import (
	"bufio"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cVectors is one file of testdata/arithmetic: what a C compiler makes of a type.
type cVectors struct {
	t       *testing.T
	real    Datatype
	complex Datatype
	letters map[byte][]byte
	line    string
	cases   int
}

// element decodes a number, most significant digit first, into an element.
func (v *cVectors) element(s string) []byte {
	b := make([]byte, v.real.Size())
	if s == "nan" {
		switch v.real {
		case Float:
			loadFloat([]byte{0, 0, 0xc0, 0xff}).store(b)
		case Double:
			loadDouble([]byte{7: 0xff, 6: 0xf8}).store(b)
		default:
			extNaN.store(b)
		}
		return b
	}
	raw, err := hex.DecodeString(s)
	require.NoError(v.t, err, v.line)
	require.Len(v.t, raw, v.real.valueSize(), v.line)
	slices.Reverse(raw)
	copy(b, raw)
	return b
}

// same compares an element with what the compiler makes: bit for bit, and a
// NaN must be the one NaN.
func (v *cVectors) same(want string, got []byte, what string) {
	v.cases++
	require.Equal(v.t, v.element(want), got, "%s of %s", what, v.line)
}

// swaps says whether a conditional swap with operand b on target a swaps.
func (v *cVectors) swaps(op AtomicOp, a, b []byte) string {
	size := v.real.Size()
	if len(a) > size {
		return swapped(op, v.complex, a, b)
	}
	return swapped(op, v.real, a, b)
}

func swapped(op AtomicOp, t Datatype, target, operand []byte) string {
	dst := slices.Clone(target)
	src := make([]byte, len(target))
	for i := range src {
		src[i] = ^target[i]
	}
	combine(op, t, dst, src, operand)
	if slices.Equal(dst, src) {
		return "1"
	}
	return "0"
}

// real checks sum, product, minimum, maximum and the order of two numbers.
func (v *cVectors) realLine(f []string) {
	a, b := v.letters[f[1][0]], v.letters[f[2][0]]
	for i, op := range []AtomicOp{OpSUM, OpPROD, OpMIN, OpMAX} {
		got := slices.Clone(a)
		combine(op, v.real, got, b, nil)
		v.same(f[3+i], got, op.String())
	}
	for i, op := range []AtomicOp{OpCSWAPLT, OpCSWAPLE, OpCSWAP, OpCSWAPNE, OpCSWAPGE, OpCSWAPGT} {
		require.Equal(v.t, f[7+i], v.swaps(op, a, b), "%v of %s", op, v.line)
	}
}

// product checks (a + ib)(c + id).
func (v *cVectors) product(x, y []byte, re, im string) {
	got := slices.Clone(x)
	combine(OpPROD, v.complex, got, y, nil)
	half := v.real.Size()
	v.same(re, got[:half], "real part")
	v.same(im, got[half:], "imaginary part")
}

func (v *cVectors) read(name string) {
	file, err := os.Open("testdata/arithmetic/" + name)
	require.NoError(v.t, err)
	defer func() { require.NoError(v.t, file.Close()) }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		v.line = lines.Text()
		switch f := strings.Fields(v.line); f[0] {
		case "value":
			v.letters[f[1][0]] = v.element(f[2])
		case "real":
			v.realLine(f)
		case "complex":
			k := f[1]
			x := slices.Concat(v.letters[k[0]], v.letters[k[1]])
			y := slices.Concat(v.letters[k[2]], v.letters[k[3]])
			v.product(x, y, f[2], f[3])
			require.Equal(v.t, f[4], v.swaps(OpCSWAP, x, y), v.line)
			require.NotEqual(v.t, f[4], v.swaps(OpCSWAPNE, x, y), v.line)
		case "random":
			v.product(slices.Concat(v.element(f[1]), v.element(f[2])), slices.Concat(v.element(f[3]), v.element(f[4])), f[5], f[6])
		default:
			require.Fail(v.t, "unknown line", v.line)
		}
	}
	require.NoError(v.t, lines.Err())
	require.Equal(v.t, 4*15*15+2*7*7*7*7+2*400, v.cases, name)
}

// TestArithmeticAsC compares sums, products, minima, maxima and comparisons of
// the floating-point types, real and complex, with what gcc makes of them:
// testdata/arithmetic/vectors.c says how the vectors were made.
func TestArithmeticAsC(t *testing.T) {
	for _, c := range []struct {
		name          string
		real, complex Datatype
	}{
		{"float.txt", Float, FloatComplex}, {"double.txt", Double, DoubleComplex}, {"longdouble.txt", LongDouble, LongDoubleComplex},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := cVectors{t: t, real: c.real, complex: c.complex, letters: map[byte][]byte{}}
			v.read(c.name)
		})
	}
}

// TestNaNsStayOrAreOne checks that MIN and MAX leave a target that is a NaN as
// it is, payload and sign included, and that a sum or product makes the one NaN
// whatever NaN went in.
func TestNaNsStayOrAreOne(t *testing.T) {
	one := map[Datatype][]byte{
		Float:  {2: 0x80, 3: 0x3f},
		Double: {6: 0xf0, 7: 0x3f},
		// 6 bytes of padding behind the number
		LongDouble: {7: 0x80, 8: 0xff, 9: 0x3f, 15: 0xee},
	}
	odd := map[Datatype][]byte{
		Float:      {1, 2, 0xc3, 0x7f},
		Double:     {1, 2, 3, 4, 5, 6, 0xf7, 0x7f},
		LongDouble: {1, 2, 3, 4, 5, 6, 7, 0xc8, 0xff, 0x7f, 11, 12, 13, 14, 15, 16},
	}
	the := map[Datatype][]byte{
		Float:      {2: 0xc0, 3: 0xff},
		Double:     {6: 0xf8, 7: 0xff},
		LongDouble: {0, 0, 0, 0, 0, 0, 0, 0xc0, 0xff, 0xff, 11, 12, 13, 14, 15, 16},
	}
	for typ, nan := range odd {
		for _, op := range []AtomicOp{OpMIN, OpMAX} {
			got := slices.Clone(nan)
			combine(op, typ, got, one[typ], nil)
			require.Equal(t, nan, got, "%v %v of a NaN", op, typ)
			got = slices.Clone(one[typ])
			combine(op, typ, got, nan, nil)
			require.Equal(t, one[typ], got, "%v %v with a NaN", op, typ)
		}
		for _, op := range []AtomicOp{OpSUM, OpPROD} {
			got := slices.Clone(nan)
			combine(op, typ, got, one[typ], nil)
			require.Equal(t, the[typ], got, "%v %v", op, typ)
		}
	}
}
