package experiment

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/sim"
)

// MaxList is how many values a list may have. More are a typing error.
const MaxList = 10_000

// errLong is the error of a longer list.
var errLong = fmt.Errorf("more than %d values", MaxList)

// listed are the types of values that a list can continue.
type listed interface{ int | sim.Time | float64 }

// ParseList reads values separated by commas; parse reads one of them.
//
//	2,4,..,1024     goes on as it began, here doubling, up to the last value
//	8,..,64  8..64  doubles
//	1,2,3,..,8      goes on with the equal step
//	8..64KiB*4      multiplies by a number
//	1us..10us+1us   adds a value
func ParseList[T listed](s string, parse func(string) (T, error)) ([]T, error) {
	var list []T
	open := false
	if strings.TrimSpace(s) == "" {
		return nil, fmt.Errorf("list %q: no value", s)
	}
	if first, rest, is := strings.Cut(s, ".."); is && !strings.Contains(s, ",") {
		if last, by, is := cutStep(rest); is {
			return stepped(s, first, last, by, parse)
		}
	}
	if first, last, is := strings.Cut(s, ".."); is && !strings.Contains(s, ",") && first != "" && last != "" {
		s = first + ",..," + strings.TrimPrefix(last, ".")
	}
	if !strings.Contains(s, ",") {
		v, err := parse(s)
		return []T{v}, err
	}
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if part == ".." || part == "..." {
			if len(list) == 0 || open {
				return nil, fmt.Errorf("list %q: expected values before and after %q", s, part)
			}
			open = true
			continue
		}
		v, err := parse(part)
		if err != nil {
			return nil, fmt.Errorf("list %q: %w", s, err)
		}
		if open {
			if list, err = fill(list, v); err != nil {
				return nil, fmt.Errorf("list %q: %w", s, err)
			}
			open = false
			continue
		}
		list = append(list, v)
	}
	if open {
		return nil, fmt.Errorf("list %q: expected a last value after \"..\"", s)
	}
	return list, nil
}

// near is the relative difference up to which fractions are equal, since sums
// and products of decimal fractions are rounded.
const near = 1e-9

// alike reports whether two values are equal but for rounding.
func alike[T listed](a, b T) bool {
	d, size := float64(a-b), float64(max(a, -a, b, -b))
	if _, fraction := any(a).(float64); !fraction {
		return a == b
	}
	return max(d, -d) <= near*size
}

// fill continues a list up to last, which is in the list even if no step meets
// it.
func fill[T listed](list []T, last T) ([]T, error) {
	n := len(list)
	step, factor := T(0), T(2)
	if n >= 3 && alike(list[n-1]-list[n-2], list[n-2]-list[n-3]) {
		step = list[n-1] - list[n-2]
	}
	if n >= 2 && step == 0 {
		if list[n-2] <= 0 || !wholeRatio(list[n-1], list[n-2]) {
			return nil, fmt.Errorf("cannot go on after %v, %v: expected a whole ratio or three values with equal steps", list[n-2], list[n-1])
		}
		factor = list[n-1] / list[n-2]
	}
	v := list[n-1]
	if v >= last || step < 0 || step == 0 && (factor <= 1 || v <= 0) {
		return nil, fmt.Errorf("cannot go on from %v to %v: expected rising values", v, last)
	}
	for {
		if step > 0 {
			v += step
		} else {
			v *= factor
		}
		if v >= last || v <= 0 || alike(v, last) {
			return append(list, last), nil
		}
		if list = append(list, v); len(list) > MaxList {
			return nil, errLong
		}
	}
}

// wholeRatio reports whether a is a multiple of b. For fractions any ratio will
// do.
func wholeRatio[T listed](a, b T) bool {
	if _, fraction := any(a).(float64); fraction {
		return true
	}
	return int64(a)%int64(b) == 0
}

// cutStep cuts a text before its last "*" or "+", but not within a number such
// as 1e+3. by begins with that character.
func cutStep(text string) (last, by string, is bool) {
	i := strings.LastIndexAny(text, "*+")
	if i < 1 || text[i] == '+' && (text[i-1] == 'e' || text[i-1] == 'E') {
		return "", "", false
	}
	return text[:i], text[i:], true
}

// stepped lists the values from first to last, by "*factor" or "+step".
func stepped[T listed](s, first, last, by string, parse func(string) (T, error)) (list []T, err error) {
	v, err := parse(first)
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", s, err)
	}
	end, err := parse(last)
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", s, err)
	}
	step, factor := T(0), 1.0
	if by[0] == '+' {
		step, err = parse(by[1:])
	} else {
		factor, err = strconv.ParseFloat(strings.TrimSpace(by[1:]), 64)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("list %q: %w", s, err)
	case v > end || v <= 0 && step == 0 || step <= 0 && !(factor > 1) || factor > 1e6:
		return nil, fmt.Errorf("list %q: expected rising values", s)
	}
	for list = []T{v}; v < end && !alike(v, end); list = append(list, v) {
		next := T(float64(v) * factor)
		if step > 0 {
			next = v + step
		}
		if next <= v {
			return nil, fmt.Errorf("list %q: expected rising values", s)
		}
		if v = next; v > end || alike(v, end) {
			v = end // the last value is in the list even if no step meets it
		}
		if len(list) == MaxList {
			return nil, fmt.Errorf("list %q: %w", s, errLong)
		}
	}
	return list, nil
}
