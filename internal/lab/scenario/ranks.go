package scenario

import (
	"fmt"
	"strings"
)

// RankSet is a list of ranks and ranges of ranks, in the order of the file:
// "all", "0", "1..last", "[0, 2..4]". Bounds are expressions. The zero value is
// an absent set.
type RankSet struct{ terms []rankRange }

// rankRange is the ranks from first to last. For one rank, last is absent.
type rankRange struct{ first, last Expr }

// IsSet reports whether there is a set.
func (s RankSet) IsSet() bool { return s.terms != nil }

// parseRanks reads one element of a set.
func parseRanks(text string) (rankRange, error) {
	if text == "all" {
		text = "0..last"
	}
	first, last, isRange := strings.Cut(text, "..")
	var r rankRange
	var err error
	if r.first, err = ParseExpr(strings.TrimSpace(first)); err == nil && isRange {
		r.last, err = ParseExpr(strings.TrimSpace(last))
	}
	if err != nil {
		return r, fmt.Errorf("expected a rank such as 3, a range such as 1..7, or all: %w", err)
	}
	return r, nil
}

// list evaluates the set. A rank may occur only once.
func (s RankSet) list(at *env) ([]int, error) {
	var list []int
	seen := make(map[int64]bool)
	for _, t := range s.terms {
		first, last, err := t.bounds(at)
		if err != nil {
			return nil, fmt.Errorf("rank %w", err)
		}
		for r := first; r <= last; r++ {
			if seen[r] {
				return nil, fmt.Errorf("rank %d is listed twice", r)
			}
			seen[r] = true
			list = append(list, int(r))
		}
	}
	return list, nil
}

// bounds evaluates a range. It may be empty, for example 1..last with one rank.
// Otherwise both ends are ranks.
func (t *rankRange) bounds(at *env) (first, last int64, err error) {
	ranks := at.value[varRanks]
	if t.last.IsSet() {
		first, err = t.first.int(at, 0, 0, ranks)
		if err == nil {
			last, err = t.last.int(at, 0, -1, ranks-1)
		}
		if err == nil && first > last {
			return first, last, nil
		}
	}
	if first, err = t.first.int(at, 0, 0, ranks-1); err == nil {
		last, err = t.last.int(at, first, 0, ranks-1)
	}
	return first, last, err
}
