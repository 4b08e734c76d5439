package experiment

import (
	"fmt"
)

// Apart reports whether no two results have the same values of the axes. Only
// then do these values in a sentence mean one result.
func Apart(results []*Result, axes ...string) bool {
	seen := make(map[string]bool)
	for _, r := range results {
		key := ""
		for _, a := range axes {
			key += fmt.Sprint(r.Point.Value(a), "\x00")
		}
		if seen[key] {
			return false
		}
		seen[key] = true
	}
	return true
}

// Counted writes a number of things: "1 rank", "2 ranks".
func Counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// Beside returns the result of the same device whose point differs from r in
// one axis only, which has the given value. nil: there is none.
func Beside(results []*Result, r *Result, axis string, value any) *Result {
	i := r.Point.experiment.axis(axis)
	for _, other := range results {
		p := other.Point
		if p.device != r.Point.device || p.values[i] != value {
			continue
		}
		same := true
		for k, v := range p.values {
			same = same && (k == i || v == r.Point.values[k])
		}
		if same {
			return other
		}
	}
	return nil
}
