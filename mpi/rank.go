package mpi

import (
	"fmt"

	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Rank is a process with its end of the library. Its methods are for the program given to World.Spawn only.
type Rank struct {
	world     *World
	rank      int
	p         *runtime.Proc
	transport transport
	requests  []*Request
	free      requestList
	over      requestList // requests that are done and were not handed out
	active    int         // requests that are not done
	sequence  []uint32    // messages sent to each rank
	stats     Stats
}

func newRank(w *World, p *runtime.Proc, rank int) (*Rank, error) {
	r := &Rank{world: w, rank: rank, p: p, sequence: make([]uint32, w.Size())}
	var err error
	r.transport, err = w.carrier.attach(r)
	return r, err
}

// Rank is the number of the rank.
func (r *Rank) Rank() int { return r.rank }

// Size is the number of ranks.
func (r *Rank) Size() int { return r.world.Size() }

// Now is the present time.
func (r *Rank) Now() sim.Time { return r.p.Now() }

// Compute occupies the rank's core for d, at least 0. With Host no message makes progress meanwhile.
func (r *Rank) Compute(d sim.Time) { r.p.Compute(d) }

// Stats returns the rank's counts.
func (r *Rank) Stats() Stats { return r.stats }

// Active is the number of requests that are not over.
func (r *Rank) Active() int { return r.active }

// Alloc returns n zeroed bytes that can be sent from and received into.
func (r *Rank) Alloc(n int) (runtime.View, error) { return r.transport.alloc(n) }

func (r *Rank) newRequest() *Request {
	q := r.free.first
	if q == nil {
		q = &Request{id: uint32(len(r.requests))}
		r.requests = append(r.requests, q)
	} else {
		r.free.cut(q)
		*q = Request{id: q.id}
	}
	r.active++
	return q
}

// complete hands a request that is over to Next or Wait.
func (r *Rank) complete(q *Request) {
	q.mark.Live("mpi: a request")
	q.done = true
	r.active--
	r.over.push(q)
	if q.receives {
		r.stats.Received++
	}
}

// Free gives back a request that Next or Test has returned.
func (r *Rank) Free(q *Request) {
	if q.mark.Release("mpi: a request"); poison.On {
		return
	}
	r.free.push(q)
}

// Upcoming returns the status that the next message to a rank will have.
func (r *Rank) Upcoming(target int, tag uint32, n int) Status {
	return Status{Source: r.Rank(), Tag: tag, Bytes: n, Sequence: r.sequence[target]}
}

// own checks that a view is memory of the rank's Alloc.
func (r *Rank) own(v runtime.View) error {
	if v.Proc() != r.p {
		return fmt.Errorf("mpi: rank %d: %d B at %#x are no memory of the rank", r.Rank(), v.Len(), v.Addr())
	}
	return r.transport.own(v)
}

// Isend starts to send the bytes of v, which must be memory of Alloc and not change until the request is over.
func (r *Rank) Isend(v runtime.View, target int, tag uint32) (*Request, error) {
	n := v.Len()
	if limit := r.transport.limit(); target < 0 || target >= r.Size() || tag == AnyTag || n > limit {
		return nil, fmt.Errorf("mpi: rank %d: send of %d B to %d with tag %d: expected at most %d B (limits.max_msg_size), a rank below %d, and no wildcard",
			r.Rank(), n, target, tag, limit, r.Size())
	}
	if err := r.own(v); err != nil {
		return nil, err
	}
	q := r.newRequest()
	q.addr, q.length, q.peer = v.Addr(), n, target
	q.env = envelope{source: r.rank, tag: tag}
	q.status = r.Upcoming(target, tag, n)
	r.sequence[target]++
	r.stats.Sent++
	r.stats.SentBytes += int64(n)
	if err := r.transport.send(q); err != nil {
		return nil, err
	}
	return q, nil
}

// Irecv starts to receive a message into v, which must be memory of Alloc. source may be AnySource, tag AnyTag. A message that is
// longer is an error of the run.
func (r *Rank) Irecv(v runtime.View, source int, tag uint32) (*Request, error) {
	n := v.Len()
	if source < AnySource || source >= r.Size() || n > maxMessage {
		return nil, fmt.Errorf("mpi: rank %d: receive of %d B from %d: expected 0 to %d B and a rank below %d or %d for any",
			r.Rank(), n, source, maxMessage, r.Size(), AnySource)
	}
	if err := r.own(v); err != nil {
		return nil, err
	}
	q := r.newRequest()
	q.receives, q.addr, q.length = true, v.Addr(), n
	q.env = envelope{source: source, tag: tag}
	if err := r.transport.receive(q); err != nil {
		return nil, err
	}
	return q, nil
}
