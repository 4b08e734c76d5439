package scan_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/handlers/scan"
	"github.com/spinsim/spinsim/spin"
)

var columns = []scan.Field{
	{Name: "a", Kind: scan.I8},
	{Name: "b", Kind: scan.I16},
	{Name: "c", Kind: scan.I32},
	{Name: "d", Kind: scan.I64},
	{Name: "e", Kind: scan.U8},
	{Name: "f", Kind: scan.U16},
	{Name: "g", Kind: scan.U32},
	{Name: "h", Kind: scan.U64},
	{Name: "x", Kind: scan.F32},
	{Name: "y", Kind: scan.F64},
	{Name: "s", Kind: scan.Bytes, Length: 3},
	{Name: "t_1", Kind: scan.Bytes, Length: 19},
}

// term is an expression as text, and what it is worth on a row, reckoned
// without a program: an int64, a uint64, a float64 or a bool.
type term struct {
	text string
	of   func(row []byte) any
}

// drawn are random expressions.
type drawn struct {
	rng *rand.Rand
	s   *scan.Schema
}

func (d *drawn) pick(names string) *scan.Field {
	return d.s.Field(string(names[d.rng.IntN(len(names))]))
}

// number is a random expression of a type: i, u or f.
func (d *drawn) number(typ byte, depth int) term {
	if depth > 0 && d.rng.IntN(3) == 0 {
		a, b := d.number(typ, depth-1), d.number(typ, depth-1)
		op := "+-*"[d.rng.IntN(3)]
		return term{fmt.Sprintf("(%s %c %s)", a.text, op, b.text), func(row []byte) any { return arithmetic(op, a.of(row), b.of(row)) }}
	}
	switch typ {
	case 'i':
		f := d.pick("abcd")
		return term{f.Name, func(row []byte) any {
			b := row[f.Offset():]
			return map[uint8]int64{scan.I8: int64(int8(b[0])), scan.I16: int64(int16(u16(b))), scan.I32: int64(int32(u32(b))), scan.I64: int64(u64(b))}[f.Kind]
		}}
	case 'u':
		f := d.pick("efgh")
		return term{f.Name, func(row []byte) any {
			b := row[f.Offset():]
			return map[uint8]uint64{scan.U8: uint64(b[0]), scan.U16: uint64(u16(b)), scan.U32: uint64(u32(b)), scan.U64: u64(b)}[f.Kind]
		}}
	}
	f := d.pick("xy")
	return term{f.Name, func(row []byte) any {
		if b := row[f.Offset():]; f.Kind == scan.F64 {
			return math.Float64frombits(u64(b))
		}
		return float64(math.Float32frombits(u32(row[f.Offset():])))
	}}
}

// Numbers of less than eight bytes, behind which a row may end.
func padded(b []byte) []byte {
	return append(append([]byte(nil), b[:min(8, len(b))]...), make([]byte, 8)...)
}
func u16(b []byte) uint16   { return binary.LittleEndian.Uint16(padded(b)) }
func u32(b []byte) uint32   { return binary.LittleEndian.Uint32(padded(b)) }
func u64(b []byte) uint64   { return binary.LittleEndian.Uint64(padded(b)) }
func text(f float64) string { return strconv.FormatFloat(f, 'e', -1, 64) }

// literal is a number that may stand beside a type.
func (d *drawn) literal(typ byte) term {
	switch typ {
	case 'i':
		v := []int64{0, 1, -1, 100, -100, math.MaxInt64, math.MinInt64 + 1, math.MinInt64}[d.rng.IntN(8)]
		return term{fmt.Sprint(v), func([]byte) any { return v }}
	case 'u':
		v := []uint64{0, 1, 200, math.MaxUint64, 1 << 63}[d.rng.IntN(5)]
		return term{fmt.Sprintf("0x%x", v), func([]byte) any { return v }}
	}
	v := []float64{0, 1.5, -2.25, 1e300}[d.rng.IntN(4)]
	return term{text(v), func([]byte) any { return v }}
}

func arithmetic(op byte, a, b any) any {
	switch a := a.(type) {
	case int64:
		return map[byte]int64{'+': a + b.(int64), '-': a - b.(int64), '*': a * b.(int64)}[op]
	case uint64:
		return map[byte]uint64{'+': a + b.(uint64), '-': a - b.(uint64), '*': a * b.(uint64)}[op]
	}
	x, y := a.(float64), b.(float64)
	return map[byte]float64{'+': x + y, '-': x - y, '*': float64(x * y)}[op]
}

func compare(op string, a, b any) bool {
	less, equal := false, a == b
	switch a := a.(type) {
	case int64:
		less = a < b.(int64)
	case uint64:
		less = a < b.(uint64)
	case float64:
		if math.IsNaN(a) || math.IsNaN(b.(float64)) {
			return op == "!="
		}
		less = a < b.(float64)
	}
	return map[string]bool{"==": equal, "!=": !equal, "<": less, "<=": less || equal, ">": !less && !equal, ">=": !less}[op]
}

// truth is a random predicate.
func (d *drawn) truth(depth int) term {
	switch n := d.rng.IntN(8); {
	case depth > 0 && n < 3:
		a, b := d.truth(depth-1), d.truth(depth-1)
		if n == 0 {
			return term{"(" + a.text + " && " + b.text + ")", func(row []byte) any { return a.of(row).(bool) && b.of(row).(bool) }}
		}
		return term{"(" + a.text + "||" + b.text + ")", func(row []byte) any { return a.of(row).(bool) || b.of(row).(bool) }}
	case depth > 0 && n == 3:
		a := d.truth(depth - 1)
		return term{"!(" + a.text + ")", func(row []byte) any { return !a.of(row).(bool) }}
	case n == 4:
		f := []*scan.Field{d.s.Field("s"), d.s.Field("t_1")}[d.rng.IntN(2)]
		want := strings.Repeat("a", d.rng.IntN(f.Length+1))
		op := []string{"==", "!="}[d.rng.IntN(2)]
		t := f.Name + op + strconv.Quote(want)
		if d.rng.IntN(2) == 0 {
			t = strconv.Quote(want) + op + f.Name
		}
		return term{t, func(row []byte) any {
			got := string(row[f.Offset() : f.Offset()+f.Length])
			return (got == want+strings.Repeat("\x00", f.Length-len(want))) == (op == "==")
		}}
	}
	typ := "iuf"[d.rng.IntN(3)]
	op := []string{"==", "!=", "<", "<=", ">", ">="}[d.rng.IntN(6)]
	a, b := d.number(typ, 2), d.number(typ, 2)
	if d.rng.IntN(2) == 0 {
		b = d.literal(typ)
	}
	if d.rng.IntN(4) == 0 {
		a, b = b, a
	}
	return term{a.text + op + b.text, func(row []byte) any { return compare(op, a.of(row), b.of(row)) }}
}

// row is a random one, in which texts and numbers that predicates name are likely.
func (d *drawn) row() []byte {
	b := make([]byte, d.s.Size())
	for i := range b {
		b[i] = []byte{0, 1, 'a', 0xff, byte(d.rng.Uint32())}[d.rng.IntN(5)]
	}
	for _, name := range []string{"s", "t_1"} {
		if f := d.s.Field(name); d.rng.IntN(2) == 0 {
			clear(b[f.Offset() : f.Offset()+f.Length])
			copy(b[f.Offset():], strings.Repeat("a", d.rng.IntN(f.Length+1)))
		}
	}
	return b
}

// A program says of a row what the predicate says.
func TestProgramsAreTheirPredicates(t *testing.T) {
	s, err := scan.NewSchema(columns...)
	require.NoError(t, err)
	matched, compiled := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		d := &drawn{rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1)), s}
		p := d.truth(3)
		code, err := s.Compile(p.text)
		if err != nil { // too long, or too deep
			require.Regexp(rt, "instructions, at most 64|nested deeper than 8 values", err.Error(), p.text)
			return
		}
		compiled++
		for range 20 {
			row := d.row()
			want := p.of(row).(bool)
			require.Equal(rt, want, scan.Eval(code, row), "%s of %x", p.text, row)
			if want {
				matched++
			}
		}
	})
	require.Greater(t, compiled, 10)
	require.NotZero(t, matched)
}

// What is no predicate of the table is said with its place.
func TestPredicateErrors(t *testing.T) {
	s, err := scan.NewSchema(columns...)
	require.NoError(t, err)
	for predicate, expected := range map[string]string{
		"a":                                 "the predicate is signed, expected a truth value",
		"a == ":                             `column 6: "", expected a field, a number, a text or (`,
		"q == 1":                            "column 1: no field q, expected one of a i8, b i16",
		"a == e":                            "signed and unsigned, expected two of the same",
		"a == 1.5":                          "signed and floating point, expected two of the same",
		"e == -1":                           "a number that is out of range of the unsigned one beside it",
		"a == 18446744073709551615":         "out of range of the signed one",
		"a == 99999999999999999999":         "99999999999999999999 is out of range",
		"s < \"a\"":                         "texts are compared by == and !=",
		"s == \"abcd\"":                     "a text of 4 B, the field s has 3",
		"s == t_1":                          "a text is compared with a field of texts",
		"s == 1":                            "a text is compared with a field of texts, got text and a number",
		"a = 1":                             `"1", expected ==`,
		"a == 1 & b == 1":                   `"b", expected &&`,
		"a == 1 b":                          `"b", expected an operator or the end`,
		"(a == 1":                           `"", expected )`,
		"a && b":                            "&& and || are for truth values, got signed and signed",
		"!a == 1":                           "! is for truth values, got signed",
		"-e == 1":                           "- before unsigned",
		"a == \"":                           "literal not terminated",
		strings.Repeat("(", 200):            "nested deeper than 100",
		strings.Repeat("!", 200):            "nested deeper than 100",
		strings.Repeat("-", 200):            "nested deeper than 100",
		strings.Repeat("a<b||", 60) + "a<b": "instructions, at most 64",
		"1+(1+(1+(1+(1+(1+(1+(1+(1+a)))))))) == 1": "nested deeper than 8 values",
		"a == \x00": "invalid character NUL",
	} {
		_, err := s.Compile(predicate)
		require.ErrorIs(t, err, scan.ErrProgram, predicate)
		require.ErrorContains(t, err, expected, predicate)
	}
	for expected, fields := range map[string][]scan.Field{
		`name "1a"`:                    {{Name: "1a"}},
		"no name twice":                {{Name: "a"}, {Name: "a"}},
		"field a: kind 77":             {{Name: "a", Kind: 77}},
		"field a: 0 bytes, expected 1": {{Name: "a", Kind: scan.Bytes}},
		"rows of 0 B":                  {},
		"rows of 2049 B":               {{Name: "a", Kind: scan.Bytes, Length: 2048}, {Name: "b"}},
	} {
		_, err := scan.NewSchema(fields...)
		require.ErrorContains(t, err, expected)
	}
}

// FuzzVerify: a program that is accepted runs on every row, whatever its bytes;
// and the compiler survives every text.
func FuzzVerify(f *testing.F) {
	f.Add([]byte{}, []byte{}, "")
	f.Add(spin.EncodeState(&scan.Instruction{Op: scan.Const, Value: 1}), make([]byte, 8), "a == 1")
	f.Add(append(spin.EncodeState(&scan.Instruction{Op: scan.Load, Kind: scan.Bytes, Offset: 65535, Length: 8}), 1), make([]byte, 30), "s != \"a\" || -x < 1.5e3")
	f.Add(spin.EncodeState(&scan.Instruction{Op: scan.Load, Kind: scan.I64, Offset: 1}), make([]byte, 8), "!(d*2 >= 3 && h == 0xffffffffffffffff)")
	s, err := scan.NewSchema(columns...)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, program, row []byte, predicate string) {
		var code []scan.Instruction
		for ; len(program) >= 16; program = program[16:] {
			var i scan.Instruction
			require.NoError(t, spin.DecodeState(program, &i))
			code = append(code, i)
		}
		if _, ok := scan.Verify(code, uint32(len(row))); ok {
			scan.Eval(code, row)
		}
		if code, err := s.Compile(predicate); err == nil {
			_, ok := scan.Verify(code, uint32(s.Size()))
			require.True(t, ok)
			scan.Eval(code, make([]byte, s.Size()))
		}
	})
}
