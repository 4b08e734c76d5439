package mpi

import (
	"slices"

	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// When the buffers of a rank are full its portal table entry is disabled
// (PTL_PT_FLOWCTRL): every message that comes then is refused, and its sender
// learns it from the acknowledgement. As Open MPI's MTL over Portals 4 does,
// senders keep what was refused, in order, and send it again when the receiver
// has room: each first waits until nothing of it is under way to the receiver,
// then says how many of its messages were refused; the receiver counts what it
// has refused, so it knows when nothing that could overtake is under way any
// more, enables the entry and calls the senders back. If all buffers still hold
// messages without a receive, it adds buffers: what MPI has accepted for
// sending may not depend on the order of receives.

// letter is a message, or the announcement of a large one, until it is
// acknowledged. The send of an eager message is over before that, and its
// memory may be used again: the letter has its bytes.
type letter struct {
	id     uint32
	q      *Request // whose message it is; nil when the send is over
	target int
	status Status
	env    envelope
	large  bool
	wait   bool           // the sender waits until it is received
	data   []byte         // of an eager message
	md     portals.Handle // of an announcement that carries data
	// registered memory of the letter, to send the data again; the zero View:
	// it has none yet
	own      runtime.View
	underway bool
}

// newLetter makes the letter of a send. The library keeps an eager message, so its core reads it.
func (t *overPortals) newLetter(q *Request) (*letter, error) {
	var l *letter
	if n := len(t.paper); n > 0 {
		l, t.paper = t.paper[n-1], t.paper[:n-1]
	} else {
		l = &letter{id: uint32(len(t.letters))}
		t.letters = append(t.letters, l)
	}
	l.q, l.target, l.status, l.env, l.data, l.large = q, q.peer, q.status, q.env, l.data[:0], q.length > t.c.o.Eager
	if l.large {
		l.md = t.sends[q.id].md
		return l, nil
	}
	v, err := t.r.p.View(q.addr, q.length)
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
	controlTaken           // your message of this number has a receive
	controlShift    = 32
	controlAckBytes = 0
)

// flowTo returns the flow to a target, nil if all goes well.
func (t *overPortals) flowTo(target int) *flow {
	for _, f := range t.flows {
		if f.target == target {
			return f
		}
	}
	return nil
}

// dispatch sends a message, or queues it behind those that were refused.
func (t *overPortals) dispatch(l *letter) error {
	if f := t.flowTo(l.target); f != nil {
		f.queue = append(f.queue, l)
		return nil
	}
	return t.put(l)
}

// acknowledged acts on the acknowledgement of a message.
func (t *overPortals) acknowledged(l *letter, refused bool) error {
	l.underway = false
	f := t.flowTo(l.target)
	if refused && f == nil {
		f = &flow{target: l.target}
		for _, other := range t.letters {
			if other.underway && other.target == l.target {
				f.underway++
			}
		}
		t.flows = append(t.flows, f)
	} else if f != nil {
		f.underway--
	}
	if refused {
		t.r.stats.Resent++
		f.refused++
		i, _ := slices.BinarySearchFunc(f.queue, l, func(a, b *letter) int { return int(int32(a.status.Sequence-b.status.Sequence) << 1) })
		f.queue = slices.Insert(f.queue, i, l)
	} else if err := t.delivered(l); err != nil {
		return err
	}
	if f != nil && f.underway == 0 && f.refused > 0 {
		n := f.refused
		f.refused = 0
		return t.control(f.target, controlRefused, n)
	}
	return nil
}

// delivered takes back the letter of a message that its target has, or has the announcement of.
func (t *overPortals) delivered(l *letter) error {
	l.q = nil
	t.paper = append(t.paper, l)
	if !l.large || t.c.first == 0 {
		return nil
	}
	return t.ni.Objects().MDRelease(l.md)
}

// read ends the send of an eager message, whose memory the NIC has read. The
// announcement of a large one ends nothing.
func (t *overPortals) read(l *letter) {
	if q := l.q; q != nil && !l.large {
		l.q = nil
		if !l.wait {
			t.r.complete(q)
		}
	}
}

// taken tells the sender of a message that waits for it that the message has a receive.
func (t *overPortals) taken(source int, data uint64) error {
	if data&matching.Large != 0 || data&synchronous == 0 {
		return nil
	}
	return t.control(source, controlTaken, int(data&sequenceMask))
}

// matched ends the synchronous send of a message to target.
func (t *overPortals) matched(target, sequence int) {
	i := slices.IndexFunc(t.waiting, func(q *Request) bool { return q.peer == target && int(q.status.Sequence) == sequence })
	q := t.waiting[i]
	t.waiting = slices.Delete(t.waiting, i, i+1)
	for _, l := range t.letters {
		if l.q == q {
			l.q = nil
		}
	}
	t.r.complete(q)
}

// control sends a control message.
func (t *overPortals) control(target int, what, n int) error {
	return t.ni.Put(portals.Put{MD: t.controls, Length: controlAckBytes, Target: t.r.world.places[target], PT: controlPT, HdrData: uint64(what)<<controlShift | uint64(n)})
}

// controlled acts on a control message.
func (t *overPortals) controlled(ev *portals.Event) error {
	source, n := t.r.world.at[ev.Initiator], int(uint32(ev.HdrData))
	switch ev.HdrData >> controlShift {
	case controlRefused:
		t.known += uint64(n)
		t.callers = append(t.callers, source)
		return nil
	case controlTaken:
		t.matched(source, n)
		return nil
	}
	f := t.flowTo(source)
	t.flows = slices.DeleteFunc(t.flows, func(other *flow) bool { return other == f })
	for _, l := range f.queue {
		if err := t.dispatch(l); err != nil {
			return err
		}
	}
	return nil
}

// recover enables the entry again if everything that was refused is known,
// nothing can overtake it, and there is room. Without progress since it was
// enabled last there is none: the device's unexpected headers are used up. The
// process then takes the messages off the device: a receive that would free a
// header may be one that the program posts only when a message has come that is
// refused.
func (t *overPortals) recover() error {
	all, err := t.allKnown()
	if !all || err != nil || t.unloading {
		return err
	}
	if t.progress == t.enabledAt {
		t.unloading = true
		some, err := t.form.unload()
		t.unloading = false
		if !some || err != nil {
			return err
		}
		t.progress++
		if all, err = t.allKnown(); !all || err != nil { // that takes time
			return err
		}
	}
	if t.linked == 0 {
		if err := t.grow(); err != nil {
			return err
		}
		if all, err = t.allKnown(); !all || err != nil { // growing takes time
			return err
		}
	}
	t.disabled, t.enabledAt = false, t.progress
	if err := t.ni.Objects().PTEnable(messagePT); err != nil {
		return err
	}
	callers := t.callers
	t.callers = nil
	for _, rank := range callers {
		if err := t.control(rank, controlGo, 0); err != nil {
			return err
		}
	}
	return nil
}

// allKnown reports whether senders have told of all messages that were refused.
func (t *overPortals) allKnown() (bool, error) {
	refused, err := t.ni.Objects().NIStatus(portals.SRDropCount)
	return refused == t.known, err
}

// grow adds as many buffers as there are, all of which are full.
func (t *overPortals) grow() error {
	for range len(t.buffers) {
		if err := t.addBuffer(); err != nil {
			return err
		}
		t.overhead()
		t.r.stats.Grown++
	}
	return nil
}

// addBuffer makes a buffer and links it.
func (t *overPortals) addBuffer() error {
	b := &buffer{index: len(t.buffers)}
	b.addr = t.r.p.Alloc(t.c.o.BufferBytes).Addr()
	t.buffers = append(t.buffers, b)
	return t.link(b)
}
