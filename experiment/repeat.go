package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/provenance"
	"github.com/spinsim/spinsim/sim"
)

// comparePrefix is what the command of a sweep begins with; the name of its benchmark follows.
const comparePrefix = "compare "

// sweepArguments are what a sweep is made from besides profiles, seed and handlers.
type sweepArguments struct {
	Modes        []string   `json:"modes"`
	Sizes        []int      `json:"sizes_bytes"`
	Ranks        []int      `json:"ranks"`
	HPUs         []int      `json:"hpus,omitempty"`
	HandlerTimes []sim.Time `json:"handler_times,omitempty"`
	Waterfall    bool       `json:"waterfall,omitempty"` // from the first of the profiles to the second
}

// profile loads a profile of the sweep: that of the record if there is one.
func (s *Sweep) profile(name string, more ...string) (*profile.Profile, error) {
	more = append(slices.Clone(s.more), more...)
	for i := range s.Recorded {
		if s.Recorded[i].From == name {
			return s.Recorded[i].Load(more...)
		}
	}
	return profile.Load(name, append(append([]string(nil), s.Overrides...), more...)...)
}

// remember notes what the results are made from.
func (s *Sweep) remember(profiles []*profile.Profile) error {
	r := &provenance.Record{Build: s.Build, Command: comparePrefix + s.Benchmark.Name, Seed: &s.Seed, Engine: s.Engine}
	for _, p := range profiles {
		one, err := provenance.NewProfile(p)
		if err != nil {
			return err
		}
		r.Profiles = append(r.Profiles, one)
	}
	for _, mode := range s.Modes {
		for _, h := range s.handlers(mode) {
			r.AddHandler(h)
		}
	}
	s.record = r
	return r.WithArguments(sweepArguments{s.Modes, s.Sizes, s.Ranks, s.HPUs, s.Times, s.Falls})
}

// Record is what the results are made from; Points must have been called.
func (s *Sweep) Record() *provenance.Record { return s.record }

// handlers are the modules that run in a mode.
func (s *Sweep) handlers(mode string) []provenance.Handler {
	switch {
	case mode != ModeSpinStore && mode != ModeSpinStream:
		return nil
	case s.Handler != nil:
		return []provenance.Handler{provenance.NewHandler(s.Handler.Name, s.Handler.Path, s.Handler.Wasm)}
	}
	m := s.Benchmark.module
	return []provenance.Handler{provenance.NewHandler(m.name, "", m.wasm)}
}

// RepeatSweep makes the sweep that a record is of. read reads a user's handler module. A built-in module that is another one now is a
// note, a user's is an error.
func RepeatSweep(r *provenance.Record, read func(path string) ([]byte, error)) (s *Sweep, notes []string, err error) {
	name, ok := strings.CutPrefix(r.Command, comparePrefix)
	if !ok {
		return nil, nil, fmt.Errorf("provenance.command: %q, expected compare and a benchmark", r.Command)
	}
	s = &Sweep{Engine: r.Engine, Build: r.Build, Recorded: r.Profiles}
	if s.Benchmark, err = Find(name); err != nil {
		return nil, nil, fmt.Errorf("provenance.command: %w", err)
	}
	var a sweepArguments
	if err := r.Parse(&a); err != nil {
		return nil, nil, err
	}
	s.Modes, s.Sizes, s.Ranks, s.HPUs, s.Times, s.Falls = a.Modes, a.Sizes, a.Ranks, a.HPUs, a.HandlerTimes, a.Waterfall
	if s.Falls && len(r.Profiles) != 2 {
		return nil, nil, fmt.Errorf("provenance.profiles: %d, expected the two of a waterfall", len(r.Profiles))
	}
	if r.Seed != nil {
		s.Seed = *r.Seed
	}
	for i := range r.Profiles {
		s.Profiles = append(s.Profiles, r.Profiles[i].From)
		s.Overrides = r.Profiles[i].Overrides // the same for all
	}
	for i := range r.Handlers {
		h := &r.Handlers[i]
		if h.Path == "" {
			if err := h.Verify(s.Benchmark.module.wasm); err != nil {
				notes = append(notes, err.Error())
			}
			continue
		}
		wasm, err := read(h.Path)
		if err != nil {
			return nil, nil, err
		}
		if err := h.Verify(wasm); err != nil {
			return nil, nil, err
		}
		s.Handler = &Handler{Name: h.Name, Path: h.Path, Wasm: wasm}
	}
	return s, notes, nil
}
