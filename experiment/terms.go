package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Term is a step of the way from what is measured to a published number: a value of an axis that changes values of other axes, and fields of the profile, besides what the terms before it in Axis.Terms change.
// What an axis with terms has as its first value is to change nothing.
type Term struct {
	Values map[string]string // one value each, by the name of the axis
	Set    []string          // "path=value"
}

// terms are those of an axis up to a value.
func (a *Axis) terms(value any) []Term {
	if a.Terms == nil {
		return nil
	}
	return a.Terms[:1+slices.Index(a.Of, value.(string))]
}

// TermsHelp says what values of an axis with terms change, for a manual; "" of others.
func (a *Axis) TermsHelp() (text string) {
	for i, t := range a.Terms {
		if i == 0 {
			text = "\n\nValues of --" + a.Name + ", each with what those before it change:"
		}
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(t.Values)) {
			parts = append(parts, "--"+name+" "+t.Values[name])
		}
		for _, set := range t.Set {
			parts = append(parts, "--set "+set)
		}
		if i == 0 {
			parts = []string{"nothing is changed"}
		} else if parts == nil {
			parts = []string{"as said above"}
		}
		text += fmt.Sprintf("\n  %-13s %s", a.Of[i], strings.Join(parts, ", "))
	}
	return text
}

// stepped returns a combination of values as its terms change them. lists are the values of each axis, nil: one each; of several values that a term replaces the first stands for all, and first says whether it is
// that.
func (e *Experiment) stepped(values []any, lists [][]any) (changed []any, first bool) {
	changed, first = values, true
	for i := range e.Axes {
		for _, t := range e.Axes[i].terms(values[i]) {
			for name, text := range t.Values { //lint:maporder each stands for itself
				other := e.axis(name)
				if lists != nil && values[other] != lists[other][0] {
					first = false
				}
				v, _ := e.Axes[other].parse(text) // Check has looked at it
				if changed[other] != v {
					changed = slices.Clone(changed)
					changed[other] = v
				}
			}
		}
	}
	return changed, first
}

// changed says which axes and fields somebody has chosen that terms of the sweep change.
func (s *Sweep) changed() (errs []error) {
	if s.Recorded != nil {
		return nil // every axis was chosen
	}
	for i := range s.Experiment.Axes {
		a := &s.Experiment.Axes[i]
		for k, t := range a.Terms {
			if !slices.ContainsFunc(s.values[i], func(v any) bool { return slices.Index(a.Of, v.(string)) >= k }) {
				break
			}
			for j := range s.Experiment.Axes {
				if name := s.Experiment.Axes[j].Name; s.chosen[j] && t.Values[name] != "" {
					errs = append(errs, fmt.Errorf("--%s: %s of --%s changes it to %s", name, a.Of[k], a.Name, t.Values[name]))
				}
			}
			for _, set := range t.Set {
				field, value, _ := strings.Cut(set, "=")
				if slices.ContainsFunc(s.Overrides, func(o string) bool { return strings.HasPrefix(strings.TrimSpace(o), field+"=") }) {
					errs = append(errs, fmt.Errorf("--set %s: %s of --%s changes it to %s", field, a.Of[k], a.Name, value))
				}
			}
		}
	}
	return errs
}

// terms checks what values of an axis change.
func (c *checker) terms(a *Axis) {
	fail := func(format string, args ...any) { c.fail("axis %s: %w", a.Name, fmt.Errorf(format, args...)) }
	if len(a.Terms) == 0 {
		return
	}
	if len(a.Terms) != len(a.Of) {
		fail("%d terms for %d values", len(a.Terms), len(a.Of))
		return
	}
	for i, t := range a.Terms {
		if i == 0 && len(t.Values)+len(t.Set) > 0 {
			fail("the first value, %s, changes something", a.Of[0])
		}
		for name, text := range t.Values { //lint:maporder any of several errors is as good
			other := c.e.Axis(name)
			if other == nil || other == a || other.Terms != nil {
				fail("%s changes %q, which is no other axis without terms", a.Of[i], name)
				continue
			}
			if v, err := other.parse(text); err != nil || other.check(v) != nil {
				fail("%s changes axis %s to %q, which is none of its values", a.Of[i], name, text)
			}
		}
		for _, set := range t.Set {
			if field, _, ok := strings.Cut(set, "="); !ok || slices.ContainsFunc(c.e.Axes, func(o Axis) bool { return o.Field == field }) {
				fail("%s sets %q, expected path=value of a field that no axis has", a.Of[i], set)
			}
		}
	}
}
