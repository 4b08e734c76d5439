package mpi

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// TagBits is how many bits a tag of [Tagged] has.
const TagBits = 44

// exact in envelope.ignore: no tag stands for any.
const exact = 1 << 63

// tagged returns the envelope of a message with a tag of TagBits bits.
func tagged(source int, tag, ignore uint64) envelope {
	return envelope{source: source, tag: uint32(tag), context: uint16(tag >> sourceShift), ignore: ignore | exact}
}

// Tagged are the messages of a rank for a library that matches tags of its own,
// as libfabric does, without communicators. A rank uses either these calls or
// communicators: both number the same messages.
type Tagged struct{ *Rank }

// TaggedOf returns the messages of a rank with tags.
func TaggedOf(r *Rank) Tagged { return Tagged{r} }

// Adopt makes n bytes that are elsewhere memory of the rank, for sends and
// receives, and returns their address (host.Adopt).
func (t Tagged) Adopt(n uint64, of host.Elsewhere) (addr uint64, err error) {
	if addr, err = runtime.Adopt(t.p, n, of); err != nil {
		return 0, err
	}
	return addr, t.transport.usable().adopt(addr, n)
}

func (t Tagged) check(v runtime.View, peer int, bits uint64) error {
	r := t.Rank
	if peer < 0 || peer >= r.Size() {
		return fmt.Errorf("mpi: rank %d: no rank %d, expected 0 to %d", r.rank, peer, r.Size()-1)
	}
	if bits>>TagBits != 0 {
		return fmt.Errorf("mpi: rank %d: tag %#x, expected %d bits", r.rank, bits, TagBits)
	}
	return r.own(v)
}

// Send starts to send a view to a rank of the world, with a tag of TagBits bits.
// A synchronous send completes when its message has a receive.
func (t Tagged) Send(v runtime.View, target int, tag uint64, synchronous bool) (*Request, error) {
	if err := t.check(v, target, tag); err != nil {
		return nil, err
	}
	return t.startSend(v, target, tagged(t.rank, tag, 0), mode{synchronous: synchronous})
}

// Receive starts to receive a message from a rank of the world, or AnySource,
// whose tag agrees but for the bits to ignore.
func (t Tagged) Receive(v runtime.View, source int, tag, ignore uint64) (*Request, error) {
	if err := t.check(v, max(source, 0), tag|ignore); err != nil {
		return nil, err
	}
	return t.startReceive(v, nil, tagged(source, tag&^ignore, ignore), nil)
}

// Probe handles everything that has arrived and looks for a message that Receive
// would take.
func (t Tagged) Probe(source int, tag, ignore uint64) (Status, bool, error) {
	if err := t.arrived(); err != nil {
		return Status{}, false, err
	}
	return t.transport.probe(tagged(source, tag&^ignore, ignore))
}

// Cancel withdraws a receive that no message has matched, and reports whether it
// did: then the request is given back. Otherwise it completes as if nobody had
// asked (MPI_Cancel).
func (t Tagged) Cancel(q *Request) (bool, error) {
	r := t.Rank
	if err := r.arrived(); err != nil || q.done {
		return false, err
	}
	gone, err := r.transport.cancel(q)
	if gone {
		r.requests.active--
		r.Free(q)
	}
	return gone, err
}

// Also makes Step return, too, when a counter of another interface of the process
// has counted something. The caller sets it back to 0. A nil interface ends that.
// Calls that wait for requests are not for a rank with such a counter.
func (t Tagged) Also(ni *runtime.NI, ct portals.Handle) { t.also.ni, t.also.ct = ni, ct }

// Places returns the processes of all ranks, for other interfaces of theirs.
func (t Tagged) Places() []portals.ID { return slices.Clone(t.world.places) }

// Looked charges a look at memory that finds nothing (host.poll).
func (t Tagged) Looked() { t.looked() }

// Step waits until something happens, and handles it.
func (t Tagged) Step() error { return t.step() }

// Completed returns a request that earlier calls have completed, or nil. It
// handles nothing.
func (t Tagged) Completed() *Request { return t.requests.over.pop() }

// Collective starts an Allreduce, Reduce, Bcast or Barrier of all ranks of the world
// in their NICs or in switches (Options.Allreduce). If the modules do not take the
// call, it does nothing and returns why, at all ranks alike: then the caller has
// another way.
func (t Tagged) Collective(o Operation) (q *Request, why string, err error) {
	c, k := t.World(), call{kind: callBarrier}
	switch o := o.(type) {
	case Allreduce:
		k = call{kind: callAllreduce, op: o.Op, t: o.Type}
	case Reduce:
		k = call{kind: callReduce, op: o.Op, t: o.Type}
	case Bcast:
		k.kind = callBcast
	}
	if c.module == nil {
		return nil, "the world has no modules", nil
	}
	if why := c.module.refuses(&k); why != "" {
		t.stats.FellBack++
		return nil, why, nil
	}
	q, err = c.Start(o)
	return q, "", err
}
