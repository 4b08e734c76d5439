package mpirun

import (
	"context"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Flags of completions (rdma/fabric.h).
const (
	flagMessage  = 1 << 1
	flagTagged   = 1 << 3
	flagRMA      = 1 << 2
	flagAtomic   = 1 << 4
	flagRead     = 1 << 8
	flagWrite    = 1 << 9
	flagReceive  = 1 << 10
	flagSend     = 1 << 11
	flagMulti    = 1 << 16
	flagRemoteCQ = 1 << 17

	accessRead  = 1 << 12 // also of completions: flagRemoteRead
	accessWrite = 1 << 13

	flagRemoteRead  = accessRead
	flagRemoteWrite = accessWrite
)

// Tags of messages to endpoints. Untagged messages, and those of endpoints but
// the first, have bits that no tag has.
const (
	untagged    = 1 << 43
	another     = untagged | 1<<42
	anotherBits = 36 // of its tags
)

// tagOf returns the tag that messages to an endpoint have on the network.
func tagOf(endpoint uint16, tag uint64, flags uint32) uint64 {
	switch {
	case flags&postMessage != 0:
		return untagged | uint64(endpoint)
	case endpoint > 0:
		return another | uint64(endpoint)<<anotherBits | tag&(1<<anotherBits-1)
	}
	return tag
}

// Numbers of libfabric for errors.
const (
	errNoMessage = 42
	errCanceled  = 125
)

// rank is what the process of a rank has under way.
type rank struct {
	*link
	of      *Program
	r       mpi.Tagged
	all     []*rank
	free    map[int][]runtime.View // buffers, by their size class
	memory  *memory
	reduced int // collectives in the NIC
	refused int // those that it did not take
	// of all ranks
	collected *reductions
	result    collective // under way; its call is 0: there is none
	charged   uint64     // of used, or of counter
	counter   instructions
	fail      func(error) // ends the run
	flights   []flight
	unused    []int
	fresh     int // receives under way whose pages were not all there
	// to each rank: what a message has besides its bytes, by its number
	said []map[uint32]label
	one  *onesided // nil: not in use
	// receives of several messages that wait until earlier ones are full
	later []post
}

// flight is an operation of the process.
type flight struct {
	post
	view    runtime.View
	own     bool         // a buffer of the simulated rank, from take
	absent  bool         // not all pages of the view were there at the last look
	of      *mpi.Request // nil: it has come, and its claimant has not asked for it
	claimed bool         // found by a peek, for a receive with the same context
	filled  uint64       // bytes of earlier messages, of a receive of several
	status  mpi.Status   // of what has come
}

// label is what a message says of itself besides its bytes.
type label struct {
	tag, data uint64
	hasData   bool
	endpoint  uint16 // of the sender
}

// prepare sets up what the rank needs until it ends; after an error, too.
func (k *rank) prepare(r *mpi.Rank) (err error) {
	k.r = mpi.TaggedOf(r)
	if k.memory, err = adopt(k.link, k.r, k.of.Absent, k.fail); err != nil {
		return err
	}
	k.state = stateRunning
	if k.of.Compute.Factor > 0 {
		k.timed = 1
	}
	if k.of.Compute.Instruction > 0 {
		k.counter, err = countInstructions(int(k.pid))
	}
	if by := k.of.MPI.Allreduce; by != "" && by != mpi.ModeHost {
		if k.takes = 1; k.of.MPI.Rooted {
			k.takes = 2
		}
	}
	return err
}

// program is the program of a rank.
func (k *rank) program(ctx context.Context, r *mpi.Rank) (err error) {
	defer func() { err = errors.Join(err, k.memory.close(), k.counter.close()) }()
	if err := k.prepare(r); err != nil {
		return err
	}
	for last := why(0); ; {
		why := k.resume(ctx, r)
		if why == whyGone {
			return k.early()
		}
		idle, err := k.turned(why)
		if err != nil {
			return fmt.Errorf("rank %d: %w", k.rank, err)
		}
		if why == whyClock && last == whyClock && idle { // a program may wait for a time
			k.r.Looked()
		}
		last = why
		switch why {
		case whyFinalize:
			k.r.Also(nil, portals.CTNone) // what peers still do here is nobody's concern
			return nil
		case whyRegion:
		case whyRefused:
			if err := k.refuse(int(k.arg)); err != nil {
				return err
			}
		case whyCollective:
			if err := k.collectively(); err != nil {
				return fmt.Errorf("rank %d: %w", k.rank, err)
			}
		case whySleep:
			for left := k.arg; left > 0; { // longer than the clock goes ends the run
				step := min(left, 1<<62)
				r.Proc().Sleep(sim.Time(step))
				left -= step
			}
		case whyLook, whyClock, whyFull:
			if err := k.look(why == whyLook); err != nil {
				return err
			}
		case whyWait:
			if err := k.wait(); err != nil {
				return err
			}
		default:
			return fmt.Errorf("rank %d: %w", k.rank, k.spoiled("reason %d", why))
		}
	}
}

// resume lets the process go on, and returns why it hands over. After the end of the
// run it waits for the simulation to stop, which then says how far it has come.
func (k *rank) resume(ctx context.Context, r *mpi.Rank) (why why) {
	k.now = uint64(r.Now())
	runtime.Settle(r.Proc())
	why = whyGone
	if there := k.memory.done(k.turns()); there && ctx.Err() == nil {
		why = k.yield()
	}
	for why == whyGone && ctx.Err() != nil {
		r.Proc().Sleep(sim.Nanosecond)
	}
	return why
}

// turned carries out what the process has done in its turn. idle: nothing for the
// network.
func (k *rank) turned(why why) (idle bool, err error) {
	if err := k.computed(why); err != nil {
		return false, err
	}
	posts, err := k.taken()
	if err != nil {
		return false, err
	}
	return len(posts) == 0, errors.Join(k.appeared(), k.drain(posts))
}

// computed charges the rank for what its process has computed.
func (k *rank) computed(why why) error {
	d, each, used := sim.Time(0), k.of.Compute.Factor*float64(sim.Nanosecond), k.used
	if k.of.Compute.Instruction > 0 {
		each = float64(k.of.Compute.Instruction)
		var err error
		if used, err = k.counter.read(); err != nil {
			return err
		}
	}
	if each > 0 {
		if used < k.charged || used-k.charged > 1e15 {
			return k.spoiled("%d ns of a processor after %d", used, k.charged)
		}
		d, k.charged = sim.Time(float64(used-k.charged)*each), used
	}
	if why == whyRegion && k.of.Compute.Regions != nil {
		one, is := k.of.Compute.Regions[int(int64(k.arg))]
		if !is {
			return fmt.Errorf("MPI_Pcontrol(%d): the table has no time for this level", int64(k.arg))
		}
		d += one
	}
	k.r.Compute(d)
	return nil
}

// appeared looks for pages of receives under way that the program has touched
// meanwhile.
func (k *rank) appeared() error {
	for i := 0; k.fresh > 0 && i < len(k.flights); i++ {
		f := &k.flights[i]
		if !f.absent {
			continue
		}
		absent, err := k.memory.sync(f.view, false)
		if err != nil {
			return err
		}
		if absent == 0 {
			f.absent = false
			k.fresh--
		}
	}
	return nil
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

// wait waits for a completion, or until a peer has reached for memory of the
// process, or until the NICs have ended the collective that it waits for.
func (k *rank) wait() error {
	for result := k.result; ; {
		n, err := k.completed()
		if n > 0 || err != nil || k.result != result {
			return err
		}
		if is, err := k.touched(); is || err != nil {
			k.r.Looked()
			return err
		}
		if err := k.r.Step(); err != nil {
			return err
		}
	}
}

// completed moves completions to the process, and returns how many it may take.
func (k *rank) completed() (int, error) {
	for {
		n, err := k.waiting()
		if err != nil || n >= linkDone-linkPosts { // a post makes one, too
			return n, err
		}
		q, err := k.r.Test()
		if err == nil && q == nil && k.happened() {
			err = k.event()
		} else if err != nil || q == nil {
			return n, err
		} else {
			err = k.settle(q)
		}
		if err != nil {
			return 0, err
		}
	}
}

// settle ends an operation.
func (k *rank) settle(q *mpi.Request) error {
	number := q.User
	if number == collecting {
		k.r.Free(q)
		return k.combined()
	}
	f := &k.flights[number]
	f.of, f.status = nil, q.Status()
	k.r.Free(q)
	switch {
	case f.kind == postSend:
		d := done{context: f.context, flags: flagSend | flagTagged}
		if f.flags&postMessage != 0 {
			d.flags = flagSend | flagMessage
		}
		k.finished(&f.post, d)
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
	if f.own && f.flags&postDiscard == 0 {
		if err := k.scatter(&f.post, f.view.Read()[:f.status.Bytes]); err != nil {
			return err
		}
	}
	d := k.described(f.context, f.status)
	if err := f.aimed(d); err != nil {
		return err
	}
	d.addr = f.addr + f.filled
	if f.flags&postMessage != 0 {
		d.flags = d.flags&^flagTagged | flagMessage
	}
	delete(k.all[f.status.Source].said[k.rank], f.status.Sequence)
	if f.flags&postMulti != 0 {
		f.filled += uint64(f.status.Bytes)
		if left := f.length - f.filled; left >= f.access && left > 0 {
			k.finished(&f.post, d)
			return k.refill(number)
		}
		d.flags |= flagMulti // the buffer is the process's again
	}
	k.finished(&f.post, d)
	several, endpoint := f.flags&postMulti != 0, f.endpoint
	k.end(number)
	if several {
		return k.emptied(endpoint)
	}
	return nil
}

// described is the completion of a receive or of a peek.
func (k *rank) described(context uint64, s mpi.Status) done {
	said := k.all[s.Source].said[k.rank][s.Sequence]
	d := done{context: context, flags: flagReceive | flagTagged, length: uint64(s.Bytes), tag: said.tag, data: said.data, source: int32(s.Source), sourceEndpoint: said.endpoint}
	if said.hasData {
		d.flags |= flagRemoteCQ
	}
	return d
}

// drain carries out what the process has posted.
func (k *rank) drain(posts []post) (err error) {
	for i := range posts {
		p := &posts[i]
		switch p.kind {
		case postSend, postReceive:
			switch {
			case p.flags&postClaimed != 0:
				err = k.claim(p)
			case p.flags&postMulti != 0:
				err = k.several(p)
			default:
				err = k.start(p, p.flags&(postInlined|postVector) != 0)
			}
		case postCancel:
			err = k.cancel(p)
		case postPeek:
			err = k.peek(p)
		case postRegister:
			err = k.register(p)
		case postForget:
			err = k.forget(p)
		default:
			err = k.launch(p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// place returns the memory of an operation: the process's own, or a buffer.
func (k *rank) place(p *post, inlined bool) (f flight, err error) {
	f = flight{post: *p, own: inlined || p.length == 0}
	if f.own {
		f.view, err = k.take(int(p.length))
		return f, err
	}
	if f.view, err = k.memory.view(p.addr, p.length); err != nil {
		return f, err
	}
	absent, err := k.memory.sync(f.view, true)
	if f.absent = absent > 0 && p.kind == postReceive; f.absent {
		k.fresh++
	}
	return f, err
}

// start starts an operation. inlined: it has a buffer of the simulated rank.
func (k *rank) start(p *post, inlined bool) error {
	f, err := k.place(p, inlined)
	if err != nil {
		return err
	}
	v, i := f.view, len(k.flights)
	if n := len(k.unused); n > 0 {
		i, k.unused = k.unused[n-1], k.unused[:n-1]
	} else {
		k.flights = append(k.flights, flight{})
	}
	k.flights[i] = f
	var q *mpi.Request
	if p.kind == postSend {
		switch {
		case p.flags&postInlined != 0:
			copy(v.Write(), p.inlined[:p.length])
		case p.flags&postVector != 0:
			if err := k.gather(p, v); err != nil {
				return err
			}
		}
		sequence := k.r.Upcoming(int(p.peer), 0, 0).Sequence
		k.said[p.peer][sequence] = label{tag: p.tag, data: p.data, hasData: p.hasData != 0, endpoint: p.endpoint}
		q, err = k.r.Send(v, int(p.peer), tagOf(p.peerEndpoint, p.tag, p.flags), p.flags&postDelivered != 0)
	} else {
		q, err = k.r.Receive(v, int(p.peer), tagOf(p.endpoint, p.tag, p.flags), p.ignore)
	}
	if err != nil {
		return err
	}
	q.User, k.flights[i].of = i, q
	return nil
}

// end gives back what an operation has.
func (k *rank) end(i int) {
	f := &k.flights[i]
	if f.own {
		k.give(f.view)
	}
	if f.absent {
		k.fresh--
	}
	*f = flight{}
	k.unused = append(k.unused, i)
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
	v.Present() // as a buffer of a device's library
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
