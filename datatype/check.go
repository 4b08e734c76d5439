package datatype

import (
	"fmt"
	"math"
	"math/bits"
)

// most is the largest distance of bounds, sizes and places from 0. The
// difference of two of them still fits into 64 bits.
const most = math.MaxInt64 / 4

// arithmetic computes with numbers up to most. If a number is larger, it sets
// over and uses 0.
type arithmetic struct{ over bool }

func (a *arithmetic) in(v int64) int64 {
	if v > most || v < -most {
		a.over = true
		return 0
	}
	return v
}

func (a *arithmetic) sum(x, y int64) int64 { return a.in(a.in(x) + a.in(y)) }

func (a *arithmetic) mul(x, y int64) int64 {
	high, low := bits.Mul64(magnitude(x), magnitude(y))
	if high != 0 || low > most {
		a.over = true
		return 0
	}
	return x * y
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func invalid(c Combiner, format string, args ...any) error {
	return fmt.Errorf("datatype: %v: %s", c, fmt.Sprintf(format, args...))
}

func nonnegative(c Combiner, what string, values ...int) error {
	for i, v := range values {
		switch {
		case v >= 0:
		case len(values) > 1:
			return invalid(c, "%s %d is %d, expected at least 0", what, i, v)
		default:
			return invalid(c, "%s is %d, expected at least 0", what, v)
		}
	}
	return nil
}

// matches checks that there is one displacement, or type, for each length.
func matches(c Combiner, lengths, others int) error {
	if lengths != others {
		return invalid(c, "%d lengths, but %d displacements or types, expected as many", lengths, others)
	}
	return nil
}

func present(c Combiner, types ...*Type) error {
	for _, t := range types {
		if t == nil || t.align == 0 {
			return invalid(c, "a type is missing")
		}
	}
	return nil
}
