package mpi

import (
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
)

// form is what the forms of matching do differently.
type form interface {
	// post starts a receive.
	post(q *Request) error
	// arrived acts on a message: PUT or PUT_OVERFLOW.
	arrived(ev *portals.Event) error
	// unlinked and freed act on AUTO_UNLINK and AUTO_FREE of a buffer.
	unlinked(b *buffer) error
	freed(b *buffer) error
	// unload takes unexpected messages off the device, if it keeps them there,
	// and reports whether there were any.
	unload() (bool, error)
	// empty notes that unload has found no message.
	empty()
	// probe and await are those of a transport.
	probe(env envelope) (Status, bool, error)
	await() error
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
	unpackPT  = 3 // messages to oneself that handlers unpack; allocated with the first
)

// queueLength is more than the events that can be there at once; the queue grows as needed.
const queueLength = 1 << 28

// What the user pointer of an operation or an entry names, beside the index in the low 32 bits.
const (
	ptrRequest uint64 = iota << 32
	ptrBuffer
	ptrLetter
	ptrKept   // of the search for a message that the process is to keep
	ptrSearch // of a probe
	ptrUnpack // of a message to oneself
)

// portalsCarrier is what the transports over Portals have in common.
type portalsCarrier struct {
	o      Options
	module *handlers.Plan // of offloaded matching
	first  int            // bytes of a large message that travel with its announcement
}

// newPortalsCarrier loads what matching takes. With Offload it raises
// Options.Eager where announcements are longer.
func newPortalsCarrier(w *World) (carrier, error) {
	c := &portalsCarrier{o: w.o}
	if w.o.Matching != Offload {
		return c, nil
	}
	module, err := handlers.Must("matching").Load(w.c)
	if err != nil {
		return nil, err
	}
	if c.module, err = module.Plan(matching.Header, matching.Payload, ""); err != nil {
		return nil, err
	}
	// The announcement of a large message, with its first part, must fit where the shortest one does.
	w.o.Eager = max(w.o.Eager, matching.AnnouncementSize)
	c.o = w.o
	mtu := int(w.c.Profile().Fabric.MTU)
	if c.first = min(mtu, c.o.Eager+1) - matching.AnnouncementSize; c.first < 0 {
		return nil, fmt.Errorf("mpi: packets of %d B do not hold an announcement of %d B", mtu, matching.AnnouncementSize)
	}
	return c, nil
}

// overPortals is the transport over Portals.
type overPortals struct {
	r        *Rank
	c        *portalsCarrier
	ni       *runtime.NI
	eq       portals.Handle
	form     form
	memory   []region // registered, by address
	latest   int      // the region used last
	slots    uint64   // unused memory for announcements
	slotsEnd uint64
	sends    []announced // by request
	exposed  uint64      // tags given to large messages
	buffers  []*buffer
	linked   int            // of them, those whose entries are linked
	controls portals.Handle // descriptor of control messages
	letters  []*letter
	paper    []*letter      // of them, those to be used again
	flows    []*flow        // to ranks that have refused a message
	waiting  []*Request     // synchronous sends of eager messages
	count    portals.Handle // Offload: of messages that came into buffers
	counted  uint64         // of them, those that were there at the last probe
	found    Status         // by the search that probe has asked for
	isThere  bool           // it has found one
	searched bool           // it is over
	event    portals.Event  // that step acts on

	unpackers unpackers // Offload

	// Of the own portal table entry, see flow.go.
	disabled  bool
	known     uint64 // messages that it has refused, as their senders say
	callers   []int  // those senders, to be called back
	unloading bool   // the process takes messages off the device
	progress  uint64 // counts what may make room
	enabledAt uint64 // progress when it was enabled last
}

// announced is what the announcement of a large message needs; the memory is
// used again with its request.
type announced struct {
	slot uint64         // registered memory; 0: none yet
	md   portals.Handle // of an announcement with a first part
}

func (c *portalsCarrier) attach(r *Rank) (transport, error) {
	t := &overPortals{r: r, c: c, ni: r.p.NI()}
	var err error
	if t.eq, err = t.ni.Objects().EQAlloc(queueLength); err != nil {
		return nil, err
	}
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

func (t *overPortals) alloc(n int) (runtime.View, error) { return t.register(n, 0) }

// register allocates memory with a descriptor.
func (t *overPortals) register(n int, o portals.MDOptions) (runtime.View, error) {
	v := t.r.p.Alloc(n)
	md, err := t.ni.Objects().MDBind(&portals.MD{Start: v.Addr(), Length: uint64(n), EQ: t.eq, Options: o})
	if err != nil {
		return runtime.View{}, err
	}
	t.memory = append(t.memory, region{v.Addr(), uint64(n), md}) // addresses ascend
	return v, nil
}

// region returns the registered memory that holds n bytes at addr.
func (t *overPortals) region(addr uint64, n int) (*region, error) {
	if t.latest >= len(t.memory) || !t.memory[t.latest].holds(addr, n) {
		t.latest = max(0, sort.Search(len(t.memory), func(i int) bool { return t.memory[i].addr > addr })-1)
	}
	if t.latest < len(t.memory) && t.memory[t.latest].holds(addr, n) {
		return &t.memory[t.latest], nil
	}
	return nil, fmt.Errorf("mpi: rank %d: %d B at %#x are no memory that Alloc has returned", t.r.rank, n, addr)
}

func (m *region) holds(addr uint64, n int) bool {
	return addr >= m.addr && addr-m.addr <= m.length && uint64(n) <= m.length-(addr-m.addr)
}

func (t *overPortals) own(v runtime.View) error {
	_, err := t.region(v.Addr(), v.Len())
	return err
}

func (t *overPortals) limit() int { return int(min(maxMessage, t.ni.Objects().Limits().MaxMsgSize)) }

func (t *overPortals) ready() bool { return t.ni.Objects().EQLen(t.eq) > 0 || t.r.computed() }

func (t *overPortals) quiet() bool { return len(t.paper) == len(t.letters) }

// ended and leave have nothing to do: what a rank has of others stays with its process.
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

// send lets the target get a large message, and sends the bytes of any other.
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

// overhead is the time of giving an operation to the NIC that package runtime
// does not charge: appending an entry.
func (t *overPortals) overhead() { t.r.p.Compute(t.r.p.Cluster().Profile().NIC.Overhead) }

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
		m, err := t.region(addr, n)
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

// place is where the bytes of a letter are: in the memory of its send, or, when
// that is over and has other bytes, in the letter's own.
func (t *overPortals) place(l *letter) (addr uint64, err error) {
	switch {
	case l.large:
		return t.sends[l.q.id].slot, nil
	case l.q != nil:
		return l.q.addr, nil
	}
	if l.own.Proc() == nil || l.own.Len() < len(l.data) {
		if l.own, err = t.register(len(l.data), portals.OptMDEventSendDisable); err != nil {
			return 0, err
		}
	}
	l.own.CopyFrom(l.data)
	return l.own.Addr(), nil
}

// expose lets the target get the data of a large message, and writes its
// announcement. GET says that all of it has left.
func (t *overPortals) expose(q *Request) error {
	t.exposed++
	t.overhead()
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

// slotsAtOnce is for how many announcements memory is registered at a time.
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
			v, err := t.register(n, portals.OptMDEventSendDisable)
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
