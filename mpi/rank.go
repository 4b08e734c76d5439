package mpi

import (
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Rank is a process with its end of the library. Its methods are for the program given to World.Spawn only.
type Rank struct {
	world    *World
	rank     int
	p        *runtime.Proc
	ni       *runtime.NI
	eq       portals.Handle
	form     form
	memory   []region // registered, by address
	latest   int      // the region used last
	slots    uint64   // unused memory for announcements
	slotsEnd uint64
	requests []*Request
	free     requestList
	over     requestList // requests that are done and were not handed out
	active   int         // requests that are not done
	sequence []uint32    // messages sent to each rank
	exposed  uint64      // tags given to large messages
	buffers  []*buffer
	linked   int // of them, those whose entries are linked
	stats    Stats
	controls portals.Handle // descriptor of control messages
	letters  []*letter
	paper    []*letter // of them, those to be used again
	flows    []*flow   // to ranks that have refused a message
	// Of the own portal table entry, see flow.go.
	disabled  bool
	known     uint64 // messages that it has refused, as their senders say
	callers   []int  // those senders, to be called back
	progress  uint64 // counts what may make room
	enabledAt uint64 // progress when it was enabled last
}

// form is what the forms of matching do differently.
type form interface {
	// post starts a receive.
	post(q *Request) error
	// arrived acts on a message: PUT or PUT_OVERFLOW.
	arrived(ev *portals.Event) error
	// unlinked and freed act on AUTO_UNLINK and AUTO_FREE of a buffer.
	unlinked(b *buffer) error
	freed(b *buffer) error
}

// region is memory that the NIC may use, with its descriptor.
type region struct {
	addr, length uint64
	md           portals.Handle
}

// buffer receives messages that have no place of their own yet.
type buffer struct {
	index int
	addr  uint64
	held  int  // messages in it that have not been received
	full  bool // its entry is unlinked
}

// Portal table indices.
const (
	messagePT = 0 // messages and announcements
	exposedPT = 1 // the data of large messages
	controlPT = 2 // control messages, which need no buffer
)

// queueLength is more than the events that can be there at once; the queue grows as needed.
const queueLength = 1 << 28

// What the user pointer of an operation or an entry names, beside the index in the low 32 bits.
const (
	ptrRequest uint64 = iota << 32
	ptrBuffer
	ptrLetter
)

func newRank(w *World, p *runtime.Proc, rank int) (*Rank, error) {
	r := &Rank{world: w, rank: rank, p: p, ni: p.NI(), sequence: make([]uint32, w.Size())}
	var err error
	if r.eq, err = r.ni.EQAlloc(queueLength); err != nil {
		return nil, err
	}
	r.ni.Label(r.eq, "messages")
	for pt, options := range []portals.PTOptions{messagePT: portals.OptPTFlowCtrl, exposedPT: 0, controlPT: 0} {
		if _, err := r.ni.PTAlloc(options, r.eq, uint32(pt)); err != nil {
			return nil, err
		}
	}
	if _, err := r.ni.MEAppend(controlPT, &portals.ME{
		UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
	}, portals.PriorityList, 0); err != nil {
		return nil, err
	}
	if r.controls, err = r.ni.MDBind(&portals.MD{}); err != nil {
		return nil, err
	}
	if w.o.Matching == Offload {
		r.form, err = newOffload(r)
	} else {
		r.form = newHostForm(r)
	}
	if err != nil {
		return nil, err
	}
	for range w.buffers(r.Rank()) {
		if err := r.addBuffer(); err != nil {
			return nil, err
		}
	}
	return r, nil
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
func (r *Rank) Alloc(n int) (runtime.View, error) { return r.alloc(n, 0) }

func (r *Rank) alloc(n int, o portals.MDOptions) (runtime.View, error) {
	v := r.p.Alloc(n)
	md, err := r.ni.MDBind(&portals.MD{Start: v.Addr(), Length: uint64(n), EQ: r.eq, Options: o})
	if err != nil {
		return runtime.View{}, err
	}
	r.memory = append(r.memory, region{v.Addr(), uint64(n), md}) // addresses ascend
	return v, nil
}

// region returns the registered memory that holds n bytes at addr.
func (r *Rank) region(addr uint64, n int) (*region, error) {
	if r.latest >= len(r.memory) || !r.memory[r.latest].holds(addr, n) {
		r.latest = max(0, sort.Search(len(r.memory), func(i int) bool { return r.memory[i].addr > addr })-1)
	}
	if r.latest < len(r.memory) && r.memory[r.latest].holds(addr, n) {
		return &r.memory[r.latest], nil
	}
	return nil, fmt.Errorf("mpi: rank %d: %d B at %#x are no memory that Alloc has returned", r.Rank(), n, addr)
}

func (m *region) holds(addr uint64, n int) bool {
	return addr >= m.addr && addr-m.addr <= m.length && uint64(n) <= m.length-(addr-m.addr)
}

// overhead is the time of giving an operation to the NIC that package runtime does not charge: appending an entry.
func (r *Rank) overhead() { r.p.Compute(r.p.Cluster().Profile().NIC.Overhead) }

func (r *Rank) newRequest() *Request {
	q := r.free.first
	if q == nil {
		q = &Request{id: uint32(len(r.requests))}
		r.requests = append(r.requests, q)
	} else {
		r.free.cut(q)
		*q = Request{id: q.id, slot: q.slot}
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
	_, err := r.region(v.Addr(), v.Len())
	return err
}

// Isend starts to send the bytes of v, which must be memory of Alloc and not change until the request is over.
func (r *Rank) Isend(v runtime.View, target int, tag uint32) (*Request, error) {
	n := v.Len()
	if target < 0 || target >= r.Size() || tag == AnyTag || n > min(maxMessage, int(r.ni.Limits().MaxMsgSize)) {
		return nil, fmt.Errorf("mpi: rank %d: send of %d B to %d with tag %d: expected at most %d B (limits.max_msg_size), a rank below %d, and no wildcard",
			r.Rank(), n, target, tag, min(maxMessage, int(r.ni.Limits().MaxMsgSize)), r.Size())
	}
	if err := r.own(v); err != nil {
		return nil, err
	}
	q := r.newRequest()
	q.addr, q.length = v.Addr(), n
	q.status = r.Upcoming(target, tag, n)
	r.sequence[target]++
	r.stats.Sent++
	r.stats.SentBytes += int64(n)
	if n > r.world.o.Eager {
		if err := r.expose(q, target); err != nil {
			return nil, err
		}
	}
	l, err := r.newLetter(q, target)
	if err != nil {
		return nil, err
	}
	return q, r.dispatch(l)
}

// put sends a message, or the announcement of a large one.
func (r *Rank) put(l *letter) error {
	md, local, n := l.md, uint64(0), len(l.data)
	if l.large {
		n = matching.AnnouncementSize + r.world.first
	}
	if !l.large || r.world.first == 0 {
		addr, err := r.place(l)
		if err != nil {
			return err
		}
		m, err := r.region(addr, n)
		if err != nil {
			return err
		}
		md, local = m.md, addr-m.addr
	}
	l.underway = true
	return r.ni.Put(md, local, uint64(n), portals.Ack, r.world.places[l.target], messagePT,
		matchBits(r.Rank(), l.status.Tag), 0, ptrLetter|uint64(l.id), headerData(l.status.Bytes, l.status.Sequence, l.large))
}

// place is where the bytes of a letter are: in the memory of its send, or, when that is over and has other bytes, in the letter's own.
func (r *Rank) place(l *letter) (addr uint64, err error) {
	switch {
	case l.large:
		return l.q.slot, nil
	case l.q != nil:
		return l.q.addr, nil
	}
	if l.own.Proc() == nil || l.own.Len() < len(l.data) {
		if l.own, err = r.alloc(len(l.data), portals.OptMDEventSendDisable); err != nil {
			return 0, err
		}
	}
	l.own.CopyFrom(l.data)
	return l.own.Addr(), nil
}

// expose lets the target get the data of a large message, and writes its announcement. GET says that all of it has left.
func (r *Rank) expose(q *Request, target int) error {
	r.exposed++
	r.overhead()
	_, err := r.ni.MEAppend(exposedPT, &portals.ME{
		Start: q.addr, Length: uint64(q.length), UID: portals.UIDAny, MatchID: r.world.places[target], MatchBits: r.exposed,
		Options: portals.OptMEOpGet | portals.OptMEUseOnce | portals.OptMEEventLinkDisable | portals.OptMEEventUnlinkDisable,
	}, portals.PriorityList, ptrRequest|uint64(q.id))
	if err != nil {
		return err
	}
	if err := r.announcement(q); err != nil {
		return err
	}
	if r.world.first == 0 {
		return nil
	}
	q.md, err = r.ni.MDBind(&portals.MD{EQ: r.eq, Options: portals.OptMDIOVec | portals.OptMDEventSendDisable, IOVec: []portals.IOVec{
		{Base: q.slot, Length: matching.AnnouncementSize}, {Base: q.addr, Length: uint64(r.world.first)},
	}})
	return err
}

// slotsAtOnce is for how many announcements memory is registered at a time.
const slotsAtOnce = 64

// announcement writes the announcement of a large message into the request's slot.
func (r *Rank) announcement(q *Request) error {
	if q.slot == 0 {
		if r.slots == r.slotsEnd {
			const n = slotsAtOnce * matching.AnnouncementSize
			v, err := r.alloc(n, portals.OptMDEventSendDisable)
			if err != nil {
				return err
			}
			r.slots, r.slotsEnd = v.Addr(), v.Addr()+n
		}
		q.slot = r.slots
		r.slots += matching.AnnouncementSize
	}
	v, err := r.p.View(q.slot, matching.AnnouncementSize)
	if err != nil {
		return err
	}
	b := v.Write()
	binary.LittleEndian.PutUint64(b, uint64(q.length))
	binary.LittleEndian.PutUint64(b[8:], r.exposed)
	return nil
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
	q.bits, q.ignore = criterion(source, tag)
	if err := r.form.post(q); err != nil {
		return nil, err
	}
	return q, r.advanced()
}
