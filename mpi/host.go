package mpi

import (
	"slices"

	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// hostForm is matching by the process: a list of receives and a list of
// messages.
type hostForm struct {
	t          *overPortals
	posted     requestList
	unexpected arrivalList
	free       *arrival
	// number of the next message of each source; nil where memory is never
	// late, because messages then come in order
	next  map[int]uint32
	early []arrival // messages that wait for earlier ones from their source
}

func newHostForm(t *overPortals) *hostForm {
	h := &hostForm{t: t}
	if t.r.p.Node().Bus().Paged() {
		h.next = map[int]uint32{}
	}
	return h
}

// arrival is a message in a buffer, without a receive yet.
type arrival struct {
	mark       poison.Mark
	env        envelope
	data       uint64 // header data
	start      uint64
	buffer     *buffer
	memory     runtime.View // of a message that the process keeps (offload)
	prev, next *arrival
}

type arrivalList struct{ first, last *arrival }

func (l *arrivalList) push(a *arrival) {
	a.prev, a.next = l.last, nil
	if l.last == nil {
		l.first = a
	} else {
		l.last.next = a
	}
	l.last = a
}

func (l *arrivalList) cut(a *arrival) {
	if a.prev == nil {
		l.first = a.next
	} else {
		a.prev.next = a.next
	}
	if a.next == nil {
		l.last = a.prev
	} else {
		a.next.prev = a.prev
	}
}

func (h *hostForm) cancel(q *Request) (bool, error) {
	there, looked := h.posted.withdraw(q)
	searched(h.t.r.p, looked)
	return there, nil
}

// post searches the messages that have arrived. Without a match it appends the
// receive.
func (h *hostForm) post(q *Request) error {
	looked := 0
	for a := h.unexpected.first; a != nil; a = a.next {
		looked++
		a.mark.Live("mpi: an arrival")
		if q.env.takes(a.env) {
			searched(h.t.r.p, looked)
			h.unexpected.cut(a)
			h.t.r.stats.Unexpected++
			found := *a
			h.give(a)
			return h.receive(q, &found)
		}
	}
	searched(h.t.r.p, looked)
	h.posted.push(q)
	return nil
}

// unload does nothing: no message stays on the device.
func (h *hostForm) unload() (bool, error) { return false, nil }

func (h *hostForm) empty() {}

func (h *hostForm) probe(env envelope) (Status, bool, error) {
	looked := 0
	for a := h.unexpected.first; a != nil; a = a.next {
		looked++
		if env.takes(a.env) {
			s := statusOf(a.env, a.data)
			searched(h.t.r.p, looked)
			return s, true, nil
		}
	}
	searched(h.t.r.p, looked)
	return Status{}, false, nil
}

// await waits for any event, since every message is one.
func (h *hostForm) await() error { return h.t.step() }

// give takes back an arrival that is in no list.
func (h *hostForm) give(a *arrival) {
	if a.mark.Release("mpi: an arrival"); poison.On {
		*a = arrival{mark: a.mark}
		return
	}
	a.next, h.free = h.free, a
}

// arrived takes a message, and then the messages that waited for it. Messages
// of one source do not overtake each other, but their events may. Each buffer
// posts its events in order. So a message whose memory is late delays the
// events behind it in its buffer, but not those in the next buffer.
func (h *hostForm) arrived(ev *portals.Event) error {
	b := h.t.buffers[uint32(ev.UserPtr)]
	b.held++
	a := arrival{env: envelopeOf(ev.MatchBits), data: ev.HdrData, start: ev.Start, buffer: b}
	if h.next == nil {
		return h.match(a)
	}
	h.early = append(h.early, a)
	source := a.env.source
	for {
		i := slices.IndexFunc(h.early, func(a arrival) bool {
			return a.env.source == source && statusOf(a.env, a.data).Sequence == h.next[source]
		})
		if i < 0 {
			return nil
		}
		a := h.early[i]
		h.early = slices.Delete(h.early, i, i+1)
		h.next[source]++
		if err := h.match(a); err != nil {
			return err
		}
	}
}

// match searches the receives for a message. Without a match it appends the
// message to the unexpected ones.
func (h *hostForm) match(a arrival) error {
	looked := 0
	for q := h.posted.first; q != nil; q = q.next {
		looked++
		if q.env.takes(a.env) {
			searched(h.t.r.p, looked)
			h.posted.cut(q)
			return h.receive(q, &a)
		}
	}
	searched(h.t.r.p, looked)
	kept := h.free
	if kept == nil {
		kept = new(arrival)
	} else {
		h.free = kept.next
	}
	*kept = a
	h.unexpected.push(kept)
	return nil
}

// receive copies a message to its place. For a large message it starts to get
// the data.
func (h *hostForm) receive(q *Request, a *arrival) error {
	t := h.t
	q.status = statusOf(a.env, a.data)
	if err := q.fits(t.r.rank); err != nil {
		return err
	}
	if a.data&matching.Large != 0 {
		if err := t.fetch(q, a.start); err != nil {
			return err
		}
	} else {
		if err := q.deposited(t.r, a.start); err != nil {
			return err
		}
		if err := t.taken(a.env.source, a.data); err != nil {
			return err
		}
		t.r.complete(q)
	}
	a.buffer.held--
	return h.reuse(a.buffer)
}

// reuse links a buffer again if it was full and is now empty.
func (h *hostForm) reuse(b *buffer) error {
	if !b.full || b.held > 0 {
		return nil
	}
	return h.t.relink(b)
}

func (h *hostForm) unlinked(b *buffer) error {
	b.full = true
	return h.reuse(b)
}

func (h *hostForm) freed(*buffer) error { return nil }
