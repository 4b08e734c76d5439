package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spinsim/spinsim/internal/lab"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/strictyaml"
	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
)

// File is a scenario as an experiment: its parameters are the axes, and a run is
// a point.
type File struct {
	name    string
	text    []byte
	options Options    // of every run
	title   string     // as in the file: parameters of it may vary
	seeded  bool       // the seed is a parameter's, and no option
	values  Parameters // as in the file
	// device loads the profile with overrides, the scenario's before the user's;
	// nil: from files
	device func(name string, overrides []string) (*profile.Profile, error)
	spec   *Spec // with the parameters of options

	read *sync.Map // *handlers.Library by path and hash, shared by points
}

// Open reads a scenario. The parameters of the options are those that have one
// value in all runs.
func Open(name string, text []byte, o Options) (*File, error) {
	spec, err := parse(name, text, o.Parameters)
	if err != nil {
		return nil, err
	}
	f := &File{name: name, text: text, options: o, spec: spec, read: new(sync.Map)}
	root, err := strictyaml.Parse(name, text)
	if err != nil {
		return nil, textError(name, err)
	}
	written := func(field string) string {
		if n := strictyaml.Child(root, field); n != nil {
			return n.Value
		}
		return ""
	}
	given := func(field string) bool { return strings.Contains(written(field), "$") }
	f.values = blockOf(root, name).Parameters
	f.title = visible.Line(titleOf(written("title"), spec.Parameters, o.Several))
	for _, one := range o.Several {
		if f.values.find(one) == nil {
			return nil, &FieldError{File: name, Path: "parameters", Err: f.values.missing(one)}
		}
	}
	if spec.unread() != nil {
		_, err := spec.Plan(o) // with all other errors
		return nil, err
	}
	if f.seeded = given("seed") && o.Seed == nil; given("engine") {
		return nil, &FieldError{File: name, Line: strictyaml.Child(root, "engine").Line, Path: "engine", Err: fmt.Errorf("a parameter, expected wazero or wasmtime: --engine chooses another")}
	}
	f.options.Seed = nil
	return f, nil
}

// CheckGiven returns an error for a parameter of the options that changes
// nothing: no value has it, or flags replace these values.
func (f *File) CheckGiven() error {
	var errs []error
	for _, name := range append(slices.Sorted(maps.Keys(f.options.Parameters)), f.options.Several...) {
		several := slices.Contains(f.options.Several, name)
		counts := func(path string) bool {
			return !slices.Contains(f.options.Replaced, path) && !(several && path == "title")
		}
		switch uses := f.spec.uses[name]; {
		case slices.ContainsFunc(uses, counts):
		case len(uses) == 0:
			errs = append(errs, &FieldError{File: f.name, Path: "parameters." + name, Err: errors.New("--param changes nothing: no value has it")})
		default:
			errs = append(errs, &FieldError{File: f.name, Path: "parameters." + name, Err: fmt.Errorf("--param changes nothing: a flag replaces %s", strings.Join(uses, ", "))})
		}
	}
	return errors.Join(errs...)
}

// titleOf is the title with the values of parameters that have one value. Of
// several it has the name.
func titleOf(title string, values Parameters, several []string) string {
	one := slices.Clone(values)
	for i := range one {
		if slices.Contains(several, one[i].Name) {
			one[i].Value = "$" + one[i].Name
		}
	}
	if text, err := one.expand(title); err == nil {
		return text
	}
	return title
}

// Recorded makes the scenario of a record run on the recorded profiles.
func (f *File) Recorded(r *provenance.Record) {
	f.device = func(name string, overrides []string) (*profile.Profile, error) {
		best, same := -1, -1
		for i := range r.Profiles {
			if n := shared(r.Profiles[i].Overrides, overrides); r.Profiles[i].From == name && n > same {
				best, same = i, n
			}
		}
		if best < 0 {
			return nil, fmt.Errorf("provenance.profiles: no %s with %s", name, strings.Join(overrides, " "))
		}
		p, err := r.Profiles[best].Load(overrides[same:]...)
		if err == nil {
			p.Origin.Overrides = overrides
		}
		return p, err
	}
}

// shared is how many overrides a recorded profile has of those that are wanted.
// -1: it has others, which the rest of the wanted ones does not replace.
func shared(recorded, wanted []string) int {
	n := 0
	for n < min(len(recorded), len(wanted)) && recorded[n] == wanted[n] {
		n++
	}
	for _, other := range recorded[n:] {
		path, _, _ := strings.Cut(other, "=")
		if !slices.ContainsFunc(wanted[n:], func(o string) bool { return strings.HasPrefix(o, path+"=") }) {
			return -1
		}
	}
	return n
}

// Seed returns the scenario's seed; nil: none, or a parameter's.
func (f *File) Seed() *uint64 {
	if f.seeded {
		return nil
	}
	return f.spec.Seed
}

// Engine returns the scenario's engine, "" if it has none.
func (f *File) Engine() string { return string(f.spec.Engine) }

// Format returns the scenario's format of tables, "" if it has none.
func (f *File) Format() string { return string(f.spec.Output.Format) }

// TraceFile is Plan.TraceFile.
func (f *File) TraceFile(folders []string) (string, error) {
	return (&Plan{spec: f.spec, output: f.spec.Output}).TraceFile(folders)
}

const latencyColumn = "mean_latency"

// Collects reports whether a run collects what a table shows only if it is
// wanted. Every run has the others: points, warnings, failures.
func Collects(table string) bool { return slices.Contains(tableNames(), table) }

// Any is the experiment of no file: it has all that a scenario may have, but for
// parameters.
func Any() *experiment.Experiment {
	return (&File{name: "FILE", spec: &Spec{}}).experiment(tableNames(), true)
}

// Experiment is the experiment of the file.
func (f *File) Experiment() *experiment.Experiment {
	names := f.spec.measured()
	tables := f.spec.Output.tables(len(names) > 0, f.options.Breakdown)
	if f.options.Table != "" {
		tables = []string{f.options.Table}
	} else {
		tables = append(tables, "log")
	}
	return f.experiment(tables, len(names) == 1)
}

func (f *File) experiment(chosen []string, measures bool) *experiment.Experiment {
	e := &experiment.Experiment{
		Name: "scenario", Short: f.title,
		Device: f.load, Seeded: f.seeded, Run: f.run, Columns: columns(measures),
		View: experiment.View{Value: lab.EndColumn, Lines: true, Answer: answer, Summary: []string{experiment.ProfileColumn, lab.EndColumn, "comparisons"}},
	}
	for _, t := range tables() {
		if slices.Contains(chosen, t.Name) {
			e.Details = append(e.Details, t.Detail)
		}
	}
	if e.Short == "" {
		e.Short = visible.Line(filepath.Base(f.name))
	}
	if measures {
		e.View.Value = latencyColumn
		e.View.Summary = slices.Insert(e.View.Summary, 1, latencyColumn)
	}
	if f.options.Breakdown {
		e.View.Programs = "breakdown"
	} else if shown := slices.DeleteFunc(slices.Clone(chosen), func(t string) bool { return t == "log" }); len(shown) == 1 {
		e.View.Programs = shown[0]
	}
	if !f.options.Breakdown {
		e.Divided = func() *experiment.Experiment {
			of := *f
			of.options.Breakdown = true
			return of.Experiment()
		}
	}
	(&lab.Points{Of: f.needs}).Fill(e)
	lab.Parameters(e, f.values.names(), func(name string) (string, string) { return f.values.find(name).Value, "a parameter of the scenario" })
	e.View.Quiet = f.values.names()
	if e.Axes == nil {
		e.Axes = []experiment.Axis{{Name: "file", Kind: report.Text, Of: []string{strings.ReplaceAll(filepath.Base(f.name), ",", "_")}, Help: "the scenario"}}
	}
	return e
}

// measured lists the names of the measured intervals.
func (s *Spec) measured() (names []string) {
	var in func(steps []Step)
	in = func(steps []Step) {
		for i := range steps {
			switch s := &steps[i]; {
			case s.Measure != nil && !slices.Contains(names, s.Measure.name()):
				names = append(names, s.Measure.name())
			case s.Repeat != nil:
				in(s.Repeat.Steps)
			}
		}
	}
	for i := range s.Programs {
		in(s.Programs[i].Steps)
	}
	return names
}

// columns are the columns of the table of runs. measures: there is one measured
// interval.
func columns(measures bool) (list []report.Column) {
	if measures {
		list = append(list, report.Column{Name: latencyColumn, Unit: "ns", Kind: report.Duration, Help: "mean of all samples of the measured interval, on all ranks"})
	}
	return append(list, lab.Columns(
		report.Column{Name: "nodes", Kind: report.Count, Help: "nodes, each with one process"},
		report.Column{Name: "comparisons", Kind: report.Count, Help: "comparisons made by expectations"},
	)...)
}

// answer says how the expectations fared.
func answer(results []*experiment.Result) []string {
	checked := 0
	for _, r := range results {
		n, _ := experiment.Magnitude(r.Values["comparisons"])
		checked += int(n)
	}
	failed, lines := lab.Happened(results)
	first := "Nothing was expected."
	switch {
	case failed > 0 && len(results) > 1:
		first = fmt.Sprintf("FAILED: %d of %d runs", failed, len(results))
	case failed > 0:
		first = "FAILED"
	case checked > 0:
		first = lab.Plural(checked, "comparison holds.", "comparisons hold.")
	}
	return append([]string{first}, lines...)
}

// at are the options of a point.
func (f *File) at(p *experiment.Point) Options {
	o := f.options
	o.Engine, o.Parameters = p.Engine, make(map[string]string)
	for _, one := range f.values { // a file that the user has named may be anywhere
		if v := p.Written(one.Name); v != one.Value {
			o.Parameters[one.Name] = v
		}
	}
	if !f.seeded {
		o.Seed = &p.Seed
	}
	return o
}

// load is Experiment.Device.
func (f *File) load(p *experiment.Point, chosen string, more []string) (*profile.Profile, error) {
	o := f.at(p)
	o.Set, o.Chosen = more, chosen
	spec, err := parse(f.name, f.text, o.Parameters)
	if err != nil {
		return nil, err
	}
	if f.device != nil {
		name, own := spec.device(chosen)
		var all []string
		for _, x := range own {
			all = append(all, x.text)
		}
		return f.device(name, append(all, more...))
	}
	plan := &planner{Plan: &Plan{spec: spec, options: o}, failed: make(map[string]bool)}
	if !spec.wrong.Damaged("profile") && !spec.wrong.Damaged("set") && !spec.wrong.Damaged("topology") {
		plan.loadProfile(more)
		if plan.errs == nil {
			return plan.profile, nil
		}
	}
	_, err = spec.Plan(o) // with all other errors
	return nil, err
}

// needs finds the needs of a point.
func (f *File) needs(p *experiment.Point) (*lab.Needs, error) {
	plan, err := f.plan(p)
	if err != nil {
		return nil, err
	}
	p.Seed = plan.seed
	n := &lab.Needs{Memory: plan.Memory(), Inputs: plan.inputs[1:]}
	for _, l := range plan.used {
		same, _ := f.read.LoadOrStore(l.Path+" "+provenance.Hash(l.Wasm), l)
		n.Modules = append(n.Modules, same.(*handlers.Library))
	}
	return n, nil
}

// plan makes the plan of a point.
func (f *File) plan(p *experiment.Point) (*Plan, error) {
	o := f.at(p)
	o.Profile = p.Profile
	spec, err := parse(f.name, f.text, o.Parameters)
	if err != nil {
		return nil, err
	}
	return spec.Plan(o)
}

// run is Experiment.Run.
func (f *File) run(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	plan, err := f.plan(p)
	if err != nil {
		return nil, err
	}
	plan.Bound(p.Room)
	p.Reads() // nothing besides: plan.Run tells Used of the rest
	x, err := plan.Run(ctx, p.Config(ctx, plan.ranks))
	if x == nil {
		return nil, err
	}
	values := x.values()
	if p.Experiment().View.Value == latencyColumn {
		values[latencyColumn] = nil
		if len(x.samples) > 0 {
			values[latencyColumn] = mean(x.samples)
		}
	}
	return values, err
}

// values are the values of a point.
func (x *Result) values() experiment.Values {
	values := lab.Values(x.End, x.Cut, x.Failures, x.Notes)
	values["nodes"], values["comparisons"] = x.ranks, x.Checked
	maps.Copy(values, x.tables)
	return values
}
