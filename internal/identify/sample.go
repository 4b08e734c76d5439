package identify

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// Limits of the sample: questions that it asks, and settings that it draws.
const (
	asked = 10
	drawn = 16
)

// draw draws settings by a design, so that any three answers occur together in
// one, as far as so few settings allow. It asks the questions that alone move a
// row that is off today, those first that move most. Of a range it takes the ends.
func (s *Study) draw(today *state, of *effects) (settings [][]*pick) {
	off := s.losses(today.values)
	moves := make([]float64, len(s.Questions))
	answers := make([][]*pick, len(s.Questions)) // besides today's
	var questions []int
	for _, k := range of.of {
		for _, end := range slices.Compact([]int{0, len(k.picks) - 1}) {
			by := 0.0
			for i, it := range s.items {
				if d := math.Abs(k.values[end][i] - today.values[i]); off[it.row] > material && d > material {
					by += min(farthest, d)
				}
			}
			if p := k.picks[end]; by > 0 {
				answers[p.question] = append(answers[p.question], p)
				moves[p.question] = max(moves[p.question], by)
			}
		}
	}
	for q, m := range moves {
		if m > 0 {
			questions = append(questions, q)
		}
	}
	slices.SortStableFunc(questions, func(a, b int) int { return cmp.Compare(moves[b], moves[a]) })
	questions = questions[:min(asked, len(questions))]
	var levels []int
	for _, q := range questions {
		levels = append(levels, 1+len(answers[q]))
	}
	for _, row := range covering(levels, drawn) {
		picks := slices.Clone(today.picks)
		for i, level := range row {
			if q := questions[i]; level > 0 {
				picks[q] = answers[q][level-1]
			}
		}
		settings = append(settings, picks)
	}
	return settings
}

// three are three factors, each with a level.
type three [3][2]int

// covering is a covering array of strength 3: any three levels of different
// factors occur together in a row, as far as so many rows allow. Each row is
// filled factor by factor with the level that promises most new threes.
func covering(levels []int, many int) (rows [][]int) {
	done := map[three]bool{}
	for range many {
		row, news := make([]int, len(levels)), 0
		for f := range levels {
			best, level := -1.0, 0
			for row[f] = range levels[f] {
				if n := promise(levels, row, f, done); n > best {
					best, level = n, row[f]
				}
			}
			row[f] = level
		}
		for a := range row {
			for b := range a {
				for c := range b {
					if t := threeOf(row, a, b, c); !done[t] {
						done[t] = true
						news++
					}
				}
			}
		}
		if news == 0 {
			break
		}
		rows = append(rows, row)
	}
	return rows
}

// promise is how many new threes with a factor's level a row would have in the
// mean, of which only the factors up to this one are filled.
func promise(levels, row []int, factor int, done map[three]bool) (sum float64) {
	ways := func(f int) int { // levels that it may have
		if f <= factor {
			return 1
		}
		return levels[f]
	}
	for a := range levels {
		for b := range a {
			if a == factor || b == factor {
				continue
			}
			for i := range ways(a) {
				for j := range ways(b) {
					at := slices.Clone(row)
					if a > factor {
						at[a] = i
					}
					if b > factor {
						at[b] = j
					}
					if !done[threeOf(at, a, b, factor)] {
						sum += 1 / float64(ways(a)*ways(b))
					}
				}
			}
		}
	}
	return sum
}

// threeOf are the levels of three factors in a row.
func threeOf(row []int, factors ...int) (t three) {
	slices.Sort(factors)
	for i, f := range factors {
		t[i] = [2]int{f, row[f]}
	}
	return t
}

// sampled goes on from what a design has drawn, where answers help that help only
// together: no change of one or two leads there. From each setting it changes one
// answer after the other as if effects added up to what was measured there. What
// it comes to is measured. The nearest, if it is nearer than the end of the path
// that was found before, is fitted and is where further steps begin. It returns
// the path that ends nearer; the old one if the new one is not nearer by enough.
func (s *search) sampled(ctx context.Context, today *state, path []*state) ([]*state, error) {
	loss := s.loss(last(today, path).values)
	if loss < agreed {
		return path, nil
	}
	defer func(before int) { s.drawn += len(s.known) - before }(len(s.known))
	states, err := s.measure(ctx, s.design)
	if err != nil {
		return nil, err
	}
	var list []candidate
	for _, st := range states {
		if st.err == nil {
			list = append(list, s.descend(candidate{st, s.loss(st.values), map[int]*known{}}))
		}
	}
	if states, err = s.nearestOf(ctx, list, 0); err != nil || len(states) == 0 || s.loss(states[0].values) >= loss {
		return path, err
	}
	best, err := s.fit(ctx, states[0])
	if err != nil {
		return nil, err
	}
	if s.loss(best.values) > s.loss(states[0].values) {
		best = states[0]
	}
	if s.loss(best.values) >= (1-least)*loss {
		return path, nil
	}
	further, err := s.greedy(ctx, best)
	return append([]*state{best}, further...), err
}

// descend changes one answer after the other as long as that brings enough if
// effects add up.
func (s *search) descend(c candidate) candidate {
	for range s.Questions {
		list := s.changes(c)
		if len(list) == 0 || list[0].loss >= (1-least)*c.loss {
			break
		}
		c = list[0]
	}
	return s.refit(c)
}
