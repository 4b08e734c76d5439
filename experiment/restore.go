package experiment

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/report"
)

// Row is a row of a document: values by the keys of their columns.
type Row map[string]json.RawMessage

// Restore makes the results of a sweep from the rows of a document. The rows
// must be in the order of the points. Some may be missing, if the sweep ended
// before all were measured. Relative values and published numbers in rows are
// ignored, since they are computed again. further are the rows of the further
// tables, by name. Points must work.
func (s *Sweep) Restore(rows []Row, further map[string][]Row) (results []*Result, points int, err error) {
	all, err := s.Points()
	if err != nil {
		return nil, 0, err
	}
	s.restored = true
	at := 0
	for i, row := range rows {
		for at < len(all) && !all[at].is(row) {
			at++
		}
		if at == len(all) {
			return nil, 0, fmt.Errorf("rows[%d]: none of the points of its provenance, or not in their order", i)
		}
		values := make(Values, len(s.grid.experiment.Columns))
		for _, c := range s.grid.experiment.Columns {
			if values[c.Name], err = row.value(c); err != nil {
				return nil, 0, fmt.Errorf("rows[%d].%w", i, err)
			}
		}
		for k := range s.grid.experiment.Details {
			d := &s.grid.experiment.Details[k]
			if values[d.Name], err = restoredRows(all[at], d, further[d.Name]); err != nil {
				return nil, 0, err
			}
		}
		results = append(results, &Result{Point: all[at], Values: values})
		at++
	}
	if s.OverOpen {
		s.open, err = restoredSpans(s.grid.experiment, rows, results)
	}
	return results, len(all), err
}

// restoredRows reads the rows of a point in a further table.
func restoredRows(p *Point, d *Detail, all []Row) (rows Rows, err error) {
	for i, row := range all {
		if !p.is(row) {
			continue
		}
		one := make([]any, len(d.Columns))
		for k, c := range d.Columns {
			if one[k], err = row.value(c); err != nil {
				return nil, fmt.Errorf("%s[%d].%w", d.Name, i, err)
			}
		}
		rows = append(rows, one)
	}
	return rows, nil
}

// restoredSpans reads the ranges from the rows of a document.
func restoredSpans(e *Experiment, rows []Row, results []*Result) (*overOpen, error) {
	o := &overOpen{today: results, kept: make(map[string][2][]float64)}
	for _, c := range rangedColumns(e) {
		var both [2][]float64
		low, high := report.SpanColumns(c)
		for i, row := range rows {
			for k, end := range []report.Column{low, high} {
				v, err := row.value(end)
				if err != nil {
					return nil, fmt.Errorf("rows[%d].%w", i, err)
				}
				x, ok := Magnitude(v)
				if !ok {
					x = math.NaN()
				}
				both[k] = append(both[k], x)
			}
		}
		o.kept[c.Name] = both
	}
	return o, nil
}

// is reports whether a row is the row of the point.
func (p *Point) is(row Row) bool {
	if v, err := row.value(report.Column{Name: ProfileColumn}); !p.experiment.Deviceless && (err != nil || v != p.Profile.Name) {
		return false
	}
	for i := range p.values {
		c := p.experiment.Axes[i].column()
		v, err := row.value(c)
		if err != nil || !c.Same(v, p.values[i]) {
			return false
		}
	}
	return true
}

// value reads a value of a row.
func (r Row) value(c report.Column) (any, error) {
	text, given := r[c.Key()]
	if !given {
		return nil, fmt.Errorf("%s: not there, this version of spinsim measures it", c.Key())
	}
	return c.Decode(text)
}

// Restore gives the steps of a waterfall the values from the rows of a
// document.
func (w *Waterfall) Restore(rows []Row) error {
	w.sweep.restored = true
	n := len(w.Steps[0].Points)
	if n == 0 || len(rows)%n != 0 || len(rows)/n > len(w.Steps) || len(rows) == 0 {
		return fmt.Errorf("%d rows, expected those of %d steps with %d points each", len(rows), len(w.Steps), n)
	}
	whole := len(rows) / n
	w.cut = whole < len(w.Steps)
	w.Steps = w.Steps[:whole]
	value := w.sweep.grid.experiment.WaterfallColumns()
	of := value[len(value)-2]
	name := w.sweep.grid.experiment.value().Name
	for i := range n {
		for k := range w.Steps {
			step := &w.Steps[k]
			row := i*whole + k
			group, err := rows[row].value(report.Column{Name: "group"})
			if err == nil && group != step.Group {
				err = fmt.Errorf("group: %q, expected %q, as this version of spinsim goes from %s to %s", group, step.Group, w.From, w.To)
			}
			var v any
			if err == nil {
				v, err = rows[row].value(of)
			}
			if err != nil {
				return fmt.Errorf("rows[%d].%w", row, err)
			}
			step.Results = append(step.Results, &Result{Point: step.Points[i], Values: Values{name: v}})
		}
	}
	if w.cut {
		return nil
	}
	return w.compare()
}

// ProgramGiven is the name in Sweep.Given of a program with its arguments, a line
// each, and in Input.Flag of the files that it consists of.
const ProgramGiven = "--"

// Line is the command of a record, in words: all that differs from the
// defaults.
func Line(r *provenance.Record, e *Experiment) ([]string, error) {
	var a sweepArguments
	if err := r.Parse(&a); err != nil {
		return nil, err
	}
	words := append(strings.Fields(r.Command), madeLine(r, e, &a)...)
	var profiles, overrides []string
	for i := range r.Profiles {
		profiles = append(profiles, r.Profiles[i].From)
		overrides = r.Profiles[i].Overrides // the same for all profiles
	}
	if a.Device != nil {
		profiles, overrides = a.Device.Profiles, a.Device.Overrides
	}
	switch names := strings.Join(profiles, ","); {
	case a.Waterfall:
		words = append(words, "--waterfall", names)
	case names != strings.Join(e.DefaultProfiles(), ","):
		words = append(words, "--profile", names)
	}
	words = append(words, axesLine(e, &a)...)
	for _, set := range a.Set {
		words = append(words, "--set", set)
	}
	if a.OverOpen {
		words = append(words, "--over-open")
	}
	for _, set := range overrides {
		words = append(words, "--set", set)
	}
	for i := range r.Handlers {
		switch h := &r.Handlers[i]; {
		case h.Slot != "":
			words = append(words, "--handler", h.Slot+"="+h.Path)
		case h.Path != "" && e.Slots != nil:
			words = append(words, "--handler", h.Path)
		}
	}
	if r.Seed != nil && *r.Seed != 1 {
		words = append(words, "--seed", strconv.FormatUint(*r.Seed, 10))
	}
	if r.Engine != "" && r.Engine != "wazero" {
		words = append(words, "--engine", r.Engine)
	}
	if program := a.Given[ProgramGiven]; program != "" {
		words = append(append(words, "--"), strings.Split(program, "\n")...)
	}
	return words, nil
}

// madeLine are the words for what the experiment is made from and with.
func madeLine(r *provenance.Record, e *Experiment, a *sweepArguments) (words []string) {
	if !strings.HasPrefix(r.Command, CommandPrefix) { // it is made from a file
		for i := range r.Inputs {
			switch flag := r.Inputs[i].Flag; {
			case flag == ProgramGiven:
			case flag == "":
				words = append(words, r.Inputs[i].Name)
			case e.Axis(flag) == nil:
				words = append(words, "--"+flag, r.Inputs[i].Name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Given)) {
		if name == ProgramGiven {
			continue
		}
		for value := range strings.SplitSeq(a.Given[name], "\n") {
			if name != "" {
				words = append(words, "--"+name)
			}
			if value != "true" {
				words = append(words, value)
			}
		}
	}
	return words
}

// axesLine are the words for the axes that have not their default values.
func axesLine(e *Experiment, a *sweepArguments) (words []string) {
	for i := range e.Axes {
		axis := &e.Axes[i]
		usual, err := axis.initial()
		switch values, given := a.Axes[axis.Name]; {
		case !given || err == nil && slices.Equal(values, axis.texts(usual)):
		case axis.written != nil:
			words = append(words, "--param", axis.Name+"="+strings.Join(values, ","))
		case axis.Kind == report.Flag: // some commands have it as a switch
			words = append(words, "--"+axis.Name+"="+strings.Join(values, ","))
		default:
			words = append(words, "--"+axis.Name, strings.Join(values, ","))
		}
	}
	return words
}

// Experiment is the experiment that the steps measure.
func (w *Waterfall) Experiment() *Experiment { return w.sweep.grid.experiment }
