package mpi

import (
	"slices"

	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// When the buffers of a rank are full, its portal table entry is disabled
// (PTL_PT_FLOWCTRL). Every message that arrives then is refused, and its sender
// learns this from the acknowledgement. As in Open MPI's MTL over Portals 4,
// senders keep the refused messages, in order, and send them again when the
// receiver has room:
//
//   - Each sender first waits until none of its messages to the receiver is
//     under way. It then sends the number of its messages that were refused.
//   - The receiver counts what it refuses. When the numbers of the senders add
//     up to its count, no message can overtake another. The receiver enables the
//     entry and calls the senders back.
//
// If all buffers still hold messages without a receive, the receiver adds
// buffers: MPI must not make a send that it has accepted depend on the order of
// receives.

// letter is a message, or the announcement of a large one, until its
// acknowledgement. The send of an eager message completes earlier, and the
// program may then reuse its memory. So the letter has a copy of the bytes.
type letter struct {
	id     uint32
	q      *Request // the send; nil when it is complete
	target int
	status Status
	env    envelope
	large  bool
	wait   bool           // the sender waits until the message is received
	data   []byte         // bytes of an eager message
	md     portals.Handle // for an announcement that carries data
	// registered memory, to send the data again; the zero View: none yet
	own      runtime.View
	underway bool
}

// newLetter makes the letter of a send. The library copies an eager message, so
// the core reads its bytes.
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
	l.data = slices.Grow(l.data, v.Len())[:v.Len()]
	v.CopyTo(l.data)
	return l, err
}

// flow is the state for a target that has refused a message.
type flow struct {
	target   int
	queue    []*letter // to send, in order: refused messages and later ones
	refused  int       // refused messages the target has not been told of
	underway int       // messages to the target without acknowledgement
}

// Control messages have no bytes. The header data hold a code and a number.
const (
	controlRefused  = iota // number of refused messages; none of the sender's is under way
	controlGo              // send the refused messages again
	controlTaken           // the message of this number has a receive
	controlShift    = 32
	controlAckBytes = 0
)

// flows are those that refused messages wait in.
type flows []*flow

// to returns the flow to a target; nil: it has refused nothing.
func (s flows) to(target int) *flow {
	for _, f := range s {
		if f.target == target {
			return f
		}
	}
	return nil
}

// dispatch sends a message, or queues it behind refused ones.
func (t *overPortals) dispatch(l *letter) error {
	if f := t.flows.to(l.target); f != nil {
		f.queue = append(f.queue, l)
		return nil
	}
	return t.put(l)
}

func (t *overPortals) acknowledged(l *letter, refused bool) error {
	l.underway = false
	f := t.flows.to(l.target)
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

// delivered takes the letter back when its target has the message or
// announcement.
func (t *overPortals) delivered(l *letter) error {
	l.q = nil
	t.paper = append(t.paper, l)
	if !l.large || t.c.first == 0 {
		return nil
	}
	return t.ni.Objects().MDRelease(l.md)
}

// read completes the send of an eager message when the NIC has read its memory.
// For the announcement of a large message it does nothing.
func (t *overPortals) read(l *letter) {
	if q := l.q; q != nil && !l.large {
		l.q = nil
		if !l.wait {
			t.r.complete(q)
		}
	}
}

// taken reports to a sender that waits that its message has a receive.
func (t *overPortals) taken(source int, data uint64) error {
	if data&matching.Large != 0 || data&synchronous == 0 {
		return nil
	}
	return t.control(source, controlTaken, int(data&sequenceMask))
}

// matched completes the synchronous send of a message to target.
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

func (t *overPortals) control(target int, what, n int) error {
	return t.ni.Put(portals.Put{MD: t.controls, Length: controlAckBytes, Target: t.r.world.places[target], PT: controlPT, HdrData: uint64(what)<<controlShift | uint64(n)})
}

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
	f := t.flows.to(source)
	t.flows = slices.DeleteFunc(t.flows, func(other *flow) bool { return other == f })
	for _, l := range f.queue {
		if err := t.dispatch(l); err != nil {
			return err
		}
	}
	return nil
}

// recover enables the entry again when all refused messages are known, nothing
// can overtake them, and there is room.
//
// If nothing has made room since the entry was last enabled, the device has no
// unexpected headers left. The process then takes the messages off the device.
// It cannot wait for a receive to free a header: the program may post that
// receive only after a message that is now refused.
func (t *overPortals) recover() error {
	all, err := allKnown(t)
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
		if all, err = allKnown(t); !all || err != nil { // unload takes time
			return err
		}
	}
	if t.linked == 0 {
		if err := t.grow(); err != nil {
			return err
		}
		if all, err = allKnown(t); !all || err != nil { // grow takes time
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

// allKnown reports whether senders have reported all refused messages.
func allKnown(t *overPortals) (bool, error) {
	refused, err := t.ni.Objects().NIStatus(portals.SRDropCount)
	return refused == t.known, err
}

// grow doubles the number of buffers; all of them are full.
func (t *overPortals) grow() error {
	for range len(t.buffers) {
		if err := t.addBuffer(); err != nil {
			return err
		}
		overhead(t.r.p)
		t.r.stats.Grown++
	}
	return nil
}

func (t *overPortals) addBuffer() error {
	b := &buffer{index: len(t.buffers)}
	b.addr = t.r.p.Alloc(t.c.o.BufferBytes).Addr()
	t.buffers = append(t.buffers, b)
	return t.link(b)
}
