package identify

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// Far is a row that stays far with the answers that the search finds, although
// all that was measured counts: what brings it nearest, and what that costs.
type Far struct {
	Row             string
	Fitted, Nearest float64 // distances: with the search's answers, and the least
	// Set brings it nearest. If several bring it within 50%, it is the one that
	// leaves all rows nearest.
	Set []string
	// Against are rows that are then farther than with the search's answers, by
	// more than 3%, the worst first.
	Against []Move
}

// limit is the distance beyond which a row is far, as a goal of the ledger has
// it: at most a tenth of the rows of a publication may be.
const limit = 0.5

// faraway lists the rows that stay far, the farthest first. For each it measures
// the answers that bring it nearest if effects add up.
func (s *Study) faraway(ctx context.Context, today, fitted *state, of *effects) (list []Far, err error) {
	var rows []int
	var settings [][]*pick
	for i := range s.Rows {
		if !s.Rows[i].Published.Claim() && s.Rows[i].off(fitted) > limit {
			rows, settings = append(rows, i), append(settings, s.nearest(today, of, none, nil, i))
		}
	}
	if _, err := s.measure(ctx, settings); err != nil {
		return nil, err
	}
	for _, row := range rows {
		best := s.compromise(row, fitted)
		f := Far{Row: s.Rows[row].ID, Fitted: s.Rows[row].off(fitted), Nearest: s.Rows[row].off(best), Set: setOf(best.picks)}
		for i := range s.Rows {
			before, then := s.Rows[i].off(fitted), s.Rows[i].off(best)
			if math.Log1p(then)-math.Log1p(before) > material {
				f.Against = append(f.Against, Move{Row: s.Rows[i].ID, Before: before, Then: then, Factor: math.NaN()})
			}
		}
		slices.SortStableFunc(f.Against, func(a, b Move) int {
			return cmp.Compare((1+b.Then)/(1+b.Before), (1+a.Then)/(1+a.Before))
		})
		list = append(list, f)
	}
	slices.SortStableFunc(list, func(a, b Far) int { return cmp.Compare(b.Fitted, a.Fitted) })
	return list, nil
}

// compromise is the setting with which a row is nearest of all that was measured.
// Of those that bring it within the limit it is the one that leaves all rows
// nearest.
func (s *Study) compromise(row int, fitted *state) *state {
	best := fitted
	rank := func(st *state) (off, loss float64) {
		return max(limit, s.Rows[row].off(st)), mean(s.losses(st.values), every)
	}
	for _, st := range s.known { //lint:maporder the least, and of equal ones the first by name
		if st.err != nil {
			continue
		}
		off, loss := rank(st)
		leastOff, leastLoss := rank(best)
		if cmp.Or(cmp.Compare(off, leastOff), cmp.Compare(loss, leastLoss), slices.Compare(setOf(st.picks), setOf(best.picks))) < 0 {
			best = st
		}
	}
	return best
}
