package scenario

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/batch"
	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/report"
)

// Sweep is the runs of a scenario with every combination of the values of
// lists. Each run has its own values for some parameters or fields of the
// profile.
type Sweep struct {
	Runs []*SweepRun

	lists    *Lists          // nil: there are none, and one run
	columns  []report.Column // for the values
	combined int             // combinations of parameters: the first of the runs
	given    []given         // parameters with one value
}

// SweepRun is one of the runs.
type SweepRun struct {
	Variation

	Label string // for people, such as "size 4KiB, hpu.cores 2"
	Plan  *Plan  // made by Sweep.Plan

	values []any
}

// Variation is the own values of one of several runs.
type Variation struct {
	Set        []string          // profile values as "path=value"
	Parameters map[string]string // values by name
}

// given is a value of a parameter that replaces the scenario's in all runs.
type given struct {
	column report.Column
	value  any
}

// parameterPrefix begins the name of a parameter's column if the table already
// has a column with the parameter's name.
const parameterPrefix = "param_"

// maxRuns is the most runs of a sweep, whose results are held until all are
// done.
const maxRuns = 100_000

// Noun names the runs of a sweep.
var Noun = batch.Noun{One: "run", Many: "runs"}

// NewSweep reads values of parameters, "name=LIST", and of fields of the
// profile, "path=LIST". A single value becomes one of the options.
func NewSweep(o *Options, params, set []string) (*Sweep, error) {
	s := &Sweep{Runs: []*SweepRun{{}}}
	base := Variation{Parameters: make(map[string]string)}
	for _, param := range params {
		name, text, assigned := strings.Cut(param, "=")
		name = strings.TrimSpace(name)
		list, several, err := experiment.NewList(name, text)
		switch {
		case !assigned || text == "":
			return nil, fmt.Errorf("--param: %q, expected NAME=VALUE", param)
		case err != nil:
			return nil, fmt.Errorf("--param: %s: %w", name, err)
		case !several:
			base.Parameters[name] = list.Texts[0]
			s.given = append(s.given, given{list.Column, list.Values[0]})
			continue
		}
		lists := s.several()
		lists.Parameters = append(lists.Parameters, param)
		if err := s.cross(name, list, func(text string) Variation { return Variation{Parameters: map[string]string{name: text}} }); err != nil {
			return nil, err
		}
	}
	s.combined = len(s.Runs)
	for _, one := range set {
		path, text, _ := strings.Cut(one, "=")
		path = strings.TrimSpace(path)
		list, several, err := experiment.NewList(path, text)
		if err != nil {
			return nil, fmt.Errorf("--set: %s: %w", path, err)
		}
		if !several {
			base.Set = append(base.Set, one)
			continue
		}
		lists := s.several()
		lists.Set = append(lists.Set, one)
		if err := s.cross(path, list, func(text string) Variation { return Variation{Set: []string{path + "=" + text}} }); err != nil {
			return nil, err
		}
	}
	*o = o.With(base)
	return s, nil
}

// several returns the lists. Calling it means that there is at least one.
func (s *Sweep) several() *Lists {
	if s.lists == nil {
		s.lists = &Lists{}
	}
	return s.lists
}

// Several reports whether there are lists, and so a sweep.
func (s *Sweep) Several() bool { return s.lists != nil }

// cross combines the runs so far with the values of another list. Its values
// vary slowest.
func (s *Sweep) cross(name string, list *experiment.List, give func(text string) Variation) error {
	if len(s.Runs)*len(list.Values) > maxRuns {
		return fmt.Errorf("%s: more than %d runs", name, maxRuns)
	}
	column := list.Column
	for slices.ContainsFunc(s.columns, func(c report.Column) bool { return c.Name == column.Name }) {
		column.Name = "set_" + column.Name
	}
	s.columns = append(s.columns, column)
	var runs []*SweepRun
	for i, text := range list.Texts {
		for _, r := range s.Runs {
			runs = append(runs, &SweepRun{
				Variation: r.And(give(text)), values: append(slices.Clone(r.values), list.Values[i]),
				Label: strings.TrimPrefix(r.Label+", "+name+" "+text, ", "),
			})
		}
	}
	s.Runs = runs
	return nil
}

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

// Plan makes the plan of each run. The error is the first.
func (s *Sweep) Plan(load func(run int, v Variation) (*Plan, error)) (err error) {
	for i, r := range s.Runs {
		if r.Plan, err = load(i, r.Variation); err != nil {
			return fmt.Errorf("%s: %w", r.Label, err)
		}
	}
	return nil
}

// Part returns a sweep with some of the runs.
func (s *Sweep) Part(runs []*SweepRun) *Sweep {
	some := *s
	some.Runs = runs
	return &some
}

// Label names a run for people.
func (s *Sweep) Label(run int) string { return s.Runs[run].Label }

// Batch is the measurement of the runs, whose plans must be there. Failures of
// scenarios are in the results.
func (s *Sweep) Batch(workers int, folder *checkpoint.Folder) *batch.Batch[Result] {
	describe := func(i int, x *Result) (*Result, error) {
		record, err := s.Runs[i].Plan.Record()
		if err == nil {
			s.Describe(x, record)
		}
		return x, err
	}
	return &batch.Batch[Result]{
		Noun: Noun, Count: len(s.Runs), Workers: workers, Folder: folder,
		Name: s.Label,
		Key: func(i int) (string, error) {
			record, err := s.Runs[i].Plan.Record()
			if err != nil {
				return "", err
			}
			return folder.Key(record)
		},
		Run: func(ctx context.Context, i int) (*Result, error) {
			x, err := s.Runs[i].Plan.Run(ctx, nil)
			if x == nil {
				return nil, fmt.Errorf("%s: %w", s.Runs[i].Label, err)
			}
			return describe(i, x)
		},
		Encode: (*Result).encode,
		Decode: func(i int, text []byte) (*Result, error) {
			x, err := s.Runs[i].Plan.decode(text)
			if err != nil {
				return nil, err
			}
			return describe(i, x)
		},
	}
}

// Describe notes what has produced the result of a run.
func (s *Sweep) Describe(x *Result, record *provenance.Record) { x.Origin, x.given = record, s.given }

// Record returns the inputs of the results. load makes the plan of a run; here
// a parameter has its value, and a field of the profile is as it is.
func (s *Sweep) Record(load func(run int, v Variation) (*Plan, error)) (*provenance.Record, error) {
	lists := *s.lists
	var all provenance.Record
	var first *Plan
	for i := range s.combined {
		p, err := load(i, Variation{Parameters: s.Runs[i].Parameters})
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = p
		}
		one, err := p.record(nil)
		if err != nil {
			return nil, err
		}
		same := func(o provenance.Profile) bool { return reflect.DeepEqual(o, one.Profiles[0]) }
		k := slices.IndexFunc(all.Profiles, same)
		if k < 0 {
			k, all.Profiles = len(all.Profiles), append(all.Profiles, one.Profiles[0])
		}
		lists.Runs = append(lists.Runs, RunOf{k, p.ranks, p.seed})
		for _, h := range one.Handlers {
			all.AddHandler(h)
		}
		for _, in := range one.Inputs {
			if all.Input(in.Name) == nil {
				all.Inputs = append(all.Inputs, in)
			}
		}
	}
	if len(slices.Compact(slices.Clone(lists.Runs))) == 1 {
		lists.Runs = nil
	}
	r, err := first.record(&lists)
	if err == nil {
		r.Profiles, r.Handlers, r.Inputs = all.Profiles, all.Handlers, all.Inputs
	}
	return r, err
}

// joined is the results of a sweep that are there, with their runs.
type joined struct {
	*Sweep

	results []*Result
	planned int // runs
}

// Result joins the results of the runs, of which nil are not there; at least
// one must be. Tables become long tables that begin with the values of the
// lists. Failures of a run follow its label.
func (s *Sweep) Result(results []*Result) *Result {
	j := &joined{Sweep: s.Part(nil), planned: len(s.Runs)}
	for i, r := range results {
		if r != nil {
			j.Runs, j.results = append(j.Runs, s.Runs[i]), append(j.results, r)
		}
	}
	x := &Result{Title: j.results[0].Title, Runs: len(j.results), sweep: j}
	if n := len(j.results); n < j.planned {
		x.Cut = fmt.Sprintf("%d of %d runs were measured", n, j.planned)
		x.Notes = []string{"Ended before all was done: " + x.Cut + "."}
	}
	if last := j.results[len(j.results)-1].Title; last != x.Title { // it contains a parameter
		x.Title += " … " + last
	}
	for i, r := range j.results {
		x.Checked += r.Checked
		x.Incomplete = x.Incomplete || r.Incomplete
		if x.Cut == "" && r.Cut != "" {
			x.Cut = j.Runs[i].Label + ": " + r.Cut
		}
		for _, f := range r.Failures {
			x.Failures = append(x.Failures, j.Runs[i].Label+": "+f)
		}
		for _, note := range r.Notes {
			if !strings.HasPrefix(note, "rank ") { // of one run
				if !slices.Contains(x.Notes, note) {
					x.Notes = append(x.Notes, note)
				}
				continue
			}
			x.Notes = append(x.Notes, j.Runs[i].Label+": "+note)
		}
	}
	if x.Incomplete {
		j.mark()
	}
	x.Incomplete = x.Incomplete || len(j.results) < j.planned
	for _, name := range TableNames {
		t := Table{Name: name, Table: j.join(name, func(_ *Result, t Table) *report.Table { return t.Table })}
		if t.Table == nil {
			continue
		}
		for i, r := range j.results {
			if one := r.table(name); one != nil && (i == 0 || t.idle != nil) {
				t.idle = common(i, t.idle, one.idle)
			}
		}
		x.Tables = append(x.Tables, t)
	}
	return x
}

// mark marks the complete runs as complete if others are not.
func (j *joined) mark() {
	for _, r := range j.results {
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
func (j *joined) join(name string, of func(x *Result, t Table) *report.Table) *report.Table {
	var tables []*report.Table
	var values [][]any
	for i, r := range j.results {
		if t := r.table(name); t != nil {
			tables, values = append(tables, of(r, *t)), append(values, j.Runs[i].values)
		}
	}
	if tables == nil {
		return nil
	}
	columns := slices.Clone(j.columns)
	for i := range columns {
		for slices.ContainsFunc(tables[0].Columns, func(c report.Column) bool { return c.Key() == columns[i].Key() }) {
			columns[i].Name = parameterPrefix + columns[i].Name
		}
	}
	return report.Join(columns, values, tables)
}
