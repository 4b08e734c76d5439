package experiment

import (
	"slices"

	"github.com/spinsim/spinsim/profile"
)

// fromFile gives a point the device that the file of its experiment names, or a
// profile that the user wants instead. The record has the device without the
// fields of axes.
func fromFile(s *Sweep, p *Point, number int) error {
	e, chosen := p.experiment, ""
	if len(s.Profiles) > 0 {
		chosen = s.Profiles[number]
	}
	user := slices.Concat(s.Overrides, s.more)
	base, err := e.Device(p, chosen, user)
	if err != nil && s.grid.varied > 0 {
		base, err = e.Device(p, chosen, append(user, firstFields(s)...))
	}
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(s.bases, func(b *profile.Profile) bool {
		return b.Origin.Name == base.Origin.Name && slices.Equal(b.Origin.Overrides, base.Origin.Overrides)
	}) {
		s.bases = append(s.bases, base)
	}
	p.Profile = base
	if fields := p.fields(); len(fields) > 0 {
		p.Profile, err = e.Device(p, chosen, append(user, fields...))
	}
	return err
}

// firstFields are the overrides of the axes that Set has added, with the first
// value of each. A profile may need them to be valid, such as the lengths of a
// torus.
func firstFields(s *Sweep) (fields []string) {
	first := &Point{experiment: s.grid.experiment, values: make([]any, len(s.grid.values))}
	for _, i := range s.grid.own() {
		first.values[i] = s.grid.values[i][0]
		fields = append(fields, first.field(i))
	}
	return fields
}
