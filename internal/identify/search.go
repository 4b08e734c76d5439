package identify

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/spinsim/spinsim/ledger"
)

// Step is a step of the search.
type Step struct {
	Changes  []string // question and alternative; numbers of earlier steps may change, too
	Distance float64  // mean of all rows behind the step
}

// Limits of the search: how many candidates are measured in a step, and which
// part of the mean distance a step must bring, so that few choices explain much.
const (
	most  = 4
	least = 0.03
	steps = 12
)

// agreed is the mean distance below which nothing is left to explain, as a
// logarithm.
const agreed = 2e-5

// effects is what alternatives add to today's values alone: those that move
// something.
type effects struct {
	today []float64
	of    []*known
}

// known is an alternative with the picks that were measured: one, or several of
// a range.
type known struct {
	picks  []*pick
	values [][]float64
	of     *ledger.Range // nil: it has none
}

// wide reports whether the numbers of a range are powers apart: see spaced.
func (k *known) wide() bool { return k.of.Low > 0 && k.of.High/k.of.Low > 4 }

// find returns the alternative of a pick. nil: it moves nothing.
func (e *effects) find(p *pick) *known {
	for _, k := range e.of {
		if k.picks[0].question == p.question && k.picks[0].alternative == p.alternative {
			return k
		}
	}
	return nil
}

// add adds what a pick adds to values. Between the measured numbers of a range
// values are a straight line, or a power if they are far apart.
func (e *effects) add(values []float64, p *pick, sign float64) {
	k := e.find(p)
	if k == nil {
		return
	}
	at := 0
	for at+2 < len(k.picks) && p.x > k.picks[at+1].x {
		at++
	}
	for i := range values {
		then := k.values[at][i]
		if k.of != nil {
			low, high, next := k.picks[at].x, k.picks[at+1].x, k.values[at+1][i]
			if k.wide() {
				then += math.Log(p.x/low) / math.Log(high/low) * (next - then)
			} else {
				then = math.Log(math.Exp(then) + (p.x-low)/(high-low)*(math.Exp(next)-math.Exp(then)))
			}
		}
		if d := then - e.today[i]; !math.IsNaN(d) {
			values[i] += sign * d
		}
	}
}

// grid is how many numbers of a range are tried on lines between measured ones.
const grid = 64

// options lists what may be picked of an alternative: of a range many numbers, and
// some near today's.
func (s *Study) options(k *known) []*pick {
	if k.of == nil {
		return k.picks
	}
	var list []*pick
	for i := range grid + 1 {
		part := float64(i) / grid
		x := k.of.Low + part*(k.of.High-k.of.Low)
		if k.wide() {
			x = k.of.Low * math.Pow(k.of.High/k.of.Low, part)
		}
		list = append(list, s.at(k.picks[0].question, k.picks[0].alternative, k.of, x))
	}
	for _, by := range []float64{-0.1, -0.05, -0.03, -0.01, 0.01, 0.03, 0.05, 0.1} {
		if x := s.Today[k.of.Path] * (1 + by); x >= k.of.Low && x <= k.of.High {
			list = append(list, s.at(k.picks[0].question, k.picks[0].alternative, k.of, x))
		}
	}
	return list
}

// replaced are values after another answer to a question, if effects add up.
func replaced(values []float64, of *effects, old, p *pick) []float64 {
	values = slices.Clone(values)
	if old != nil {
		of.add(values, old, -1)
	}
	if p != nil {
		of.add(values, p, 1)
	}
	return values
}

// search looks for the answers with which the rows that count come nearest.
type search struct {
	*Study
	of     *effects // what alternatives add to the values alone
	counts func(row int) bool
}

// loss is the mean distance of the rows that count, as a logarithm.
func (s *search) loss(values []float64) float64 { return mean(s.losses(values), s.counts) }

// best is the option of an alternative with which the rows that count come
// nearest, if effects add up.
func (s *search) best(at *state, k *known) (best *pick) {
	loss := math.Inf(1)
	for _, p := range s.options(k) {
		if l := s.loss(replaced(at.values, s.of, at.picks[p.question], p)); l < loss {
			best, loss = p, l
		}
	}
	return best
}

// run looks for the answers, first step by step, then in a sample.
func (s *search) run(ctx context.Context, today *state) (path []*state, err error) {
	if path, err = s.greedy(ctx, today); err != nil {
		return nil, err
	}
	return s.sampled(ctx, today, path)
}

// greedy changes one answer after the other as long as the rows that count come
// nearer. Effects of alternatives add up nearly on the logarithmic scale, so
// they select what is measured.
func (s *search) greedy(ctx context.Context, at *state) (path []*state, err error) {
	for range steps {
		if s.loss(at.values) < agreed {
			break
		}
		next, err := s.step(ctx, at)
		if err != nil {
			return nil, err
		}
		if next == nil {
			break
		}
		fitted, err := s.fit(ctx, next)
		if err != nil {
			return nil, err
		}
		// least squares may bring the mean back to where the step began
		if at = next; s.loss(fitted.values) <= s.loss(next.values) {
			at = fitted
		}
		path = append(path, at)
	}
	return path, nil
}

// candidate is a setting that may be better.
type candidate struct {
	*state                // with values as effects add up
	loss   float64        // of these
	ranged map[int]*known // alternatives with a range that were changed, by question
}

// changed is a candidate with another answer to a question. p nil: today's.
func (s *search) changed(c candidate, question int, p *pick, k *known) candidate {
	st := &state{picks: slices.Clone(c.picks), values: replaced(c.values, s.of, c.picks[question], p)}
	st.picks[question] = p
	next := candidate{st, s.loss(st.values), maps.Clone(c.ranged)}
	if k != nil && k.of != nil {
		next.ranged[question] = k
	}
	return next
}

// changes lists what one more change of a candidate makes.
func (s *search) changes(c candidate) (list []candidate) {
	for _, k := range s.of.of {
		p := s.best(c.state, k)
		if old := c.picks[p.question]; old == nil || old.name != p.name {
			list = append(list, s.changed(c, p.question, p, k))
		}
	}
	for q, p := range c.picks {
		if p != nil {
			list = append(list, s.changed(c, q, nil, nil))
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(a.loss, b.loss) })
	return list
}

// step changes one answer, or two at once if one alone does not help, or one with
// all numbers of ranges fitted anew. nil: no change brings enough.
func (s *search) step(ctx context.Context, at *state) (*state, error) {
	begin := candidate{at, s.loss(at.values), map[int]*known{}}
	single := s.changes(begin)
	next, err := s.tried(ctx, begin, single)
	if err != nil || next != nil {
		return next, err
	}
	var pairs []candidate
	for _, c := range single {
		pairs = append(pairs, s.changes(c)...)
	}
	slices.SortStableFunc(pairs, func(a, b candidate) int { return cmp.Compare(a.loss, b.loss) })
	if next, err = s.tried(ctx, begin, pairs); err != nil || next != nil {
		return next, err
	}
	return s.refitted(ctx, begin)
}

// tried measures the first candidates and returns the best. nil: none is better
// than the beginning by enough.
func (s *search) tried(ctx context.Context, begin candidate, list []candidate) (*state, error) {
	var settings [][]*pick
	for _, c := range list[:min(most, len(list))] {
		settings = append(settings, c.picks)
		for _, part := range []float64{0.5, 0.25} {
			if nearer := s.nearer(begin.state, c, part); nearer != nil {
				settings = append(settings, nearer)
			}
		}
	}
	states, err := s.measure(ctx, settings)
	if err != nil {
		return nil, err
	}
	var best *state
	loss := (1 - least) * begin.loss
	for _, st := range states {
		if st.err == nil && s.loss(st.values) < loss {
			best, loss = st, s.loss(st.values)
		}
	}
	return best, nil
}

// nearer goes only a part of the way to the numbers of a candidate's ranges:
// where effects do not add up, less may be better. nil: it has no range, or its
// number today is not known.
func (s *search) nearer(begin *state, c candidate, part float64) []*pick {
	var picks []*pick
	for q, k := range c.ranged { //lint:maporder each question by itself
		p := c.picks[q]
		x, is := s.Today[k.of.Path]
		if old := begin.picks[q]; old != nil && p != nil && old.alternative == p.alternative {
			x, is = old.x, true
		}
		if is && p != nil {
			if picks == nil {
				picks = slices.Clone(c.picks)
			}
			picks[q] = s.at(q, p.alternative, k.of, x+part*(p.x-x))
		}
	}
	return picks
}

// rounds is how often fit goes on from a better place.
const rounds = 6

// fit moves the numbers of ranges that were picked, all at once, by least
// squares of the logarithms (Gauss and Newton, half a step where a whole one is
// no gain).
func (s *search) fit(ctx context.Context, at *state) (*state, error) {
	var free []*pick
	var ranges []*ledger.Range
	for _, p := range at.picks {
		if p == nil {
			continue
		}
		r, err := s.Questions[p.question].Alternatives[p.alternative].Range()
		if err != nil {
			return nil, err
		}
		if r != nil {
			free, ranges = append(free, p), append(ranges, r)
		}
	}
	for range rounds {
		next, err := s.better(ctx, at, free, ranges)
		if err != nil || next == nil {
			return at, err
		}
		at = next
		for i, p := range free {
			free[i] = at.picks[p.question]
		}
	}
	return at, nil
}

// better is one round of fit. nil: there is nothing better.
func (s *search) better(ctx context.Context, at *state, free []*pick, ranges []*ledger.Range) (*state, error) {
	items := s.numbers(at)
	if len(free) == 0 || len(items) == 0 || s.loss(at.values) < agreed {
		return nil, nil //nolint:nilnil // nothing to fit
	}
	by, err := s.direction(ctx, at, free, ranges, items)
	if err != nil || by == nil {
		return nil, err
	}
	var settings [][]*pick
	for _, part := range []float64{1, 0.5, 0.25} {
		picks := at.picks
		for i, p := range free {
			x := min(ranges[i].High, max(ranges[i].Low, p.x+part*by.AtVec(i)))
			picks = with(picks, s.at(p.question, p.alternative, ranges[i], x))
		}
		settings = append(settings, picks)
	}
	states, err := s.measure(ctx, settings)
	if err != nil {
		return nil, err
	}
	var best *state
	least := s.squares(at, items)
	for _, st := range states {
		if st.err == nil && s.squares(st, items) < 0.999*least {
			best, least = st, s.squares(st, items)
		}
	}
	return best, nil
}

// numbers lists the items of the rows that count that are no claims.
func (s *search) numbers(at *state) (items []int) {
	for k, it := range s.items {
		if it.number >= 0 && s.counts(it.row) && !math.IsNaN(at.values[k]) {
			items = append(items, k)
		}
	}
	return items
}

// direction returns how far least squares would move each free number. nil: the
// items do not determine it.
func (s *search) direction(ctx context.Context, at *state, free []*pick, ranges []*ledger.Range, items []int) (*mat.VecDense, error) {
	near := make([][]*pick, len(free))
	width := make([]float64, len(free))
	for i, p := range free {
		width[i] = s.aside(ranges[i], p.x)
		near[i] = with(at.picks, s.at(p.question, p.alternative, ranges[i], p.x+width[i]))
	}
	states, err := s.measure(ctx, near)
	if err != nil {
		return nil, err
	}
	then := make([][]float64, len(free))
	for j, st := range states {
		if st.err == nil {
			then[j] = st.values
		}
	}
	return s.squaresStep(at.values, then, width, items), nil
}

// pull is what a value lacks: to the middle of what agrees with a number, and to
// a bound only from outside.
func (it *item) pull(value float64) float64 {
	switch middle := (it.low + it.high) / 2; {
	case !math.IsInf(middle, 0):
		return middle - value
	case value < it.low:
		return it.low - value
	case value > it.high:
		return it.high - value
	}
	return 0
}

// squares is the sum of squares of what items lack.
func (s *search) squares(st *state, items []int) (sum float64) {
	for _, k := range items {
		sum += math.Pow(s.items[k].pull(st.values[k]), 2)
	}
	return sum
}
