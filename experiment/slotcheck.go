package experiment

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/profile"
)

// slotsAt lists the slots at all combinations of values of the axes.
func slotsAt(e *Experiment, values [][]any) (list []*handlers.Slot) {
	if e.Slots == nil {
		return nil
	}
	p := &Point{experiment: e} // of all: there may be thousands
	_ = combinations(values, func(one []any) error {
		p.values = one
		for _, slot := range e.Slots(p) {
			if !slices.Contains(list, slot) {
				list = append(list, slot)
			}
		}
		return nil
	})
	return list
}

// ofSlots adds to the error of a point the rules of the slots where a user's
// modules run: one of them may be broken.
func ofSlots(p *Point, err error) error {
	if err == nil {
		return nil
	}
	for _, slot := range p.Slots() {
		if l := p.Handlers[slot.Name]; l != nil {
			err = fmt.Errorf("%w%s", err, slot.Rules(l.Name))
		}
	}
	return err
}

// narrowAxes leaves one value to each axis that makes no difference to the user's
// module, because its state lacks the number of Axis.State.
func narrowAxes(s *Sweep) error {
	for i := range s.grid.experiment.Axes {
		a := &s.grid.experiment.Axes[i]
		if a.State == "" || len(s.grid.values[i]) == 1 {
			continue
		}
		for _, l := range s.Handlers { //lint:maporder an experiment with such an axis has one slot
			m := l.Manifest()
			if m == nil || slices.ContainsFunc(m.States, func(st *manifest.State) bool { _, err := st.Lookup(a.State); return err == nil }) {
				continue
			}
			if s.grid.chosen[i] {
				return fmt.Errorf("--%s: %d values, but they make no difference to %s, whose state has no %s: choose one", a.Name, len(s.grid.values[i]), l.Name, a.State)
			}
			s.grid.values[i] = s.grid.values[i][:1]
		}
	}
	return nil
}

// checkSlots returns an error if a user's module cannot run in its slot, or if
// no point has that slot.
func checkSlots(given map[string]*handlers.Library, points []*Point) error {
	type device struct {
		spec *profile.Profile
		slot string
	}
	checked := make(map[device]bool)
	runs := make(map[string]bool)
	var errs []error
	for _, p := range points {
		for _, slot := range p.Slots() {
			l := given[slot.Name]
			if l == nil {
				continue
			}
			runs[slot.Name] = true
			key := device{p.Profile, slot.Name}
			if checked[key] {
				continue
			}
			checked[key] = true
			if err := slot.Check(l, p.Profile.Device()); err != nil && !slices.ContainsFunc(errs, func(e error) bool { return e.Error() == err.Error() }) {
				errs = append(errs, err)
			}
		}
	}
	for _, name := range sortedSlots(given) {
		if !runs[name] {
			errs = append(errs, fmt.Errorf("%s runs at no point of this sweep: slot %s is not used there%s", given[name].Name, name, usedWith(points, name)))
		}
	}
	return errors.Join(errs...)
}

// usedWith names a text of an axis with which the first point would have a slot;
// "": no single one.
func usedWith(points []*Point, slot string) string {
	if len(points) == 0 {
		return ""
	}
	e := points[0].experiment
	for i := range e.Axes {
		for _, text := range e.Axes[i].Of {
			values := slices.Clone(points[0].values)
			values[i] = text
			p := &Point{experiment: e, Profile: points[0].Profile, values: values}
			if slices.ContainsFunc(p.Slots(), func(s *handlers.Slot) bool { return s.Name == slot }) {
				return fmt.Sprintf(", but with --%s %s", e.Axes[i].Name, text)
			}
		}
	}
	return ""
}

func sortedSlots(of map[string]*handlers.Library) []string { return slices.Sorted(maps.Keys(of)) }

// fillsAll reports whether one module is in all slots of a sweep, which are of
// one library: the user need not name them.
func fillsAll(s *Sweep) bool {
	if s.Handlers == nil {
		return false
	}
	all := slotsAt(s.grid.experiment, s.grid.values)
	return !slices.ContainsFunc(all, func(slot *handlers.Slot) bool {
		return slot.Library != all[0].Library || s.Handlers[slot.Name] == nil || s.Handlers[slot.Name].Name != s.Handlers[all[0].Name].Name || string(s.Handlers[slot.Name].Wasm) != string(s.Handlers[all[0].Name].Wasm)
	})
}
