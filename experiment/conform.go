package experiment

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Trial is a point at which a module for a slot was tried.
type Trial struct {
	Experiment string
	Point      *Point
	Err        error // nil: the bytes were right
}

// Conform tries a user's module in a slot, in all experiments that have it: at
// their smoke points, at these with each text and flag, and with another rank
// that begins (Point.First). show is called after each. The error names what the
// module lacks, before anything runs; a failed trial is none.
func Conform(ctx context.Context, slot *handlers.Slot, l *handlers.Library, limits sim.Limits, show func(*Trial)) error {
	tried := false
	for _, e := range All() {
		if !slices.Contains(slotsOf(e), slot) {
			continue
		}
		points, err := withSlot(e, slot, l)
		if err != nil {
			return err
		}
		for len(points) > 0 {
			p := points[0]
			tried, points = true, points[1:]
			p.Limits = limits
			_, err := e.Measure(ctx, p)
			if ended := context.Cause(ctx); ended != nil {
				return ended // which says nothing about the module
			}
			show(&Trial{e.Name, p, err})
			if p.turns && p.first == 0 {
				turned := *p
				turned.first = 1
				points = slices.Insert(points, 0, &turned)
			}
		}
	}
	if !tried {
		return fmt.Errorf("slot %s: no experiment of this program has a smoke point with it", slot.Name)
	}
	return nil
}

// withSlot lists the points that have a slot, with the user's module in it: of
// the smoke points, and of these with each value of each text and flag.
func withSlot(e *Experiment, slot *handlers.Slot, l *handlers.Library) (points []*Point, err error) {
	device, err := profile.Load(e.DefaultProfiles()[0])
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for _, smoke := range e.Smoke {
		for _, values := range choices(e, smoke) {
			p, err := e.At(device, values)
			if err != nil || seen[p.String()] || !slices.Contains(p.Slots(), slot) {
				continue // a combination that is no point
			}
			seen[p.String()] = true
			if err := slot.Check(l, p.Profile.Device()); err != nil {
				return nil, err
			}
			p.Handlers = map[string]*handlers.Library{slot.Name: l}
			points = append(points, p)
		}
	}
	return points, nil
}

// choices are values, and values with each choice of each text and flag.
func choices(e *Experiment, values Values) []Values {
	list := []Values{values}
	for i := range e.Axes {
		a := &e.Axes[i]
		all := make([]any, len(a.Of))
		for i, text := range a.Of {
			all[i] = text
		}
		if a.Kind == report.Flag {
			all = []any{false, true}
		} else if a.Kind != report.Text {
			continue
		}
		for _, v := range all {
			other := maps.Clone(values)
			other[a.Name] = v
			list = append(list, other)
		}
	}
	return list
}
