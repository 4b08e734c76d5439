package mpirun

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Flags of completions (rdma/fabric.h).
const (
	flagMessage  = 1 << 1
	flagTagged   = 1 << 3
	flagReceive  = 1 << 10
	flagSend     = 1 << 11
	flagRemoteCQ = 1 << 17
)

// untagged is the tag of messages without one: no tag of TagFormat has its bit.
const untagged = 1 << 43

// Numbers of libfabric for errors.
const (
	errNoMessage = 42
	errCanceled  = 125
)

// rank is what the process of a rank has under way.
type rank struct {
	*link
	r       mpi.Tagged
	all     []*rank
	free    map[int][]runtime.View // buffers, by their size class
	flights []flight
	unused  []int
	// to each rank: what a message has besides its bytes, by its number
	said []map[uint32]label
}

// flight is an operation of the process.
type flight struct {
	post
	view    runtime.View
	of      *mpi.Request // nil: it has come, and its claimant has not asked for it
	claimed bool         // found by a peek, for a receive with the same context
	status  mpi.Status   // of what has come
}

// label is what a message says of itself besides its bytes.
type label struct {
	tag, data uint64
	hasData   bool
}

// program is the program of a rank.
func (k *rank) program(r *mpi.Rank) error {
	k.r = mpi.TaggedOf(r)
	k.state = stateRunning
	for last := why(0); ; {
		k.now = uint64(r.Now())
		why, idle := k.yield(), k.posted == 0
		if err := k.drain(); err != nil {
			return fmt.Errorf("rank %d: %w", k.rank, err)
		}
		if why == whyClock && last == whyClock && idle { // a program may wait for a time
			k.r.Looked()
		}
		last = why
		switch why {
		case whyGone:
			return fmt.Errorf("rank %d: the process has ended before MPI_Finalize", k.rank)
		case whyFinalize:
			return nil
		case whySleep:
			r.Proc().Sleep(sim.Time(k.arg))
		case whyLook, whyClock, whyFull:
			if err := k.look(why == whyLook); err != nil {
				return err
			}
		case whyWait:
			if err := k.wait(); err != nil {
				return err
			}
		}
	}
}

// look hands over what has arrived.
func (k *rank) look(charged bool) error {
	n, err := k.completed()
	if err == nil && n == 0 && charged {
		k.r.Looked()
		_, err = k.completed()
	}
	return err
}

// wait waits for a completion.
func (k *rank) wait() error {
	for {
		n, err := k.completed()
		if n > 0 || err != nil {
			return err
		}
		if err := k.r.Step(); err != nil {
			return err
		}
	}
}

// completed moves completions to the process, and returns how many it may take.
func (k *rank) completed() (int, error) {
	for int(k.doneTail-k.doneHead) < linkDone-linkPosts { // a post makes one, too
		q, err := k.r.Test()
		if err != nil {
			return 0, err
		}
		if q == nil {
			break
		}
		if err := k.settle(q); err != nil {
			return 0, err
		}
	}
	return int(k.doneTail - k.doneHead), nil
}

// settle ends an operation.
func (k *rank) settle(q *mpi.Request) error {
	number := q.User
	f := &k.flights[number]
	f.of, f.status = nil, q.Status()
	k.r.Free(q)
	switch {
	case f.kind == postSend:
		d := done{context: f.context, flags: flagSend | flagTagged}
		if f.flags&postMessage != 0 {
			d.flags = flagSend | flagMessage
		}
		if f.flags&postQuiet == 0 {
			k.push(d)
		}
		k.end(number)
		return nil
	case f.claimed: // the process asks for it later
		return nil
	}
	return k.deliver(number)
}

// deliver gives the process a message that has come.
func (k *rank) deliver(number int) error {
	f := &k.flights[number]
	if f.flags&postDiscard == 0 {
		if err := k.write(f.addr, f.view.Read()[:f.status.Bytes]); err != nil {
			return err
		}
	}
	d := k.described(f.context, f.status)
	d.addr = f.addr
	if f.flags&postMessage != 0 {
		d.flags = d.flags&^flagTagged | flagMessage
	}
	if f.flags&postQuiet == 0 {
		k.push(d)
	}
	delete(k.all[f.status.Source].said[k.rank], f.status.Sequence)
	k.end(number)
	return nil
}

// described is the completion of a receive or of a peek.
func (k *rank) described(context uint64, s mpi.Status) done {
	said := k.all[s.Source].said[k.rank][s.Sequence]
	d := done{context: context, flags: flagReceive | flagTagged, length: uint64(s.Bytes), tag: said.tag, data: said.data, source: int32(s.Source)}
	if said.hasData {
		d.flags |= flagRemoteCQ
	}
	return d
}

// drain carries out what the process has posted.
func (k *rank) drain() error {
	for i := range k.posted {
		p := &k.posts[i]
		switch p.kind {
		case postSend, postReceive:
			start := k.start
			if p.flags&postClaimed != 0 {
				start = k.claim
			}
			if err := start(p); err != nil {
				return err
			}
		case postCancel:
			if err := k.cancel(p); err != nil {
				return err
			}
		case postPeek:
			if err := k.peek(p); err != nil {
				return err
			}
		default:
			return fmt.Errorf("operation %d, which is not there yet", p.kind)
		}
	}
	k.posted = 0
	return nil
}

func (k *rank) start(p *post) error {
	v, err := k.take(int(p.length))
	if err != nil {
		return err
	}
	i := len(k.flights)
	if n := len(k.unused); n > 0 {
		i, k.unused = k.unused[n-1], k.unused[:n-1]
	} else {
		k.flights = append(k.flights, flight{})
	}
	tag := p.tag
	if p.flags&postMessage != 0 {
		tag |= untagged
	}
	k.flights[i] = flight{post: *p, view: v}
	var q *mpi.Request
	if p.kind == postSend {
		if p.flags&postInlined != 0 {
			copy(v.Write(), p.inlined[:p.length])
		} else if err := k.read(p.addr, v.Write()); err != nil {
			return err
		}
		sequence := k.r.Upcoming(int(p.peer), 0, 0).Sequence
		k.said[p.peer][sequence] = label{tag: p.tag, data: p.data, hasData: p.hasData != 0}
		q, err = k.r.Send(v, int(p.peer), tag, p.flags&postDelivered != 0)
	} else {
		q, err = k.r.Receive(v, int(p.peer), tag, p.ignore)
	}
	if err != nil {
		return err
	}
	q.User, k.flights[i].of = i, q
	return nil
}

// claim receives the message that a peek with the same context has found.
func (k *rank) claim(p *post) error {
	for i := range k.flights {
		f := &k.flights[i]
		if !f.claimed || f.context != p.context {
			continue
		}
		here := f.of == nil
		f.post, f.claimed = *p, false
		if f.status.Bytes > int(p.length) && p.flags&postDiscard == 0 {
			return fmt.Errorf("message of %d B from rank %d is %w of %d B", f.status.Bytes, f.status.Source, mpi.ErrTruncate, p.length)
		}
		if here {
			return k.deliver(i)
		}
		return nil // settle does it
	}
	return errors.New("a receive of a message that no peek has claimed")
}

// cancel withdraws the receive with a context, and says whether it did.
func (k *rank) cancel(p *post) error {
	k.arg = 0
	for i := range k.flights {
		f := &k.flights[i]
		if f.of == nil || f.kind != postReceive || f.context != p.context {
			continue
		}
		gone, err := k.r.Cancel(f.of)
		if gone {
			k.push(done{context: f.context, flags: flagReceive | flagTagged, err: errCanceled})
			k.end(i)
			k.arg = 1
		}
		return err
	}
	return nil
}

func (k *rank) push(d done) {
	k.done[k.doneTail%linkDone] = d
	k.doneTail++
}

// end gives back what an operation has.
func (k *rank) end(i int) {
	k.give(k.flights[i].view)
	k.flights[i] = flight{}
	k.unused = append(k.unused, i)
}

// peek looks for a message, and may claim it: then it is received at once, into
// a buffer.
func (k *rank) peek(p *post) error {
	s, found, err := k.r.Probe(int(p.peer), p.tag, p.ignore)
	switch {
	case err != nil:
		return err
	case !found:
		k.r.Looked()
		k.push(done{context: p.context, flags: flagReceive | flagTagged, err: errNoMessage})
		return nil
	}
	d := k.described(p.context, s)
	k.push(d)
	if p.flags&postClaim == 0 {
		return nil
	}
	own := *p
	own.kind, own.peer, own.tag, own.ignore, own.length = postReceive, int32(s.Source), d.tag, 0, uint64(s.Bytes)
	if err := k.start(&own); err != nil {
		return err
	}
	for i := range k.flights {
		if f := &k.flights[i]; f.of != nil && f.context == p.context {
			f.claimed, f.status = true, s
		}
	}
	return nil
}

// take returns a buffer for n bytes.
func (k *rank) take(n int) (runtime.View, error) {
	class := 64
	for class < n {
		class *= 2
	}
	if list := k.free[class]; len(list) > 0 {
		v := list[len(list)-1]
		k.free[class] = list[:len(list)-1]
		return v.Slice(0, n), nil
	}
	v, err := k.r.Alloc(class)
	if err != nil {
		return v, err
	}
	v.Present() // the process has its own pages, which are not simulated
	return v.Slice(0, n), nil
}

func (k *rank) give(v runtime.View) {
	class := 64
	for class < v.Len() {
		class *= 2
	}
	whole, err := v.Proc().View(v.Addr(), class)
	if err == nil {
		k.free[class] = append(k.free[class], whole)
	}
}
