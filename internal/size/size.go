// Package size reads and writes numbers of bytes as people do: 4096, 4KiB, 1.5MiB.
package size

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

var units = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"PiB", 1 << 50},
	{"kB", 1000},
	{"KB", 1000},
	{"MB", 1_000_000},
	{"GB", 1_000_000_000},
	{"TB", 1_000_000_000_000},
	{"PB", 1_000_000_000_000_000},
	{"Ki", 1 << 10},
	{"Mi", 1 << 20},
	{"Gi", 1 << 30},
	{"Ti", 1 << 40},
	{"Pi", 1 << 50},
	{"B", 1},
	{"", 1},
}

// Most bounds the numbers of Exact. Other programs use floating-point numbers,
// which represent every whole number up to this one.
const Most = 1 << 53

// Errors of Exact.
var (
	ErrNumber = errors.New("no number")
	ErrWhole  = errors.New("no whole number")
	ErrRange  = errors.New("too large a number")
)

// Exact returns the decimal number in text, which may have a point and an
// exponent, times a factor. It never rounds: a result that is not whole is an
// error, for example 4503599627370496.5 or 1e-400, and so is one beyond Most or
// -Most.
func Exact(text string, factor int64) (int64, error) {
	const longest = 400 // characters: a longer text is certainly wrong and would take long
	f, err := strconv.ParseFloat(text, 64)
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, ErrRange
	case err != nil || math.IsInf(f, 0) || math.IsNaN(f) || len(text) > longest || strings.ContainsAny(text, "xX"):
		return 0, ErrNumber
	case !strings.ContainsAny(mantissa, "123456789"):
		return 0, nil // any exponent is right
	case math.Abs(f) < 1e-300:
		return 0, ErrWhole
	case math.Abs(f) > Most:
		return 0, ErrRange
	}
	exactly, ok := new(big.Rat).SetString(text) // its exponent is about as long as the text
	if !ok {
		return 0, ErrNumber
	}
	exactly.Mul(exactly, new(big.Rat).SetInt64(factor))
	switch {
	case !exactly.IsInt():
		return 0, ErrWhole
	case !exactly.Num().IsInt64() || exactly.Num().Int64() > Most || exactly.Num().Int64() < -Most:
		return 0, ErrRange
	}
	return exactly.Num().Int64(), nil
}

// Parse reads a number of bytes, at least 0 and below 2^53, with an optional
// unit (B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB).
func Parse(s string) (int64, error) {
	t := strings.ReplaceAll(strings.TrimSpace(s), " ", "")
	for _, u := range units {
		v, ok := strings.CutSuffix(t, u.suffix)
		if !ok {
			continue
		}
		n, err := Exact(v, u.bytes)
		switch {
		case errors.Is(err, ErrNumber):
			return 0, fmt.Errorf("size %q: expected a number of bytes such as 8, 4KiB or 1MB", s)
		case err != nil || n < 0 || n == Most:
			return 0, fmt.Errorf("size %q: expected a whole number of bytes from 0 to 2^53", s)
		}
		return n, nil
	}
	return 0, fmt.Errorf("size %q: expected a number of bytes such as 8, 4KiB or 1MB", s)
}
