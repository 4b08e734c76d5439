package experiment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// A number of ours depends on choices that publications leave open. Over their
// admissible answers it has a range: each answer alone, and those that raise or
// lower it all together. A range of numbers counts with its two ends.

// openAnswer is an answer to an open question that the sweep can take.
type openAnswer struct {
	question, name string
	set            []string
	sweep          *Sweep
	points         []*Point
	results        []*Result // by the number of the result of today
}

// overOpen has what was measured with the answers.
type overOpen struct {
	questions int // that the sweep can answer otherwise
	excluded  int // answers that rows of the ledger exclude
	answers   []*openAnswer
	today     []*Result
	place     map[*Result]int // in today
	together  []*openAnswer
	kept      map[string][2][]float64 // ranges that were read, by column
}

// openQuestions lists what the publications of an experiment leave open, without
// alternatives that rows of the ledger exclude, and counts these.
func openQuestions(e *Experiment) (list []ledger.Question, excluded int, err error) {
	exclusions, err := ledger.Excluded()
	if err != nil {
		return nil, 0, err
	}
	for _, p := range Publications() {
		if !slices.ContainsFunc(p.Experiments, func(o *Experiment) bool { return o.Name == e.Name }) {
			continue
		}
		more, err := ledger.Questions(p.Name)
		if err != nil {
			return nil, 0, err
		}
		for i := range more {
			q := &more[i]
			q.Alternatives = slices.DeleteFunc(q.Alternatives, func(a ledger.Alternative) bool {
				out := a.Name != q.Alternatives[0].Name && slices.ContainsFunc(exclusions, func(x ledger.Exclusion) bool {
					return x.Publication == p.Name && x.Question == q.ID && x.Alternative == a.Name
				})
				if out {
					excluded++
				}
				return out
			})
		}
		list = append(list, more...)
	}
	if list == nil {
		return nil, 0, fmt.Errorf("nothing is known to be open for %s", e.Name)
	}
	return list, excluded, nil
}

// newOverOpen makes the sweeps with other answers. It is an error if there are
// none.
func newOverOpen(s *Sweep) (*overOpen, error) {
	questions, excluded, err := openQuestions(s.grid.experiment)
	if err != nil {
		return nil, err
	}
	o := &overOpen{excluded: excluded}
	for i := range questions {
		q := &questions[i]
		before := len(o.answers)
		for k := range q.Alternatives[1:] {
			if err := o.add(s, q, &q.Alternatives[k+1]); err != nil {
				return nil, fmt.Errorf("question %s: %w", q.ID, err)
			}
		}
		if len(o.answers) > before {
			o.questions++
		}
	}
	if o.answers == nil {
		return nil, fmt.Errorf("none of the %d open questions concerns these profiles and values", len(questions))
	}
	return o, nil
}

// add adds an alternative, if the sweep can take it.
func (o *overOpen) add(s *Sweep, q *ledger.Question, a *ledger.Alternative) error {
	r, err := a.Range()
	if err != nil {
		return err
	}
	sets := [][]string{a.Set}
	if r != nil {
		sets = [][]string{{r.At(r.Low)}, {r.At(r.High)}}
	}
	for _, set := range sets {
		name := a.Name
		if r != nil {
			name += " " + strings.SplitN(set[0], "=", 2)[1]
		}
		if one := answered(s, set); one != nil {
			one.question, one.name = q.ID, name
			o.answers = append(o.answers, one)
		}
	}
	return nil
}

// answered is a sweep with other answers. nil: the sweep cannot take them, or
// the user has chosen.
func answered(s *Sweep, set []string) *openAnswer {
	again := *s
	again.grid.values = slices.Clone(s.grid.values)
	again.grid.chosen = slices.Clone(s.grid.chosen)
	a := Assignments{Set: set}
	if a.Apply(&again) != nil || a.Err() != nil {
		return nil
	}
	if again.recorded != nil { // its overrides are in the recorded profiles
		again.more = append(slices.Clone(s.more), again.Overrides[len(s.Overrides):]...)
		again.Overrides = s.Overrides
	}
	for i := range again.grid.values {
		if len(again.grid.values[i]) != len(s.grid.values[i]) {
			return nil // it is an axis of the table
		}
	}
	points, err := again.Points()
	if err != nil {
		return nil
	}
	return &openAnswer{set: set, sweep: &again, points: points}
}

// measure measures the answers: each alone, then those together that raise or
// lower each of the columns most. The sweep then shows the ranges.
func (o *overOpen) measure(ctx context.Context, errs io.Writer, s *Sweep, today []*Result) error {
	o.today, o.place = today, make(map[*Result]int)
	for i, r := range today {
		o.place[r] = i
	}
	if err := o.run(ctx, errs, s, o.answers); err != nil {
		return err
	}
	for _, c := range rangedColumns(s.grid.experiment) {
		for _, sign := range []float64{-1, 1} {
			set := o.extreme(c, sign)
			known := slices.ContainsFunc(o.together, func(a *openAnswer) bool { return slices.Equal(a.set, set) })
			if one := answered(s, set); one != nil && len(set) > 0 && !known {
				o.together = append(o.together, one)
			}
		}
	}
	err := o.run(ctx, errs, s, o.together)
	if err == nil {
		s.open = o
	}
	return err
}

// run measures the points of answers, all at once.
func (o *overOpen) run(ctx context.Context, errs io.Writer, s *Sweep, answers []*openAnswer) error {
	var points []*Point
	for _, a := range answers {
		points = append(points, a.points...)
	}
	results, err := s.batch(points).Shown(ctx, errs, s.grid.experiment.Name+" over what is open")
	if ctx.Err() != nil {
		return err
	}
	at := make(map[*Point]*Result)
	for _, r := range results { // a point that fails with an answer has no value there
		if r != nil {
			at[r.Point] = r
		}
	}
	for _, a := range answers {
		a.results = make([]*Result, len(o.today))
		for _, p := range a.points {
			for i, r := range o.today {
				if at[p] != nil && a.same(p, r.Point) {
					a.results[i] = at[p]
				}
			}
		}
	}
	return nil
}

// same reports whether two points differ in nothing but the answer.
func (a *openAnswer) same(p, today *Point) bool {
	if p.device != today.device {
		return false
	}
	for i := range p.values {
		other := p.values[i] != today.values[i]
		if name := p.experiment.Axes[i].Name; other && !slices.ContainsFunc(a.set, func(one string) bool { return strings.HasPrefix(one, name+"=") }) {
			return false
		}
	}
	return true
}

// rangedColumns are the columns with a range: the value, and what compares it.
func rangedColumns(e *Experiment) (list []report.Column) {
	list = append(list, e.value())
	for i := range e.Relative {
		if e.Relative[i].Of == e.value().Name {
			list = append(list, e.Relative[i].Column)
		}
	}
	return list
}

// values lists the values of a column with an answer, by the number of the
// result. NaN: there is none.
func (a *openAnswer) values(c report.Column) []float64 {
	at := make(map[string]*Result)
	for _, r := range a.results {
		if r != nil {
			at[r.Point.key(-1, nil)] = r
		}
	}
	list := make([]float64, len(a.results))
	for i, r := range a.results {
		list[i] = math.NaN()
		if r == nil {
			continue
		}
		v := r.Values[c.Name]
		if of := r.Point.experiment.relativeColumn(c.Name); of != nil {
			v = r.Point.experiment.relative(of, r, at)
		}
		if x, ok := Magnitude(v); ok {
			list[i] = x
		}
	}
	return list
}

// asToday are today's results in the form of an answer.
func (o *overOpen) asToday() *openAnswer { return &openAnswer{results: o.today} }

// least is the smallest mean factor of an answer that counts.
const leastFactor = 1.001

// extreme lists the assignments that together should move a column most, up or
// down: for each question its best answer.
func (o *overOpen) extreme(c report.Column, sign float64) (set []string) {
	today := o.asToday().values(c)
	best, by := map[string]*openAnswer{}, map[string]float64{}
	var order []string
	for _, a := range o.answers {
		f := sign * meanFactor(today, a.values(c))
		if f > math.Log(leastFactor) && f > by[a.question] {
			if best[a.question] == nil {
				order = append(order, a.question)
			}
			best[a.question], by[a.question] = a, f
		}
	}
	for _, q := range order {
		set = append(set, best[q].set...)
	}
	return set
}

// meanFactor is the mean logarithm of then / today.
func meanFactor(today, then []float64) float64 {
	sum, n := 0.0, 0.0
	for i := range today {
		if f := math.Log(then[i] / today[i]); !math.IsNaN(f) && !math.IsInf(f, 0) {
			sum += f
			n++
		}
	}
	return sum / max(1, n)
}

// span is the range of a column at each result.
func (o *overOpen) span(c report.Column) (low, high []float64) {
	if o.kept != nil {
		return o.kept[c.Name][0], o.kept[c.Name][1]
	}
	low = o.asToday().values(c)
	high = slices.Clone(low)
	for _, a := range slices.Concat(o.answers, o.together) {
		for i, x := range a.values(c) {
			if !math.IsNaN(x) {
				low[i], high[i] = min(low[i], x), max(high[i], x)
			}
		}
	}
	return low, high
}

// addSpans adds the ranges to the table of the results.
func (o *overOpen) addSpans(t *report.Table, e *Experiment) error {
	for _, c := range rangedColumns(e) {
		from, to := o.span(c)
		low, high := make([]any, len(from)), make([]any, len(to))
		for i := range from {
			low[i], high[i] = valueIn(c, from[i]), valueIn(c, to[i])
		}
		if err := report.AddSpan(t, c.Key(), low, high); err != nil {
			return err
		}
	}
	return nil
}

// valueIn is the inverse of Magnitude.
func valueIn(c report.Column, x float64) any {
	switch {
	case math.IsNaN(x):
		return nil
	case c.Kind == report.Duration:
		return sim.Time(x)
	case c.Kind == report.Count || c.Kind == report.Size:
		return int64(x)
	}
	return x
}

// factor is the range of the value at one result divided by the value at
// another, with the same answers.
func (o *overOpen) factor(c report.Column, of, by *Result) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, a := range append(slices.Concat(o.answers, o.together), o.asToday()) {
		v := a.values(c)
		if f := v[o.place[of]] / v[o.place[by]]; !math.IsNaN(f) {
			low, high = min(low, f), max(high, f)
		}
	}
	return low, high
}

// overWhatIsOpen ends every range in a sentence.
const overWhatIsOpen = "over what is open"

// last is a sentence about the last result; "": its value is no time, or the
// same with every answer.
func (o *overOpen) last(results []*Result) string {
	r := results[len(results)-1]
	c := r.Point.experiment.value()
	low, high := o.span(c)
	at := len(low) - 1
	v, is := r.Values[c.Name].(sim.Time)
	if !is || !(low[at] < high[at]) {
		return ""
	}
	return fmt.Sprintf("%v: %s %s (%s to %s %s).", r.Point, c.Name, ShortTime(v), ShortTime(sim.Time(low[at])), ShortTime(sim.Time(high[at])), overWhatIsOpen)
}

// says describes the ranges, and what makes them wide.
func (o *overOpen) says(e *Experiment) (lines []string) {
	if o.kept != nil {
		return []string{"Columns low and high are ranges over what publications leave open, as they were measured."}
	}
	c := e.value()
	today := o.asToday().values(c)
	var widest *openAnswer
	by, failed := math.Log(leastFactor), 0
	for _, a := range o.answers {
		if f := meanFactor(today, a.values(c)); math.Abs(f) > math.Abs(by) || widest == nil && math.Abs(f) > by {
			widest, by = a, f
		}
		if slices.Contains(a.results, nil) {
			failed++
		}
	}
	text := fmt.Sprintf("Over what is open: %d answers to %d questions, each alone, and together those that raise or lower a column", len(o.answers), o.questions)
	if widest == nil {
		text += "; none moves " + c.Name
	} else {
		text += fmt.Sprintf("; %s moves most by %s (%s): %+.1f%% in the mean", c.Name, widest.question, widest.name, 100*math.Expm1(by))
	}
	if o.excluded > 0 {
		text += fmt.Sprintf("; rows of the ledger exclude %d more", o.excluded)
	}
	lines = append(lines, text+".")
	if failed > 0 {
		lines = append(lines, fmt.Sprintf("With %d of the answers some points cannot be measured; these have no part in the range.", failed))
	}
	return lines
}

// errAlone is the error of --over-open beside flags that follow single runs.
var errAlone = errors.New("it measures every point several times: none of --trace, --links, --pcap, --breakdown, --samples, --waterfall, --handler, --part and --points goes with it")
