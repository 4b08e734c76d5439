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
	bits, ignore := t.c.layout.criterion(q.env)
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
	q.status = t.c.layout.statusOf(ev.MatchBits, ev.HdrData)
	if err := t.r.fits(q); err != nil {
		return err
	}
	large := ev.HdrData&matching.Large != 0
	if ev.Type == portals.EventPut {
		if large {
			t.r.stats.Large++
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
	t.r.complete(q)
	return nil
}

func (o *offload) unlinked(*buffer) error { return nil }

func (o *offload) freed(b *buffer) error { return o.t.relink(b) }
