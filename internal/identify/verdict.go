package identify

import (
	"context"
	"math"
	"slices"
)

// Verdict is what a study has found.
type Verdict struct {
	Today    float64  // mean distance of the rows with today's answers
	Effects  []Effect // of each alternative alone
	Path     []Step   // the few changes that bring the rows nearest, one after the other
	Set      []string // what they set in the end
	Fitted   Spread   // distances of rows behind Path
	Before   Spread   // and with today's answers
	LeftOut  Spread   // of each experiment's rows, when the search does not see them
	Excluded []Exclusion
	Unfit    []string // questions all of whose alternatives that move something are excluded
	Separate []Separation
	Measured int // settings
}

// Spread is the median and the ninth decile of distances.
type Spread struct{ Median, P90 float64 }

// Exclusion is an alternative with which no admissible rest brings a row near,
// although another alternative does.
type Exclusion struct {
	Question, Alternative string
	Row                   string
	Best                  float64 // nearest distance with it, measured
	Instead               string  // the alternative that comes nearest
	Then                  float64 // its nearest distance
}

// Separation is a number that nobody has published and that would tell two
// alternatives of a question apart.
type Separation struct {
	Question, Alternative string
	Number                string
	Factor                float64 // between the alternative and today's answer
}

// Distances beyond which an alternative is excluded, and within which another
// one must come.
const (
	far  = 0.25
	near = 0.1
)

// Run makes the study.
func (s *Study) Run(ctx context.Context) (*Verdict, error) {
	if len(s.Rows) == 0 {
		return nil, errNoRows
	}
	today, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	v := &Verdict{Today: math.Expm1(mean(s.losses(today.values), every)), Before: s.spread(today, nil)}
	picks, states, err := s.alone(ctx, today)
	if err != nil {
		return nil, err
	}
	of := s.effects(today, picks, states, v)
	path, err := s.search(ctx, today, of, every)
	if err != nil {
		return nil, err
	}
	v.Path, v.Fitted = s.stepsOf(today, path), v.Before
	if len(path) > 0 {
		last := path[len(path)-1]
		v.Fitted, v.Set = s.spread(last, nil), setOf(last.picks)
	}
	if v.LeftOut, err = s.leaveOut(ctx, today, of); err != nil {
		return nil, err
	}
	if v.Excluded, err = s.exclude(ctx, today, of); err != nil {
		return nil, err
	}
	v.Unfit = s.unfit(of, v.Excluded)
	v.Separate = s.separate(today, picks, states, v.Excluded)
	v.Measured = len(s.known)
	return v, nil
}

// effects keeps the alternatives that move something, and describes them all.
func (s *Study) effects(today *state, picks []*pick, states []*state, v *Verdict) *effects {
	of := &effects{today: today.values}
	for i := 0; i < len(picks); {
		k := &known{}
		moves := false
		for first := picks[i]; i < len(picks) && picks[i].question == first.question && picks[i].alternative == first.alternative; i++ {
			e := s.effect(today, picks[i], states[i])
			v.Effects = append(v.Effects, e)
			moves = moves || len(e.Moved) > 0
			if e.Err == nil {
				k.picks, k.values = append(k.picks, picks[i]), append(k.values, states[i].values)
			}
		}
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

// spread is of the distances of the rows with numbers; those of want, nil: all.
func (s *Study) spread(st *state, want func(row int) bool) Spread {
	var all []float64
	for i, l := range s.losses(st.values) {
		if !s.Rows[i].Published.Claim() && (want == nil || want(i)) {
			all = append(all, math.Expm1(l))
		}
	}
	return spreadOf(all)
}

func spreadOf(all []float64) Spread {
	if len(all) == 0 {
		return Spread{math.NaN(), math.NaN()}
	}
	slices.Sort(all)
	at := func(q float64) float64 {
		x := q * float64(len(all)-1)
		low := int(x)
		return all[low] + (x-float64(low))*(all[min(low+1, len(all)-1)]-all[low])
	}
	return Spread{at(0.5), at(0.9)}
}

// leaveOut searches without the rows of one experiment, and looks how near these
// come: for each experiment, if there are several.
func (s *Study) leaveOut(ctx context.Context, today *state, of *effects) (Spread, error) {
	var experiments []string
	for _, r := range s.Rows {
		if !slices.Contains(experiments, r.Experiment) {
			experiments = append(experiments, r.Experiment)
		}
	}
	var all []float64
	if len(experiments) == 1 {
		return spreadOf(nil), nil
	}
	for _, e := range experiments {
		path, err := s.search(ctx, today, of, func(row int) bool { return s.Rows[row].Experiment != e })
		if err != nil {
			return Spread{}, err
		}
		at := today
		if len(path) > 0 {
			at = path[len(path)-1]
		}
		for i, l := range s.losses(at.values) {
			if s.Rows[i].Experiment == e && !s.Rows[i].Published.Claim() {
				all = append(all, math.Expm1(l))
			}
		}
	}
	return spreadOf(all), nil
}

// exclude lists the alternatives, today's too, with which a row stays far
// whatever the answers to the other questions are. What the effects suggest as
// the nearest is measured.
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
			states, err := s.measure(ctx, settings)
			if err != nil {
				return nil, err
			}
			best := 0
			for i, st := range states {
				if s.distance(st, row) < s.distance(states[best], row) {
					best = i
				}
			}
			if s.distance(states[best], row) > near {
				continue
			}
			for i, st := range states {
				if d := s.distance(st, row); d > far && !s.has(list, q, s.nameOf(answers[i])) {
					list = append(list, Exclusion{s.Questions[q].ID, s.nameOf(answers[i]), s.Rows[row].ID, d, s.nameOf(answers[best]), s.distance(states[best], row)})
				}
			}
		}
	}
	return list, nil
}

// unfit lists the questions without an alternative that is not excluded: one is
// missing, or numbers contradict each other.
func (s *Study) unfit(of *effects, excluded []Exclusion) (list []string) {
	for q := range s.Questions {
		rest, some := !s.has(excluded, q, s.nameOf(nil)), false
		for _, k := range of.of {
			if k.picks[0].question == q {
				some = true
				rest = rest || !s.has(excluded, q, s.nameOf(k))
			}
		}
		if some && !rest {
			list = append(list, s.Questions[q].ID)
		}
	}
	return list
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

// distance is the distance of a row in a state.
func (s *Study) distance(st *state, row int) float64 {
	if st.err != nil {
		return math.Inf(1)
	}
	return math.Expm1(s.losses(st.values)[row])
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

// nearest answers the questions so that a row comes nearest if effects add up:
// one with a given alternative, nil being today's, and the others with any. It
// changes one after the other as long as it helps.
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

// separate finds for each alternative that remains the number that differs most
// from today's; of a range for the number in it that differs most.
func (s *Study) separate(today *state, picks []*pick, states []*state, excluded []Exclusion) (list []Separation) {
	for i, p := range picks {
		if states[i].err != nil || s.has(excluded, p.question, s.Questions[p.question].Alternatives[p.alternative].Name) {
			continue
		}
		one := Separation{Question: s.Questions[p.question].ID, Alternative: p.name, Factor: 1}
		for name, then := range states[i].other { //lint:maporder the largest, and of equal ones the first name
			before, ok := today.other[name]
			if !ok || before <= 0 || then <= 0 {
				continue
			}
			by, most := math.Abs(math.Log(then/before)), math.Abs(math.Log(one.Factor))
			if one.Number == "" || by > most || by == most && name < one.Number {
				one.Number, one.Factor = name, then/before
			}
		}
		by := math.Abs(math.Log(one.Factor))
		if by <= math.Log1p(near) {
			continue
		}
		last := len(list) - 1
		same := i > 0 && last >= 0 && picks[i-1].question == p.question && picks[i-1].alternative == p.alternative && list[last].Question == one.Question
		switch {
		case !same:
			list = append(list, one)
		case by > math.Abs(math.Log(list[last].Factor)):
			list[last] = one
		}
	}
	return list
}
