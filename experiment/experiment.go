package experiment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Experiment is something to measure, at which points and how, and what was
// published of it. It is data and never changes: commands, sweeps, tables,
// plots, waterfalls and provenance work on any of them, those of this package
// (All) and a user's own alike.
type Experiment struct {
	Name   string // what commands call it: a-z, 0-9 and -, a letter first
	Short  string // what is measured, a part of a line
	Long   string // what is measured and how, for a manual; lines are kept
	Source string // publication and section, such as "sPIN'17 §4.4.1"; "": nothing was published of it

	// Profiles are the devices and networks that it runs on unless others are
	// asked for, by name or file; empty: those of sPIN'17.
	Profiles []string

	// Axes are what varies from point to point: at least one. The first varies
	// fastest, that is, rows that differ in it are neighbours. Their columns
	// stand before those of Columns.
	Axes []Axis

	// Points chooses among the combinations of the axes' values: it says
	// whether the experiment has the point, or what is wrong with it. Nothing
	// has run then. nil: every combination is a point. *NoPoint as the error
	// says why there is none: it stands in the error of a sweep with a value
	// for which there is no point at all.
	Points func(p *Point) (measured bool, err error)

	// Smoke are points that are measured in a second or less. Tests and CI run
	// them in every way there is: with a breakdown, on memory that fails, on other
	// engines. Axes that are left out have the first of their values by default.
	Smoke []Values

	// Run measures a point: it returns a value for each of Columns, by its
	// name. Points run several at a time, each in a goroutine: Run must not
	// change what they share, and what it returns must depend on the point
	// alone. It ends soon after ctx is done.
	Run func(ctx context.Context, p *Point) (Values, error)

	Columns  []report.Column // what is measured
	Relative []Relative      // what is computed of a value and that of another point

	// Published are numbers of publications for values of Columns and Relative.
	// Without an entry for the column "profile" a number is for every profile;
	// it stands beside ours only if the profile and the handlers are as they
	// were published: without overrides or modules of the user. A Source may be
	// left out if it is that of the experiment.
	Published []report.Published

	// Modules are the handler libraries that run at a point; nil: none. What
	// they run must not depend on the profile.
	Modules func(p *Point) []*handlers.Library
	// Replaceable says that a module of the user may stand in the place of Modules; see Point.Handler.
	Replaceable bool
	// Roles say what the handlers of points have to do: for each point the
	// first that is of it. Without any, a user's module may do anything.
	Roles []Role
	// Memory estimates the memory that Run takes at a point, bytes: see
	// Point.Footprint. nil: not known. Points that need more than there is are
	// refused before anything runs.
	Memory func(p *Point) int64
	// Untraced says that a point takes several simulations, so that there is no timeline of it.
	Untraced bool

	// Followed is the column of a time, of Columns, that --breakdown divides:
	// the mean of the operations that Run notes with Point.Operation. "": none,
	// unless there is Operation.
	Followed string
	// Operation says in a part of a sentence what Run notes with
	// Point.Operation, of experiments none of whose columns is the time of it,
	// such as those that measure a throughput: --breakdown adds the mean time,
	// and divides that. It stands in the table's heading. "": there is
	// Followed, or nothing.
	Operation string
	// Divided is measured in the place of the experiment by --breakdown; it has
	// the same axes and others besides. nil: the experiment itself is.
	Divided func() *Experiment
	// Undivided says why --breakdown is refused, of experiments with neither.
	Undivided string

	View  View
	Notes []string // what a reader of every table should know
	// Caveats say in sentences which results are not what they seem, such as
	// those of a fallback. They stand behind the answer; nil: none.
	Caveats func(results []*Result) []string

	// Presets are values of the axes under a name: published experiments that this one can be.
	Presets []Preset

	broken bool // made by Broken
}

// Preset is a choice of values of axes, and of what people see of them.
type Preset struct {
	Name   string            // a-z, 0-9 and -, a letter first
	Short  string            // what is measured, a part of a line
	Source string            // of this one; "": that of the experiment
	Values map[string]string // list of values by the name of the axis; others have theirs by default
	View   *View             // nil: that of the experiment
}

// Preset returns the experiment with the values and the view of one of its presets.
func (e *Experiment) Preset(name string) (*Experiment, error) {
	var names []string
	for i := range e.Presets {
		p := &e.Presets[i]
		if names = append(names, p.Name); p.Name != name {
			continue
		}
		one := *e
		one.Short = p.Short
		if p.Source != "" {
			one.Source = p.Source
		}
		if p.View != nil {
			one.View = *p.View
		}
		one.Axes = slices.Clone(e.Axes)
		for i := range one.Axes {
			if list, given := p.Values[one.Axes[i].Name]; given {
				one.Axes[i].Default = list
			}
		}
		return &one, nil
	}
	return nil, fmt.Errorf("no experiment %q of %s, expected one of %s%s", name, e.Name, strings.Join(names, ", "), fields.DidYouMean(name, names))
}

// Values are measured, by the name of their column, with the type of the
// column's kind; nil for a column without a value at the point.
type Values map[string]any

// Always are libraries that run at every point, for Experiment.Modules.
func Always(libraries ...*handlers.Library) func(*Point) []*handlers.Library {
	return func(*Point) []*handlers.Library { return libraries }
}

// Relative is a column that sets a value beside that of another point, which
// has another value of one axis and is otherwise the same. It is empty where
// the other point is not measured, and, except for ratios, at that point
// itself.
type Relative struct {
	// Column is of kind Ratio: there / here, so that 2 is twice as fast if Of
	// is a time; of kind Share: 1 - here / there; or of kind Change: here /
	// there - 1.
	Column report.Column
	Of     string // one of Columns
	Axis   string // in which the other point differs
	Base   string // its value there, as the user writes it
}

// View says how people read the results. Everything may be left out.
type View struct {
	// Value is the column of Columns that answers the question of the
	// experiment; "": the first with numbers.
	Value string
	// Series are axes whose values stand side by side. With one, and without
	// Summary, the table for people has a column of Value for each of its
	// values; lines of plots are of the first; a waterfall follows each
	// combination.
	Series []string
	// Base is the value of the first of Series that others are measured against.
	Base string
	// Summary are the columns of the table for people; empty: those of the axes and of Columns.
	Summary []string
	// X is the column along which plots go; "": the axis of numbers with the most values.
	X string
	// Course says that X is a time that passes: plots have it, and what is
	// drawn against it, on axes that are linear.
	Course bool
	// Parts are columns that add up to Value: plots show their shares of it.
	Parts []string
	// Quiet are axes whose values stand in rows and panels only where they vary, else in a note.
	Quiet []string
	// Place says where published numbers of columns other than Value are drawn;
	// see report.Plot. Those of Relative know theirs.
	Place map[string]func(value func(column string) float64, published float64) (x, y float64)
	// Answer says in sentences what was found; nil: which of Series is the
	// fastest, if Base says against what and Value is a time.
	Answer func(results []*Result) []string
}

// Result is what was measured at a point.
type Result struct {
	Point  *Point
	Values Values
}

// Time returns a value of a column of times. It panics if there is none: a programmer's mistake.
func (r *Result) Time(column string) sim.Time { return r.Values[column].(sim.Time) }

// Float returns a value of a column of numbers other than counts. It panics if
// there is none: a programmer's mistake.
func (r *Result) Float(column string) float64 { return r.Values[column].(float64) }

// All lists the experiments that were registered with their publications.
func All() (list []*Experiment) {
	for _, p := range publications {
		list = append(list, p.Experiments...)
	}
	return list
}

// Find returns the experiment of that name.
func Find(name string) (*Experiment, error) { return FindIn(All(), name) }

// FindIn returns the experiment of that name among those of a list.
func FindIn(list []*Experiment, name string) (*Experiment, error) {
	var names []string
	for _, e := range list {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return nil, fmt.Errorf("no experiment %q, expected one of %s%s", name, strings.Join(names, ", "), fields.DidYouMean(name, names))
}

// Title is the head of tables and plots.
func (e *Experiment) Title() string {
	title := e.Name
	if e.Short != "" {
		title += ": " + e.Short
	}
	if e.Source != "" {
		title += " (" + e.Source + ")"
	}
	return title
}

// DefaultProfiles are the profiles unless others are asked for.
func (e *Experiment) DefaultProfiles() []string {
	if len(e.Profiles) == 0 {
		return []string{"spin-dis", "spin-int"}
	}
	return e.Profiles
}

// Axis returns the axis of that name, or nil.
func (e *Experiment) Axis(name string) *Axis {
	if i := e.axis(name); i >= 0 {
		return &e.Axes[i]
	}
	return nil
}

func (e *Experiment) axis(name string) int {
	return slices.IndexFunc(e.Axes, func(a Axis) bool { return a.Name == name })
}

// column returns the column of that name among those of axes, Columns and Relative.
func (e *Experiment) column(name string) (c report.Column, found bool) {
	all := e.TableColumns()
	i := slices.IndexFunc(all, func(c report.Column) bool { return c.Name == name || c.Key() == name })
	if i < 0 {
		return report.Column{}, false
	}
	return all[i], true
}

// value is the column of View.Value.
func (e *Experiment) value() report.Column {
	for _, c := range e.Columns {
		if c.Name == e.View.Value || e.View.Value == "" && c.Kind != report.Text && c.Kind != report.Flag {
			return c
		}
	}
	return e.Columns[0]
}

// series are the indices of the axes of View.Series.
func (e *Experiment) series() (list []int) {
	for _, name := range e.View.Series {
		list = append(list, e.axis(name))
	}
	return list
}

// Measure runs a point of At or of Sweep.Points. It is an error if a column has
// no value or one of another type.
func (e *Experiment) Measure(ctx context.Context, p *Point) (*Result, error) {
	if p.experiment != e {
		return nil, fmt.Errorf("experiment %s: the point is of %s", e.Name, p.experiment.Name)
	}
	p.done = &operations{}
	memory.Room(p.Need())
	values, err := e.Run(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.place(), err)
	}
	if err := e.checkValues(values); err != nil {
		return nil, fmt.Errorf("experiment %s: %w", e.Name, err)
	}
	return &Result{p, values}, nil
}

// checkValues holds the values of Run against the columns.
func (e *Experiment) checkValues(values Values) error {
	for _, c := range e.Columns {
		v, given := values[c.Name]
		if !given {
			return fmt.Errorf("Run has returned no value for column %s", c.Name)
		}
		if !c.Holds(v) {
			return fmt.Errorf("Run has returned a %T for column %s of kind %v", v, c.Name, c.Kind)
		}
	}
	for name := range values { //lint:maporder any of several is as good
		if !slices.ContainsFunc(e.Columns, func(c report.Column) bool { return c.Name == name }) {
			return fmt.Errorf("Run has returned a value for %q, which is none of Columns", name)
		}
	}
	return nil
}

// At makes a point of a device and of values of axes; axes that are not named
// have the first of their values by default. Of the profile, what axes set is
// set.
func (e *Experiment) At(device *profile.Profile, values Values) (*Point, error) {
	s, err := New(e)
	if err != nil {
		return nil, err
	}
	p := &Point{experiment: e, values: make([]any, len(e.Axes)), Seed: 1}
	for i := range e.Axes {
		a := &e.Axes[i]
		p.values[i] = s.values[i][0]
		if v, given := values[a.Name]; given {
			if p.values[i], err = a.take(v); err != nil {
				return nil, fmt.Errorf("experiment %s: axis %s: %w", e.Name, a.Name, err)
			}
		}
	}
	for name := range values { //lint:maporder any of several is as good
		if e.axis(name) < 0 {
			return nil, fmt.Errorf("experiment %s: no axis %q, there are %s", e.Name, name, strings.Join(e.axisNames(), ", "))
		}
	}
	p.values, _ = e.stepped(p.values, nil)
	if p.Profile, err = WithFields(device, p.fields()); err != nil {
		return nil, err
	}
	return p, p.check()
}

func (e *Experiment) axisNames() (names []string) {
	for i := range e.Axes {
		names = append(names, e.Axes[i].Name)
	}
	return names
}
