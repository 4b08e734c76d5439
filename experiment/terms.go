package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/report"
)

// Term is a step from the measurement to a published number. It is a value of
// an axis that changes values of other axes and fields of the profile, in
// addition to the changes of earlier terms in Axis.Terms. The first value of an
// axis with terms changes nothing.
type Term struct {
	Values map[string]string // new values of other axes, by name
	Set    []string          // "path=value"
	Help   string            // describes the change, in part of a line; the first has none
	WhatIf bool              // made for the published number, without any other source
}

// terms lists the terms of an axis up to a value.
func (a *Axis) terms(value any) []Term {
	if a.Terms == nil {
		return nil
	}
	return a.Terms[:1+slices.Index(a.Of, value.(string))]
}

// TermsHelp explains the terms of an axis, for a manual. "": it has none.
func (a *Axis) TermsHelp() (text string) {
	for i, t := range a.Terms {
		if i == 0 {
			text = "\n\nValues of --" + a.Name + ", each with what those before it change:"
		}
		line := "nothing is changed"
		if i > 0 {
			line = t.said()
		}
		text += fmt.Sprintf("\n  %-13s %s", a.Of[i], line)
	}
	return text
}

// said describes a term and its changes.
func (t *Term) said() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(t.Values)) {
		parts = append(parts, "--"+name+" "+t.Values[name])
	}
	for _, set := range t.Set {
		parts = append(parts, "--set "+set)
	}
	if parts == nil {
		return t.Help
	}
	return t.Help + " (" + strings.Join(parts, ", ") + ")"
}

// stepping reports whether a chosen term changes the axis. Then not every row
// has its value.
func (g *grid) stepping(axis int) bool {
	name := g.experiment.Axes[axis].Name
	for i := range g.experiment.Axes {
		a := &g.experiment.Axes[i]
		for _, v := range g.values[i] {
			if slices.ContainsFunc(a.terms(v), func(t Term) bool { return t.Values[name] != "" }) {
				return true
			}
		}
	}
	return false
}

// told returns notes that explain the measured terms, if one of them is a
// what-if.
func (g *grid) told() (notes []string) {
	for i := range g.experiment.Axes {
		a := &g.experiment.Axes[i]
		var terms []string
		whatIf := false
		for k := range a.Terms {
			t := &a.Terms[k]
			if k == 0 || !slices.ContainsFunc(g.values[i], func(v any) bool { return slices.Index(a.Of, v.(string)) >= k }) {
				continue
			}
			name := a.Of[k]
			if t.WhatIf {
				name, whatIf = name+", a what-if", true
			}
			terms = append(terms, name+": "+t.said())
		}
		if whatIf {
			notes = append(notes, "Values of "+a.Name+", each with what those before it change: "+strings.Join(terms, "; ")+". A what-if was made for the published number and predicts nothing; no profile has it.")
		}
	}
	return notes
}

// ofTerms copies a published number into the rows of all terms, if terms were
// measured. For a what-if it notes that the term was made for the number.
func (g *grid) ofTerms(p report.Published) (list []report.Published) {
	list = []report.Published{p}
	for i := range g.experiment.Axes {
		a := &g.experiment.Axes[i]
		named := func(is report.Is) bool { return is.Column == a.column().Name }
		if a.Terms == nil || slices.ContainsFunc(p.At, named) || slices.Equal(g.values[i], []any{a.Of[0]}) {
			continue
		}
		var all []report.Published
		for _, of := range list {
			for k, value := range a.Of {
				one := of
				if one.At = append([]report.Is{{Column: a.column().Name, Value: value}}, of.At...); a.Terms[k].WhatIf {
					one.Note = "made for it"
				}
				all = append(all, one)
			}
		}
		list = all
	}
	return list
}

// whatIfs copies a number that stands beside a term into the rows of the
// what-ifs directly behind the term, which were made for it.
func (e *Experiment) whatIfs(p *report.Published) (list []report.Published) {
	for i, is := range p.At {
		for j := range e.Axes {
			a := &e.Axes[j]
			if a.Terms == nil || a.column().Name != is.Column {
				continue
			}
			for k := slices.Index(a.Of, is.Value.(string)) + 1; k < len(a.Terms) && a.Terms[k].WhatIf; k++ {
				one := *p
				one.At = slices.Clone(p.At)
				one.At[i].Value, one.Note = a.Of[k], "made for it"
				list = append(list, one)
			}
		}
	}
	return list
}

// replaced reports whether the axis has terms, or a term changes it.
func (e *Experiment) replaced(axis int) bool {
	name := e.Axes[axis].Name
	for i := range e.Axes {
		if slices.ContainsFunc(e.Axes[i].Terms, func(t Term) bool { return i == axis || t.Values[name] != "" }) {
			return true
		}
	}
	return false
}

// stepped returns a combination of values after the changes of its terms. lists
// are the values of each axis; nil: one each. Where a term replaces several
// values of an axis, one combination is enough: first reports whether this is
// the first of them.
func (e *Experiment) stepped(values []any, lists [][]any) (changed []any, first bool) {
	changed, first = values, true
	for i := range e.Axes {
		for _, t := range e.Axes[i].terms(values[i]) {
			for name, text := range t.Values { //lint:maporder each stands for itself
				other := e.axis(name)
				if lists != nil && values[other] != lists[other][0] {
					first = false
				}
				v, _ := e.Axes[other].parse(text) // Check parses it, too
				if changed[other] != v {
					changed = slices.Clone(changed)
					changed[other] = v
				}
			}
		}
	}
	return changed, first
}

// changed returns an error for each axis and field that somebody has chosen and
// that terms of the sweep change.
func (g *grid) changed(overrides []string) (errs []error) {
	for i := range g.experiment.Axes {
		a := &g.experiment.Axes[i]
		for k, t := range a.Terms {
			if !slices.ContainsFunc(g.values[i], func(v any) bool { return slices.Index(a.Of, v.(string)) >= k }) {
				break
			}
			for j := range g.experiment.Axes {
				if name := g.experiment.Axes[j].Name; g.chosen[j] && t.Values[name] != "" {
					errs = append(errs, fmt.Errorf("--%s: %s of --%s changes it to %s", name, a.Of[k], a.Name, t.Values[name]))
				}
			}
			for _, set := range t.Set {
				field, value, _ := strings.Cut(set, "=")
				if slices.ContainsFunc(overrides, func(o string) bool { return strings.HasPrefix(strings.TrimSpace(o), field+"=") }) {
					errs = append(errs, fmt.Errorf("--set %s: %s of --%s changes it to %s", field, a.Of[k], a.Name, value))
				}
			}
		}
	}
	return errs
}
