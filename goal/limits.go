package goal

import (
	"context"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// WithLimits bounds the run. At a limit it ends with a *sim.LimitError.
func WithLimits(l sim.Limits) Option { return func(m *Simulator) { m.limits = l } }

// WithContext ends the run when ctx is done, with the cause of ctx. If the
// cause is a *sim.LimitError, the run fills in its other fields.
func WithContext(ctx context.Context) Option { return func(m *Simulator) { m.ctx = ctx } }

// lookEvery is the number of events between two looks at the context; a power
// of two.
const lookEvery = 1 << 16

// stopped returns the reason to end the run before event e; nil: go on. n
// events have been handled, the last one at time now.
func (m *Simulator) stopped(n uint64, now int64, e event) error {
	switch l := m.limits; {
	case l.Events > 0 && n >= l.Events:
		return m.cut(fmt.Sprintf("%d events", l.Events), n, now, e)
	case l.Until > 0 && e.time > int64(l.Until/sim.Nanosecond):
		return m.cut(fmt.Sprintf("%v of virtual time", l.Until), n, now, e)
	}
	if err := context.Cause(m.ctx); err != nil {
		return m.interrupted(err, n, now, e)
	}
	return nil
}

func (m *Simulator) interrupted(err error, n uint64, now int64, e event) error {
	if limit, ok := errors.AsType[*sim.LimitError](err); ok {
		return m.cut(limit.Limit, n, now, e)
	}
	return err
}

// cut returns the state of a run that a limit ends. Operations that have not
// run and messages that nobody has received count as pending.
func (m *Simulator) cut(limit string, n uint64, now int64, e event) error {
	return &sim.LimitError{
		Limit: limit, At: sim.Time(now) * sim.Nanosecond, Handled: n, Pending: m.open + m.waiting, Next: sim.Time(e.time) * sim.Nanosecond,
	}
}
