package scenario

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// tree is an expression with its value, found without the parser.
type tree struct {
	text  string
	value *big.Int
	rank  int // 2: a single value, 1: product, 0: sum
}

func drawTree(t *rapid.T, depth int) tree {
	if depth == 0 || rapid.Bool().Draw(t, "leaf") {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return tree{"rank", big.NewInt(3), 2}
		case 1:
			n := rapid.Uint64().Draw(t, "hex")
			return tree{fmt.Sprintf("%#x", n), new(big.Int).SetUint64(n), 2}
		case 2:
			n := rapid.Int64Range(0, 1000).Draw(t, "KiB")
			return tree{fmt.Sprintf("%dKiB", n), big.NewInt(n * 1024), 2}
		}
		n := rapid.Uint64().Draw(t, "n")
		return tree{fmt.Sprint(n), new(big.Int).SetUint64(n), 2}
	}
	a, b := drawTree(t, depth-1), drawTree(t, depth-1)
	op := rapid.SampledFrom([]string{"+", "-", "*", "/", "%"}).Draw(t, "op")
	r := tree{rank: 1, value: new(big.Int)}
	switch op {
	case "+":
		r.rank = 0
		r.value.Add(a.value, b.value)
	case "-":
		r.rank = 0
		r.value.Sub(a.value, b.value)
	case "*":
		r.value.Mul(a.value, b.value)
	case "/", "%":
		if b.value.Sign() == 0 {
			return a
		}
		if op == "/" {
			r.value.Quo(a.value, b.value)
		} else {
			r.value.Rem(a.value, b.value)
		}
	}
	space := rapid.SampledFrom([]string{"", " "}).Draw(t, "space")
	r.text = bracket(a, a.rank < r.rank) + space + op + space + bracket(b, b.rank <= r.rank)
	return r
}

func bracket(t tree, needed bool) string {
	if needed {
		return "(" + t.text + ")"
	}
	return t.text
}

// Parsing what was printed with as few parentheses as possible gives the value: precedence, associativity, exactness.
func TestExprIsArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawTree(t, 4)
		if len(want.text) > maxExpr {
			return
		}
		e, err := ParseExpr(want.text)
		require.NoError(t, err)
		at := (&env{}).with(varRank, 3)
		got, err := e.root.eval(at)
		require.NoError(t, err)
		require.Zero(t, want.value.Cmp(got), "%s is %v, got %v", want.text, want.value, got)
	})
}

func TestExprErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":          "a number is missing",
		"1 +":       "a number is missing",
		"(1":        "a closing parenthesis is missing",
		"1 2":       `unexpected "2"`,
		"1)":        `unexpected ")"`,
		"ränk":      "there is no variable r",
		"size":      "there is no variable size",
		"017":       "does not begin with 0",
		"1.5":       "1.5 is no whole number below 2^64",
		"2^3":       `unexpected "^3"`,
		"$":         `unexpected "$"`,
		"1e9999KiB": "is no whole number",
	} {
		_, err := ParseExpr(text)
		require.ErrorContains(t, err, want, "%q", text)
	}
	at := &env{}
	for text, want := range map[string]string{
		"rank":      "rank has no value here",
		"8 / (2-2)": "division by zero",
		"1 - 2":     "1 - 2: -1, expected 0 to 18446744073709551615",
	} {
		e, err := ParseExpr(text)
		require.NoError(t, err)
		_, err = e.u64(at)
		require.ErrorContains(t, err, want, "%q", text)
	}
}

func TestRanks(t *testing.T) {
	at := &env{}
	at.set(varRanks, 4)
	at.set(varLast, 3)
	for _, c := range []struct {
		texts []string
		want  []int
		err   string
	}{
		{[]string{"all"}, []int{0, 1, 2, 3}, ""},
		{[]string{"2..last", "0"}, []int{2, 3, 0}, ""},
		{[]string{"last/2 .. last-1"}, []int{1, 2}, ""},
		{[]string{"ranks..last"}, nil, ""},
		{[]string{"2..1"}, nil, ""},
		{[]string{"4"}, nil, "rank 4, expected 0 to 3"},
		{[]string{"0..4"}, nil, "rank 4, expected 0 to 3"},
		{[]string{"0..2", "1"}, nil, "rank 1 is listed twice"},
	} {
		var s RankSet
		for _, text := range c.texts {
			r, err := parseRanks(text)
			require.NoError(t, err)
			s.terms = append(s.terms, r)
		}
		got, err := s.list(at)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, "%v", c.texts)
			continue
		}
		require.NoError(t, err, "%v", c.texts)
		require.Equal(t, c.want, got, "%v", c.texts)
	}
}

// A number is read back from the bytes of its type as what it was, and one that does not fit is refused.
func TestFieldsKeepTheirValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := &fieldTypes[rapid.IntRange(0, wholeTypes-1).Draw(t, "type")]
		v := big.NewInt(rapid.Int64().Draw(t, "value"))
		if rapid.Bool().Draw(t, "large") {
			v.SetUint64(rapid.Uint64().Draw(t, "unsigned"))
		}
		e, err := ParseExpr(v.String())
		require.NoError(t, err)
		b, err := typ.encode(nil, e, &env{})
		least, most := new(big.Int), new(big.Int).Lsh(big.NewInt(1), uint(8*typ.size))
		if typ.signed {
			least.Neg(most.Rsh(most, 1))
		}
		if v.Cmp(least) < 0 || v.Cmp(most) >= 0 {
			require.ErrorContains(t, err, "expected")
			return
		}
		require.NoError(t, err)
		require.Len(t, b, int(typ.size))
		require.Equal(t, v.String(), typ.text(b))
		back, whole := typ.big(b)
		require.True(t, whole)
		require.Zero(t, v.Cmp(back))
	})
}
