package identify

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// refitted changes one answer and fits the numbers of all ranges anew. It finds
// what no change of one or two answers finds: where two latencies add up, one of
// them took the place of both, and the other one brings nothing as long as the
// first stays where it is. nil: that does not bring enough.
func (s *search) refitted(ctx context.Context, begin candidate) (*state, error) {
	loss := (1 - least) * begin.loss
	list := s.variants(begin)
	states, err := s.nearestOf(ctx, list[:min(most, len(list))], most/2)
	if err != nil {
		return nil, err
	}
	var best *state
	for _, st := range states {
		if s.loss(st.values) < loss {
			best, loss = st, s.loss(st.values)
		}
	}
	return best, nil
}

// nearestOf measures candidates, and fits some that are nearest. It returns what
// was measured and what was fitted.
func (s *search) nearestOf(ctx context.Context, list []candidate, some int) ([]*state, error) {
	var settings [][]*pick
	for _, c := range list {
		settings = append(settings, c.picks)
	}
	states, err := s.measure(ctx, settings)
	if err != nil {
		return nil, err
	}
	states = slices.DeleteFunc(states, func(st *state) bool { return st.err != nil })
	slices.SortStableFunc(states, func(a, b *state) int { return cmp.Compare(s.loss(a.values), s.loss(b.values)) })
	for _, st := range states[:min(some, len(states))] {
		fitted, err := s.fit(ctx, st)
		if err != nil {
			return nil, err
		}
		states = append(states, fitted)
	}
	return states, nil
}

// variants lists what one more alternative, or one less, makes of a candidate if
// the numbers of all its ranges are fitted anew and effects add up: the nearest
// first.
func (s *search) variants(c candidate) (list []candidate) {
	for _, k := range s.of.of {
		p := s.best(c.state, k)
		if k.of != nil && c.picks[p.question] == nil {
			if x, is := s.Today[k.of.Path]; is {
				p = s.at(p.question, p.alternative, k.of, x)
			}
		}
		if old := c.picks[p.question]; old == nil || old.alternative != p.alternative {
			list = append(list, s.refit(s.changed(c, p.question, p, k)))
		}
	}
	for q, p := range c.picks {
		if p != nil {
			list = append(list, s.refit(s.changed(c, q, nil, nil)))
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(a.loss, b.loss) })
	return list
}

// refit moves the numbers of a candidate's ranges by least squares of the
// logarithms, if effects add up: nothing is measured.
func (s *search) refit(c candidate) candidate {
	var free []*known
	for _, p := range c.picks {
		if p != nil {
			if k := s.of.find(p); k != nil && k.of != nil {
				free = append(free, k)
			}
		}
	}
	if len(free) == 0 {
		return c
	}
	for range rounds {
		next := s.moved(c, free)
		if next.loss >= c.loss {
			break
		}
		c = next
	}
	return c
}

// moved is one round of refit: the nearest of a whole step, a half and a quarter.
func (s *search) moved(c candidate, free []*known) candidate {
	items := s.numbers(c.state)
	if len(items) == 0 {
		return c
	}
	to := func(i int, x float64) *pick {
		k := free[i]
		return s.at(k.picks[0].question, k.picks[0].alternative, k.of, min(k.of.High, max(k.of.Low, x)))
	}
	slopes := make([][]float64, len(free))
	width := make([]float64, len(free))
	for i, k := range free {
		old := c.picks[k.picks[0].question]
		width[i] = s.aside(k.of, old.x)
		slopes[i] = replaced(c.values, s.of, old, to(i, old.x+width[i]))
	}
	by := s.squaresStep(c.values, slopes, width, items)
	if by == nil {
		return c
	}
	best := c
	best.loss = math.Inf(1)
	for _, part := range []float64{1, 0.5, 0.25} {
		next := candidate{&state{picks: slices.Clone(c.picks), values: c.values}, 0, c.ranged}
		for i, k := range free {
			q := k.picks[0].question
			next.picks[q] = to(i, c.picks[q].x+part*by.AtVec(i))
			next.values = replaced(next.values, s.of, c.picks[q], next.picks[q])
		}
		if next.loss = s.loss(next.values); next.loss < best.loss {
			best = next
		}
	}
	return best
}

// squaresStep returns how far least squares would move each free number, of which
// then[j] are the values with the number j moved by width[j]. nil: the items do
// not determine it.
func (s *search) squaresStep(values []float64, then [][]float64, width []float64, items []int) *mat.VecDense {
	all := len(items) + len(then)
	slopes, off := mat.NewDense(all, len(then), nil), mat.NewVecDense(all, nil)
	for i, k := range items {
		off.SetVec(i, s.items[k].pull(values[k]))
		for j := range then {
			if then[j] != nil && !math.IsNaN(then[j][k]) {
				slopes.Set(i, j, (then[j][k]-values[k])/width[j])
			}
		}
	}
	for j := range then {
		slopes.Set(len(items)+j, j, 1e-6/math.Abs(width[j])) // what moves nothing stays
	}
	by := new(mat.VecDense)
	if by.SolveVec(slopes, off) != nil {
		return nil
	}
	return by
}
