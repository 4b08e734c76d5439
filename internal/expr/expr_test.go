package expr

import (
	"errors"
	"fmt"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var (
	names   = []string{"rank", "ranks", "none"}
	errNone = errors.New("none has no value here")
)

func at(variable int) (int64, error) {
	if names[variable] == "none" {
		return 0, errNone
	}
	return int64(3 + 4*variable), nil
}

// tree is an expression and its value, computed without the parser.
type tree struct {
	text  string
	value *big.Int // nil: it has none
	rank  int      // 2: a single value, 1: product, 0: sum
}

func drawLeaf(t *rapid.T) tree {
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return tree{"rank", big.NewInt(3), 2}
	case 1:
		return tree{"ranks", big.NewInt(7), 2}
	case 2:
		n := rapid.Uint64().Draw(t, "hex")
		return tree{fmt.Sprintf("%#x", n), new(big.Int).SetUint64(n), 2}
	case 3:
		n := rapid.Int64Range(0, 1000).Draw(t, "KiB")
		return tree{fmt.Sprintf("%dKiB", n), big.NewInt(n * 1024), 2}
	}
	n := rapid.Uint64Range(0, 70).Draw(t, "n")
	return tree{fmt.Sprint(n), new(big.Int).SetUint64(n), 2}
}

func drawTree(t *rapid.T, depth int) tree {
	if depth == 0 || rapid.Bool().Draw(t, "leaf") {
		return drawLeaf(t)
	}
	a, b := drawTree(t, depth-1), drawTree(t, depth-1)
	op := rapid.SampledFrom([]string{"+", "-", "*", "/", "%", "<<", "min", "max", "neg"}).Draw(t, "op")
	space := rapid.SampledFrom([]string{"", " ", "\t"}).Draw(t, "space")
	r := tree{value: apply(op, a.value, b.value)}
	switch op {
	case "min", "max":
		r.rank, r.text = 2, op+space+"("+a.text+space+","+b.text+")"
	case "neg":
		r.rank, r.text, r.value = 2, "-"+space+bracket(a, a.rank < 2), apply("-", new(big.Int), a.value)
	default:
		if op != "+" && op != "-" {
			r.rank = 1
		}
		r.text = bracket(a, a.rank < r.rank) + space + op + space + bracket(b, b.rank <= r.rank)
	}
	return r
}

func bracket(t tree, needed bool) string {
	if needed {
		return "(" + t.text + ")"
	}
	return t.text
}

func apply(op string, a, b *big.Int) *big.Int {
	z := new(big.Int)
	switch {
	case a == nil || b == nil:
		return nil
	case op == "+":
		return z.Add(a, b)
	case op == "-":
		return z.Sub(a, b)
	case op == "*":
		return z.Mul(a, b)
	case op == "min" && a.Cmp(b) > 0, op == "max" && a.Cmp(b) < 0:
		return b
	case op == "min", op == "max":
		return a
	case op == "<<" && (b.Sign() < 0 || b.Cmp(big.NewInt(64)) > 0), op != "<<" && b.Sign() == 0:
		return nil
	case op == "<<":
		return z.Mul(a, z.Exp(big.NewInt(2), b, nil))
	case op == "/":
		return z.Quo(a, b)
	}
	return z.Rem(a, b)
}

// Parsing an expression with as few parentheses as possible gives its value:
// precedence, associativity and exactness are right.
func TestExprIsArithmetic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawTree(t, 4)
		e, err := Parse(want.text, names)
		if len(want.text) > Longest {
			require.ErrorContains(t, err, "expected at most 200")
			return
		}
		require.NoError(t, err)
		require.Equal(t, want.text, e.String())
		got, err := e.Value(at)
		if want.value == nil {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		require.Zero(t, want.value.Cmp(got), "%s is %v, got %v", want.text, want.value, got)
	})
	for text, want := range map[string]int64{
		"1 + 2 * 3": 7, "10 - 3 - 2": 5, "7 / 2 * 2": 6, "-7 % 4": -3, "1 << 2 * 3": 12, "--5": 5, " 8 ": 8, "1_000": 1000, "2 * 1.5KiB": 3072, "0b11": 3,
	} {
		e, err := Parse(text, names)
		require.NoError(t, err)
		v, err := e.Value(at)
		require.NoError(t, err)
		require.Equal(t, want, v.Int64(), text)
	}
	require.Equal(t, "-5", Const(-5).String())
}

func TestRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "a number is missing",
		"1 +":                  "a number is missing",
		"(1":                   `")" is missing`,
		"1 2":                  `unexpected "2"`,
		"1)":                   `unexpected ")"`,
		"ränk":                 "there is no variable r",
		"é":                    "unexpected",
		"inf":                  "there is no variable inf",
		"size":                 "there is no variable size",
		"min(1)":               `"," is missing`,
		"min 1":                `"(" is missing`,
		"017":                  "017: a decimal number does not begin with 0",
		"1__0":                 "1__0 is no whole number below 2^64",
		"1.5":                  "1.5 is no whole number below 2^64",
		"18446744073709551616": "is no whole number below 2^64",
		"1e9999KiB":            "is no whole number",
		"2^3":                  `unexpected "^3"`,
		"$":                    `unexpected "$"`,
	} {
		_, err := Parse(text, names)
		require.ErrorContains(t, err, want, "%q", text)
		require.ErrorContains(t, err, "expected a whole number such as 8, 0x10 or 4KiB, or + - * / % << min max and parentheses with rank, ranks, none", "%q", text)
	}
	for text, want := range map[string]string{
		"1 + none": "none has no value here", "8 / (2-2)": "division by zero", "1 << 65": "a shift by 65, expected 0 to 64", "1 << -1": "a shift by -1, expected 0 to 64",
	} {
		e, err := Parse(text, names)
		require.NoError(t, err)
		_, err = e.Value(at)
		require.EqualError(t, err, want, "%q", text)
	}
}
