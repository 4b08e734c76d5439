package mpi

import (
	"cmp"
	"errors"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/portals"
)

// offload is matching by the NIC: a receive is a match entry.
type offload struct {
	t    *overPortals
	spin *portals.Spin // handlers of receives that a large message may match
	me   portals.ME
	// messages that the process has taken off the device when unexpected
	// headers ran out; all came before those on the device
	kept arrivalList
	came bool // unload has a message, or there is none
	none bool
}

func newOffload(t *overPortals) (*offload, error) {
	in, err := t.c.module.Install(t.r.p, handlers.Options{State: matching.State{PT: exposedPT}, Shared: true})
	if err != nil {
		return nil, err
	}
	return &offload{t: t, spin: in.Spin}, nil
}

// post appends the entry. It has handlers only if it is long enough for a large
// message.
func (o *offload) post(q *Request) error {
	t := o.t
	if a := o.find(q.env); a != nil {
		o.kept.cut(a)
		return o.receive(q, a)
	}
	overhead(t.r.p)
	bits, ignore := criterion(q.env)
	o.me = portals.ME{
		Start: q.addr, Length: uint64(q.length), UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: bits, IgnoreBits: ignore,
		Options: portals.OptMEOpPut | portals.OptMEUseOnce | portals.OptMEEventLinkDisable | portals.OptMEEventUnlinkDisable,
	}
	if q.length > t.c.o.Eager {
		o.me.Spin = o.spin
	}
	if q.typed != nil {
		if err := t.unpackEntry(q, &o.me); err != nil {
			return err
		}
	}
	var err error
	q.entry, err = t.ni.MEAppend(messagePT, &o.me, portals.PriorityList, ptrRequest|uint64(q.id))
	return err
}

func (o *offload) cancel(q *Request) (bool, error) {
	overhead(o.t.r.p)
	switch err := o.t.ni.Objects().MEUnlink(q.entry); {
	case err == nil:
		return true, nil
	case errors.Is(err, portals.ErrInUse), errors.Is(err, portals.ErrArgInvalid):
		// a message has matched it
		return false, nil
	default:
		return false, err
	}
}

// arrived completes a receive whose message is in its place, or takes an
// unexpected message from its buffer.
func (o *offload) arrived(ev *portals.Event) error {
	t := o.t
	if ev.UserPtr == ptrKept {
		return o.keep(ev)
	}
	q := t.r.requests.all[uint32(ev.UserPtr)]
	q.status = statusOf(envelopeOf(ev.MatchBits), ev.HdrData)
	if err := q.fits(t.r.rank); err != nil {
		return err
	}
	large := ev.HdrData&matching.Large != 0
	if ev.Type == portals.EventPut {
		if large {
			t.r.stats.Large++
		}
		if err := t.taken(q.status.Source, ev.HdrData); err != nil {
			return err
		}
		if q.typed != nil && q.typed.there && q.status.Bytes > 0 {
			t.r.stats.UnpackedByNIC++
		}
		return t.received(q)
	}
	t.r.stats.Unexpected++
	if large {
		return t.fetch(q, ev.Start)
	}
	if err := q.deposited(t.r, ev.Start); err != nil {
		return err
	}
	if err := t.taken(q.status.Source, ev.HdrData); err != nil {
		return err
	}
	t.r.complete(q)
	return nil
}

// find returns the first kept message that a receive takes; nil: none.
func (o *offload) find(env envelope) (found *arrival) {
	looked := 0
	for a := o.kept.first; a != nil && found == nil; a = a.next {
		if looked++; env.takes(a.env) {
			found = a
		}
	}
	if looked > 0 {
		searched(o.t.r.p, looked)
	}
	return found
}

// receive gives a kept message to a receive.
func (o *offload) receive(q *Request, a *arrival) error {
	t := o.t
	q.status = statusOf(a.env, a.data)
	if err := q.fits(t.r.rank); err != nil {
		return err
	}
	t.r.stats.Unexpected++
	defer t.r.temporary.put(a.memory)
	if a.data&matching.Large != 0 {
		return t.fetch(q, a.start)
	}
	if err := cmp.Or(q.deposited(t.r, a.start), t.taken(a.env.source, a.data)); err != nil {
		return err
	}
	t.r.complete(q)
	return nil
}

// unload takes the unexpected messages off the device. It takes one at a time,
// until none is left, and no receive is posted meanwhile. Otherwise a receive
// could find a later message while an earlier one is on its way from the device
// to the process.
func (o *offload) unload() (some bool, err error) {
	t := o.t
	for {
		overhead(t.r.p)
		o.me = portals.ME{UID: portals.UIDAny, MatchID: portals.AnyID, IgnoreBits: ^uint64(0), Options: portals.OptMEOpPut | portals.OptMEUseOnce}
		if err := t.ni.Objects().MESearch(messagePT, &o.me, portals.SearchDelete, ptrKept); err != nil {
			return some, err
		}
		for o.came, o.none = false, false; !o.came; {
			if err := t.step(); err != nil {
				return some, err
			}
		}
		if o.none {
			return some, nil
		}
		some = true
	}
}

func (o *offload) empty() { o.came, o.none = true, true }

// keep copies a message out of its buffer.
func (o *offload) keep(ev *portals.Event) error {
	t := o.t
	o.came = true
	a := &arrival{env: envelopeOf(ev.MatchBits), data: ev.HdrData}
	n := statusOf(a.env, a.data).Bytes
	if a.data&matching.Large != 0 {
		n = matching.AnnouncementSize + t.c.first
	}
	from, err := t.r.p.View(ev.Start, n)
	if err != nil {
		return err
	}
	if a.memory, err = t.r.temporary.get(t.r, n); err != nil {
		return err
	}
	a.start = a.memory.Addr()
	t.r.p.Copy(a.memory.Slice(0, n), from)
	o.kept.push(a)
	return nil
}

// probe searches the kept messages, then the unexpected headers of the device.
func (o *offload) probe(env envelope) (Status, bool, error) {
	t := o.t
	if a := o.find(env); a != nil {
		return statusOf(a.env, a.data), true, nil
	}
	count, err := t.ni.Objects().CTGet(t.count)
	if err != nil {
		return Status{}, false, err
	}
	overhead(t.r.p)
	t.counted, t.searched = count.Success, false
	bits, ignore := criterion(env)
	o.me = portals.ME{
		UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: bits, IgnoreBits: ignore, Options: portals.OptMEOpPut | portals.OptMEUseOnce,
	}
	if err := t.ni.Objects().MESearch(messagePT, &o.me, portals.SearchOnly, ptrSearch); err != nil {
		return Status{}, false, err
	}
	for !t.searched {
		if err := t.step(); err != nil {
			return Status{}, false, err
		}
	}
	return t.found, t.isThere, nil
}

// await waits for an event or for a message that enters a buffer, which has no
// event.
func (o *offload) await() error {
	t := o.t
	if event, err := t.ni.EQWaitOrCT(t.eq, t.count, t.counted+1); err != nil || !event {
		return err
	}
	return t.step()
}

func (o *offload) unlinked(*buffer) error { return nil }

func (o *offload) freed(b *buffer) error { return o.t.relink(b) }
