package experiment

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Point is one measurement: a device, and a value for each axis.
type Point struct {
	Profile *profile.Profile // with the fields of axes
	Seed    uint64
	Engine  string // wasm engine; "": the default
	// the user's modules, by the slots where they run; others have the library's
	Handlers map[string]*handlers.Library
	Tracer   sim.Tracer // nil: none
	Limits   sim.Limits // of each simulation
	// on how many cores of the machine a simulation may take place: see
	// Experiment.Independent
	Cores int

	// watches the links in every simulation of the point; nil: none
	Links runtime.WatchLinks
	// gets the network of every simulation of the point; nil: none
	Capture runtime.Capture
	// translates addresses between the buses and memory; nil: every page is
	// present
	Translator runtime.MakeTranslator

	// Recorded has the files that Run reads.
	Recorded *Recorded

	// Room is how many bytes a breakdown may take for what it follows; 0: no limit.
	// See Experiment.Divided.
	Room int64

	experiment *Experiment
	device     int   // index of the profile in the sweep
	values     []any // of the axes, in their order
	done       *operations
	followed   *followed // nil: no breakdown
	had        *used.Set // what has happened so far in its simulations
	reads      bool      // the fields that Run reads are in had
	divided    *bool     // a simulation of the point, or of a copy of it, took several cores
	first      int       // what First returns
	turns      bool      // First was asked
}

// First is the rank whose program begins: 0, and in a trial of a module (see
// Conform) 1 as well, so that a handler which takes rank 0 for granted fails. An
// experiment whose ranks can change places calls it before they run.
func (p *Point) First() int {
	p.turns = true
	return p.first
}

// Value returns the value of an axis. It panics if there is no such axis: a
// programmer's mistake.
func (p *Point) Value(axis string) any {
	i := p.experiment.axis(axis)
	if i < 0 {
		panic(fmt.Sprintf("experiment: %s has no axis %q, there are %s", p.experiment.Name, axis, strings.Join(p.experiment.axisNames(), ", "))) //lint:panic programmer's mistake
	}
	return p.values[i]
}

// valueOf is Value with a type. It panics if the axis has another type.
func valueOf[T any](p *Point, axis string) T {
	v, is := p.Value(axis).(T)
	if !is {
		panic(fmt.Sprintf("experiment: axis %s of %s has values of type %T, not %T", axis, p.experiment.Name, p.Value(axis), v)) //lint:panic programmer's mistake
	}
	return v
}

// Text returns the value of an axis of texts. Text, Int, Time, Float and Flag
// panic if there is no such axis: a programmer's mistake.
func (p *Point) Text(axis string) string { return valueOf[string](p, axis) }

// Int returns the value of an axis of counts or sizes.
func (p *Point) Int(axis string) int { return valueOf[int](p, axis) }

// Time returns the value of an axis of times.
func (p *Point) Time(axis string) sim.Time { return valueOf[sim.Time](p, axis) }

// Float returns the value of an axis of numbers or shares.
func (p *Point) Float(axis string) float64 { return valueOf[float64](p, axis) }

// Flag returns the value of an axis of flags.
func (p *Point) Flag(axis string) bool { return valueOf[bool](p, axis) }

// String names the point: the profile, if it has one, and values.
func (p *Point) String() string {
	text := p.label(p.experiment.all())
	if !p.experiment.Deviceless {
		text = p.Profile.Name + ", " + text
	}
	if p.first > 0 {
		text += fmt.Sprintf(", rank %d begins", p.first)
	}
	return text
}

// Experiment returns the experiment of the point.
func (p *Point) Experiment() *Experiment { return p.experiment }

// label writes the values of some axes for people.
func (p *Point) label(axes []int) string {
	parts := make([]string, len(axes))
	for i, a := range axes {
		parts[i] = p.experiment.Axes[a].show(p.values[a])
	}
	return strings.Join(parts, ", ")
}

// place names the point in an error: the experiment, the series, the profile,
// the other values.
func (p *Point) place() string {
	text := p.experiment.Name
	if len(p.experiment.View.Series) > 0 {
		text += " " + p.series()
	}
	if !p.experiment.Deviceless {
		text += ", profile " + p.Profile.Name
	}
	if rest := p.experiment.rows(); len(rest) > 0 {
		text += ", " + p.label(rest)
	}
	return text
}

// fields are the overrides of the axes with a Field.
func (p *Point) fields() (overrides []string) {
	for i := range p.values {
		if one := p.field(i); one != "" {
			overrides = append(overrides, one)
		}
		for _, t := range p.experiment.Axes[i].terms(p.values[i]) {
			overrides = append(overrides, t.Set...)
		}
	}
	return overrides
}

// field is the override of an axis. "": none.
func (p *Point) field(axis int) string {
	a := &p.experiment.Axes[axis]
	if a.Field == "" {
		return ""
	}
	text := fmt.Sprint(p.values[axis])
	if a.Kind != report.Size { // a size is a plain number, which every field accepts
		text = a.write(p.values[axis])
	}
	return a.Field + "=" + text
}

// Reads notes that a point's values depend on fields of the profile that Run
// reads itself, such as "hpu.costs". Fields that only the simulation of a
// cluster reads need no note. In an experiment of your own, all overrides count as
// used at a point whose Run has not called Reads; without a path it notes that Run
// reads none. It panics if there is no such field: a programmer's mistake.
func (p *Point) Reads(paths ...string) {
	p.reads = true
	for _, path := range paths {
		facts, known := profile.Facts(path)
		if !known {
			panic("experiment: no field " + path + " of a profile") //lint:panic programmer's mistake
		}
		p.had.Join(facts)
	}
}

// Slots are the slots whose modules run at the point.
func (p *Point) Slots() []*handlers.Slot {
	if p.experiment.Slots == nil {
		return nil
	}
	return p.experiment.Slots(p)
}

// Modules are the handler modules that run at the point.
func (p *Point) Modules() []*handlers.Library {
	var list []*handlers.Library
	if p.experiment.Modules != nil {
		list = p.experiment.Modules(p)
	}
	for _, slot := range p.Slots() {
		l := p.Handlers[slot.Name]
		switch {
		case l != nil:
		case slot.Free:
			continue
		default:
			l = slot.Library
		}
		if !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	return list
}

// handlers describes the modules of the point for a record.
func (p *Point) handlers() (list []provenance.Handler) {
	for _, m := range p.Modules() {
		h := provenance.NewHandler(m.Name, m.Path, m.Wasm)
		for _, slot := range p.Slots() {
			if p.Handlers[slot.Name] != m {
				continue
			}
			h.Slot = slot.Name
			list = append(list, h)
		}
		if h.Slot == "" {
			list = append(list, h)
		}
	}
	return list
}

// key identifies the point in its sweep. If other is not negative, it is an
// axis whose value the key replaces by value.
func (p *Point) key(other int, value any) string {
	parts := make([]string, len(p.values)+1)
	parts[0] = fmt.Sprint(p.device)
	for i, v := range p.values {
		if i == other {
			v = value
		}
		parts[i+1] = p.experiment.Axes[i].write(v)
	}
	return strings.Join(parts, "\x00")
}

// WithFields returns a profile with more overrides, "path=value".
func WithFields(p *profile.Profile, overrides []string) (*profile.Profile, error) {
	if len(overrides) == 0 {
		return p, nil
	}
	recorded, err := provenance.NewProfile(p)
	if err != nil {
		return nil, err
	}
	return recorded.Load(overrides...)
}

// combinations calls f with every combination of values of the axes until f
// returns an error. The first axis varies fastest. There may be thousands, so
// the next one is in the same slice.
func combinations(values [][]any, f func(combination []any) error) error {
	at, one := make([]int, len(values)), make([]any, len(values))
	for {
		for i, k := range at {
			one[i] = values[i][k]
		}
		if err := f(one); err != nil {
			return err
		}
		i := 0
		for i < len(at) && at[i] == len(values[i])-1 {
			at[i] = 0
			i++
		}
		if i == len(at) {
			return nil
		}
		at[i]++
	}
}

// errTooMany is the error of a sweep with more than maxPoints.
var errTooMany = errors.New("more than " + fmt.Sprint(maxPoints) + " points")

// maxPoints is how many points a sweep may have. More are a typing error.
const maxPoints = 1_000_000

// combined counts the combinations of values, up to maxPoints + 1.
func combined(values [][]any) int {
	n := 1
	for _, list := range values {
		if n *= len(list); n > maxPoints {
			return maxPoints + 1
		}
	}
	return n
}

// largest is the index of the largest number among the values of an axis. For
// values that are no numbers it is the last.
func largest(values []any) int {
	best := len(values) - 1
	for i, v := range values {
		x, isNumber := number(v)
		if y, _ := number(values[best]); isNumber && x > y {
			best = i
		}
	}
	return best
}

// least is the index of the smallest number, or the first.
func least(values []any) int {
	best := 0
	for i, v := range values {
		x, isNumber := number(v)
		if y, _ := number(values[best]); isNumber && x < y {
			best = i
		}
	}
	return best
}

// all lists the axes.
func (e *Experiment) all() []int {
	list := make([]int, len(e.Axes))
	for i := range list {
		list[i] = i
	}
	return list
}

// rows lists the axes that are no series.
func (e *Experiment) rows() (list []int) {
	for i := range e.Axes {
		if !slices.Contains(e.View.Series, e.Axes[i].Name) {
			list = append(list, i)
		}
	}
	return list
}

// series names the value of a waterfall at a point: the values of the series.
func (p *Point) series() string {
	if len(p.experiment.View.Series) == 0 {
		return p.experiment.value().Name
	}
	return p.label(p.experiment.series())
}
