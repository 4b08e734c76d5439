package portals

import (
	"fmt"
)

// title is what people know a queue or counter by: handles are for programs.
type title struct {
	number int // how many the interface had allocated before
	label  string
}

func (t *title) text(kind string) string {
	if t.label == "" {
		return fmt.Sprintf("%s %d", kind, t.number)
	}
	return fmt.Sprintf("%s %d %q", kind, t.number, t.label)
}

// Label notes what an event queue or counter is for; reports of what is waited
// for say it. A handle that names neither is left alone.
func (ni *Objects) Label(h Handle, label string) {
	if q := ni.queues.all.get(h); q != nil {
		q.title.label = label
	} else if c := ni.counters.all.get(h); c != nil {
		c.title.label = label
	}
}

// SetCause gives the operations that the interface makes from now on a Cause; 0: none.
func (ni *NI) SetCause(cause uint64) { ni.outbox.cause = cause }

// Title is what people know an event queue or counter by: its kind, its number
// in the order of allocation on the interface, from 0, and its label. Example:
// counter 3 "acks".
func (ni *Objects) Title(h Handle) string {
	if q := ni.queues.all.get(h); q != nil {
		return q.title.text("event queue")
	}
	if c := ni.counters.all.get(h); c != nil {
		return c.title.text("counter")
	}
	return fmt.Sprintf("handle %#x, which names nothing", uint32(h))
}
