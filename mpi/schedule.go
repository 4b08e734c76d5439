package mpi

import (
	"fmt"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// schedule is the work of one rank in a collective operation: sends, receives,
// copies and reductions, in order. A blocking call runs it before it returns. A
// non-blocking call's schedule proceeds whenever the program is in a call that
// waits or tests. The steps between two fences start together; a fence waits
// for the messages before it.
type schedule struct {
	r         *Rank
	comm      *Comm
	call      call
	tag       uint32
	steps     []step
	next      int // index of the next step
	pending   int // requests under way
	queued    bool
	done      bool
	request   *Request // of a non-blocking call
	temporary []runtime.View
	err       error
}

type stepKind uint8

const (
	stepSend stepKind = iota
	stepReceive
	stepFence
	stepCopy
	stepReduce
	stepPack    // copy the blocks whose number has the bits of peer to the front
	stepUnpack  // copy them back
	stepReverse // copy all blocks in reverse order
	stepPackElements
	stepUnpackElements
	stepModule // the communicator's module combines from of all ranks
	stepWork   // the library's code takes time
)

type step struct {
	kind   stepKind
	before bool // reduce: from is the left operand
	sync   bool // send: synchronous
	peer   int32
	to     runtime.View // receive, copy: destination; reduce: result and one operand
	from   runtime.View // send, copy; reduce: the other operand
	typed  *typed       // elements to pack or to unpack
	work   sim.Time     // of stepWork
}

// builder adds the steps of an operation to a schedule: the algorithms.
type builder struct{ *schedule }

// schedule returns an empty schedule for a call with checked arguments.
func (c *Comm) schedule(what call) builder {
	r := c.r
	var s *schedule
	if n := len(r.idle); n > 0 {
		s, r.idle = r.idle[n-1], r.idle[:n-1]
		*s = schedule{steps: s.steps[:0], temporary: s.temporary[:0]}
	} else {
		s = new(schedule)
	}
	s.r, s.comm, s.call, s.tag = r, c, what, c.log.add(what)
	if d := s.own(used.Collective).Collective; d > 0 {
		s.steps = append(s.steps, step{kind: stepWork, work: d})
	}
	return builder{s}
}

// temp returns n bytes, which go back when the schedule is done. Its error ends
// the call. It takes the time of the profile's host.library.allocate.
func (s *schedule) temp(n int) runtime.View {
	if l := s.own(used.Temporary); l.Allocate > 0 || l.AllocatePage > 0 {
		const page = 4096
		s.steps = append(s.steps, step{kind: stepWork, work: l.Allocate + sim.Time((n+page-1)/page)*l.AllocatePage})
	}
	v, err := s.r.temporary.get(s.r, n)
	if err != nil {
		s.err = err
		return s.r.p.Alloc(n) // something to slice: the schedule will not run
	}
	s.temporary = append(s.temporary, v)
	return v.Slice(0, n)
}

func (s *schedule) send(v runtime.View, to int) {
	if limit := s.r.transport.limit(); v.Len() > limit && s.err == nil {
		s.err = fmt.Errorf("mpi: rank %d: %s: a message of %d B, expected at most %d B (limits.max_msg_size)", s.r.rank, s.call.describe(s.comm), v.Len(), limit)
	}
	s.steps = append(s.steps, step{kind: stepSend, from: v, peer: int32(to)})
}

func (s *schedule) receive(v runtime.View, from int) {
	s.steps = append(s.steps, step{kind: stepReceive, to: v, peer: int32(from)})
}

func (s *schedule) fence() { s.steps = append(s.steps, step{kind: stepFence}) }

// own returns the code of ExaNet-MPI (host.library) for collectives with its
// algorithms; for others one that takes no time. f is what the code is for.
func (s *schedule) own(f used.Fact) *host.LibrarySpec {
	if s.r.world.o.algorithms() != ExaNetMPI {
		return &host.LibrarySpec{}
	}
	return codeOf(s.r, f)
}

// exchange sends and receives at the same time, and waits for both. With
// host.library.exchange: ordered a pair of ranks does one after the other, the
// message of the lower rank first.
func (s *schedule) exchange(send runtime.View, to int, receive runtime.View, from int) {
	if to == from && to != s.comm.rank && s.own(used.Exchange).Exchange == host.ExchangeOrdered {
		s.inTurn(send, receive, to)
		return
	}
	s.receive(receive, from)
	s.send(send, to)
	s.fence()
}

// inTurn makes two ranks send to each other, the lower one first.
func (s *schedule) inTurn(send, receive runtime.View, other int) {
	if s.comm.rank < other {
		s.send(send, other)
		s.fence()
	}
	s.receive(receive, other)
	s.fence()
	if s.comm.rank > other {
		s.send(send, other)
		s.fence()
	}
}

// copy makes the core copy bytes, unless they are in place.
func (s *schedule) copy(to, from runtime.View) {
	if from.Len() > 0 && to.Addr() != from.Addr() {
		s.steps = append(s.steps, step{kind: stepCopy, to: to, from: from})
	}
}

// reduce makes the core combine two vectors: acc = acc op v, or acc = v op acc
// if before is set.
func (s *schedule) reduce(acc, v runtime.View, before bool) {
	if v.Len() > 0 {
		s.steps = append(s.steps, step{kind: stepReduce, to: acc, from: v, before: before})
	}
}

// launch starts a schedule. With request the call is non-blocking.
func (s *schedule) launch(request bool) (*Request, error) {
	if s.err != nil {
		return nil, s.err
	}
	r := s.r
	if request {
		s.request = r.requests.add()
		s.request.collective = s
	}
	q := s.request
	r.running = append(r.running, s)
	return q, s.run()
}

// asRequest starts a schedule of a non-blocking call.
func (s *schedule) asRequest() (*Request, error) { return s.launch(true) }

func (s *schedule) wait() error {
	if _, err := s.launch(false); err != nil {
		return err
	}
	for !s.done {
		if err := s.r.step(); err != nil {
			return err
		}
	}
	s.r.idle = append(s.r.idle, s)
	return nil
}

// over handles a completed request of the schedule.
func (s *schedule) over(q *Request) {
	if want := q.length; q.receives && q.status.Bytes != want && s.err == nil {
		s.err = fmt.Errorf("mpi: rank %d: message of %d B from rank %d of %s, expected %d B, in %s",
			s.r.rank, q.status.Bytes, q.status.Source, s.comm.name, want, s.call.describe(s.comm))
	}
	s.r.Free(q)
	if s.pending--; (s.pending == 0 || s.err != nil) && !s.queued {
		s.queued = true
		s.r.runnable = append(s.r.runnable, s)
	}
}

// proceed continues the schedules whose messages have come.
func (r *Rank) proceed() error {
	for len(r.runnable) > 0 {
		s := r.runnable[0]
		r.runnable = r.runnable[:copy(r.runnable, r.runnable[1:])]
		s.queued = false
		if err := s.run(); err != nil {
			return err
		}
	}
	return nil
}

// run takes steps until a fence has to wait for messages.
func (s *schedule) run() error {
	s.queued = true // do not queue it while it runs
	defer func() { s.queued = false }()
	for s.next < len(s.steps) {
		if s.err != nil {
			return s.err
		}
		p := &s.steps[s.next]
		if p.kind == stepFence && s.pending > 0 {
			return nil
		}
		s.next++
		if err := s.take(p); err != nil {
			return err
		}
	}
	if s.pending > 0 {
		return nil
	}
	return s.end()
}

func (s *schedule) take(p *step) (err error) {
	r, c := s.r, s.comm
	switch p.kind {
	case stepSend:
		s.pending++
		_, err = r.startSend(p.from, c.Translate(int(p.peer)), envelope{source: r.rank, tag: s.tag, context: c.collective()},
			mode{schedule: s, synchronous: p.sync})
	case stepReceive:
		s.pending++
		_, err = r.startReceive(p.to, c, envelope{source: c.Translate(int(p.peer)), tag: s.tag, context: c.collective()}, s)
	case stepCopy:
		charge(r, s.own(used.CopyCall).Copy)
		r.p.Copy(p.to, p.from)
	case stepWork:
		charge(r, p.work)
	case stepReduce:
		charge(r, s.own(used.ReduceCall).Reduce)
		s.call.op.combine(r.p, p.to, p.from, p.before, s.call.t)
	case stepPack, stepUnpack, stepReverse:
		s.rearrange(p)
	case stepPackElements:
		p.typed.pack(r)
	case stepUnpackElements:
		p.typed.unpack(r, p.typed.packed.Slice(0, p.typed.size))
	case stepModule:
		err = c.module.give(job{s, p.from, p.to})
	case stepFence:
	}
	return err
}

// rearrange copies the blocks of a step on the process's core.
func (s *schedule) rearrange(p *step) {
	size, n, packed := s.comm.Size(), s.call.bytes, 0
	dst, src := p.to.WriteFrom(p.from)
	for i := range size {
		switch {
		case p.kind == stepReverse:
			copy(dst[(size-1-i)*n:], src[i*n:][:n])
		case i&int(p.peer) == 0:
			continue
		case p.kind == stepPack:
			copy(dst[packed*n:], src[i*n:][:n])
		default:
			copy(dst[i*n:], src[packed*n:][:n])
		}
		packed++
	}
	s.r.p.Stream(int64(packed*n), int64(packed*n))
}

// end gives back the schedule's memory and the schedule.
func (s *schedule) end() error {
	r := s.r
	if s.err != nil {
		return s.err
	}
	s.done = true
	for _, v := range s.temporary {
		r.temporary.put(v)
	}
	for i, o := range r.running {
		if o == s {
			r.running = append(r.running[:i], r.running[i+1:]...)
			break
		}
	}
	if s.request != nil {
		r.complete(s.request)
		r.idle = append(r.idle, s)
	}
	return nil
}
