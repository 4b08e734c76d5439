package experiment

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// mostDigits is how many digits of a decimal number a float64 always keeps.
const mostDigits = 15

// parseDecimal reads a decimal number that a float64 keeps: written again it has
// the same digits. A whole one is an int.
func parseDecimal(text string) (any, error) {
	f, err := decimal(text)
	if err != nil {
		return nil, err
	}
	return whole(f), nil
}

// decimal is parseDecimal without ints.
func decimal(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f-f != 0 || strings.Trim(text, "0123456789.-+eE") != "" {
		return 0, fmt.Errorf("%q is not a decimal number", text)
	}
	digits, _, _ := strings.Cut(strings.ToLower(text), "e")
	digits = strings.TrimLeft(strings.NewReplacer(".", "", "-", "", "+", "").Replace(digits), "0")
	if len(digits) > mostDigits {
		return 0, fmt.Errorf("%q has %d digits, expected at most %d", text, len(digits), mostDigits)
	}
	return f, nil
}

// whole returns an int for a float64 without a fraction.
func whole(f float64) any {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return int(f)
	}
	return f
}

// wholes is the axis without fractions.
func (a *Axis) wholes() *Axis {
	w := *a
	w.Fractions = false
	return &w
}

// decimals reads a list of decimal numbers. Those that continue it are rounded
// to the digits that a decimal number may have.
func decimals(list string) ([]any, error) {
	floats, err := ParseList(list, func(s string) (float64, error) { return decimal(strings.TrimSpace(s)) })
	values := make([]any, len(floats))
	for i, f := range floats {
		if f, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', mostDigits, 64), 64); err == nil {
			values[i] = whole(f)
		}
	}
	return values, err
}
