package experiment

import (
	"errors"
	"fmt"
)

// NoPoint is an error of Experiment.Points for a combination that the
// experiment does not have, with the reason. A sweep leaves such combinations
// out. It shows the reason if a user has asked for a value that no point has.
type NoPoint struct{ Why error }

// Error returns the text of the reason.
func (n *NoPoint) Error() string { return n.Why.Error() }

// Unwrap returns the reason.
func (n *NoPoint) Unwrap() error { return n.Why }

// passedOver has, for each axis, the values of combinations that are no points,
// with a reason if there is one.
type passedOver []map[any]error

// add notes a combination that is no point.
func (a passedOver) add(values []any, why error) {
	for i, v := range values {
		if a[i] == nil {
			a[i] = make(map[any]error)
		}
		if a[i][v] == nil {
			a[i][v] = why
		}
	}
}

// first returns a reason for any of the values.
func (a passedOver) first(values [][]any) error {
	for i := range values {
		for _, v := range values[i] {
			if why := a[i][v]; why != nil {
				return why
			}
		}
	}
	return nil
}

// measured asks the experiment of a point whether it has it, and adds it if
// not.
func (a passedOver) measured(p *Point) (bool, error) {
	if p.experiment.Points == nil {
		return true, nil
	}
	there, err := p.experiment.Points(p)
	var none *NoPoint
	if errors.As(err, &none) {
		there, err = false, nil
	}
	if err == nil && !there {
		var why error
		if none != nil {
			why = none.Why
		}
		a.add(p.values, why)
	}
	return there, err
}

// unmeasured returns an error if a value that somebody has asked for has no
// point.
func (s *Sweep) unmeasured(points []*Point, missing passedOver) error {
	if len(points) == 0 {
		err := fmt.Errorf("%s has no point with these values: %s", s.grid.experiment.Name, s.grid.text())
		if why := missing.first(s.grid.values); why != nil {
			err = fmt.Errorf("%w: %w", err, why)
		}
		return err
	}
	if s.recorded != nil {
		return nil // it has run before
	}
	for i := range s.grid.values {
		if !s.grid.chosen[i] {
			continue
		}
		there := make(map[any]bool)
		for _, p := range points {
			there[p.values[i]] = true
		}
		for _, v := range s.grid.values[i] {
			if there[v] {
				continue
			}
			a := &s.grid.experiment.Axes[i]
			err := fmt.Errorf("--%s: %s has no point of %s with the values of the other flags", a.Name, s.grid.experiment.Name, a.Plain(v))
			if why := missing[i][v]; why != nil {
				err = fmt.Errorf("%w: %w", err, why)
			}
			return err
		}
	}
	return nil
}
