package strictyaml

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/internal/size"
)

// exact bounds whole numbers that a text writes with an exponent or a point.
const exact = 1 << 53

var errWhole = errors.New("expected a whole number")

// setWhole sets a whole number of any size.
func setWhole(v reflect.Value, text string) error {
	digits := strings.TrimLeft(text, "+-")
	if len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		return errWhole // ambiguous: octal or decimal
	}
	i, err := strconv.ParseInt(text, 0, 64)
	switch {
	case err == nil:
		return setInt(v, i)
	case errors.Is(err, strconv.ErrRange):
		if u, err := strconv.ParseUint(text, 0, 64); err == nil && v.CanUint() && !v.OverflowUint(u) {
			v.SetUint(u)
			return nil
		}
		return outOfRange(v)
	}
	i, err = size.Exact(text, 1)
	switch {
	case errors.Is(err, size.ErrRange):
		return outOfRange(v)
	case err != nil:
		return errWhole
	}
	return setInt(v, i)
}

// zero reports whether a decimal number that is 0 as a float64 is really 0:
// 1e-400 is not.
func zero(text string) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	return !strings.ContainsAny(mantissa, "123456789")
}

// setBytes sets a number of bytes, which may have a unit.
func setBytes(v reflect.Value, text string) error {
	n, err := size.Parse(text)
	if err != nil {
		return err
	}
	if err := setInt(v, n); err != nil {
		return fmt.Errorf("%q, %w", text, err)
	}
	return nil
}

func setInt(v reflect.Value, i int64) error {
	switch {
	case v.CanInt() && !v.OverflowInt(i):
		v.SetInt(i)
	case v.CanUint() && i >= 0 && !v.OverflowUint(uint64(i)):
		v.SetUint(uint64(i))
	default:
		return outOfRange(v)
	}
	return nil
}

// outOfRange names the numbers that a value may have.
func outOfRange(v reflect.Value) error {
	bits := v.Type().Bits()
	if v.CanUint() {
		return fmt.Errorf("%w from 0 to %d", errWhole, uint64(math.MaxUint64)>>(64-bits))
	}
	return fmt.Errorf("%w from %d to %d", errWhole, int64(math.MinInt64)>>(64-bits), int64(math.MaxInt64)>>(64-bits))
}
