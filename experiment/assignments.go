package experiment

import (
	"errors"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/profile"
)

// Assignments are an answer to open questions: values of fields of profiles,
// "path=value", and of axes, "axis=value". They may be applied to several sweeps.
type Assignments struct {
	Set []string

	accepted map[string]error // by profile and assignment
	taken    bool             // a sweep has taken one
}

// Apply changes a sweep whose profiles have the fields, and axes that nobody has
// chosen. What the user has chosen stays. Err tells whether any sweep has taken
// one.
func (a *Assignments) Apply(s *Sweep) error {
	for _, one := range a.Set {
		name, value, _ := strings.Cut(one, "=")
		switch {
		case strings.Contains(name, "."):
			if !s.sets(name) && a.fits(s.Profiles, one) {
				s.Overrides, a.taken = append(slices.Clone(s.Overrides), one), true
			}
		case s.Open(name):
			if err := s.Choose(name, value); err != nil {
				return err
			}
			a.taken = true
		}
	}
	return nil
}

// sets reports whether the user or an axis sets a field.
func (s *Sweep) sets(path string) bool {
	return s.grid.ofAxis(path) != nil || s.grid.experiment.axis(path) >= 0 ||
		slices.ContainsFunc(s.Overrides, func(o string) bool { return strings.HasPrefix(o, path+"=") })
}

// fits reports whether all profiles accept an assignment.
func (a *Assignments) fits(profiles []string, one string) bool {
	if a.accepted == nil {
		a.accepted = make(map[string]error)
	}
	for _, name := range profiles {
		key := name + " " + one
		if _, known := a.accepted[key]; !known {
			_, a.accepted[key] = profile.Load(name, one)
		}
		if a.accepted[key] != nil {
			return false
		}
	}
	return true
}

// Err returns an error if no sweep has taken any of the assignments.
func (a *Assignments) Err() error {
	if a.taken || len(a.Set) == 0 {
		return nil
	}
	for _, err := range a.accepted { //lint:maporder all say why it is not possible
		if err != nil {
			return err
		}
	}
	return errors.New("no experiment has such a value")
}
