package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/batch"
	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/profile"
	device "github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Sweep is an experiment on some devices, at combinations of values of its
// axes.
type Sweep struct {
	Profiles  []string // names or files
	Overrides []string // "path=value", for every profile; for several values see Set
	Seed      uint64
	Engine    string
	Handlers  map[string]*handlers.Library // the user's modules, by slot: see Fill
	// Traced is what follows a run, such as the flag of a timeline: there must be
	// exactly one point, and the caller sets its Tracer, Links or Capture. "":
	// nothing.
	Traced string
	Limits sim.Limits // of each simulation
	// how many points may run at once, or how many processors one of them may
	// take if it is large; 0: as many as there are processors
	Workers int
	// MemoryLimit is how much memory the points may take, in bytes; 0: any.
	// Points refuses a point that needs more alone. Run runs as many at once as
	// fit. Results do not depend on it.
	MemoryLimit int64
	Held        int64 // bytes for the work after a run, such as a timeline
	// Checkpoint keeps each result at once. A point whose result it has is not
	// measured again. nil: nothing is kept.
	Checkpoint *checkpoint.Folder

	Hint string // where the columns are explained, for the notes of a table; "": nowhere

	Build    provenance.Build     // the program that makes the results
	Command  string               // the command that makes the results, for their record
	recorded []provenance.Profile // used in place of Profiles and Overrides; nil: load these
	Inputs   []provenance.Input   // the files that the experiment is made from, for the record
	// Given are flags, with their values, with which an experiment was made from
	// a file, for the record. Several values of a flag are lines; "" is the
	// argument, unless it is the first of Inputs.
	Given map[string]string
	// OverOpen notes in the record that the results have ranges over what
	// publications leave open.
	OverOpen bool

	grid   grid
	record *provenance.Record // of the results; Points sets it
	more   []string           // overrides that are a step of a waterfall
	bases  []*profile.Profile // of Experiment.Device, without the fields of axes
	// notes on processors that were chosen for handlers which do not run;
	// Points sets it
	idle  []string
	falls bool     // the two profiles are the ends of a waterfall
	newer []string // notes on axes that a record does not have
	// Results come from rows: their record says which overrides had no effect
	restored bool
	without  []string  // the overrides without effect of the record
	open     *overOpen // ranges over what publications leave open; nil: none
	devices  *devices  // that other sweeps share; nil: none
	given    *Recorded // files of a record; nil: those of the machine
}

// New returns a sweep of an experiment over its default profiles and values,
// with seed 1. It is an error if the definition is wrong.
func New(e *Experiment) (*Sweep, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	s := &Sweep{
		Profiles: slices.Clone(e.DefaultProfiles()), Seed: 1, Build: provenance.ReadBuild(), Command: CommandPrefix + e.Name,
		grid: grid{experiment: e, values: make([][]any, len(e.Axes)), chosen: make([]bool, len(e.Axes))},
	}
	for i := range e.Axes {
		var err error
		if s.grid.values[i], err = e.Axes[i].initial(); err != nil {
			return nil, err // not reached: Check parses it, too
		}
	}
	return s, nil
}

// CommandPrefix begins the command in the record of results. The name of the
// experiment follows.
const CommandPrefix = "compare "

// Choose gives an axis the values of a list: see Axis.Parse.
func (s *Sweep) Choose(axis, list string) error {
	i := s.grid.experiment.axis(axis)
	if i < 0 {
		return fmt.Errorf("no axis %q, there are %s", axis, strings.Join(s.grid.experiment.axisNames(), ", "))
	}
	if s.grid.experiment.Axes[i].written != nil {
		return chooseParameter(s, i, list)
	}
	values, err := s.grid.experiment.Axes[i].Parse(list)
	if err == nil {
		s.grid.values[i], s.grid.chosen[i] = values, true
	}
	return err
}

// Open reports whether there is such an axis, and Choose was not called for it.
func (s *Sweep) Open(axis string) bool {
	i := s.grid.experiment.axis(axis)
	return i >= 0 && !s.grid.chosen[i]
}

// Experiment returns the experiment with the axes that Set has added.
func (s *Sweep) Experiment() *Experiment { return s.grid.experiment }

// Values returns the values of an axis. nil: there is no such axis.
func (s *Sweep) Values(axis string) []any {
	if i := s.grid.experiment.axis(axis); i >= 0 {
		return slices.Clone(s.grid.values[i])
	}
	return nil
}

// Points lists the points in the order of the table. It is an error if the
// parameters are wrong.
func (s *Sweep) Points() ([]*Point, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	missing := make(passedOver, len(s.grid.values))
	points, profiles, err := onDevices(s, missing)
	if err != nil {
		return nil, err
	}
	if err := s.unmeasured(points, missing); err != nil {
		return nil, err
	}
	if s.Traced != "" && len(points) > 1 {
		several := s.grid.several()
		if len(s.Profiles) > 1 {
			several = slices.Insert(several, 0, "--"+ProfileColumn)
		}
		return nil, fmt.Errorf("%s: follows one run, but this sweep has %d: choose one value for %s", s.Traced, len(points), strings.Join(several, ", "))
	}
	if err := checkSlots(s.Handlers, points); err != nil {
		return nil, err
	}
	if err := s.checkServe(profiles, points); err != nil {
		return nil, err
	}
	if err := s.checkMemory(points); err != nil {
		return nil, err
	}
	return points, s.remember(profiles, points)
}

// onDevices lists the points on all devices, and these devices. Combinations
// that are no points are added to missing.
func onDevices(s *Sweep, missing passedOver) (points []*Point, profiles []*profile.Profile, err error) {
	e := s.grid.experiment
	s.bases = nil
	if e.Deviceless || e.Device != nil && len(s.Profiles) == 0 {
		points, err = s.of(0, nil, missing)
		return points, s.bases, err
	}
	for i, name := range s.Profiles {
		var base *profile.Profile
		if e.Device == nil {
			if base, err = s.base(name); err != nil {
				err = unread(s, name, err)
			} else {
				err = narrowAxes(s)
			}
			profiles = append(profiles, base)
		}
		if err != nil {
			return nil, nil, err
		}
		more, err := s.of(i, base, missing)
		if err != nil {
			return nil, nil, err
		}
		points = append(points, more...)
	}
	if e.Device != nil {
		profiles = s.bases
	}
	return points, profiles, nil
}

// checkServe refuses overrides that choose processors for handlers which do not
// run, and notes profiles that do so.
func (s *Sweep) checkServe(profiles []*profile.Profile, points []*Point) error {
	names := running(points)
	s.idle = nil
	for _, p := range profiles {
		if note := p.Serve.Idle(names); note != "" {
			s.idle = append(s.idle, p.Name+": "+note)
		}
	}
	if s.recorded != nil {
		return nil // it has run before
	}
	return profile.CheckServe(s.Overrides, names)
}

// running lists the libraries whose handlers run at points, by their names in
// the section serve of a profile.
func running(points []*Point) (libraries []string) {
	for _, p := range points {
		libraries = append(libraries, p.experiment.Served...)
		if p.experiment.Modules != nil {
			for _, l := range p.experiment.Modules(p) {
				libraries = append(libraries, l.Served())
			}
		}
		for _, slot := range p.Slots() { // whose processors serve a user's module, too
			if !slot.Free { // the simulator runs them itself
				libraries = append(libraries, slot.Library.Served())
			}
		}
	}
	slices.Sort(libraries)
	return slices.Compact(libraries)
}

// of lists the points on one device, and adds combinations that are no points
// to missing.
func (s *Sweep) of(number int, base *profile.Profile, missing passedOver) (points []*Point, err error) {
	made := map[string]*profile.Profile{"": base}
	err = combinations(s.grid.values, func(values []any) error {
		values, first := s.grid.experiment.stepped(values, s.grid.values)
		if !first {
			return nil
		}
		p := &Point{
			Seed: s.Seed, Engine: s.Engine, Handlers: s.Handlers, Limits: s.Limits, experiment: s.grid.experiment, device: number,
			values: slices.Clone(values), Recorded: s.given,
		}
		if s.grid.experiment.Device != nil {
			if err := fromFile(s, p, number); err != nil {
				return err
			}
		} else if err := equip(s, p, made); err != nil {
			return err
		}
		if measured, err := missing.measured(p); err != nil || !measured {
			return err
		}
		points = append(points, p)
		return nil
	})
	return points, err
}

// equip gives a point its profile. made has a profile for each set of fields, and
// the one without any; nil: there is no device.
func equip(s *Sweep, p *Point, made map[string]*profile.Profile) (err error) {
	fields := p.fields()
	set := strings.Join(fields, " ")
	if made[set] == nil && made[""] != nil {
		if made[set], err = s.profile(s.Profiles[p.device], fields...); err != nil {
			return s.blame(p.device, p, err)
		}
	}
	p.Profile = made[set]
	return nil
}

// blame names the axis whose value the device does not accept, if this value
// alone causes an error.
func (s *Sweep) blame(number int, p *Point, err error) error {
	for i := range p.values {
		one := p.field(i)
		if one == "" {
			continue
		}
		if _, wrong := s.profile(s.Profiles[number], one); wrong != nil && slices.Contains(s.grid.own(), i) {
			return fmt.Errorf("--set: %w", wrong)
		} else if wrong != nil {
			return fmt.Errorf("--%s: %w", s.grid.experiment.Axes[i].Name, wrong)
		}
	}
	return err
}

// check checks the parameters that need no device.
func (s *Sweep) check() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch none := s.grid.experiment.Deviceless; {
	case none && len(s.Profiles)+len(s.Overrides) > 0:
		fail("%s simulates no device, so it has no profile", s.grid.experiment.Name)
	case !none && len(s.Profiles) == 0 && s.grid.experiment.Device == nil:
		fail("no profile given")
	}
	for i, name := range s.Profiles {
		if slices.Contains(s.Profiles[:i], name) {
			fail("--profile: %s is given twice", name)
		}
	}
	for _, o := range s.Overrides {
		field, _, _ := strings.Cut(o, "=")
		field = strings.TrimSpace(field)
		for i := range s.grid.experiment.Axes {
			switch a := &s.grid.experiment.Axes[i]; {
			case field == "" || a.Field != field:
			case s.recorded != nil: // base gave it one
			case i >= len(s.grid.experiment.Axes)-s.grid.varied:
				fail("%s is given several values and a single one", field)
			default:
				fail("%s: %s measures at several, choose them with --%s", field, s.grid.experiment.Name, a.Name)
			}
		}
	}
	if s.recorded == nil { // a record chooses every axis
		errs = append(errs, s.grid.changed(s.Overrides)...)
	}
	if s.Traced != "" && s.grid.experiment.Untraced {
		fail("%s: follows one run, but a point of %s takes several", s.Traced, s.grid.experiment.Name)
	}
	if combined(s.grid.values) > maxPoints {
		errs = append(errs, errTooMany)
	}
	return errors.Join(append(errs, device.CheckEngine(s.Engine))...)
}

// Unfinished is the error of a sweep whose context ended before all points were
// measured, or where some points have failed and others have not.
type Unfinished struct {
	Results []*Result // in the order of the points; nil: not measured
	Err     error     // what ended the sweep, or the errors of the points
}

// unfinished gives the error of a batch its type here.
func unfinished(results []*Result, err error) ([]*Result, error) {
	if u := (*batch.Unfinished[Result])(nil); errors.As(err, &u) {
		return results, &Unfinished{u.Results, u.Err}
	}
	return results, err
}

func (u *Unfinished) batch() *batch.Unfinished[Result] {
	return &batch.Unfinished[Result]{Results: u.Results, Err: u.Err, Noun: pointNoun}
}

// Error is the text of Err and Progress.
func (u *Unfinished) Error() string { return u.batch().Error() }

// Unwrap returns Err.
func (u *Unfinished) Unwrap() error { return u.Err }

// Progress writes how many points were measured.
func (u *Unfinished) Progress() string { return u.batch().Progress() }

// Cut says why and where the sweep has ended, for the seals of its files.
func (u *Unfinished) Cut() string { return u.batch().Cut() }

// Shown reports whether there is any result.
func (u *Unfinished) Shown() bool { return u.batch().Shown() }

// Measured lists the results that are there.
func (u *Unfinished) Measured() []*Result { return u.batch().Measured() }

// Run measures the points, several at a time, and returns their results in the
// same order. done, if not nil, is called after each point, from any goroutine.
// A point that fails does not end the others. If the context ends before the
// last point, or if some points fail, the error is *Unfinished. If all fail, it
// is their errors.
func (s *Sweep) Run(ctx context.Context, points []*Point, done func()) ([]*Result, error) {
	return unfinished(s.batch(points).Measure(ctx, done))
}

// pointNoun names points in sentences about many.
var pointNoun = batch.Noun{One: "point", Many: "points"}

// keeping returns a sweep with a folder that keeps its results.
func keeping(s *Sweep, kept *checkpoint.Folder) *Sweep {
	one := *s
	one.Checkpoint = kept
	return &one
}

// batch is the measurement of points.
func (s *Sweep) batch(points []*Point) *batch.Batch[Result] {
	workers := s.atOnce(points)
	s.share(points, workers)
	hashes := make(map[*profile.Profile]string)
	var running atomic.Int64
	return &batch.Batch[Result]{
		Noun: pointNoun, Count: len(points), Workers: workers, Folder: s.Checkpoint,
		Run: func(ctx context.Context, i, later int) (*Result, error) {
			others := int(running.Add(1)) - 1
			defer running.Add(-1)
			// cores that no other point takes, now or next
			points[i].Cores = max(1, processors(s.Workers)-others-min(later, workers-others-1))
			return s.grid.experiment.Measure(ctx, points[i])
		},
		Key:  func(i int) (string, error) { return s.key(points[i], hashes) },
		Name: func(i int) string { return points[i].place() },
		Encode: func(r *Result) any {
			if r.limited() {
				return nil
			}
			return r.encode()
		},
		Decode: func(i int, text []byte) (*Result, error) { return points[i].decode(text) },
	}
}

// At makes a point of a device and values of axes. An axis that is not named has
// the first of its default values. Axes with a Field change the profile.
func (e *Experiment) At(device *profile.Profile, values Values) (*Point, error) {
	s, err := New(e)
	if err != nil {
		return nil, err
	}
	p := &Point{experiment: e, values: make([]any, len(e.Axes)), Seed: 1}
	for i := range e.Axes {
		a := &e.Axes[i]
		p.values[i] = s.grid.values[i][0]
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
	if e.Points == nil {
		return p, nil
	}
	measured, err := e.Points(p)
	if err == nil && !measured {
		err = fmt.Errorf("%s is not measured at %s", e.Name, p.label(e.all()))
	}
	return p, err
}
