package identify

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
)

// Rival is another set of answers with which the rows are as near as with those
// that the search finds.
type Rival struct {
	Set      []string   // empty: today's answers
	Distance float64    // mean of all rows
	Apart    Separation // the number that tells it best from the search's; Number "": none
}

// exactly is how far rows may be off, as a logarithm, where a set of answers
// counts as near as one that fits exactly.
const exactly = 0.002

// rivals puts another answer, or none, in the place of each that the search has
// found, and fits them. Of all that the study has measured it then lists the sets that are
// as near as the search's, the nearest first, and the one number that would tell
// most of them from it.
func (s *Study) rivals(ctx context.Context, fitted *state, of *effects) (list []Rival, number Measurement, err error) {
	find := &search{s, of, every}
	begin := candidate{fitted, mean(s.losses(fitted.values), every), map[int]*known{}}
	var others []candidate
	for q, p := range fitted.picks {
		if p == nil {
			continue
		}
		without := find.changed(begin, q, nil, nil)
		for _, c := range append(find.variants(without), find.refit(without)) {
			if !has(answers(c.picks), answers(fitted.picks)) {
				others = append(others, c)
			}
		}
	}
	slices.SortStableFunc(others, func(a, b candidate) int { return cmp.Compare(a.loss, b.loss) })
	if _, err := find.nearestOf(ctx, others[:min(2*most, len(others))], most); err != nil {
		return nil, Measurement{}, err
	}
	var all []Separation
	for i, st := range s.asNear(fitted) {
		r := Rival{Set: setOf(st.picks), Distance: math.Expm1(mean(s.losses(st.values), every))}
		for k, one := range apart(st, fitted) {
			one.Alternative, one.Against, one.place = strings.Join(r.Set, " "), strings.Join(setOf(fitted.picks), " "), [2]int{i}
			if all = append(all, one); k == 0 {
				r.Apart = one
			}
		}
		list = append(list, r)
	}
	return list, first(sorted(all)), nil
}

// asNear lists what was measured and is as near as a state with other answers: of
// each set of answers the nearest, the nearest first. A set that has all answers
// of the state, or of a nearer one, and more is left out.
func (s *Study) asNear(fitted *state) (list []*state) {
	loss := func(st *state) float64 { return mean(s.losses(st.values), every) }
	var all []*state
	for _, st := range s.known { //lint:maporder the list is sorted
		if st.err == nil && loss(st) <= loss(fitted)/(1-least)+exactly {
			all = append(all, st)
		}
	}
	slices.SortFunc(all, func(a, b *state) int {
		return cmp.Or(cmp.Compare(len(answers(a.picks)), len(answers(b.picks))), cmp.Compare(loss(a), loss(b)), slices.Compare(setOf(a.picks), setOf(b.picks)))
	})
	for _, st := range all {
		if !slices.ContainsFunc(append(list, fitted), func(o *state) bool { return has(answers(st.picks), answers(o.picks)) }) {
			list = append(list, st)
		}
	}
	slices.SortStableFunc(list, func(a, b *state) int { return cmp.Compare(loss(a), loss(b)) })
	return list
}

// has reports whether a list has all parts of another one.
func has(list, parts []string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !slices.Contains(list, p) })
}
