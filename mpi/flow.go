package mpi

import (
	"slices"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// When the buffers of a rank are full its portal table entry is disabled (PTL_PT_FLOWCTRL): every message that comes then is refused,
// and its sender learns it from the acknowledgement. As Open MPI's MTL over Portals 4 does, senders keep what was refused, in
// order, and send it again when the receiver has room: each first waits until nothing of it is under way to the receiver, then
// says how many of its messages were refused; the receiver counts what it has refused, so it knows when nothing that could
// overtake is under way any more, enables the entry and calls the senders back. If all buffers still hold messages without a
// receive, it adds buffers: what MPI has accepted for sending may not depend on the order of receives.

// letter is a message, or the announcement of a large one, until it is acknowledged. The send of an eager message is over before
// that, and its memory may be used again: the letter has its bytes.
type letter struct {
	id       uint32
	q        *Request // whose message it is; nil when the send is over
	target   int
	status   Status
	large    bool
	data     []byte         // of an eager message
	md       portals.Handle // of an announcement that carries data
	own      runtime.View   // registered memory of the letter, to send the data again; the zero View: it has none yet
	underway bool
}

// newLetter makes the letter of a send. The library keeps an eager message, so its core reads it.
func (r *Rank) newLetter(q *Request, target int) (*letter, error) {
	var l *letter
	if n := len(r.paper); n > 0 {
		l, r.paper = r.paper[n-1], r.paper[:n-1]
	} else {
		l = &letter{id: uint32(len(r.letters))}
		r.letters = append(r.letters, l)
	}
	l.q, l.target, l.status, l.data, l.md, l.large = q, target, q.status, l.data[:0], q.md, q.length > r.world.o.Eager
	if l.large {
		return l, nil
	}
	v, err := r.p.View(q.addr, q.length)
	l.data = append(l.data, v.Read()...)
	return l, err
}

// flow is the sending to a rank that has refused a message.
type flow struct {
	target   int
	queue    []*letter // to be sent, in order: those that were refused and those that came later
	refused  int       // of them, those that the target does not know of yet
	underway int       // messages to the target without an acknowledgement
}

// Control messages have no bytes; their header data say what they are, and a number.
const (
	controlRefused  = iota // so many messages of mine were refused, and nothing of me is under way
	controlGo              // send them again
	controlShift    = 32
	controlAckBytes = 0
)

// flowTo returns the flow to a target, nil if all goes well.
func (r *Rank) flowTo(target int) *flow {
	for _, f := range r.flows {
		if f.target == target {
			return f
		}
	}
	return nil
}

// dispatch sends a message, or queues it behind those that were refused.
func (r *Rank) dispatch(l *letter) error {
	if f := r.flowTo(l.target); f != nil {
		f.queue = append(f.queue, l)
		return nil
	}
	return r.put(l)
}

// acknowledged acts on the acknowledgement of a message.
func (r *Rank) acknowledged(l *letter, refused bool) error {
	l.underway = false
	f := r.flowTo(l.target)
	if refused && f == nil {
		f = &flow{target: l.target}
		for _, other := range r.letters {
			if other.underway && other.target == l.target {
				f.underway++
			}
		}
		r.flows = append(r.flows, f)
	} else if f != nil {
		f.underway--
	}
	if refused {
		r.stats.Resent++
		f.refused++
		i, _ := slices.BinarySearchFunc(f.queue, l, func(a, b *letter) int { return int(int32(a.status.Sequence - b.status.Sequence)) })
		f.queue = slices.Insert(f.queue, i, l)
	} else if err := r.delivered(l); err != nil {
		return err
	}
	if f != nil && f.underway == 0 && f.refused > 0 {
		n := f.refused
		f.refused = 0
		return r.control(f.target, controlRefused, n)
	}
	return nil
}

// delivered takes back the letter of a message that its target has, or has the announcement of.
func (r *Rank) delivered(l *letter) error {
	l.q = nil
	r.paper = append(r.paper, l)
	if !l.large || r.world.first == 0 {
		return nil
	}
	return r.ni.MDRelease(l.md)
}

// read ends the send of an eager message, whose memory the NIC has read. The announcement of a large one ends nothing.
func (r *Rank) read(l *letter) {
	if q := l.q; q != nil && !l.large {
		l.q = nil
		r.complete(q)
	}
}

// control sends a control message.
func (r *Rank) control(target int, what, n int) error {
	return r.ni.Put(r.controls, 0, controlAckBytes, portals.NoAck, r.world.places[target], controlPT, 0, 0, 0,
		uint64(what)<<controlShift|uint64(n))
}

// controlled acts on a control message.
func (r *Rank) controlled(ev *portals.Event) error {
	source, n := r.world.at[ev.Initiator], int(uint32(ev.HdrData))
	if ev.HdrData>>controlShift == controlRefused {
		r.known += uint64(n)
		r.callers = append(r.callers, source)
		return nil
	}
	f := r.flowTo(source)
	r.flows = slices.DeleteFunc(r.flows, func(other *flow) bool { return other == f })
	for _, l := range f.queue {
		if err := r.dispatch(l); err != nil {
			return err
		}
	}
	return nil
}

// recover enables the entry again if everything that was refused is known, nothing can overtake it, and there is room. Without
// progress since it was enabled last there is none: the device's unexpected headers are used up, and only receives free them.
func (r *Rank) recover() error {
	all, err := r.allKnown()
	if !all || err != nil || r.progress == r.enabledAt {
		return err
	}
	if r.linked == 0 {
		if err := r.grow(); err != nil {
			return err
		}
		if all, err = r.allKnown(); !all || err != nil { // growing takes time
			return err
		}
	}
	r.disabled, r.enabledAt = false, r.progress
	if err := r.ni.PTEnable(messagePT); err != nil {
		return err
	}
	callers := r.callers
	r.callers = nil
	for _, rank := range callers {
		if err := r.control(rank, controlGo, 0); err != nil {
			return err
		}
	}
	return nil
}

// allKnown reports whether senders have told of all messages that were refused.
func (r *Rank) allKnown() (bool, error) {
	refused, err := r.ni.NIStatus(portals.SRDropCount)
	return refused == r.known, err
}

// grow adds as many buffers as there are, all of which are full.
func (r *Rank) grow() error {
	for range len(r.buffers) {
		if err := r.addBuffer(); err != nil {
			return err
		}
		r.overhead()
		r.stats.Grown++
	}
	return nil
}

// addBuffer makes a buffer and links it.
func (r *Rank) addBuffer() error {
	b := &buffer{index: len(r.buffers)}
	b.addr = r.p.Alloc(r.world.o.BufferBytes).Addr()
	r.buffers = append(r.buffers, b)
	return r.link(b)
}

// finish waits until all that was sent is acknowledged.
func (r *Rank) finish() error {
	for len(r.paper) < len(r.letters) {
		if err := r.step(); err != nil {
			return err
		}
	}
	return nil
}
