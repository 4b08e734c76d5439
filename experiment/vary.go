package experiment

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Set changes a field of every profile, "path=value". With several values,
// "path=LIST", it adds an axis with the name of the path, and each value is
// measured with every combination of the other axes. Axis.Parse explains lists.
// Numbers may have units of bytes or times. If the field is itself a list, each
// value has brackets: "fabric.dims=[4,4,2],[8,4,4]".
func (s *Sweep) Set(assignment string) error {
	path, list, given := strings.Cut(assignment, "=")
	path = strings.TrimSpace(path)
	if !given || !isSeveral(list) || s.grid.ofAxis(path) != nil { // check refuses a field of an axis
		s.Overrides = append(s.Overrides, assignment)
		return nil
	}
	if slices.ContainsFunc(s.grid.experiment.Axes, func(a Axis) bool { return a.Name == path }) {
		return fmt.Errorf("%s is given several values twice", path)
	}
	a := Axis{Name: path, Field: path, Help: "the profile's " + path}
	a.Column = s.grid.newColumn(path)
	values, err := a.values(list)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	e := *s.grid.experiment
	if e.base == nil {
		e.base = s.grid.experiment
	}
	e.Axes = append(slices.Clone(e.Axes), a)
	s.grid.experiment = &e
	s.grid.values, s.grid.chosen = append(slices.Clone(s.grid.values), values), append(slices.Clone(s.grid.chosen), true)
	s.grid.varied++
	return nil
}

// List is a list of values of one kind.
type List struct {
	Column report.Column // for them
	Values []any
	Texts  []string // as users write them
}

// NewList reads a list of values for Sweep.Set. name is the name of the field.
// several reports whether the text is a list of several values, and not one
// value. Texts are the values as they stand in the list, except for ranges.
func NewList(name, text string) (list *List, several bool, err error) {
	a := Axis{Name: name, Column: columnName(name)}
	parts := split(text)
	for i, part := range parts {
		parts[i] = strings.TrimSpace(part)
	}
	several = isSeveral(text)
	if !several && parts[0] == "" {
		return nil, false, errors.New("no value")
	}
	values, err := a.values(text)
	switch {
	case err != nil && !several: // the text is no list, though it begins like one
		a.Kind, values = report.Text, []any{parts[0]}
	case err != nil:
		return nil, true, err
	}
	if len(parts) != len(values) || slices.ContainsFunc(parts, isRange) {
		parts = a.texts(values)
	}
	return &List{a.column(), values, parts}, several, nil
}

// isSeveral reports whether a text is a list of values: it has a comma outside
// brackets and quotes, or a range.
func isSeveral(text string) bool {
	return len(split(text)) > 1 || slices.ContainsFunc(split(text), isRange)
}

// isRange reports whether a part of a list is a range: "..", or ".." between
// two numbers with or without units. For example, "../net.yaml" is none.
func isRange(part string) bool {
	first, last, is := strings.Cut(strings.TrimSpace(part), "..")
	if first == "" {
		return is && (last == "" || last == ".")
	}
	number := func(text string) bool { return text != "" && strings.ContainsRune("0123456789.+-", rune(text[0])) }
	return number(first) && number(strings.TrimSpace(last))
}

// split cuts a text at commas outside brackets and quotes.
func split(text string) (parts []string) {
	depth, quote, from := 0, rune(0), 0
	for i, r := range text {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '"' || r == '\'':
			quote = r
		case r == '[' || r == '{':
			depth++
		case r == ']' || r == '}':
			depth--
		case r == ',' && depth == 0:
			parts, from = append(parts, text[from:i]), i+1
		}
	}
	return append(parts, text[from:])
}

// numericKinds are the kinds of a value that is no mere text, in the order in
// which they are tried.
var numericKinds = []report.Kind{report.Count, report.Number, report.Size, report.Duration, report.Flag}

// values reads a list of values of a field, and sets the axis's kind to the
// first kind that all of them have: plain numbers before numbers with units,
// text last.
func (a *Axis) values(list string) (values []any, err error) {
	for _, a.Kind = range numericKinds {
		values, err := a.list(list)
		if errors.Is(err, errLong) {
			return nil, err
		}
		if err == nil {
			return values, distinct(a, values)
		}
	}
	a.Kind = report.Text
	if slices.ContainsFunc(split(list), isRange) {
		return nil, fmt.Errorf("list %q: expected rising numbers, sizes or times before and after \"..\"", list)
	}
	for _, part := range split(list) {
		if part = strings.TrimSpace(part); part == "" {
			return nil, fmt.Errorf("list %q: an empty value", list)
		}
		values = append(values, part)
	}
	return values, distinct(a, values)
}

// distinct refuses a value that stands twice in a list, even if written in two
// ways.
func distinct(a *Axis, values []any) error {
	seen := make(map[any]any, len(values))
	for _, v := range values {
		key := v
		if text, is := v.(string); is {
			key = meant(text)
		}
		before, twice := seen[key]
		switch seen[key] = v; {
		case twice && before == v:
			return fmt.Errorf("%s is given twice", a.Plain(v))
		case twice:
			return fmt.Errorf("%s and %s are the same value", a.Plain(before), a.Plain(v))
		}
	}
	return nil
}

// meant returns the number that a text is, with any base and unit. Else it
// returns the text without spaces.
func meant(text string) any {
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return float64(n)
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return f
	}
	if size, err := sim.ParseSize(text); err == nil {
		return float64(size)
	}
	if t, err := sim.ParseTime(text); err == nil {
		return t
	}
	return strings.Join(strings.Fields(text), "")
}
