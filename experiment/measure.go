package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Measure runs a point that At or Sweep.Points has made. It is an error if a
// column has no value, or a value of the wrong type.
func (e *Experiment) Measure(ctx context.Context, p *Point) (*Result, error) {
	if p.experiment != e {
		return nil, fmt.Errorf("experiment %s: the point is of %s", e.Name, p.experiment.Name)
	}
	values, ran := e.attempt(ctx, p)
	if ran != nil && *p.divided && p.Links == nil && context.Cause(ctx) == nil {
		// After an error in one domain the others go on for a while. What they
		// count then depends on the domains.
		if _, limited := errors.AsType[*sim.LimitError](ran); !limited {
			cores := p.Cores
			p.Cores = 1
			values, ran = e.attempt(ctx, p)
			p.Cores = cores
		}
	}
	ran = ofSlots(p, ran)
	if ran != nil && (values == nil || e.Failures == "") {
		return nil, &pointError{p.place(), ran}
	}
	if err := e.checkValues(values); err != nil {
		return nil, fmt.Errorf("experiment %s: %w", e.Name, err)
	}
	if !p.reads { // it may have read anything of Point.Profile
		*p.had = used.Of(used.All()...)
	}
	return &Result{p, values, *p.had, ran}, nil
}

// attempt runs a point from the beginning. Host programs trust what a library's
// handlers leave in memory; a user's may leave anything, and then a panic of a
// program is an error of the point.
func (e *Experiment) attempt(ctx context.Context, p *Point) (values Values, err error) {
	if len(p.Handlers) > 0 {
		defer func() {
			r := recover()
			if r == nil {
				return
			}
			if in, is := r.(*sim.PanicError); is {
				r = in.Value
			}
			values, err = nil, fmt.Errorf("the program of a host fails on what handlers have left: %v", r)
		}()
	}
	p.done, p.had, p.reads, p.divided = &operations{}, &used.Set{}, e.Source != "", new(bool)
	return e.Run(ctx, p)
}

// pointError is the error of a point that has no result.
type pointError struct {
	place string
	err   error
}

// Error names the point.
func (e *pointError) Error() string { return e.place + ": " + e.err.Error() }

// Unwrap returns the error of the point's Run.
func (e *pointError) Unwrap() error { return e.err }

// checkValues compares the values of Run with the columns.
func (e *Experiment) checkValues(values Values) error {
	for _, c := range e.Columns {
		v, given := values[c.Name]
		if !given {
			return fmt.Errorf("Run has returned no value for column %s", c.Name)
		}
		if !c.Holds(v) {
			return fmt.Errorf("Run has returned a %T for column %s of kind %v", v, c.Name, c.Kind)
		}
	}
	for i := range e.Details {
		d := &e.Details[i]
		v, given := values[d.Name]
		if !given {
			return fmt.Errorf("Run has returned no value for table %s", d.Name)
		}
		if err := d.check(v); err != nil {
			return err
		}
	}
	for name := range values { //lint:maporder any of several is as good
		if !slices.ContainsFunc(e.Columns, func(c report.Column) bool { return c.Name == name }) && e.detail(name) == nil {
			return fmt.Errorf("Run has returned a value for %q, which is none of Columns", name)
		}
	}
	return nil
}
