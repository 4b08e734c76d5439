// Package identify finds out which answers to open questions the published
// numbers support. It knows no experiments: a function measures the rows of a
// setting.
//
// It measures each alternative alone first, and so learns which numbers it
// moves. Then it looks for the few changes that bring the rows nearest, one after
// the other and in a designed sample, and for alternatives that no others can make
// good.
package identify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/ledger"
)

// Study is what is asked: rows, and questions whose answers may move them.
type Study struct {
	Questions []ledger.Question
	Rows      []Row
	// Today are today's numbers of ranges, by path, in the units of the ranges, as
	// far as they are known.
	Today map[string]float64
	// Whole are the paths of ranges whose values are whole numbers, such as a
	// count of cores.
	Whole map[string]bool
	// Measure measures all rows with each of the settings: assignments to
	// profiles and axes. The first call has one setting without assignments.
	Measure func(ctx context.Context, settings [][]string) ([]Outcome, error)

	items  []item
	known  map[string]*state // by assignments
	design [][]*pick         // settings of a sample
	drawn  int               // settings that were measured because of it
}

// Row is a row of the ledger that the experiment answers.
type Row struct {
	*ledger.Row
	Experiment string
}

// Outcome is what was measured with a setting.
type Outcome struct {
	Ours  map[string]ledger.Ours // by the ids of rows
	Other map[string]float64     // any other numbers, by name: none is published
	Err   error                  // no such device: nothing was measured
}

// Effect is what an alternative does alone.
type Effect struct {
	Question, Alternative string
	Set                   []string // what it changes
	Inner                 bool     // inside a range, and another number of it brings the rows nearer
	Distance              float64  // mean of the rows, exp of the mean logarithm less 1
	Moved                 []Move   // rows that it moves by more than 3%, those it moves most first
	Err                   error    // it is not possible alone
}

// Move is a row that an alternative moves.
type Move struct {
	Row          string
	Before, Then float64 // distances, as the ledger has them; of a claim that does not hold 1
	Factor       float64 // of ours; NaN of a claim
}

// material is the least logarithm of a factor that counts.
var material = math.Log(1.03)

// farthest is the largest distance that counts in a mean, as a logarithm, so that
// one row does not outweigh the others, and failed that of a claim that does not
// hold: it is as bad as a number that is off by 100%.
var farthest, failed = math.Log(11), math.Log(2)

// item is a number of a row on a logarithmic scale, where the numbers between
// low and high agree with it.
type item struct {
	row, number int // number -1: a claim
	low, high   float64
}

// state is a setting with its outcome.
type state struct {
	picks  []*pick // by question; nil: today's answer
	values []float64
	ours   map[string]ledger.Ours // by the ids of rows
	other  map[string]float64
	err    error
}

// pick is an alternative, of a range at a number.
type pick struct {
	question, alternative int
	x                     float64
	name                  string
	set                   []string
}

// begin lists the items and measures today's answers.
func (s *Study) begin(ctx context.Context) (*state, error) {
	s.items, s.known = nil, map[string]*state{}
	for i, r := range s.Rows {
		if r.Published.Claim() {
			s.items = append(s.items, item{i, -1, failed, math.Inf(1)})
			continue
		}
		for k, n := range r.Published.Numbers {
			low, high := math.Log(n.Low), math.Log(n.High)
			if !(n.Low > 0) {
				low = math.Inf(-1)
			}
			s.items = append(s.items, item{i, k, low, high})
		}
	}
	states, err := s.measure(ctx, [][]*pick{make([]*pick, len(s.Questions))})
	if err != nil {
		return nil, err
	}
	return states[0], states[0].err
}

// measure measures settings that are not known yet.
func (s *Study) measure(ctx context.Context, list [][]*pick) ([]*state, error) {
	states := make([]*state, len(list))
	var settings [][]string
	var keys []string
	for i, picks := range list {
		key := strings.Join(setOf(picks), " ")
		if s.known[key] == nil {
			s.known[key] = &state{picks: picks}
			settings, keys = append(settings, setOf(picks)), append(keys, key)
		}
		states[i] = s.known[key]
	}
	outcomes, err := s.Measure(ctx, settings)
	if err != nil {
		return nil, err
	}
	for i := range outcomes {
		st := s.known[keys[i]]
		st.err, st.ours, st.other = outcomes[i].Err, outcomes[i].Ours, outcomes[i].Other
		if st.err == nil {
			st.values = s.valuesOf(outcomes[i].Ours)
		}
	}
	return states, nil
}

// setOf lists the assignments of picks.
func setOf(picks []*pick) (set []string) {
	for _, p := range picks {
		if p != nil {
			set = append(set, p.set...)
		}
	}
	return set
}

// valuesOf puts numbers on the scale of items.
func (s *Study) valuesOf(ours map[string]ledger.Ours) []float64 {
	values := make([]float64, len(s.items))
	for i, it := range s.items {
		r := s.Rows[it.row]
		o, measured := ours[r.ID]
		switch off, err := r.Off(o); {
		case !measured || err != nil:
			values[i] = math.NaN()
		case it.number < 0 && off.Holds:
			values[i] = failed
		case it.number < 0:
			values[i] = 0
		case o.Numbers[it.number] > 0:
			values[i] = math.Log(o.Numbers[it.number])
		default: // a number that a logarithm cannot have
			values[i] = math.Max(it.low, -farthest) - farthest
		}
	}
	return values
}

// off is how far a value is from its item, as a logarithm.
func (it *item) off(value float64) float64 {
	return min(farthest, max(0, it.low-value, value-it.high))
}

// losses are the distances of rows as logarithms, as far as they count. A row of
// several numbers has their mean. What was not measured is as far as can be.
func (s *Study) losses(values []float64) []float64 {
	sums, counts := make([]float64, len(s.Rows)), make([]float64, len(s.Rows))
	for i := range s.items {
		it := &s.items[i]
		counts[it.row]++
		if math.IsNaN(values[i]) {
			sums[it.row] += farthest
		} else {
			sums[it.row] += it.off(values[i])
		}
	}
	for i := range sums {
		sums[i] /= max(1, counts[i])
	}
	return sums
}

// mean is the mean of losses over the rows that count.
func mean(losses []float64, counts func(row int) bool) float64 {
	sum, n := 0.0, 0.0
	for i, l := range losses {
		if counts(i) {
			sum += l
			n++
		}
	}
	return sum / max(1, n)
}

func every(int) bool { return true }

// picks lists the alternatives of a question. A range gives several.
func (s *Study) picks(question int) (list []*pick, err error) {
	q := &s.Questions[question]
	for a := 1; a < len(q.Alternatives); a++ {
		one := &q.Alternatives[a]
		r, err := one.Range()
		if err != nil {
			return nil, err
		}
		if r == nil {
			list = append(list, &pick{question: question, alternative: a, x: math.NaN(), name: one.Name, set: one.Set})
			continue
		}
		for _, x := range spaced(r.Low, r.High) {
			list = append(list, s.at(question, a, r, x))
		}
	}
	return list, nil
}

// spaced divides a range where it is measured: in the middle, or if it is wide
// into factors of at most four.
func spaced(low, high float64) []float64 {
	if low <= 0 || high/low <= 4 {
		return []float64{low, (low + high) / 2, high}
	}
	n := math.Ceil(math.Log(high/low) / math.Log(4))
	var list []float64
	for i := range int(n) {
		list = append(list, low*math.Pow(high/low, float64(i)/n))
	}
	return append(list, high)
}

// at picks a number of a range.
func (s *Study) at(question, alternative int, r *ledger.Range, x float64) *pick {
	set := r.At(x)
	if s.Whole[r.Path] {
		x = math.Round(x)
		set = fmt.Sprintf("%s=%.0f", r.Path, x)
	}
	_, value, _ := strings.Cut(set, "=")
	return &pick{question, alternative, x, s.Questions[question].Alternatives[alternative].Name + " " + value, []string{set}}
}

// aside is how far from a number of a range a second one lies that tells the
// slope of values: not outside.
func (s *Study) aside(r *ledger.Range, x float64) float64 {
	width := (r.High - r.Low) / 50
	if s.Whole[r.Path] {
		width = max(1, math.Round(width))
	}
	if x+width > r.High {
		return -width
	}
	return width
}

// alone measures each alternative alone.
func (s *Study) alone(ctx context.Context, today *state) (picks []*pick, states []*state, err error) {
	var settings [][]*pick
	for q := range s.Questions {
		list, err := s.picks(q)
		if err != nil {
			return nil, nil, fmt.Errorf("question %s: %w", s.Questions[q].ID, err)
		}
		for _, p := range list {
			picks = append(picks, p)
			settings = append(settings, with(today.picks, p))
		}
	}
	states, err = s.measure(ctx, settings)
	return picks, states, err
}

// with returns picks with another answer to one question.
func with(picks []*pick, p *pick) []*pick {
	picks = slices.Clone(picks)
	picks[p.question] = p
	return picks
}

// answers names what was picked, whatever the numbers of ranges.
func answers(picks []*pick) (list []string) {
	for _, p := range picks {
		if p != nil {
			list = append(list, fmt.Sprint(p.question, ".", p.alternative))
		}
	}
	return list
}

// effect describes what a pick does alone.
func (s *Study) effect(today *state, p *pick, then *state) Effect {
	e := Effect{Question: s.Questions[p.question].ID, Alternative: p.name, Set: p.set, Err: then.err}
	if r, _ := s.Questions[p.question].Alternatives[p.alternative].Range(); r != nil {
		e.Inner = p.x > r.Low && p.x < r.High
	}
	if then.err != nil {
		return e
	}
	e.Distance = math.Expm1(mean(s.losses(then.values), every))
	type ranked struct {
		Move
		by float64
	}
	var moved []ranked
	for i := range s.Rows {
		by, factor := 0.0, math.NaN()
		for k, it := range s.items {
			if d := then.values[k] - today.values[k]; it.row == i && math.Abs(d) > math.Abs(by) {
				by = d
				if it.number >= 0 {
					factor = math.Exp(d)
				}
			}
		}
		if math.Abs(by) > material {
			moved = append(moved, ranked{Move{s.Rows[i].ID, s.Rows[i].off(today), s.Rows[i].off(then), factor}, math.Abs(by)})
		}
	}
	slices.SortStableFunc(moved, func(a, b ranked) int { return cmp.Compare(b.by, a.by) })
	for _, m := range moved {
		e.Moved = append(e.Moved, m.Move)
	}
	return e
}

// errNoRows is the error of a study without anything to explain.
var errNoRows = errors.New("no row with a number or a claim")
