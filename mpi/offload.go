package mpi

import (
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/portals"
)

// offload is matching by the NIC: a receive is a match entry.
type offload struct {
	t    *overPortals
	spin *portals.Spin // handlers of receives that a large message may match
	me   portals.ME
}

func newOffload(t *overPortals) (*offload, error) {
	in, err := t.c.module.Install(t.r.p, handlers.Options{State: matching.State{PT: exposedPT}, Shared: true})
	if err != nil {
		return nil, err
	}
	return &offload{t: t, spin: in.Spin}, nil
}

// post appends the entry. It has handlers only if it has room for a large message.
func (o *offload) post(q *Request) error {
	t := o.t
	t.overhead()
	bits, ignore := criterion(q.env)
	o.me = portals.ME{
		Start: q.addr, Length: uint64(q.length), UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: bits, IgnoreBits: ignore,
		Options: portals.OptMEOpPut | portals.OptMEUseOnce | portals.OptMEEventLinkDisable | portals.OptMEEventUnlinkDisable,
	}
	if q.length > t.c.o.Eager {
		o.me.Spin = o.spin
	}
	_, err := t.ni.MEAppend(messagePT, &o.me, portals.PriorityList, ptrRequest|uint64(q.id))
	return err
}

// arrived ends a receive whose message is in its place, or takes an unexpected message from its buffer.
func (o *offload) arrived(ev *portals.Event) error {
	t := o.t
	q := t.r.requests[uint32(ev.UserPtr)]
	q.status = statusOf(envelopeOf(ev.MatchBits), ev.HdrData)
	if err := t.r.fits(q); err != nil {
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
		t.r.complete(q)
		return nil
	}
	t.r.stats.Unexpected++
	if large {
		return t.fetch(q, ev.Start)
	}
	if err := t.copied(q, ev.Start, q.status.Bytes); err != nil {
		return err
	}
	if err := t.taken(q.status.Source, ev.HdrData); err != nil {
		return err
	}
	t.r.complete(q)
	return nil
}

// probe searches the unexpected headers of the device.
func (o *offload) probe(env envelope) (Status, bool, error) {
	t := o.t
	count, err := t.ni.CTGet(t.count)
	if err != nil {
		return Status{}, false, err
	}
	t.overhead()
	t.counted, t.searched = count.Success, false
	bits, ignore := criterion(env)
	o.me = portals.ME{
		UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: bits, IgnoreBits: ignore, Options: portals.OptMEOpPut | portals.OptMEUseOnce,
	}
	if err := t.ni.MESearch(messagePT, &o.me, portals.SearchOnly, 0); err != nil {
		return Status{}, false, err
	}
	for !t.searched {
		if err := t.step(); err != nil {
			return Status{}, false, err
		}
	}
	return t.found, t.isThere, nil
}

// await waits for an event or for a message that comes into a buffer, of which there is no event.
func (o *offload) await() error {
	t := o.t
	if event, err := t.ni.EQWaitOrCT(t.eq, t.count, t.counted+1); err != nil || !event {
		return err
	}
	return t.step()
}

func (o *offload) unlinked(*buffer) error { return nil }

func (o *offload) freed(b *buffer) error { return o.t.relink(b) }
