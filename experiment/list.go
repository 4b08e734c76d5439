package experiment

import (
	"fmt"
	"strings"
)

// maxList is how many values a list may have: more is taken for a slip.
const maxList = 10_000

// ParseList reads values separated by commas. "2,4,..,1024" goes on as it began, doubling here, up to the last value; "8,..,64" doubles;
// "1,2,3,..,8", with equal steps, goes on with the step. parse reads one value.
func ParseList(s string, parse func(string) (int64, error)) ([]int64, error) {
	var list []int64
	open := false
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

// fill continues a list to the value last, which belongs to it whatever the steps.
func fill(list []int64, last int64) ([]int64, error) {
	n := len(list)
	step := int64(0)
	if n >= 3 && list[n-1]-list[n-2] == list[n-2]-list[n-3] {
		step = list[n-1] - list[n-2]
	}
	factor := int64(2)
	if n >= 2 && step == 0 {
		if list[n-2] <= 0 || list[n-1]%list[n-2] != 0 {
			return nil, fmt.Errorf("cannot go on after %d, %d: expected a whole ratio or three values with equal steps", list[n-2], list[n-1])
		}
		factor = list[n-1] / list[n-2]
	}
	v := list[n-1]
	if v >= last || step < 0 || step == 0 && (factor < 2 || v <= 0) {
		return nil, fmt.Errorf("cannot go on from %d to %d: expected rising values", v, last)
	}
	for {
		if step > 0 {
			v += step
		} else {
			v *= factor
		}
		if v >= last || v <= 0 {
			return append(list, last), nil
		}
		if list = append(list, v); len(list) > maxList {
			return nil, fmt.Errorf("more than %d values", maxList)
		}
	}
}
