package sim

import (
	"fmt"
	"strings"
)

// Limits bound a run. The zero value of each field is no limit.
type Limits struct {
	Until  Time   // later events are not handled
	Events uint64 // the most events that are handled
}

// LimitError is the error of a run that a limit has ended: its results are
// incomplete. A LimitError for [Engine.Interrupt], for example for a limit of
// real time, needs only Limit.
type LimitError struct {
	Limit   string    // such as "1000 events"
	At      Time      // present time at the end
	Handled uint64    // events
	Pending int       // events to come
	Next    Time      // time of the first of them
	Waiting []Waiting // as in StuckError
}

// Error names the limit, the time, and the number of pending events.
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

// SetLimits bounds the runs that follow. A run that would continue beyond a
// limit fails with a *LimitError, and so do later runs.
func (e *Engine) SetLimits(l Limits) {
	e.until, e.most = MaxTime, ^uint64(0)
	if l.Until > 0 {
		e.until = l.Until
	}
	if l.Events > 0 {
		e.most = l.Events
	}
}

// exceeds reports whether ev, the next event, lies beyond a limit. If so, it
// ends the run.
func (e *Engine) exceeds(ev *Event) bool {
	if ev.void() {
		return false
	}
	limit := fmt.Sprintf("%d events", e.most)
	if ev.Time > e.until {
		limit = fmt.Sprintf("%v of virtual time", e.until)
	}
	e.interrupted(&LimitError{Limit: limit}, ev)
	return true
}

// void reports whether an event will change nothing.
func (ev *Event) void() bool {
	switch x := ev.P.(type) {
	case *Process:
		return ev.Kind == kindResume && (x.state == processDone || ev.A != x.generation)
	case *Timer:
		return ev.Kind == kindTimer && x.void(ev)
	}
	return false
}
