package goal

import (
	"context"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// WithLimits bounds the run: it then ends with a *sim.LimitError.
func WithLimits(l sim.Limits) Option { return func(m *Simulator) { m.limits = l } }

// WithContext ends the run when ctx is done, with its cause; a *sim.LimitError
// as the cause is completed.
func WithContext(ctx context.Context) Option { return func(m *Simulator) { m.ctx = ctx } }

// lookEvery is how many events pass between looks at the context; a power of two.
const lookEvery = 1 << 16

// stopped says why the run ends before event e, when n have been handled, the
// last one at now; nil: it does not.
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
	var limit *sim.LimitError
	if errors.As(err, &limit) {
		return m.cut(limit.Limit, n, now, e)
	}
	return err
}

// cut describes the state of a run that a limit ends. What is to come are
// operations and messages that nobody has received.
func (m *Simulator) cut(limit string, n uint64, now int64, e event) error {
	return &sim.LimitError{
		Limit: limit, At: sim.Time(now) * sim.Nanosecond, Handled: n, Pending: m.open + m.waiting, Next: sim.Time(e.time) * sim.Nanosecond,
	}
}
