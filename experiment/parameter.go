package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/report"
)

// Parameter makes an axis of a named value in a file, with its value there as
// the only one by default. Users give it others, of any kind, by --param
// NAME=LIST. others are columns whose names its column must not have.
func Parameter(name, value, help string, others []report.Column) Axis {
	a := Axis{Name: name, Column: columnName(name), Default: value, Help: help}
	for slices.ContainsFunc(others, func(c report.Column) bool { return c.Name == a.Column || c.Key() == a.Column }) {
		a.Column = "param_" + a.Column
	}
	a.alone(value)
	return a
}

// alone gives a parameter one value, and the first kind that the value has.
func (a *Axis) alone(text string) any {
	for _, a.Kind = range numericKinds {
		if v, err := a.parse(text); err == nil {
			a.written = map[any]string{v: text}
			return v
		}
	}
	a.Kind, a.written = report.Text, map[any]string{text: text}
	return text
}

// initial are the values of an axis by default.
func (a *Axis) initial() ([]any, error) {
	if a.written != nil { // commas are no list in a file
		return []any{a.alone(a.Default)}, nil
	}
	return a.Parse(a.DefaultList())
}

// chooseParameter is Choose for an axis of Parameter. The values may have
// another kind than before.
func chooseParameter(s *Sweep, i int, text string) error {
	e := *s.grid.experiment
	if e.base == nil {
		e.base = s.grid.experiment
	}
	e.Axes = slices.Clone(e.Axes)
	a := &e.Axes[i]
	values := []any{nil}
	if text == a.Default {
		values[0] = a.alone(text)
	} else {
		list, several, err := NewList(a.Name, text)
		switch {
		case err != nil:
			return err
		case !several:
			values[0] = a.alone(list.Texts[0])
		default:
			values, a.Kind, a.Unit, a.written = list.Values, list.Column.Kind, list.Column.Unit, make(map[any]string)
			for k, v := range values {
				a.written[v] = list.Texts[k]
			}
		}
	}
	s.grid.experiment = &e
	s.grid.values, s.grid.chosen = slices.Clone(s.grid.values), slices.Clone(s.grid.chosen)
	s.grid.values[i], s.grid.chosen[i] = values, true
	return nil
}

// Written returns the value of an axis as the user wrote it. It panics if there
// is no such axis: a programmer's mistake.
func (p *Point) Written(axis string) string {
	v := p.Value(axis)
	return p.experiment.Axis(axis).write(v)
}

// GivenParameters reads --param: the values that are no lists, and the names of
// those that are. It refuses a text without "=".
func GivenParameters(params []string) (single map[string]string, several []string, err error) {
	single = make(map[string]string)
	for _, param := range params {
		name, text, given := strings.Cut(param, "=")
		if name = strings.TrimSpace(name); !given || text == "" {
			return nil, nil, fmt.Errorf("--param: %q, expected NAME=VALUE", param)
		}
		switch list, many, err := NewList(name, text); {
		case err != nil:
			return nil, nil, fmt.Errorf("--param: %s: %w", name, err)
		case many:
			several = append(several, name)
		default:
			single[name] = list.Texts[0]
		}
	}
	return single, several, nil
}

// ParametersOf is GivenParameters for the axes of a record.
func ParametersOf(r *provenance.Record) (single map[string]string, several []string, err error) {
	var a sweepArguments
	if err := r.Parse(&a); err != nil {
		return nil, nil, err
	}
	single = make(map[string]string)
	for name, values := range a.Axes { //lint:maporder a map is made of a map
		if len(values) == 1 {
			single[name] = values[0]
		} else {
			several = append(several, name)
		}
	}
	slices.Sort(several)
	return single, several, nil
}
