package mpi

import (
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/portals"
)

// offload is matching by the NIC: a receive is a match entry.
type offload struct {
	r    *Rank
	spin *portals.Spin // handlers of receives that a large message may match
	me   portals.ME
}

func newOffload(r *Rank) (*offload, error) {
	in, err := r.world.module.Install(r.p, handlers.Options{State: matching.State{PT: exposedPT}, Shared: true})
	if err != nil {
		return nil, err
	}
	return &offload{r: r, spin: in.Spin}, nil
}

// post appends the entry. It has handlers only if it has room for a large message.
func (o *offload) post(q *Request) error {
	r := o.r
	r.overhead()
	o.me = portals.ME{
		Start: q.addr, Length: uint64(q.length), UID: portals.UIDAny, MatchID: portals.AnyID, MatchBits: q.bits, IgnoreBits: q.ignore,
		Options: portals.OptMEOpPut | portals.OptMEUseOnce | portals.OptMEEventLinkDisable | portals.OptMEEventUnlinkDisable,
	}
	if q.length > r.world.o.Eager {
		o.me.Spin = o.spin
	}
	_, err := r.ni.MEAppend(messagePT, &o.me, portals.PriorityList, ptrRequest|uint64(q.id))
	return err
}

// arrived ends a receive whose message is in its place, or takes an unexpected message from its buffer.
func (o *offload) arrived(ev *portals.Event) error {
	r := o.r
	q := r.requests[uint32(ev.UserPtr)]
	q.status = statusOf(ev.MatchBits, ev.HdrData)
	if err := r.fits(q); err != nil {
		return err
	}
	large := ev.HdrData&matching.Large != 0
	if ev.Type == portals.EventPut {
		if large {
			r.stats.Large++
		}
		r.complete(q)
		return nil
	}
	r.stats.Unexpected++
	if large {
		return r.fetch(q, ev.Start)
	}
	if err := r.copied(q, ev.Start, q.status.Bytes); err != nil {
		return err
	}
	r.complete(q)
	return nil
}

func (o *offload) unlinked(*buffer) error { return nil }

func (o *offload) freed(b *buffer) error { return o.r.relink(b) }
