package mpi

import (
	"fmt"

	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Rank is a process with its end of the library. Its methods are for the
// program given to World.Spawn only.
type Rank struct {
	// What messages need, side by side:
	transport transport
	p         *runtime.Proc
	free      requestList
	active    int         // requests that are not done
	runnable  []*schedule // of those below whose requests are over
	modules   moduleSet
	world     *World
	rank      int
	stats     Stats
	over      requestList // requests that are done and were not handed out
	sequence  []uint32    // messages sent to each rank
	running   []*schedule // whose steps are not all done
	idle      []*schedule // to be used again
	temporary pool

	requests []*Request
	world0   Comm // the communicator of all ranks
	comms    []*Comm
	disjoint map[times]bool        // elements that may be received into
	attached attached              // memory for buffered sends
	call     string                // what the program waits in, beside requests
	blocked  *Request              // what it waits for
	ended    bool                  // the program has returned
	contexts [maxComms / 64]uint64 // a bit for each communicator that the rank has not
}

func newRank(w *World, p *runtime.Proc, rank int) (*Rank, error) {
	r := &Rank{world: w, rank: rank, p: p, sequence: make([]uint32, w.Size())}
	var err error
	r.initComms()
	if err = r.world0.openModule(false); err != nil { // before anything takes time: others may begin
		return nil, err
	}
	r.transport, err = w.carrier.attach(r)
	return r, err
}

// Rank is the number of the rank.
func (r *Rank) Rank() int { return r.rank }

// Size is the number of ranks.
func (r *Rank) Size() int { return r.world.Size() }

// Proc is the process of the host that the rank is.
func (r *Rank) Proc() *runtime.Proc { return r.p }

// Now is the present time.
func (r *Rank) Now() sim.Time { return r.p.Now() }

// Compute occupies the rank's core for d, at least 0. With Host no message
// makes progress meanwhile.
func (r *Rank) Compute(d sim.Time) { r.p.Compute(d) }

// Stats returns the rank's counts.
func (r *Rank) Stats() Stats { return r.stats }

// Active is the number of requests that are not over.
func (r *Rank) Active() int { return r.active }

// Alloc returns n zeroed bytes that can be sent from and received into, 0 to 1 TiB.
func (r *Rank) Alloc(n int) (runtime.View, error) {
	if n < 0 || n > maxAlloc {
		return runtime.View{}, fmt.Errorf("mpi: rank %d: %d B of memory, expected 0 to %d B", r.rank, n, maxAlloc)
	}
	return r.transport.alloc(n)
}

const maxAlloc = 1 << 40

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

// complete takes a request that is over from the transport: it hands it to Next
// or Wait, or to the collective operation that it is a part of.
func (r *Rank) complete(q *Request) {
	q.mark.Live("mpi: a request")
	q.done = true
	r.active--
	if q.receives {
		r.stats.Received++
		if q.comm != nil {
			q.status.Source = q.comm.rankOf(q.status.Source)
		}
	}
	if q.typed != nil {
		q.typed.settle(r, q)
	}
	if q.schedule != nil {
		q.schedule.over(q)
		return
	}
	if q.detached {
		r.attached.release(q.reserved)
		r.Free(q)
		return
	}
	r.over.push(q)
}

// Free gives back a request that Next or Test has returned.
func (r *Rank) Free(q *Request) {
	if q.persistent != nil {
		q.persistent.active = false
	}
	if q.mark.Release("mpi: a request"); poison.On {
		return
	}
	r.free.push(q)
}

// Upcoming returns the status that the next message to a rank of the world will have.
func (r *Rank) Upcoming(target int, tag uint32, n int) Status {
	return Status{Source: r.Rank(), Tag: tag, Bytes: n, Sequence: r.sequence[target] & sequenceMask}
}

// own checks that a view is memory of the rank's Alloc.
func (r *Rank) own(v runtime.View) error {
	if v.Proc() != r.p {
		return fmt.Errorf("mpi: rank %d: %d B at %#x are no memory of the rank", r.Rank(), v.Len(), v.Addr())
	}
	return r.transport.own(v)
}

// Isend is World().Isend.
func (r *Rank) Isend(v runtime.View, target int, tag uint32) (*Request, error) {
	return r.world0.Isend(v, target, tag)
}

// Irecv is World().Irecv.
func (r *Rank) Irecv(v runtime.View, source int, tag uint32) (*Request, error) {
	return r.world0.Irecv(v, source, tag)
}

// mode is what the calls that send differ in.
type mode struct {
	synchronous bool
	schedule    *schedule // the collective operation that the message belongs to
	buffered    span
	detached    bool
	typed       *typed
}

// startSend starts to send to a rank of the world.
func (r *Rank) startSend(v runtime.View, target int, env envelope, m mode) (*Request, error) {
	q := r.newRequest()
	q.addr, q.length, q.peer, q.env = v.Addr(), v.Len(), target, env
	q.synchronous, q.schedule, q.reserved, q.detached, q.typed = m.synchronous, m.schedule, m.buffered, m.detached, m.typed
	q.status = r.Upcoming(target, env.tag, q.length)
	r.sequence[target]++
	r.stats.Sent++
	r.stats.SentBytes += int64(q.length)
	if err := r.transport.send(q); err != nil {
		return nil, err
	}
	return q, nil
}

// startReceive starts to receive of the ranks of a communicator.
func (r *Rank) startReceive(v runtime.View, c *Comm, env envelope, s *schedule) (*Request, error) {
	q := r.newRequest()
	q.receives, q.addr, q.length, q.env, q.comm, q.schedule = true, v.Addr(), v.Len(), env, c, s
	if err := r.transport.receive(q); err != nil {
		return nil, err
	}
	return q, nil
}
