package experiment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Experiment describes a measurement: its axes, how to run a point of them, its
// columns, and the published numbers beside it. It is data and never changes.
// Commands, sweeps, tables, plots and records work on any experiment, a user's
// own like the built-in ones (All).
type Experiment struct {
	Name  string // a-z, 0-9 and -, a letter first
	Short string // the measurement in part of a line
	Long  string // the manual: what is measured, and how; line breaks are kept
	// publication and section, for example "sPIN'17 §4.4.1"; "": not published,
	// which no experiment of spinsim is. Run then calls Point.Reads, or else a
	// user's overrides all count as used.
	Source string

	// Profiles are the default devices and networks, by name or file. Empty:
	// spin-dis and spin-int.
	Profiles []string
	// Deviceless means that Run simulates no device: a model that needs none.
	// Point.Profile is nil, and commands have no flags for devices. Nothing is
	// random, so there is no seed either; a model with noise has an axis for it.
	Deviceless bool

	// Device loads the device of a point, for an experiment from a file that names
	// one. chosen is the profile that a user wants instead; "": the file's. more
	// are the user's values of fields, "path=value", behind the file's own. nil:
	// Profiles are the devices.
	Device func(p *Point, chosen string, more []string) (*profile.Profile, error)
	// Seeded means that the file gives each point a seed: Points sets Point.Seed.
	Seeded bool

	// Axes are the parameters: at least one. The first varies fastest, so rows
	// that differ in it are neighbours. Their columns stand before Columns.
	Axes []Axis

	// Points selects combinations of values of the axes, before anything runs.
	// It reports whether the experiment measures the point, or an error in its
	// values. The error *NoPoint gives a reason for a combination that is left
	// out: a sweep shows it if one of its values has no point at all. nil: every
	// combination is a point.
	Points func(p *Point) (measured bool, err error)

	// Smoke are points that are measured in a second or less. Tests and CI run
	// them in every way there is: with a breakdown, on memory that fails, on other
	// engines. Axes that are left out have the first of their values by default.
	Smoke []Values

	// Run measures a point and returns a value for each of Columns, by its name.
	// Several points run at once, each in a goroutine. So Run must not change
	// anything they share, and its result must depend on the point alone. Run
	// ends soon after ctx is done.
	Run func(ctx context.Context, p *Point) (Values, error)

	Columns  []report.Column // the measured values
	Relative []Relative      // columns that compare a value with another point
	// Details are further tables, with rows of their own for each point. Run
	// returns Rows by the name of each.
	Details []Detail

	// Failures is the table of Details whose rows say, in their first column, what
	// was expected of a point and is not so. Run returns them as its error, too,
	// beside the values. A command shows the values, says these, and ends with
	// status 1. "": none.
	Failures string
	// Warnings is likewise for what happened without being an error. The answer of
	// the view has them; beside CSV and its kin they are on standard error.
	Warnings string
	// Cut is a column of texts with the cause that has ended a point early. The values
	// are then of the time before; --resume does not keep them if a limit has. "":
	// none, since Run returns an error and no values.
	Cut string

	// Published are published numbers for Columns and Relative. A number without
	// an entry for the column "profile" holds for every profile. It stands beside
	// ours only without overrides and without a user's module. An empty Source
	// means the source of the experiment.
	Published []report.Published

	// Ledger are the rows of the package ledger that the experiment answers. Those
	// with a Column stand beside ours like Published.
	Ledger []LedgerRow

	// Slots are the slots of handlers whose modules run at a point; nil: none. A
	// user's module can replace each (Point.Handlers). They must not depend on the
	// profile.
	Slots func(p *Point) []*handlers.Slot
	// Modules are further modules that run at a point, such as those that a file
	// names; nil: none.
	Modules func(p *Point) []*handlers.Library
	// Served are further libraries, by their names in section serve of a profile:
	// handlers of others run on the processors that are chosen for theirs.
	Served []string
	// Inputs are further files that were read for a point, for the record; nil:
	// none.
	Inputs func(p *Point) []provenance.Input
	// Memory estimates the memory of Run at a point, in bytes: see
	// Point.Footprint. A point that needs more than the limit is refused before
	// anything runs. nil: nodes for the axis "ranks" (without it two), and two
	// messages of the axis "size" for each, and four more.
	Memory func(p *Point) int64
	// Independent means that programs of different ranks share no variable that one
	// of them writes, but for Bench.Ended. Large points then take several cores of
	// the machine: see runtime.Config.Cores. Tests run it with the race detector.
	Independent bool
	// Untraced means that a point takes several simulations and so has no
	// timeline.
	Untraced bool

	// Followed is the column that --breakdown divides into parts: the mean time
	// of the operations that Run notes with Point.Operation. "": none, unless
	// Operation is set.
	Followed string
	// Operation describes the noted operations in part of a sentence, for an
	// experiment without a column for their time. For example, an experiment
	// measures a throughput: --breakdown then adds a column with the mean time of
	// an operation. "": see Followed.
	Operation string
	// Divided returns the experiment that --breakdown measures instead. It has the
	// same axes, and more. If it has neither Followed nor Operation, its Run divides
	// by itself: Point.Room bounds that. nil: this one.
	Divided func() *Experiment
	// Undivided is the reason why --breakdown is refused, without any of the three.
	Undivided string

	View  View
	Notes []string // for the reader of every table
	// Caveats are sentences about results that are not what they seem, for
	// example because of a fallback. They stand behind the answer; nil: none.
	Caveats func(results []*Result) []string

	// Presets are named values of the axes: published experiments of this kind.
	Presets []Preset

	broken bool        // made by Broken
	base   *Experiment // that Preset or Sweep.Set has made this one from; nil: none
}

// Preset is a named choice of values of axes, with a view of its own.
type Preset struct {
	Name   string            // a-z, 0-9 and -, a letter first
	Short  string            // the measurement in part of a line
	Source string            // "": the source of the experiment
	Values map[string]string // list of values by the name of the axis; other axes keep their defaults
	View   *View             // nil: the view of the experiment
}

// Preset returns the experiment with the values and the view of a preset.
func (e *Experiment) Preset(name string) (*Experiment, error) {
	var names []string
	for i := range e.Presets {
		p := &e.Presets[i]
		if names = append(names, p.Name); p.Name != name {
			continue
		}
		one := *e
		one.base = e
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

// Values are the measured values by the name of their column. Each has the Go
// type of the column's kind, or is nil if the point has no such value.
type Values map[string]any

// Relative is a column that compares the value of a point with another point, the
// base: it has another value of one axis and is the same otherwise. The column is
// empty if the base was not measured and, except for ratios, at the base itself.
type Relative struct {
	// Column has one of three kinds. Ratio is base / here: 2 means twice as fast
	// if Of is a time. Share is 1 - here / base. Change is here / base - 1.
	Column report.Column
	Of     string // the compared column of Columns
	Axis   string // the axis in which the base differs
	Base   string // the base's value of it, as users write it
	Rate   bool   // Of is no time but a rate: Ratio is here / base, so 2 means twice as fast here, too
}

// View describes how people read the results. Every field may be left out.
type View struct {
	// Value is the column of Columns that answers the question; "": the first
	// column with numbers.
	Value string
	// Series are axes whose values stand side by side. With one axis, and without
	// Summary, the table for people has a column of Value for each of its values.
	// The lines of a plot are the values of the first axis.
	Series []string
	// Base is the value of the first of Series that the others are compared with.
	Base string
	// Summary are the columns of the table for people, by name; the column
	// "profile" tells devices apart. Empty: the axes and Columns.
	Summary []string
	// X is the column on the horizontal axis of plots; "": the numeric axis with
	// the most values.
	X string
	// Course means that X is the time of a run. Plots then have linear axes.
	Course bool
	// Parts are columns that add up to Value. Plots show their shares.
	Parts []string
	// Quiet are axes that get a column or panel only if they have several values;
	// else a note names their value.
	Quiet []string
	// Place gives the position of published numbers in plots, for columns other
	// than Value and Relative: see report.Plot.
	Place map[string]func(value func(column string) float64, published float64) (x, y float64)
	// Lines means that the table for people of a single point has a line for each
	// column: its value, unit and Help.
	Lines bool
	// Programs is the table of Details that CSV, NDJSON and Parquet, which hold
	// one, have without --table; "": a row for each point.
	Programs string
	// Answer returns sentences with what was found. nil: the fastest of Series
	// compared with Base, if Value is a time.
	Answer func(results []*Result) []string
}

// Result is a point with its measured values.
type Result struct {
	Point  *Point
	Values Values
	used   used.Set // what happened at the point

	err error // of Run, beside values
}

// Used returns what happened at the point: the facts with which fields of the
// profile count.
func (r *Result) Used() used.Set { return r.used }

// Time returns the value of a column of times. It panics if there is none: a
// programmer's mistake.
func (r *Result) Time(column string) sim.Time { return r.Values[column].(sim.Time) }

// Float returns the value of a column of numbers, but not of counts. It panics if
// there is none: a programmer's mistake.
func (r *Result) Float(column string) float64 { return r.Values[column].(float64) }

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

// DefaultProfiles are the profiles that a sweep has by default.
func (e *Experiment) DefaultProfiles() []string {
	if len(e.Profiles) == 0 && !e.Deviceless && e.Device == nil {
		return []string{"spin-dis", "spin-int"}
	}
	return e.Profiles
}

// Axis returns the axis with a name, or nil.
func (e *Experiment) Axis(name string) *Axis {
	if i := e.axis(name); i >= 0 {
		return &e.Axes[i]
	}
	return nil
}

func (e *Experiment) axis(name string) int {
	return slices.IndexFunc(e.Axes, func(a Axis) bool { return a.Name == name })
}

// column returns the column with a name or key, of an axis, Columns or Relative.
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

func (e *Experiment) axisNames() (names []string) {
	for i := range e.Axes {
		names = append(names, e.Axes[i].Name)
	}
	return names
}
