package mpi

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// form is one of the forms of matching.
type form interface {
	// post starts a receive.
	post(q *Request) error
	// cancel does the work of transport's cancel.
	cancel(q *Request) (bool, error)
	// arrived handles a message: PUT or PUT_OVERFLOW.
	arrived(ev *portals.Event) error
	// unlinked and freed handle AUTO_UNLINK and AUTO_FREE of a buffer.
	unlinked(b *buffer) error
	freed(b *buffer) error
	// unload takes unexpected messages off the device, if the form keeps them
	// there, and reports whether there were any.
	unload() (bool, error)
	// empty notes that the search of unload found no message.
	empty()
	// probe and await do the work of transport's probe and awaitProbe.
	probe(env envelope) (Status, bool, error)
	await() error
}

// buffer receives messages that have no place yet.
type buffer struct {
	index int
	addr  uint64
	held  int  // messages in it that are not received yet
	full  bool // its entry is unlinked
}

// Portal table indices.
const (
	messagePT = 0 // messages and announcements
	exposedPT = 1 // the data of large messages
	controlPT = 2 // control messages, which need no buffer
	unpackPT  = 3 // messages to oneself that handlers unpack; allocated at first use
)

// queueLength is more than the events that can wait at once; the queue grows as
// needed.
const queueLength = 1 << 28

// A user pointer has one of these kinds, and an index in the low 32 bits.
const (
	ptrRequest uint64 = iota << 32
	ptrBuffer
	ptrLetter
	ptrKept   // search for a message that the process will keep
	ptrSearch // search of a probe
	ptrUnpack // message to oneself
)

// portalsCarrier is the state that all transports over Portals share.
type portalsCarrier struct {
	o      Options
	module *handlers.Plan // the handlers of offloaded matching
	first  int            // bytes of a large message in its announcement
}

// newPortalsCarrier loads the handlers of matching. With Offload it raises
// Options.Eager to the length of an announcement if it is less.
func newPortalsCarrier(w *World) (carrier, error) {
	c := &portalsCarrier{o: w.o}
	if w.o.Matching != Offload {
		return c, nil
	}
	module, err := matching.ReceiverSlot.Load(w.c)
	if err != nil {
		return nil, err
	}
	if c.module, err = module.Plan(matching.Header, matching.Payload, ""); err != nil {
		return nil, err
	}
	// The announcement, with its first part, must not be longer than the
	// shortest large message, Eager+1 bytes: it goes where that message would
	// go.
	w.o.Eager = max(w.o.Eager, matching.AnnouncementSize)
	c.o = w.o
	mtu := int(w.c.Profile().Fabric.MTU)
	if c.first = min(mtu, c.o.Eager+1) - matching.AnnouncementSize; c.first < 0 {
		return nil, fmt.Errorf("mpi: packets of %d B do not hold an announcement of %d B", mtu, matching.AnnouncementSize)
	}
	return c, nil
}

type overPortals struct {
	r        *Rank
	c        *portalsCarrier
	ni       *runtime.NI
	eq       portals.Handle
	form     form
	memory   registry
	slots    uint64 // unused memory for announcements
	slotsEnd uint64
	sends    []announced // by request
	exposed  uint64      // large messages exposed; gives them their tags
	buffers  []*buffer
	linked   int            // buffers whose entries are linked
	controls portals.Handle // descriptor of control messages
	letters  []*letter
	paper    []*letter      // letters to use again
	flows    flows          // to targets that have refused a message
	waiting  []*Request     // synchronous sends of eager messages
	count    portals.Handle // Offload: counts messages that came into buffers
	counted  uint64         // value of count at the last probe
	found    Status         // result of the search of a probe
	isThere  bool           // the search has found a message
	searched bool           // the search is over
	event    portals.Event  // the event that step handles

	unpackers unpackers // Offload

	// State of the rank's own portal table entry; see flow.go.
	disabled  bool
	known     uint64 // refused messages that senders have reported
	callers   []int  // senders to call back
	unloading bool   // the process takes messages off the device
	progress  uint64 // counts events that may make room
	enabledAt uint64 // progress when the entry was last enabled
}

// announced is the memory for the announcement of a large message. The next use
// of the same request takes it again.
type announced struct {
	slot uint64         // registered memory; 0: none yet
	md   portals.Handle // for an announcement with a first part
}

func (c *portalsCarrier) attach(r *Rank) (transport, error) {
	t := &overPortals{r: r, c: c, ni: r.p.NI(), memory: registry{p: r.p, rank: r.rank}}
	var err error
	if t.eq, err = t.ni.Objects().EQAlloc(queueLength); err != nil {
		return nil, err
	}
	t.memory.eq = t.eq
	t.ni.Objects().Label(t.eq, "messages")
	for pt, options := range []portals.PTOptions{messagePT: portals.OptPTFlowCtrl, exposedPT: 0, controlPT: 0} {
		if _, err := t.ni.Objects().PTAlloc(options, t.eq, uint32(pt)); err != nil {
			return nil, err
		}
	}
	if _, err := t.ni.MEAppend(controlPT, &portals.ME{
		UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
	}, portals.PriorityList, 0); err != nil {
		return nil, err
	}
	if t.controls, err = t.ni.Objects().MDBind(&portals.MD{}); err != nil {
		return nil, err
	}
	t.count = portals.CTNone
	if c.o.Matching == Offload {
		if t.count, err = t.ni.Objects().CTAlloc(); err != nil {
			return nil, err
		}
		t.form, err = newOffload(t)
	} else {
		t.form = newHostForm(t)
	}
	if err != nil {
		return nil, err
	}
	for range r.world.buffers(r.rank) {
		if err := t.addBuffer(); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (t *overPortals) usable() memory { return &t.memory }

func (t *overPortals) limit() int { return int(min(maxMessage, t.ni.Objects().Limits().MaxMsgSize)) }

func (t *overPortals) ready() bool { return t.ni.Objects().EQLen(t.eq) > 0 || t.r.modules.computed() }

func (t *overPortals) quiet() bool { return len(t.paper) == len(t.letters) }

// ended and leave do nothing: a rank's Portals objects stay with its process.
func (t *overPortals) ended() error { return nil }

func (t *overPortals) leave() error { return nil }

func (t *overPortals) lost() error {
	dropped, err := t.ni.Objects().NIStatus(portals.SRDropCount)
	if err != nil {
		return err
	}
	if dropped -= t.known; dropped > 0 || t.disabled {
		return fmt.Errorf("mpi: rank %d refused %d messages for good: its program has ended, and its %d buffers of %d B are full of messages that it has not received",
			t.r.rank, dropped+uint64(len(t.callers)), len(t.buffers), t.c.o.BufferBytes)
	}
	return nil
}

// send exposes a large message for the target to get, and sends the bytes of
// any other message.
func (t *overPortals) send(q *Request) error {
	if q.length > t.c.o.Eager {
		if err := t.expose(q); err != nil {
			return err
		}
	}
	l, err := t.newLetter(q)
	if err != nil {
		return err
	}
	if l.wait = q.synchronous && !l.large; l.wait {
		t.waiting = append(t.waiting, q)
	}
	return t.dispatch(l)
}

func (t *overPortals) probe(env envelope) (Status, bool, error) { return t.form.probe(env) }

func (t *overPortals) awaitProbe() error { return t.form.await() }

func (t *overPortals) receive(q *Request) error {
	if err := t.form.post(q); err != nil {
		return err
	}
	return t.advanced()
}

func (t *overPortals) cancel(q *Request) (bool, error) { return t.form.cancel(q) }

// overhead charges the time to give the NIC an operation that package runtime
// does not charge: appending an entry.
func overhead(p *runtime.Proc) { p.Compute(p.Reads(used.Post).NIC.Overhead) }

// put sends a message, or the announcement of a large one.
func (t *overPortals) put(l *letter) error {
	md, local, n := l.md, uint64(0), len(l.data)
	if l.large {
		n = matching.AnnouncementSize + t.c.first
	}
	if !l.large || t.c.first == 0 {
		addr, err := t.place(l)
		if err != nil {
			return err
		}
		m, err := t.memory.region(addr, n)
		if err != nil {
			return err
		}
		md, local = m.md, addr-m.addr
	}
	l.underway = true
	return t.ni.Put(portals.Put{
		MD: md, Offset: local, Length: uint64(n), Ack: portals.Ack, Target: t.r.world.places[l.target], PT: messagePT,
		MatchBits: matchBits(l.env), UserPtr: ptrLetter | uint64(l.id), HdrData: headerData(l.status.Bytes, l.status.Sequence, l.large, l.wait),
	})
}

// place returns the address of a letter's bytes. They are in the memory of its
// send. When the send is complete, and the memory may have other bytes, they
// are in the letter's own memory.
func (t *overPortals) place(l *letter) (addr uint64, err error) {
	switch {
	case l.large:
		return t.sends[l.q.id].slot, nil
	case l.q != nil:
		return l.q.addr, nil
	}
	if l.own.Proc() == nil || l.own.Len() < len(l.data) {
		if l.own, err = t.memory.register(len(l.data), portals.OptMDEventSendDisable); err != nil {
			return 0, err
		}
	}
	l.own.CopyFrom(l.data)
	return l.own.Addr(), nil
}

// expose lets the target get the data of a large message, and writes its
// announcement. The GET event means that all data has left.
func (t *overPortals) expose(q *Request) error {
	t.exposed++
	overhead(t.r.p)
	_, err := t.ni.MEAppend(exposedPT, &portals.ME{
		Start: q.addr, Length: uint64(q.length), UID: portals.UIDAny, MatchID: t.r.world.places[q.peer], MatchBits: t.exposed,
		Options: portals.OptMEOpGet | portals.OptMEUseOnce | portals.OptMEEventLinkDisable | portals.OptMEEventUnlinkDisable,
	}, portals.PriorityList, ptrRequest|uint64(q.id))
	if err != nil {
		return err
	}
	a, err := t.announce(q)
	if err != nil || t.c.first == 0 {
		return err
	}
	a.md, err = t.ni.Objects().MDBind(&portals.MD{EQ: t.eq, Options: portals.OptMDIOVec | portals.OptMDEventSendDisable, IOVec: []portals.IOVec{
		{Base: a.slot, Length: matching.AnnouncementSize}, {Base: q.addr, Length: uint64(t.c.first)},
	}})
	return err
}

// slotsAtOnce is the number of announcements for which memory is registered at
// a time.
const slotsAtOnce = 64

// announce writes the announcement of a large message into the memory of its request.
func (t *overPortals) announce(q *Request) (*announced, error) {
	if n := int(q.id) + 1 - len(t.sends); n > 0 {
		t.sends = append(t.sends, make([]announced, n)...)
	}
	a := &t.sends[q.id]
	if a.slot == 0 {
		if t.slots == t.slotsEnd {
			const n = slotsAtOnce * matching.AnnouncementSize
			v, err := t.memory.register(n, portals.OptMDEventSendDisable)
			if err != nil {
				return nil, err
			}
			t.slots, t.slotsEnd = v.Addr(), v.Addr()+n
		}
		a.slot = t.slots
		t.slots += matching.AnnouncementSize
	}
	v, err := t.r.p.View(a.slot, matching.AnnouncementSize)
	if err != nil {
		return nil, err
	}
	b := v.Write()
	binary.LittleEndian.PutUint64(b, uint64(q.length))
	binary.LittleEndian.PutUint64(b[8:], t.exposed)
	return a, nil
}
