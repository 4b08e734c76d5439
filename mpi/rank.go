package mpi

import (
	"fmt"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Rank is a process with its end of the library. Only the program given to
// World.Spawn may call its methods.
type Rank struct {
	// For every message, side by side:
	transport transport
	p         *runtime.Proc
	requests  requests
	runnable  []*schedule // schedules in running whose requests are complete
	modules   moduleSet
	world     *World
	rank      int
	stats     Stats
	sequence  []uint32    // messages sent to each rank
	running   []*schedule // schedules with steps left
	idle      []*schedule // schedules to use again
	temporary pool
	also      struct { // a counter of others, or a nil interface: Tagged.Also
		ni *runtime.NI
		ct portals.Handle
	}

	world0   Comm // the communicator of all ranks
	comms    []*Comm
	disjoint disjoint
	attached attached              // buffer for buffered sends
	call     string                // the call in which the program waits, if not for a request
	blocked  *Request              // the request for which it waits
	ended    bool                  // the program has returned
	contexts [maxComms / 64]uint64 // one bit per communicator; set: free
}

func newRank(w *World, p *runtime.Proc, rank int) (*Rank, error) {
	r := &Rank{world: w, rank: rank, p: p, sequence: make([]uint32, w.Size())}
	var err error
	for i := range r.contexts {
		r.contexts[i] = ^uint64(0)
	}
	r.contexts[0] &^= 1
	r.world0 = Comm{r: r, rank: r.rank, name: "world"}
	r.comms = append(r.comms, &r.world0)
	if err = r.world0.openModule(false); err == nil { // first: once time passes, other ranks may begin
		err = openGroups(r)
	}
	if err != nil {
		return nil, err
	}
	r.transport, err = w.carrier.attach(r)
	return r, err
}

// Rank returns the number of the rank.
func (r *Rank) Rank() int { return r.rank }

// Size returns the number of ranks.
func (r *Rank) Size() int { return r.world.Size() }

// Proc returns the process of the rank.
func (r *Rank) Proc() *runtime.Proc { return r.p }

// Now returns the present time.
func (r *Rank) Now() sim.Time { return r.p.Now() }

// codeOf returns what the profile says about the code of ExaNet-MPI. f is what
// the code is for.
func codeOf(r *Rank, f used.Fact) *host.LibrarySpec { return &r.p.Reads(f).Host.Library }

// charge charges the library's code, if it takes time.
func charge(r *Rank, d sim.Time) {
	if d > 0 {
		r.p.Compute(d)
	}
}

// Compute occupies the rank's core for d, at least 0. With Host, messages make
// no progress meanwhile.
func (r *Rank) Compute(d sim.Time) { r.p.Compute(d) }

// Stats returns the rank's counts.
func (r *Rank) Stats() Stats { return r.stats }

// Active returns the number of requests that are not complete.
func (r *Rank) Active() int { return r.requests.active }

// Alloc returns n zeroed bytes, 0 to 1 TiB, for sends and receives.
func (r *Rank) Alloc(n int) (runtime.View, error) {
	if n < 0 || n > maxAlloc {
		return runtime.View{}, fmt.Errorf("mpi: rank %d: %d B of memory, expected 0 to %d B", r.rank, n, maxAlloc)
	}
	return r.transport.usable().alloc(n)
}

const maxAlloc = 1 << 40

// complete takes a completed request from the transport. The request goes to
// Next or Wait, or to its collective operation.
func (r *Rank) complete(q *Request) {
	q.mark.Live("mpi: a request")
	q.done = true
	r.requests.active--
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
	r.requests.over.push(q)
}

// Free gives back a request that Next or Test has returned.
func (r *Rank) Free(q *Request) {
	if q.persistent != nil {
		q.persistent.active = false
	}
	if q.mark.Release("mpi: a request"); poison.On {
		return
	}
	r.requests.free.push(q)
}

// Upcoming returns the status that the next message to target, a rank of the
// world, will have.
func (r *Rank) Upcoming(target int, tag uint32, n int) Status {
	return Status{Source: r.Rank(), Tag: tag, Bytes: n, Sequence: r.sequence[target] & sequenceMask}
}

// own checks that a view comes from the rank's Alloc.
func (r *Rank) own(v runtime.View) error {
	if v.Proc() != r.p {
		return fmt.Errorf("mpi: rank %d: %d B at %#x are no memory of the rank", r.Rank(), v.Len(), v.Addr())
	}
	return r.transport.usable().own(v)
}

// Isend is World().Isend.
func (r *Rank) Isend(v runtime.View, target int, tag uint32) (*Request, error) {
	return r.world0.Isend(v, target, tag)
}

// Irecv is World().Irecv.
func (r *Rank) Irecv(v runtime.View, source int, tag uint32) (*Request, error) {
	return r.world0.Irecv(v, source, tag)
}

// mode is the difference between the calls that send.
type mode struct {
	synchronous bool
	schedule    *schedule // the collective operation of the message
	buffered    span
	detached    bool
	typed       *typed
}

func (r *Rank) startSend(v runtime.View, target int, env envelope, m mode) (*Request, error) {
	q := r.requests.add()
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

func (r *Rank) startReceive(v runtime.View, c *Comm, env envelope, s *schedule) (*Request, error) {
	q := r.requests.add()
	q.receives, q.addr, q.length, q.env, q.comm, q.schedule = true, v.Addr(), v.Len(), env, c, s
	if err := r.transport.receive(q); err != nil {
		return nil, err
	}
	return q, nil
}
