package scenario

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
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
func (f *Float) eval(at *env, t *fieldType) (v float64, err error) {
	if f.expr.IsSet() {
		v, err = t.whole(f.expr, at)
	} else {
		v, err = t.fraction(f.text)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", t.name, err)
	}
	return v, err
}

// tooLarge returns the error for a value above the largest of a type.
func (t *fieldType) tooLarge(shown string) error {
	most, name := math.MaxFloat64, "MaxFloat64"
	if t.size == 4 {
		most, name = math.MaxFloat32, "MaxFloat32"
	}
	limit := "at most " + name + " " + strconv.FormatFloat(most, 'g', -1, 8*int(t.size))
	if strings.HasPrefix(shown, "-") {
		limit = "at least -" + name + " -" + strconv.FormatFloat(most, 'g', -1, 8*int(t.size))
	}
	return fmt.Errorf("%s, expected %s: it does not fit %d bytes", shown, limit, t.size)
}

// fraction reads a decimal number.
func (t *fieldType) fraction(text string) (float64, error) {
	shown := text
	if v, err := strconv.ParseFloat(text, 64); err == nil && v != 0 {
		shown = strconv.FormatFloat(v, 'g', -1, 64)
	}
	v, err := strconv.ParseFloat(text, 8*int(t.size))
	digits, exponent := strings.ToLower(text), "e"
	if strings.Contains(digits, "x") {
		exponent = "p"
	}
	digits, _, _ = strings.Cut(digits, exponent)
	switch {
	case err != nil: // out of range: UnmarshalText has checked the syntax
		return 0, t.tooLarge(shown)
	case v == 0 && strings.ContainsAny(digits, "123456789abcdef"):
		least := math.SmallestNonzeroFloat64
		if t.size == 4 {
			least = math.SmallestNonzeroFloat32
		}
		return 0, fmt.Errorf("%s, expected 0 or at least %s away from it: %d bytes would hold 0", shown, strconv.FormatFloat(least, 'g', -1, 8*int(t.size)), t.size)
	}
	return v, nil
}

// whole evaluates an expression.
func (t *fieldType) whole(e Expr, at *env) (float64, error) {
	v, err := e.Value(at.of)
	if err != nil {
		return 0, err
	}
	exact := new(big.Float).SetInt(v)
	x, accuracy := exact.Float64()
	digits := 53
	if t.size == 4 {
		var short float32
		short, accuracy = exact.Float32()
		x, digits = float64(short), 24
	}
	switch {
	case math.IsInf(x, 0):
		return 0, t.tooLarge(exact.Text('g', 6))
	case accuracy != big.Exact:
		held, _ := new(big.Float).SetFloat64(x).Int(nil)
		return 0, fmt.Errorf("%v, expected a whole number of at most %d binary digits: %d bytes would hold %v", v, digits, t.size, held)
	}
	return x, nil
}
