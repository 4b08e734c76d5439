package portals

import (
	"fmt"
)

// title is the name of a queue or counter for people.
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

// Label sets the label of an event queue or counter for reports. It has no
// effect on a handle that names neither.
func (ni *Objects) Label(h Handle, label string) {
	if q := ni.queues.all.get(h); q != nil {
		q.title.label = label
	} else if c := ni.counters.all.get(h); c != nil {
		c.title.label = label
	}
}

// SetCause sets the Cause of all later operations of the interface; 0: none.
func (ni *NI) SetCause(cause uint64) { ni.outbox.cause = cause }

// Title returns the name of an event queue or counter for people: its kind, its
// number in the order of allocation on the interface, from 0, and its label.
// Example: counter 3 "acks".
func (ni *Objects) Title(h Handle) string {
	if q := ni.queues.all.get(h); q != nil {
		return q.title.text("event queue")
	}
	if c := ni.counters.all.get(h); c != nil {
		return c.title.text("counter")
	}
	return fmt.Sprintf("handle %#x, which names nothing", uint32(h))
}
