package experiment

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/profile"
)

// Assignments are an answer to open questions: values of fields of profiles,
// "path=value", and of axes, "axis=value". They may be applied to several sweeps.
type Assignments struct {
	Set []string

	accepted map[string]error // by profile and assignments
	taken    map[string]bool  // those that a sweep has taken
}

// Apply changes a sweep whose profiles have the fields, and axes that nobody has
// chosen. What profiles accept only together is given together. What the user
// has chosen stays. Err tells whether any sweep has taken one.
func (a *Assignments) Apply(s *Sweep) error {
	var values []string
	if a.taken == nil {
		a.taken = make(map[string]bool)
	}
	for _, one := range a.Set {
		name, value, _ := strings.Cut(one, "=")
		if axis := s.grid.ofAxis(name); axis != nil {
			name = axis.Name
		}
		switch {
		case strings.Contains(name, "."):
			if !s.sets(name) {
				values = append(values, one)
			}
		case s.Open(name):
			if err := s.Choose(name, value); err != nil {
				return err
			}
			a.taken[one] = true
		}
	}
	for len(values) > 0 {
		n := len(values)
		for n > 0 && !a.fits(s.Profiles, slices.Concat(s.Overrides, values[:n])) {
			n--
		}
		s.Overrides = slices.Concat(s.Overrides, values[:n])
		for _, one := range values[:n] {
			a.taken[one] = true
		}
		values = values[max(1, n):] // the first is for other devices of the publication
	}
	return nil
}

// sets reports whether the user sets a field.
func (s *Sweep) sets(path string) bool {
	return s.grid.experiment.axis(path) >= 0 ||
		slices.ContainsFunc(s.Overrides, func(o string) bool { return strings.HasPrefix(o, path+"=") })
}

// fits reports whether all profiles accept assignments.
func (a *Assignments) fits(profiles, set []string) bool {
	if a.accepted == nil {
		a.accepted = make(map[string]error)
	}
	for _, name := range profiles {
		key := name + " " + strings.Join(set, " ")
		if _, known := a.accepted[key]; !known {
			_, a.accepted[key] = profile.Load(name, set...)
		}
		if a.accepted[key] != nil {
			return false
		}
	}
	return true
}

// Err returns an error if no sweep has taken any of the assignments.
func (a *Assignments) Err() error {
	if len(a.taken) > 0 || len(a.Set) == 0 {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(a.accepted)) {
		if err := a.accepted[key]; err != nil {
			return err
		}
	}
	return ErrNoneTakes
}

// Left returns an error if no sweep has taken one of the assignments, or if two
// are of one name.
func (a *Assignments) Left() error {
	names := make(map[string]bool)
	for _, one := range a.Set {
		name, _, _ := strings.Cut(one, "=")
		if names[name] {
			return fmt.Errorf("%s is given twice", name)
		}
		names[name] = true
		if a.taken[one] {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(a.accepted)) {
			if err := a.accepted[key]; err != nil && strings.Contains(key, one) {
				return fmt.Errorf("%s: %w", one, err)
			}
		}
		return fmt.Errorf("%s: %w", one, ErrNoneTakes)
	}
	return nil
}

// ErrNoneTakes is the error of assignments that no sweep has taken.
var ErrNoneTakes = errors.New("no experiment has such a value")
