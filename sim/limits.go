package sim

import (
	"fmt"
	"strings"
)

// Limits bound a run. The zero value of each is none.
type Limits struct {
	Until  Time   // no later event is handled
	Events uint64 // no more are handled
}

// LimitError is a run that a limit has ended: its results are incomplete. One
// given to [Engine.Interrupt], such as for a limit of real time, needs Limit
// only.
type LimitError struct {
	Limit   string    // such as "1000 events"
	At      Time      // the present time then
	Handled uint64    // events
	Pending int       // events to come
	Next    Time      // of the first of them
	Waiting []Waiting // as in StuckError
}

// Error says which limit, when, and what was to come.
func (l *LimitError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "incomplete: stopped by the limit of %s", l.Limit)
	if l.Pending == 0 { // between runs
		return b.String()
	}
	fmt.Fprintf(&b, ", at %v after %d events; ", l.At, l.Handled)
	if l.Pending == 1 {
		fmt.Fprintf(&b, "one more was to come, at %v", l.Next)
	} else {
		fmt.Fprintf(&b, "%d more were to come, the first at %v", l.Pending, l.Next)
	}
	if len(l.Waiting) > 0 {
		fmt.Fprintf(&b, ", and %d waited:", len(l.Waiting))
	}
	listWaiting(&b, l.Waiting)
	return b.String()
}

// SetLimits bounds the runs to come. A run that goes on beyond fails with a
// *LimitError; a later one does, too.
func (e *Engine) SetLimits(l Limits) {
	e.until, e.most = MaxTime, ^uint64(0)
	if l.Until > 0 {
		e.until = l.Until
	}
	if l.Events > 0 {
		e.most = l.Events
	}
}

// exceeds reports whether ev, which is the next, lies beyond a limit, and if so ends the run.
func (e *Engine) exceeds(ev *Event) bool {
	switch x := ev.P.(type) {
	case *Process:
		if ev.Kind == kindResume && (x.state == processDone || ev.A != x.generation) {
			return false // void: nothing will happen
		}
	case *Timer:
		if ev.Kind == kindTimer && x.void(ev) {
			return false
		}
	}
	limit := fmt.Sprintf("%d events", e.most)
	if ev.Time > e.until {
		limit = fmt.Sprintf("%v of virtual time", e.until)
	}
	e.interrupted(&LimitError{Limit: limit}, ev)
	return true
}
