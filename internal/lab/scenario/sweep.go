package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/report"
)

// Sweep is several runs of a scenario. Each has its own values for some
// parameters or fields of the profile.
type Sweep struct {
	Columns []report.Column // for the values
	Values  [][]any         // of each run
	Labels  []string        // names of the runs for people, such as "size 4KiB, hpu.cores 2"
	// one per run; nil: the sweep ended before it, or the run failed
	Results []*Result

	planned int // planned runs, in a copy with only the finished runs
}

// Variation is the own values of one of several runs.
type Variation struct {
	Set        []string          // profile values as "path=value"
	Parameters map[string]string // values by name
}

// Given is a value of a parameter that replaces the scenario's in all runs.
type Given struct {
	Column report.Column
	Value  any
}

// parameterPrefix begins the name of a parameter's column if the table already
// has a column with the parameter's name.
const parameterPrefix = "param_"

// And returns the variation with the values of another added.
func (v Variation) And(more Variation) Variation {
	all := Variation{Set: slices.Concat(v.Set, more.Set), Parameters: make(map[string]string)}
	maps.Copy(all.Parameters, v.Parameters)
	maps.Copy(all.Parameters, more.Parameters)
	return all
}

// With returns the options with the values of a variation added.
func (o Options) With(v Variation) Options {
	all := Variation{o.Set, o.Parameters}.And(v)
	o.Set, o.Parameters = all.Set, all.Parameters
	return o
}

// there returns the sweep of the runs that have results.
func (s *Sweep) there() *Sweep {
	some := &Sweep{Columns: s.Columns, planned: len(s.Results)}
	for i, r := range s.Results {
		if r != nil {
			some.Values, some.Labels, some.Results = append(some.Values, s.Values[i]), append(some.Labels, s.Labels[i]), append(some.Results, r)
		}
	}
	return some
}

// Result joins the results of all runs; at least one run must have one. Tables
// become long tables that begin with Columns. Failures of a run follow its
// label.
func (s *Sweep) Result() *Result {
	s = s.there()
	x := &Result{Title: s.Results[0].Title, Sweep: s}
	if n := len(s.Results); n < s.planned {
		x.Notes = []string{fmt.Sprintf("Ended before all was done: %d of %d runs were measured.", n, s.planned)}
	}
	if last := s.Results[len(s.Results)-1].Title; last != x.Title { // it contains a parameter
		x.Title += " … " + last
	}
	for i, r := range s.Results {
		x.Checked += r.Checked
		x.Incomplete = x.Incomplete || r.Incomplete
		for _, f := range r.Failures {
			x.Failures = append(x.Failures, s.Labels[i]+": "+f)
		}
		for _, note := range r.Notes {
			if !strings.HasPrefix(note, "rank ") { // of one run
				if !slices.Contains(x.Notes, note) {
					x.Notes = append(x.Notes, note)
				}
				continue
			}
			x.Notes = append(x.Notes, s.Labels[i]+": "+note)
		}
	}
	if x.Incomplete {
		s.mark()
	}
	x.Incomplete = x.Incomplete || len(s.Results) < s.planned
	for _, name := range TableNames {
		t := Table{Name: name, Table: s.join(name, func(_ *Result, t Table) *report.Table { return t.Table })}
		if t.Table == nil {
			continue
		}
		for i, r := range s.Results {
			if one := r.table(name); one != nil && (i == 0 || t.idle != nil) {
				t.idle = common(i, t.idle, one.idle)
			}
		}
		x.Tables = append(x.Tables, t)
	}
	return x
}

// mark marks the complete runs as complete if others are not.
func (s *Sweep) mark() {
	for _, r := range s.Results {
		for i := range r.Tables {
			if !r.Incomplete {
				r.Tables[i].AddColumn(IncompleteColumn(), false)
			}
		}
	}
}

// common returns the columns that are idle in all runs so far.
func common(run int, before, now []string) (both []string) {
	if run == 0 {
		return now
	}
	for _, c := range before {
		if slices.Contains(now, c) {
			both = append(both, c)
		}
	}
	return both
}

// table returns the table with a name, nil if there is none.
func (x *Result) table(name string) *Table {
	if i := slices.IndexFunc(x.Tables, func(t Table) bool { return t.Name == name }); i >= 0 {
		return &x.Tables[i]
	}
	return nil
}

// join returns the long table with a name, nil if no run has it.
func (s *Sweep) join(name string, of func(x *Result, t Table) *report.Table) *report.Table {
	var tables []*report.Table
	var values [][]any
	for i, r := range s.Results {
		if t := r.table(name); t != nil {
			tables, values = append(tables, of(r, *t)), append(values, s.Values[i])
		}
	}
	if tables == nil {
		return nil
	}
	columns := slices.Clone(s.Columns)
	for i := range columns {
		for slices.ContainsFunc(tables[0].Columns, func(c report.Column) bool { return c.Key() == columns[i].Key() }) {
			columns[i].Name = parameterPrefix + columns[i].Name
		}
	}
	return report.Join(columns, values, tables)
}
