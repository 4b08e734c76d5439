package nic

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// transmit is the first stage. It makes messages of operations, reads their
// data from host memory and cuts it into packets (sPIN'17 §4, LogGP).
type transmit struct {
	*env
	next       sender
	sent       uint64          // messages so far
	names      []interfaceName // of interfaces, side by side
	handlers   issuer
	interfaces []*Interface
	ready      []uint64 // a bit for each interface: it may have operations to send
	nodes      uint32   // in the network
	// messages to each node whose data has not all been read: later ones must
	// not overtake them
	behind  map[int32]int
	fetched int   // messages in behind, to all nodes
	unread  int64 // packets whose data could not be read

	// With a reliable transport:
	// messages whose end the transport will report, by number
	undelivered map[uint64]*outgoing
	answers     map[uint64]portals.Header // headers of such messages without an operation
	// by node: reports to it that an answer was undeliverable, which could not
	// be delivered either
	owed     map[int32][]portals.Header
	reason   func(target int32) string // why a message to a node was undeliverable
	fetching int64                     // bytes of messages in behind that have not been passed on
}

// sender takes packets, for transmit and for others that send a message without
// data.
type sender interface {
	send(p packet)
}

// issuer learns when handlers' requests end.
type issuer interface {
	// commandRead is called when the data of a handler's operation has been
	// read.
	commandRead(m *Memory)
	// answerThere lets the handler that waits for a reply continue.
	answerThere(cookie, bytes uint64, fail portals.FailType)
}

// outgoing is a message at its source until its data is at the NIC. If the
// transport reports the arrival, it lasts until then.
type outgoing struct {
	mark   poison.Mark
	access host.Access
	frame  *Frame
	op     *portals.Op
	iface  *Interface
	tries  int32            // attempts to read the present piece
	fail   portals.FailType // of reading the data
	single bool             // each packet is a separate message
	device bool             // the data comes from HPU memory
	// whose handler it is of, if it counts against the command queue until its data
	// has been read
	command   *Memory
	completes *pending // put: the message whose entry it completes
	packets   int
	mtu       int
	lost      loss // data that could not be read
}

// The events of transmit.
const (
	kindDrain sim.Kind = kindsOfTransmit + iota // a program has made an interface queue operations
	// piece, *outgoing: memory that was absent is read again
	kindAgain
	// The transport reports the end of a message. A: the message's number and,
	// in the lower failBits, portals.FailType. B: unacknowledged packets.
	kindEnded
	// node: a packet has come from a node that messages could not be delivered
	// to
	kindHeard
)

const failBits = 8

func (t *transmit) handle(e *sim.Event) {
	switch e.Kind {
	case kindDrain: // NIC.Handle does the work
	case kindAgain:
		o := e.P.(*outgoing)
		t.bus.Again(&o.access, int(e.A))
	case kindEnded:
		t.ended(e.A>>failBits, portals.FailType(e.A&(1<<failBits-1)), int(e.B))
	case kindHeard:
		t.heard(int32(e.A))
	default:
		unknown("transmit", e)
	}
}

// opQueued notes that an interface has an operation to send. If an event of the
// node is being handled, it is sent at the end of that event. Otherwise a
// program has queued it, and it is sent by another event at the same time.
func (t *transmit) opQueued(port *portals.Port) {
	t.ready[port.Index/64] |= 1 << (port.Index % 64)
	if !t.queued && !t.handling {
		t.post(t.now(), kindDrain, 0, nil)
	}
	t.queued = true
}

// drain takes the operations that the interfaces of the node have to send.
func (t *transmit) drain() {
	t.queued = false
	for w := range t.ready {
		for ahead := ^uint64(0); t.ready[w]&ahead != 0; {
			i := bits.TrailingZeros64(t.ready[w] & ahead)
			t.ready[w] &^= 1 << i
			ahead = ^uint64(0) << i << 1
			ni := t.interfaces[64*w+i]
			for op := ni.Port.NextOp(); op != nil; op = ni.Port.NextOp() {
				t.transmit(ni, op)
			}
		}
	}
}

// transmit starts an operation of an interface. An operation for a node that
// does not exist ends here.
func (t *transmit) transmit(ni *Interface, op *portals.Op) {
	if op.Header.Target.NID >= t.nodes {
		t.account.posted += int64(op.Length())
		t.unsent(nobody, int(op.Length()))
		t.reportSent(ni, op, portals.NIUndeliverable)
		return
	}
	t.start(t.prepare(ni, op, nil))
}

// reportSent writes the record of an operation's end at the sender to host memory.
func (t *transmit) reportSent(ni *Interface, op *portals.Op, fail portals.FailType) {
	t.writeRecord(ni, ni, 0, int(fail), op, nil, false)
}

// prepare makes the message of an operation. by is the request of the handler
// that has issued it, whose data it takes over; nil: it is the host's.
func (t *transmit) prepare(ni *Interface, op *portals.Op, by *issue) *outgoing {
	length, mtu := int(op.Length()), int(t.fabric.MTU)
	t.account.posted += int64(length)
	if atomic(op.Header.Kind) {
		mtu -= mtu % op.Header.Type.Size() // no element lies in two packets
	}
	o := t.core.outgoing()
	f := t.number(t.core.frameFor(length, mtu))
	o.frame = f
	switch {
	case by != nil && by.data != nil:
		if f.Data = by.data; by.page != nil {
			f.pages = append(f.pages, by.page)
		}
		by.data, by.page = nil, nil
	case ni.Space.Keeps() && op.Inline() == nil && min(length, mtu) >= host.PageLeast:
		f.pages = slices.Grow(f.pages, f.Packets)[:f.Packets]
		clear(f.pages)
	case length > 0:
		f.Data = t.core.buffer(length)
	}
	o.frame.Header, o.frame.cause = op.Header, op.Cause
	o.frame.Target, o.frame.tenant = int32(op.Header.Target.NID), ni.tenant()
	o.op, o.iface, o.packets, o.mtu = op, ni, o.frame.Packets, mtu
	t.trace.message(o.frame, op)
	return o
}

// number gives a new frame the next number of this node.
func (t *transmit) number(f *Frame) *Frame {
	t.sent++
	f.Source, f.Number = t.rank, t.sent
	return f
}

// start begins a message. Without data in host memory its packets are ready at
// once; otherwise they follow the DMA. A request of the host stays behind
// earlier requests to the same node (Portals 4.x §2.4).
func (t *transmit) start(o *outgoing) {
	f := o.frame
	if !o.op.Issued && f.Header.Kind <= portals.OpSwap && t.fetched > 0 && t.behind[f.Target] > 0 {
		t.fetch(o)
		return
	}
	device := o.device
	if f.Length == 0 {
		t.dataRead(o)
		t.next.send(packet{f, 0, device})
		return
	}
	if inline := o.op.Inline(); inline != nil {
		if !f.takes(inline) {
			copy(f.Data, inline)
		}
		t.dataRead(o)
		for i := range f.Packets {
			t.next.send(packet{f, i, device})
		}
		return
	}
	t.fetch(o)
}

// fetch puts a message behind earlier ones whose data is to be read. A message
// that carries its data only keeps its place there.
func (t *transmit) fetch(o *outgoing) {
	t.behind[o.frame.Target]++
	t.fetched++
	t.fetching += int64(o.frame.Length)
	a := &o.access
	fetched := o.op.Inline() == nil
	if fetched {
		a.Space = o.iface.Space
		if addr, n := o.Place(nil, 0); n == o.frame.Length {
			a.Addr = addr
		} else {
			a.Places = o
		}
	}
	a.Length, a.Piece, a.Order = o.frame.Length, o.frame.MTU, o.iface.lineOf(forRequests, o.frame.Target)
	if o.frame.Header.Kind == portals.OpReply {
		a.Order = o.iface.lineOf(forAnswers, o.frame.Target)
		t.core.used.AddIf(fetched, used.Ordered)
		if fetched && a.Length <= t.ordered {
			a.Among = o.iface.line(forArrivals, o.frame.Target)
		}
	}
	a.Client, a.Ref, a.Flow, a.Line = t, o, o.frame.Flow(), o.frame.tenant
	t.bus.Stream(a)
}

// Place returns where the payload of an operation lies; it implements
// host.Places.
func (o *outgoing) Place(_ *host.Access, off int) (addr uint64, n int) {
	it := o.op.Segments(uint64(off), uint64(o.frame.Length-off))
	addr, k, _ := it.Next()
	return addr, int(k)
}

// Reached implements host.Client; transmit makes no atomics.
func (t *transmit) Reached(*host.Access) {}

// Begun implements host.Client; transmit does not ask for it.
func (t *transmit) Begun(*host.Access) {}

// Ended implements host.Client: a piece of data is at the NIC.
func (t *transmit) Ended(a *host.Access, i int, s host.Status) {
	o := a.Ref.(*outgoing)
	switch {
	case s == host.OK:
		t.pieceRead(o, i)
	case s == host.Fault && !o.frame.Datagram && int(o.tries) < t.faultTries():
		o.tries++
		t.post(t.now()+t.spec.FaultPause, kindAgain, uint64(i), o)
	default:
		t.unreadable(o, i, s)
	}
}

// pieceRead sends packet i, whose data is at the NIC.
func (t *transmit) pieceRead(o *outgoing, i int) {
	f := o.frame
	o.tries = 0
	from, to := f.Span(i)
	t.fetching -= int64(to - from)
	if o.single {
		t.pieceAlone(o, i, from, to)
		return
	}
	if !t.load(o, i, from, to) {
		t.missing(o, i, loss{cause: noMemory})
	}
	last, device := i+1 == f.Packets, o.device
	if !f.Datagram || o.fail == portals.NIOK {
		t.next.send(packet{f, i, device})
	} else {
		t.unsent(unreadable, to-from)
	}
	if last {
		t.fetchedAll(o)
	}
}

// load reads the data of packet i from memory. It returns false if it cannot.
func (t *transmit) load(o *outgoing, i, from, to int) bool {
	f := o.frame
	switch {
	case f.takes(o.op.Inline()):
		return true
	case len(f.pages) == 0:
		return o.iface.Port.Read(o.op, uint64(from), f.Data[from:to])
	}
	var page *host.Page
	var ok bool
	if addr, n := o.Place(nil, from); n >= to-from {
		page, ok = o.iface.Space.Take(addr, uint64(to-from))
	} else {
		t.core.scratch = slices.Grow(t.core.scratch[:0], to-from)[:to-from]
		if ok = o.iface.Port.Read(o.op, uint64(from), t.core.scratch); ok {
			page = t.core.Slab.Keep(t.core.scratch)
		}
	}
	if f.pages[i] = page; ok {
		t.core.held.Add(1)
	}
	return ok
}

// missing notes that a message has no data from packet i on. The packets
// themselves tell the receiver, which does not use their data.
func (t *transmit) missing(o *outgoing, i int, why loss) {
	f := o.frame
	from, _ := f.Span(i)
	if f.Data != nil {
		clear(f.Data[from:])
	}
	if o.fail != portals.NIOK {
		return
	}
	o.fail = portals.NISegv
	f.Unread = f.Packets - i
	o.lost = why
	o.lost.at, o.lost.packets, o.lost.bytes = t.now(), f.Packets-i, uint64(f.Length-from)
	o.lost.address, _ = o.Place(nil, from)
	t.unread += int64(o.lost.packets)
	if f.Datagram {
		return
	}
	t.report.lost(t.env, &f.Header, &LostMessage{
		At: o.lost.at, Packets: o.lost.packets, Of: f.Packets, Bytes: o.lost.bytes, Length: uint64(f.Length), Cause: t.describe(&o.lost),
	})
}

// unreadable continues without memory that the bus refuses to read, from packet
// i to the end.
func (t *transmit) unreadable(o *outgoing, i int, s host.Status) {
	f := o.frame
	t.missing(o, i, loss{cause: unreadable, status: s, tries: int(o.tries)})
	t.bus.Drop(&o.access)
	device := o.device
	from, _ := f.Span(i)
	t.fetching -= int64(f.Length - from)
	if f.Datagram {
		t.unsent(unreadable, f.Length-from)
	}
	for ; i < f.Packets && !f.Datagram; i++ {
		t.next.send(packet{f, i, device})
	}
	t.fetchedAll(o)
}

// fetchedAll ends fetch: nothing waits for the message any more.
func (t *transmit) fetchedAll(o *outgoing) {
	t.behind[o.frame.Target]--
	t.fetched--
	t.dataRead(o)
}

// dataRead ends the use of the operation's memory: the initiator may reuse the
// buffer.
func (t *transmit) dataRead(o *outgoing) {
	if o.command != nil {
		t.handlers.commandRead(o.command)
	}
	if t.undelivered != nil && o.frame.Target != t.rank && !o.frame.Datagram {
		t.undelivered[o.frame.Number] = o
		return
	}
	f, unsent := o.frame, o.single || o.frame.Datagram && o.fail != portals.NIOK
	t.end(o)
	if unsent {
		t.core.releaseFrame(f)
	}
}

// ended handles the transport's report. Either all of a message has arrived, or
// its last left packets are not acknowledged and never will be.
func (t *transmit) ended(number uint64, fail portals.FailType, left int) {
	if h, is := t.answers[number]; is {
		delete(t.answers, number)
		if fail != portals.NIOK {
			node := int32(h.Target.NID)
			t.owed[node] = append(t.owed[node], h)
		}
		return
	}
	o := t.undelivered[number]
	if o == nil { // a datagram
		return
	}
	delete(t.undelivered, number)
	if fail == portals.NIOK {
		t.end(o)
		return
	}
	h, length := o.op.Header, o.op.Length()
	cause := t.reason(int32(h.Target.NID))
	t.report.undeliverable(t.env, &h, &LostMessage{
		At: t.now(), Number: number, Packets: left, Of: o.packets, Bytes: length - uint64(o.packets-left)*uint64(o.mtu), Length: length,
		Cause: cause, Brief: fmt.Sprintf("message %d of rank %d is undeliverable: %s", number, t.rank, cause),
	})
	if o.fail == portals.NIOK {
		o.fail = fail
	}
	t.end(o)
	if h.Kind == portals.OpAck || h.Kind == portals.OpReply { // its receiver waits for it
		h.Fail, h.MLength = fail, 0
		t.answer(&h)
	}
}

// heard sends the reports that a node is owed, now that it can be reached
// again.
func (t *transmit) heard(node int32) {
	owed := t.owed[node]
	delete(t.owed, node)
	for i := range owed {
		t.answer(&owed[i])
	}
}

// end reports the end of an operation to its initiator.
func (t *transmit) end(o *outgoing) {
	op, ni, fail, completes, bytes := o.op, o.iface, o.fail, o.completes, o.op.Length()-o.lost.bytes
	t.core.releaseOutgoing(o)
	if fail != portals.NIOK {
		if cookie := ni.Port.Cookie(op); cookie != 0 {
			t.handlers.answerThere(cookie, 0, fail)
		}
	}
	if completes != nil {
		if fail == portals.NIUndeliverable {
			bytes = 0
		}
		completes.operationEnded(bytes, fail)
	}
	if op.Header.Kind == portals.OpAck {
		ni.sent(op, portals.NIOK)
		return
	}
	t.reportSent(ni, op, fail)
}

// answer sends a header without data and without an operation of an interface.
func (t *transmit) answer(h *portals.Header) {
	f := t.number(t.core.frame(0, int(t.fabric.MTU)))
	f.Header, f.Target = *h, int32(h.Target.NID)
	if t.answers != nil && f.Target != t.rank {
		t.answers[f.Number] = *h
	}
	t.trace.answered(f)
	t.next.send(packet{f: f})
}

func atomic(k portals.OpKind) bool {
	return k == portals.OpAtomic || k == portals.OpFetchAtomic || k == portals.OpSwap
}
