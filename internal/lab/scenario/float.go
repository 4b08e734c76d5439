package scenario

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/internal/manifest"
)

// Float is a number with a fraction, or an expression of whole numbers. A
// number with a fraction is rounded to the nearest value of the type. It is an
// error if a number is out of range, or if the type cannot hold a whole number
// exactly. Infinities are written as Inf and -Inf.
type Float struct {
	text string
	expr Expr
	set  bool
}

// UnmarshalText reads a decimal number or an expression.
func (f *Float) UnmarshalText(text []byte) error {
	f.set = true
	_, err := strconv.ParseFloat(string(text), 64)
	_, whole := new(big.Int).SetString(string(text), 10)
	if !whole && (err == nil || errors.Is(err, strconv.ErrRange)) {
		f.text = string(text)
		return nil
	}
	f.expr, err = ParseExpr(string(text))
	return err
}

// eval returns the value as a number of type t. Errors name the type.
func (f *Float) eval(at *env, t manifest.Type) (v float64, err error) {
	if f.expr.IsSet() {
		v, err = wholeFloat(t, f.expr, at)
	} else {
		v, err = fraction(t, f.text)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", t, err)
	}
	return v, err
}

// tooLarge returns the error for a value above the largest of a type.
func tooLarge(t manifest.Type, shown string) error {
	most, name := math.MaxFloat64, "MaxFloat64"
	if t == manifest.F32 {
		most, name = math.MaxFloat32, "MaxFloat32"
	}
	limit := "at most " + name + " " + strconv.FormatFloat(most, 'g', -1, int(8*t.Size()))
	if strings.HasPrefix(shown, "-") {
		limit = "at least -" + name + " -" + strconv.FormatFloat(most, 'g', -1, int(8*t.Size()))
	}
	return fmt.Errorf("%s, expected %s: it does not fit %d bytes", shown, limit, t.Size())
}

// fraction reads a decimal number.
func fraction(t manifest.Type, text string) (float64, error) {
	shown := text
	if v, err := strconv.ParseFloat(text, 64); err == nil && v != 0 {
		shown = strconv.FormatFloat(v, 'g', -1, 64)
	}
	v, err := strconv.ParseFloat(text, int(8*t.Size()))
	digits, exponent := strings.ToLower(text), "e"
	if strings.Contains(digits, "x") {
		exponent = "p"
	}
	digits, _, _ = strings.Cut(digits, exponent)
	switch {
	case err != nil: // out of range: UnmarshalText has checked the syntax
		return 0, tooLarge(t, shown)
	case v == 0 && strings.ContainsAny(digits, "123456789abcdef"):
		least := math.SmallestNonzeroFloat64
		if t == manifest.F32 {
			least = math.SmallestNonzeroFloat32
		}
		return 0, fmt.Errorf("%s, expected 0 or at least %s away from it: %d bytes would hold 0", shown, strconv.FormatFloat(least, 'g', -1, int(8*t.Size())), t.Size())
	}
	return v, nil
}

// whole evaluates an expression.
func wholeFloat(t manifest.Type, e Expr, at *env) (float64, error) {
	v, err := e.Value(at.of)
	if err != nil {
		return 0, err
	}
	exact := new(big.Float).SetInt(v)
	x, accuracy := exact.Float64()
	digits := 53
	if t == manifest.F32 {
		var short float32
		short, accuracy = exact.Float32()
		x, digits = float64(short), 24
	}
	switch {
	case math.IsInf(x, 0):
		return 0, tooLarge(t, exact.Text('g', 6))
	case accuracy != big.Exact:
		held, _ := new(big.Float).SetFloat64(x).Int(nil)
		return 0, fmt.Errorf("%v, expected a whole number of at most %d binary digits: %d bytes would hold %v", v, digits, t.Size(), held)
	}
	return x, nil
}
