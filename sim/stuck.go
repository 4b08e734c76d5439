package sim

import (
	"fmt"
	"strings"
)

// Waiting is a part of the model that waits, with the time since when and the
// reason.
type Waiting struct {
	Who   string
	Since Time
	What  string
	Cause bool // others may wait because of it, so it is listed first
}

// Waiter is a part of the model, other than a process, that may still wait at
// the end of a run: for example a transfer without its acknowledgement, or a
// queue without credit.
type Waiter interface {
	// Waiting reports everything that still waits, in a stable order.
	Waiting(report func(Waiting))
}

// Watch makes Run ask w at its end whether it still waits.
func (e *Engine) Watch(w Waiter) {
	main := e.Domain(0)
	main.watched = append(main.watched, w)
}

// StuckError is the error of a run that has no more events although a process
// or a waiter still waits.
type StuckError struct {
	At      Time
	Waiting []Waiting // causes, then processes in order of spawning, then waiters in order of Watch
}

// stuckShown is how many of them an error message names.
const stuckShown = 10

// Error names the first of them, one per line.
func (s *StuckError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "nothing left to happen at %v, but %d still wait:", s.At, len(s.Waiting))
	listWaiting(&b, s.Waiting)
	return b.String()
}

func listWaiting(b *strings.Builder, all []Waiting) {
	for i, w := range all {
		if i == stuckShown {
			fmt.Fprintf(b, "\n  ... and %d more", len(all)-i)
			break
		}
		fmt.Fprintf(b, "\n  %s waits since %v for %s", w.Who, w.Since, w.What)
	}
}

func (e *Engine) stuck() error {
	all := e.waiting()
	if len(all) == 0 {
		return nil
	}
	return &StuckError{e.now, all}
}

// waiting lists all processes and waiters that wait.
func (e *Engine) waiting() (all []Waiting) {
	list := e.processes
	if e.split != nil {
		list = e.split.processes()
	}
	for _, p := range list {
		if p.state != processDone && !p.background {
			all = append(all, Waiting{Who: p.name, Since: p.since, What: p.waitsFor()})
		}
	}
	var causes []Waiting
	for _, w := range e.watched {
		w.Waiting(func(x Waiting) {
			if x.Cause {
				causes = append(causes, x)
			} else {
				all = append(all, x)
			}
		})
	}
	return append(causes, all...)
}
