package experiment

import (
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/sim"
)

// sweepArguments are the arguments of a sweep besides profiles, seed and
// handlers.
type sweepArguments struct {
	Axes map[string][]string `json:"axes"` // all values of every axis
	// fields of the profiles with several values, "path=LIST"
	Set       []string `json:"set,omitempty"`
	Waterfall bool     `json:"waterfall,omitempty"`
	Breakdown bool     `json:"breakdown,omitempty"`
	OverOpen  bool     `json:"over_open,omitempty"`

	Given  map[string]string `json:"given,omitempty"`  // Sweep.Given
	Device *chosenDevice     `json:"device,omitempty"` // of an experiment with Device

	// limits that may have ended points of an experiment with Cut
	Until      sim.Time `json:"until,omitempty"`
	EventLimit uint64   `json:"event_limit,omitempty"`
}

// chosenDevice is what a user has chosen beside a file that names a device.
type chosenDevice struct {
	Profiles  []string `json:"profiles,omitempty"` // instead of the file's
	Overrides []string `json:"overrides,omitempty"`
}

// GivenIn returns Sweep.Given of a record.
func GivenIn(r *provenance.Record) (map[string]string, error) {
	var a sweepArguments
	err := r.Parse(&a)
	return a.Given, err
}

// RerunSweep makes the sweep of a record again, for its experiment. read reads a
// user's handler module. If a module has changed since, this is a note for a
// module of the program, and an error for a user's.
func RerunSweep(r *provenance.Record, e *Experiment, read func(path string) ([]byte, error)) (s *Sweep, notes []string, err error) {
	var a sweepArguments
	if err := r.Parse(&a); err != nil {
		return nil, nil, err
	}
	if a.Breakdown {
		if e, err = e.Broken(); err != nil {
			return nil, nil, fmt.Errorf("provenance.arguments: breakdown: %w", err)
		}
	}
	if s, err = New(e); err != nil {
		return nil, nil, err
	}
	s.Inputs, s.without = r.Inputs, r.Unused
	s.Engine, s.Build, s.Command, s.recorded, s.Profiles = r.Engine, r.Build, r.Command, r.Profiles, nil
	if err := s.restore(r); err != nil {
		return nil, nil, err
	}
	s.takeFiles(r, read)
	if (a.Device != nil) != (e.Device != nil) {
		return nil, nil, fmt.Errorf("provenance.arguments: device: not as %s has it", e.Name)
	}
	if s.falls && len(r.Profiles) != 2 {
		return nil, nil, fmt.Errorf("provenance.profiles: %d, expected the two of a waterfall", len(r.Profiles))
	}
	if r.Seed != nil {
		s.Seed = *r.Seed
	}
	s.Given, s.Limits = a.Given, sim.Limits{Until: a.Until, Events: a.EventLimit}
	if a.Device != nil {
		s.Profiles, s.Overrides = a.Device.Profiles, a.Device.Overrides
	}
	for i := range r.Profiles {
		if a.Device == nil {
			s.Profiles = append(s.Profiles, r.Profiles[i].From)
			s.Overrides = r.Profiles[i].Overrides // the same for all profiles
		}
	}
	for i := range r.Handlers {
		h := &r.Handlers[i]
		if h.Path == "" || e.Slots == nil {
			continue // a module of the program, or one that the experiment is made with
		}
		wasm, err := read(h.Path)
		if err == nil {
			err = h.Verify(wasm)
		}
		if err != nil {
			return nil, nil, err
		}
		l := handlers.New(h.Name, wasm)
		l.Path = h.Path
		refill(s, h.Slot, l)
	}
	notes, err = s.others(r.Handlers)
	return s, append(s.newer, notes...), err
}

// refill puts a module of a record into its slot. Records of the first versions
// name none: their experiments had the slots of one library.
func refill(s *Sweep, slot string, l *handlers.Library) {
	if slot != "" {
		put(s, slot, l)
		return
	}
	for _, at := range slotsAt(s.grid.experiment, s.grid.values) {
		put(s, at.Name, l)
	}
}

// others returns notes on modules of the program that differ from the record.
func (s *Sweep) others(recorded []provenance.Handler) (notes []string, err error) {
	points, err := s.Points()
	if err != nil {
		return nil, err
	}
	for i := range recorded {
		h := &recorded[i]
		var changed error
		for _, p := range points {
			for _, m := range p.Modules() {
				if h.Path == "" && m.Name == h.Name {
					changed = h.Verify(m.Wasm)
				}
			}
		}
		if changed != nil {
			notes = append(notes, changed.Error())
		}
	}
	return notes, nil
}

// restore gives the axes the values of a record.
func (s *Sweep) restore(r *provenance.Record) error {
	var a sweepArguments
	if err := r.Parse(&a); err != nil {
		return err
	}
	s.falls, s.OverOpen = a.Waterfall, a.OverOpen
	for i := range s.grid.experiment.Axes {
		axis := &s.grid.experiment.Axes[i]
		if axis.Fixed() {
			continue
		}
		values, given := a.Axes[axis.Name]
		if !given && len(s.grid.values[i]) == 1 {
			s.newer = append(s.newer, fmt.Sprintf("the record is older than axis %s: its default %s is taken", axis.Name, axis.DefaultList()))
			continue
		}
		if !given {
			return fmt.Errorf("provenance.arguments: no values of axis %s", axis.Name)
		}
		if err := s.Choose(axis.Name, strings.Join(values, ",")); err != nil {
			return fmt.Errorf("provenance.arguments: axis %s: %w", axis.Name, err)
		}
		delete(a.Axes, axis.Name)
	}
	for _, set := range a.Set {
		if err := s.Set(set); err != nil {
			return fmt.Errorf("provenance.arguments: set: %w", err)
		}
	}
	for name := range a.Axes { //lint:maporder any of several is as good
		return fmt.Errorf("provenance.arguments: %s has no axis %q", s.grid.experiment.Name, name)
	}
	return nil
}

// Falls reports whether the sweep is a waterfall from its first to its second
// profile.
func (s *Sweep) Falls() bool { return s.falls }
