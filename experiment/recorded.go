package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/profile"
)

// profile loads a profile of the sweep, from the record if it has one.
func (s *Sweep) profile(name string, more ...string) (*profile.Profile, error) {
	more = append(slices.Clone(s.more), more...)
	for i := range s.recorded {
		if s.recorded[i].From == name {
			return s.recorded[i].Load(more...)
		}
	}
	return s.devices.load(name, append(append([]string(nil), s.Overrides...), more...))
}

// base loads a profile with Overrides. Without the fields of several values,
// such as the lengths of a torus, it may be no valid profile. Then each of
// these fields has its first value; points set their own value later.
func (s *Sweep) base(name string) (*profile.Profile, error) {
	p, err := s.profile(name)
	if err == nil || s.grid.varied == 0 {
		return p, err
	}
	before := s.more
	s.more = slices.Concat(before, firstFields(s))
	if p, err = s.profile(name); err != nil {
		s.more = before
	}
	return p, err
}

// unread names the flag that an error of a profile comes from. A record has none,
// and a waterfall its own.
func unread(s *Sweep, name string, err error) error {
	if s.recorded != nil || s.falls {
		return err
	}
	return cli.BlameProfile(name, err)
}

// remember makes the record of the results. It refuses profiles whose rows
// could not be told apart.
func (s *Sweep) remember(profiles []*profile.Profile, points []*Point) error {
	r := &provenance.Record{Build: s.Build, Command: s.Command, Inputs: s.Inputs}
	e := s.grid.experiment
	if !e.Deviceless {
		r.Engine = s.Engine
	}
	if !e.Deviceless && !e.Seeded {
		r.Seed = &s.Seed
	}
	for _, p := range profiles {
		one, err := s.devices.record(p)
		if err != nil {
			return err
		}
		for i := range r.Profiles {
			if o := &r.Profiles[i]; o.Name == one.Name && !s.falls && (e.Device == nil || o.From != one.From) {
				return fmt.Errorf("profiles %s and %s are both named %s: their rows could not be told apart", o.From, one.From, one.Name)
			}
		}
		r.Profiles = append(r.Profiles, one)
	}
	whole := fillsAll(s)
	for _, p := range points {
		for _, h := range p.handlers() {
			if whole {
				h.Slot = "" // as --handler FILE.wasm has it
			}
			r.AddHandler(h)
		}
		for _, in := range furtherInputs(p) {
			known := r.Input(in.Name)
			if known == nil {
				r.Inputs = append(slices.Clone(r.Inputs), in)
			} else if err := known.Verify(in.SHA256); err != nil {
				return err // a result is made again, or the file has changed since
			}
		}
	}
	s.record = r
	a := sweepArguments{Axes: make(map[string][]string), Waterfall: s.falls, Breakdown: e.broken, OverOpen: s.OverOpen, Given: s.Given}
	if e.Device != nil {
		a.Device = &chosenDevice{s.Profiles, s.Overrides}
	}
	if e.Cut != "" {
		a.Until, a.EventLimit = s.Limits.Until, s.Limits.Events
	}
	for i := range e.Axes {
		switch axis := &e.Axes[i]; {
		case slices.Contains(s.grid.own(), i):
			a.Set = append(a.Set, axis.Name+"="+strings.Join(axis.texts(s.grid.values[i]), ","))
		case !axis.Fixed():
			a.Axes[axis.Name] = axis.texts(s.grid.values[i])
		}
	}
	return r.WithArguments(a)
}

// unusedIn lists the user's overrides that no point has used, for the record of
// the results. Results from rows have those that were recorded.
func unusedIn(s *Sweep, results []*Result) []string {
	if s.restored {
		return s.without
	}
	var had used.Set
	overrides := slices.Clone(s.Overrides)
	for _, i := range s.grid.own() {
		path := s.grid.experiment.Axes[i].Field + "="
		// a record has its first value in a profile, too
		overrides = slices.DeleteFunc(overrides, func(o string) bool { return strings.HasPrefix(o, path) })
		overrides = append(overrides, path+fmt.Sprint(s.grid.values[i][0]))
	}
	for _, r := range results {
		had.Join(r.used)
	}
	if s.open != nil {
		for _, a := range slices.Concat(s.open.answers, s.open.together) {
			for _, r := range a.results {
				if r != nil {
					had.Join(r.used)
				}
			}
		}
	}
	return profile.Unused(overrides, had)
}

// Record is the record of the results. Points must have been called.
func (s *Sweep) Record() *provenance.Record { return s.record }

// originOf are the values of provenance.Columns for a point.
func originOf(s *Sweep, p *Point, from *provenance.Profile) []any {
	of := *s.record
	if p.experiment.Seeded {
		of.Seed = &p.Seed
	}
	return of.Row(from, p.handlers())
}
