package identify

import (
	"context"
	"math"
	"slices"

	"github.com/spinsim/spinsim/ledger"
)

// Verdict is what a study has found.
type Verdict struct {
	Today    float64  // mean distance of the rows with today's answers
	Effects  []Effect // of each alternative alone
	Path     []Step   // the few changes that bring the rows nearest, one after the other
	Set      []string // what they set in the end
	Rows     []Near   // rows with numbers
	Before   Spread   // of their distances with today's answers
	Fitted   Spread   // behind Path
	LeftOut  Spread   // of each experiment's rows, when the search does not see them
	Excluded []Exclusion
	Unfit    []Contradiction
	Separate []Separation
	Far      []Far   // rows that stay far
	Rivals   []Rival // other answers that are as near as Set
	// First tells most rivals from Set; without rivals most of what remains from
	// today's.
	First    Measurement
	Measured int // settings
	Drawn    int // of these in samples
}

// Spread is the median and the ninth decile of distances.
type Spread struct{ Median, P90 float64 }

// Near is how near a row with numbers comes: its distances, as the ledger has
// them, with today's answers, with those that the search finds, and with those
// that it finds without the rows of the same experiment. The last is NaN if
// there is one experiment only.
type Near struct {
	Row, Experiment        string
	Today, Fitted, LeftOut float64
}

// Exclusion is an alternative with which no admissible rest brings a row near,
// although another alternative does.
type Exclusion struct {
	Question, Alternative string
	Row                   string
	Best                  float64 // nearest distance with it, measured
	Instead               string  // the alternative that comes nearest
	Then                  float64 // its nearest distance
}

// Distances beyond which an alternative is excluded, and within which another
// one must come.
const (
	far  = 0.25
	near = 0.1
)

// Run makes the study.
func (s *Study) Run(ctx context.Context) (*Verdict, error) {
	f, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	v := f.verdict
	all, err := s.exclude(ctx, f.today, f.of)
	if err != nil {
		return nil, err
	}
	v.Excluded, v.Unfit = firstOf(all), s.contradictions(f.today, f.of, all, f.picks, f.states)
	apart := s.separate(f.today, f.picks, f.states, v.Excluded)
	v.Separate = farthestOf(apart)
	if v.Far, err = s.faraway(ctx, f.today, f.fitted, f.of); err != nil {
		return nil, err
	}
	if v.Rivals, v.First, err = s.rivals(ctx, f.fitted, f.of); err != nil {
		return nil, err
	}
	if len(v.Rivals) == 0 {
		v.First = first(apart)
	}
	v.Measured, v.Drawn = len(s.known), s.drawn
	return v, nil
}

// LeaveOut is the part of Run that finds out how near rows come.
func (s *Study) LeaveOut(ctx context.Context) ([]Near, error) {
	f, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	return f.verdict.Rows, nil
}

// findings are what a study knows before it excludes alternatives.
type findings struct {
	verdict *Verdict
	today   *state
	fitted  *state
	picks   []*pick  // each alternative alone
	states  []*state // of picks
	of      *effects
}

// find measures each alternative alone, searches, and leaves out experiments.
func (s *Study) find(ctx context.Context) (*findings, error) {
	if len(s.Rows) == 0 {
		return nil, errNoRows
	}
	today, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	v := &Verdict{Today: math.Expm1(mean(s.losses(today.values), every))}
	picks, states, err := s.alone(ctx, today)
	if err != nil {
		return nil, err
	}
	of := s.effects(today, picks, states, v)
	s.design = s.draw(today, of)
	path, err := (&search{s, of, every}).run(ctx, today)
	if err != nil {
		return nil, err
	}
	fitted := last(today, path)
	v.Path, v.Set = s.stepsOf(today, path), setOf(fitted.picks)
	return &findings{v, today, fitted, picks, states, of}, s.leaveOut(ctx, v, today, fitted, of)
}

// effects keeps the alternatives that move something, and describes them all.
func (s *Study) effects(today *state, picks []*pick, states []*state, v *Verdict) *effects {
	of := &effects{today: today.values}
	for i := 0; i < len(picks); {
		k, begin := &known{}, len(v.Effects)
		moves := false
		for first := picks[i]; i < len(picks) && picks[i].question == first.question && picks[i].alternative == first.alternative; i++ {
			e := s.effect(today, picks[i], states[i])
			v.Effects = append(v.Effects, e)
			moves = moves || len(e.Moved) > 0
			if e.Err == nil {
				k.picks, k.values = append(k.picks, picks[i]), append(k.values, states[i].values)
			}
		}
		nearest(v.Effects[begin:])
		if len(k.picks) > 1 {
			k.of, _ = s.Questions[k.picks[0].question].Alternatives[k.picks[0].alternative].Range()
			s.insertToday(k, today)
		}
		if moves && len(k.picks) > 0 {
			of.of = append(of.of, k)
		}
	}
	return of
}

// nearest takes the mark from the number inside a range that brings the rows
// nearer than both ends.
func nearest(list []Effect) {
	best := -1
	for i, e := range list {
		if e.Err == nil && (best < 0 || e.Distance < list[best].Distance) {
			best = i
		}
	}
	if best >= 0 {
		list[best].Inner = false
	}
}

// insertToday puts today's number among those of a range that were measured, if
// it is known: there effects are exact.
func (s *Study) insertToday(k *known, today *state) {
	x, is := s.Today[k.of.Path]
	if !is || x < k.of.Low || x > k.of.High {
		return
	}
	i := slices.IndexFunc(k.picks, func(p *pick) bool { return p.x >= x })
	if k.picks[i].x > x {
		k.picks = slices.Insert(k.picks, i, s.at(k.picks[0].question, k.picks[0].alternative, k.of, x))
		k.values = slices.Insert(k.values, i, today.values)
	}
}

// stepsOf describes a path.
func (s *Study) stepsOf(today *state, path []*state) (list []Step) {
	before := today
	for _, st := range path {
		step := Step{Distance: math.Expm1(mean(s.losses(st.values), every))}
		for q, p := range st.picks {
			switch old := before.picks[q]; {
			case p == old || p != nil && old != nil && p.name == old.name:
			case p == nil:
				step.Changes = append(step.Changes, s.Questions[q].ID+" today's")
			default:
				step.Changes = append(step.Changes, s.Questions[q].ID+" "+p.name)
			}
		}
		list = append(list, step)
		before = st
	}
	return list
}

// last is the end of a path that begins at today.
func last(today *state, path []*state) *state {
	if len(path) == 0 {
		return today
	}
	return path[len(path)-1]
}

// leaveOut searches without the rows of one experiment, and looks how near these
// come: for each experiment, if there are several.
func (s *Study) leaveOut(ctx context.Context, v *Verdict, today, fitted *state, of *effects) error {
	without := map[string]*state{}
	for _, r := range s.Rows {
		if e := r.Experiment; without[e] == nil && slices.ContainsFunc(s.Rows, func(o Row) bool { return o.Experiment != e }) {
			path, err := (&search{s, of, func(row int) bool { return s.Rows[row].Experiment != e }}).run(ctx, today)
			if err != nil {
				return err
			}
			without[e] = last(today, path)
		}
	}
	for _, r := range s.Rows {
		if r.Published.Claim() {
			continue
		}
		v.Rows = append(v.Rows, Near{r.ID, r.Experiment, r.off(today), r.off(fitted), r.off(without[r.Experiment])})
	}
	v.Before = SpreadOf(v.Rows, func(n Near) float64 { return n.Today })
	v.Fitted = SpreadOf(v.Rows, func(n Near) float64 { return n.Fitted })
	v.LeftOut = SpreadOf(v.Rows, func(n Near) float64 { return n.LeftOut })
	return nil
}

// off is the distance of a row in a state, as the ledger has it; of a claim that
// does not hold it is 1. It is infinite if the row was not measured, and NaN if
// there is no state.
func (r *Row) off(st *state) float64 {
	if st == nil {
		return math.NaN()
	}
	ours, measured := st.ours[r.ID]
	switch off, err := r.Off(ours); {
	case st.err != nil || err != nil || !measured:
		return math.Inf(1)
	case off.Claim && !off.Holds:
		return 1
	default:
		return off.Distance
	}
}

// SpreadOf is the spread of a distance of rows.
func SpreadOf(rows []Near, distance func(Near) float64) Spread {
	all := make([]float64, len(rows))
	for i, n := range rows {
		all[i] = distance(n)
	}
	slices.Sort(all)
	return Spread{ledger.Quantile(all, 0.5), ledger.Quantile(all, 0.9)}
}

// exclude lists the alternatives, today's too, with which a row stays far
// whatever the answers to the other questions are. What the effects suggest as
// the nearest is measured. Each row that excludes an alternative is listed.
func (s *Study) exclude(ctx context.Context, today *state, of *effects) (list []Exclusion, err error) {
	for q := range s.Questions {
		answers := []*known{nil}
		for _, k := range of.of {
			if k.picks[0].question == q {
				answers = append(answers, k)
			}
		}
		if len(answers) == 1 {
			continue
		}
		for row := range s.Rows {
			var settings [][]*pick
			for _, k := range answers {
				settings = append(settings, s.nearest(today, of, q, k, row))
			}
			if !s.suspect(today, of, settings, row) {
				continue
			}
			if _, err := s.measure(ctx, settings); err != nil {
				return nil, err
			}
			best, nearest := 0, make([]float64, len(answers))
			for i, k := range answers {
				if nearest[i] = s.closest(q, k, row); nearest[i] < nearest[best] {
					best = i
				}
			}
			if nearest[best] > near {
				continue
			}
			for i, d := range nearest {
				if d > far {
					list = append(list, Exclusion{s.Questions[q].ID, s.nameOf(answers[i]), s.Rows[row].ID, d, s.nameOf(answers[best]), nearest[best]})
				}
			}
		}
	}
	return list, nil
}

// nameOf names an alternative.
func (s *Study) nameOf(k *known) string {
	if k == nil {
		return "today's"
	}
	return s.Questions[k.picks[0].question].Alternatives[k.picks[0].alternative].Name
}

// has reports whether an alternative is excluded already.
func (s *Study) has(list []Exclusion, question int, name string) bool {
	return slices.ContainsFunc(list, func(e Exclusion) bool { return e.Question == s.Questions[question].ID && e.Alternative == name })
}

// closest is the least distance of a row in any setting that was measured with an
// answer to a question, nil being today's: where effects do not add up, the one
// that they suggest is not the nearest.
func (s *Study) closest(question int, answer *known, row int) float64 {
	least := math.Inf(1)
	for _, st := range s.known { //lint:maporder the least
		p := st.picks[question]
		if (p == nil) == (answer == nil) && (p == nil || p.alternative == answer.picks[0].alternative) {
			least = min(least, s.Rows[row].off(st))
		}
	}
	return least
}

// suspect reports whether by the sum of effects one answer brings the row near
// and another one does not.
func (s *Study) suspect(today *state, of *effects, settings [][]*pick, row int) bool {
	some, other := false, false
	for _, picks := range settings {
		d := math.Expm1(s.losses(s.predicted(today, of, picks))[row])
		some, other = some || d <= near, other || d > far
	}
	return some && other
}

// predicted are the values of picks if effects add up.
func (s *Study) predicted(today *state, of *effects, picks []*pick) []float64 {
	values := slices.Clone(today.values)
	for _, p := range picks {
		if p != nil {
			of.add(values, p, 1)
		}
	}
	return values
}

// none is no question.
const none = -1

// nearest answers the questions so that a row comes nearest if effects add up:
// one, or none, with a given alternative, nil being today's, and the others with
// any. It changes one after the other as long as it helps.
func (s *Study) nearest(today *state, of *effects, question int, answer *known, row int) []*pick {
	picks := slices.Clone(today.picks)
	if answer != nil {
		picks[question] = answer.picks[0]
	}
	values := s.predicted(today, of, picks)
	for range len(s.Questions) + 1 {
		var best *pick
		least := s.losses(values)[row] - 1e-6
		for _, k := range of.of {
			if k.picks[0].question == question && k != answer {
				continue
			}
			for _, p := range s.options(k) {
				if l := s.losses(replaced(values, of, picks[p.question], p))[row]; l < least {
					best, least = p, l
				}
			}
		}
		if best == nil {
			break
		}
		values, picks = replaced(values, of, picks[best.question], best), with(picks, best)
	}
	return picks
}
