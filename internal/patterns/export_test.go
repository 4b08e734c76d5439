package patterns

import (
	"errors"
	"fmt"
)

// Check finds errors in a plan, given that all ranks have such plans.
func (p *Plan) Check(rank int) error {
	var errs []error
	for i, s := range p.Steps {
		for _, m := range append(append([]Message(nil), s.Receives...), s.Sends...) {
			if m.Rank < 0 || m.Rank >= p.Grid.Ranks() || m.Rank == rank || m.Bytes < 1 {
				errs = append(errs, fmt.Errorf("patterns: rank %d of %v, step %d: a message of %d B to or from rank %d", rank, p.Grid, i, m.Bytes, m.Rank))
			}
		}
		if s.Reduce%8 != 0 || s.Reduce < 0 || s.Work.Operations < 0 || s.Work.Bytes < 0 {
			errs = append(errs, fmt.Errorf("patterns: rank %d of %v, step %d: a reduction of %d B, %d operations on %d B", rank, p.Grid, i, s.Reduce, s.Work.Operations, s.Work.Bytes))
		}
	}
	return errors.Join(errs...)
}

// Work returns the work of a rank in an iteration.
func (p *Plan) Work() (w Work) {
	for _, s := range p.Steps {
		w = w.plus(s.Work)
	}
	return w
}
