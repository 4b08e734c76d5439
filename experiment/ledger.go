package experiment

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// LedgerRow is a row of the package ledger, and what an experiment measures for it.
// Exactly one of Column, Ours and Holds is set.
type LedgerRow struct {
	ID string // for example "tr488-6.1.1-07"
	// Row is the row itself if it is not in the ledger, but a user's. Profile is then
	// the profile of the user's device, in place of one in Of.
	Row     *ledger.Row
	Profile string
	// Of chooses what is measured: "name=list" separated by blanks. A name is an
	// axis, a value of the profile, or "profile". An axis that is not named has
	// its default, which must be a single value. For example:
	// "profile=exanest mode=rdma,spin size=64".
	Of string
	// Also lists values, each written as in Of and in place of those there, at
	// which the published numbers stand beside ours, too. Nothing is measured
	// there. For example: "vm=100MB".
	Also []string
	// Column has our numbers, one at each point, in the order of Sweep.Points.
	// They are converted to the unit of the row.
	Column string
	// Ours computes numbers, in the unit of the row.
	Ours func(m *Measured) []float64
	// Holds reports whether the claim holds.
	Holds func(m *Measured) bool
	// How is the formula of Ours, or when the claim holds, in part of a sentence.
	// For example: "PIA takes less than half of the time of PIO, 64 KiB to 4 MiB".
	// With a Column it may be empty.
	How string
}

// Sweep returns the sweep over the points of the row.
func (r *LedgerRow) Sweep(e *Experiment) (*Sweep, error) {
	s, err := New(e)
	if err != nil {
		return nil, err
	}
	for item := range strings.FieldsSeq(r.Of) {
		name, list, _ := strings.Cut(item, "=")
		switch {
		case name == ProfileColumn:
			s.Profiles = strings.Split(list, ",")
		case strings.Contains(name, "."):
			err = errors.Join(err, s.Set(item))
		default:
			err = errors.Join(err, s.Choose(name, list))
		}
	}
	if r.Profile != "" {
		s.Profiles = []string{r.Profile}
	} else if !strings.HasPrefix(r.Of, ProfileColumn+"=") && !strings.Contains(r.Of, " "+ProfileColumn+"=") && len(s.Profiles) > 1 {
		err = errors.Join(err, fmt.Errorf("several profiles, expected %s= in Of", ProfileColumn))
	}
	for i := range e.Axes {
		if len(s.grid.values[i]) > 1 && !s.grid.chosen[i] {
			err = errors.Join(err, fmt.Errorf("axis %s has several values by default, expected one in Of", e.Axes[i].Name))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("experiment %s, row %s: %w", e.Name, r.ID, err)
	}
	return s, nil
}

// command is the command that measures the points of the row on profiles.
func (r *LedgerRow) command(e *Experiment, profiles []string) string {
	words := []string{"spinsim", strings.TrimSuffix(CommandPrefix, " "), e.Name}
	if !slices.Equal(profiles, e.DefaultProfiles()) {
		words = append(words, "--"+ProfileColumn, strings.Join(profiles, ","))
	}
	for item := range strings.FieldsSeq(r.Of) {
		name, list, _ := strings.Cut(item, "=")
		switch {
		case name == ProfileColumn:
		case strings.Contains(name, "."):
			words = append(words, "--set", item)
		default:
			words = append(words, "--"+name, list)
		}
	}
	return strings.Join(words, " ")
}

// Numbers returns what the experiment has for the row, from the results of its
// Sweep.
func (r *LedgerRow) Numbers(e *Experiment, results []*Result) (ours ledger.Ours, err error) {
	row, err := r.row(e)
	if err != nil {
		return ours, err
	}
	m := &Measured{Results: results, experiment: e, at: make(map[string]*Result, len(results))}
	for _, one := range results {
		m.at[one.Point.key(-1, nil)] = one
	}
	switch {
	case r.Holds != nil:
		ours.Holds = r.Holds(m)
	case r.Ours != nil:
		ours.Numbers = r.Ours(m)
	default:
		ours.Numbers = m.all(r.Column, row.Unit)
	}
	if m.err == nil {
		_, m.err = row.Off(ours)
	}
	if m.err != nil {
		return ours, fmt.Errorf("experiment %s, row %s: %w", e.Name, r.ID, m.err)
	}
	return ours, nil
}

// Measured are the results of the points of a row.
type Measured struct {
	Results    []*Result // in the order of Sweep.Points
	experiment *Experiment
	at         map[string]*Result // by the keys of their points
	err        error              // the first mistake in a call
}

// At returns the number in a column, also a relative one, at the only point that
// has the values: "name=value" separated by blanks, as in LedgerRow.Of. Times are in
// µs, and shares from 0 to 1. Where there is no such number LedgerRow.Numbers returns
// an error.
func (m *Measured) At(column, values string) float64 {
	var found []*Result
	for _, r := range m.Results {
		has, err := has(r.Point, values)
		if err != nil {
			return m.fail(err)
		}
		if has {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		return m.fail(fmt.Errorf("%d points have %q, expected one", len(found), values))
	}
	return m.Of(found[0], column)
}

// Of returns the number in a column of one of Results, in the units of At.
func (m *Measured) Of(r *Result, column string) float64 {
	n, ok := m.number(r, column)
	if !ok {
		return m.fail(fmt.Errorf("no number in column %q at %s", column, r.Point))
	}
	if c, _ := m.experiment.column(column); c.Kind == report.Duration {
		return n * units[report.Duration][0][c.Unit] / units[report.Duration][0]["us"]
	}
	return n
}

// Beside is Of at the point that differs from that of r in the value of one
// axis, "name=value".
func (m *Measured) Beside(r *Result, column, value string) float64 {
	name, text, _ := strings.Cut(value, "=")
	i := r.Point.experiment.axis(name)
	if i < 0 {
		return m.fail(fmt.Errorf("no axis %q", name))
	}
	one, err := r.Point.experiment.Axes[i].parse(text)
	if err != nil {
		return m.fail(fmt.Errorf("%s: %w", value, err))
	}
	other := m.at[r.Point.key(i, one)]
	if other == nil {
		return m.fail(fmt.Errorf("no point with %s beside %s", value, r.Point))
	}
	return m.Of(other, column)
}

// fail keeps the first error.
func (m *Measured) fail(err error) float64 {
	if m.err == nil {
		m.err = err
	}
	return 0
}

// all returns the numbers in a column in a unit, at each point but the bases of
// a relative column.
func (m *Measured) all(column, unit string) (numbers []float64) {
	c, _ := m.experiment.column(column)
	factor, err := factorTo(c, unit)
	if err != nil {
		m.fail(err)
		return nil
	}
	for _, r := range m.Results {
		if rel := m.experiment.relativeColumn(column); rel != nil && m.experiment.Axis(rel.Axis).write(r.Point.Value(rel.Axis)) == rel.Base {
			continue
		}
		n, ok := m.number(r, column)
		if !ok {
			m.fail(fmt.Errorf("no number in column %q at %s", column, r.Point))
		}
		numbers = append(numbers, factor*n)
	}
	return numbers
}

// number returns the number in a column of a result.
func (m *Measured) number(r *Result, column string) (float64, bool) {
	if rel := m.experiment.relativeColumn(column); rel != nil {
		return Magnitude(m.experiment.relative(rel, r, m.at))
	}
	if t, ok := r.Values[column].(sim.Time); ok {
		c, _ := m.experiment.column(column)
		return float64(t) / units[report.Duration][0][c.Unit], true
	}
	return Magnitude(r.Values[column])
}

// has reports whether a point has the values, "name=value" each.
func has(p *Point, values string) (bool, error) {
	all := true
	for item := range strings.FieldsSeq(values) {
		name, text, _ := strings.Cut(item, "=")
		if name == ProfileColumn {
			all = all && profile.Undated(p.Profile.Name) == text
			continue
		}
		i := p.experiment.axis(name)
		if i < 0 {
			return false, fmt.Errorf("no axis %q, there are %s%s", name, strings.Join(p.experiment.axisNames(), ", "), fields.DidYouMean(name, p.experiment.axisNames()))
		}
		list, err := p.experiment.Axes[i].Parse(text)
		if err != nil || len(list) != 1 {
			return false, errors.Join(err, fmt.Errorf("%q, expected one value", item))
		}
		all = all && p.values[i] == list[0]
	}
	return all, nil
}

// published are the numbers to show beside ours: Published, and the rows of the
// ledger with a Column whose profiles are not changed. Of a bound it is the end.
func (e *Experiment) published() []report.Published {
	list := slices.Clone(e.Published)
	if e.base != nil {
		e = e.base // rows leave out values that are its defaults
	}
	for i := range e.Ledger {
		r := &e.Ledger[i]
		if r.Column == "" {
			continue
		}
		rows, err := r.published(e)
		if err != nil {
			panic(err) //lint:panic programmer's mistake: a test measures every row
		}
		list = append(list, rows...)
	}
	return list
}

// published returns the numbers of the row in the units of its column.
func (r *LedgerRow) published(e *Experiment) (list []report.Published, err error) {
	row, err := r.row(e)
	if err != nil {
		return nil, err
	}
	for _, also := range append([]string{""}, r.Also...) {
		other := *r
		other.Of += " " + also
		more, err := other.beside(e, row)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

// beside returns the numbers of the row for the points in Of.
func (r *LedgerRow) beside(e *Experiment, row *ledger.Row) (list []report.Published, err error) {
	s, err := r.Sweep(e)
	if err != nil || len(s.Overrides) > 0 {
		return nil, err
	}
	c, _ := e.column(r.Column)
	factor, err := factorTo(c, row.Unit)
	if err != nil {
		return nil, fmt.Errorf("experiment %s, row %s: %w", e.Name, r.ID, err)
	}
	one := report.Published{Column: r.Column, Source: row.Source()}
	numbers, points := row.Published.Numbers, 0
	for _, name := range s.Profiles {
		err = errors.Join(err, combinations(s.grid.values, func(values []any) error {
			if rel := e.relativeColumn(r.Column); rel != nil && e.Axis(rel.Axis).write(values[e.axis(rel.Axis)]) == rel.Base {
				return nil
			}
			one.At, one.With = s.grid.where(values)
			if strings.Contains(" "+r.Of, " "+ProfileColumn+"=") {
				one.At = append([]report.Is{{Column: ProfileColumn, Value: name}}, one.At...)
			}
			if points++; points > len(numbers) {
				return nil
			}
			value, bound := shown(&numbers[points-1])
			if !math.IsNaN(value) {
				one.Value, one.Note = withoutNoise(value/factor), strings.TrimPrefix(strings.TrimSuffix(bound+"; "+row.Note(), "; "), "; ")
				list = append(append(list, one), e.whatIfs(&one)...)
			}
			return nil
		}))
	}
	if points != len(numbers) {
		err = errors.Join(err, fmt.Errorf("experiment %s, row %s: %d points for %s", e.Name, r.ID, points, row.Published.Text))
	}
	return list, err
}

// shown is the value to show of a published number, of a bound its end. A range
// has none.
func shown(n *ledger.Number) (value float64, bound string) {
	switch {
	case !math.IsNaN(n.Best):
		return n.Best, ""
	case math.IsInf(n.High, 1):
		return n.Low, "or more"
	case math.IsInf(n.Low, -1):
		return n.High, "or less"
	}
	return n.Best, ""
}

// where describes a point of a row: the values that a reader looks for, and
// those that are the same everywhere. Values that terms change are in neither:
// the number stands in the rows of all terms.
func (g *grid) where(values []any) (at, with []report.Is) {
	e := g.experiment
	for i := range values {
		is := report.Is{Column: e.Axes[i].column().Name, Value: values[i]}
		switch {
		case !g.chosen[i] && e.replaced(i):
		case !g.chosen[i] || g.quiet(i) && e.Axes[i].write(values[i]) == e.Axes[i].Default:
			with = append(with, is)
		default:
			at = append(at, is)
		}
	}
	return at, with
}

// withoutNoise rounds a number that was converted to twelve digits: 3.6% is
// 0.036, not 0.036000000000000004.
func withoutNoise(x float64) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 12, 64), 64)
	return rounded
}
