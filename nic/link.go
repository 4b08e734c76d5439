package nic

import (
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// link is a NIC's end of the wire. Packets leave when the fabric takes them,
// and arriving packets go up. Without a transport above, link is the transport
// of a lossless network (transport.kind none). If packets are lost all the
// same, the fabric counts them and names them at the end of the run.
type link struct {
	*env
	port    fabric.Port
	next    arrivals
	sent    int64
	arrived int64
	// in a network with faults, by source: the packets that have arrived; nil:
	// no packet comes twice
	known     map[int32]*arrivedOf
	numbers   map[int32]uint64 // in such a network, by target: messages sent
	transport transport        // nil: kind none
	classes   bool             // buffers are bounded, so answers have their own class
	// packets have gone to the same node, to others
	looped, wired bool
	device        int32                           // packets from HPU memory that are not on the wire
	waiting       [fabric.Classes]ring[departure] // packets that the fabric does not take yet
	room          egress
	turning       sim.Time     // the path to the same node is taken until this time
	turns         *egressTurns // nil: packets go in the order in which they come
}

// arrivals takes packets that have arrived.
type arrivals interface {
	// packetArrived takes packet i. damaged means that the check of its payload
	// has failed.
	packetArrived(f *Frame, i int, damaged bool)
	// abandoned ends all incomplete messages of a node. A transport that calls it
	// passes on the packets of each node in the order of sending.
	abandoned(source int32)
}

// transport handles the packets that it has made itself, with its own Ref.
type transport interface {
	// arrived takes such a packet.
	arrived(p fabric.Packet)
	// leaves reports whether a packet that has waited for the fabric must still
	// be sent.
	leaves(ref any) bool
	// onWire is called at the turn on the wire of a packet that asked for it.
	onWire(ref any)
}

// egress learns when a packet from HPU memory has left.
type egress interface {
	egressSpace()
}

// departure is a packet on its way out.
type departure struct {
	ref    any // *Frame, or a reference of the transport
	target int32
	bytes  int32
	seq    uint32
	class  fabric.Class
	path   uint16
	marked bool        // the transport reports a mark
	limit  fabric.Pace // with fabric.rates: see fabric.Packet
	pace   fabric.Pace // likewise
	tenant uint16
	inner  bool // not the first packet of its message
	device bool // it counts against the egress limit of handlers
	notify bool // the transport wants to know its turn on the wire
	repeat bool // handlers send it again if it is lost
}

// The events of link.
const (
	kindLoopback sim.Kind = kindsOfLink + iota // packet, *Frame: a packet to the same node arrives
	// handlers that wait for room in the egress may continue
	kindEgressSpace
	kindTurned // the path to the same node is free for the next tenant
)

func (l *link) handle(e *sim.Event) {
	switch e.Kind {
	case fabric.KindArrive:
		p := fabric.Unpack(e)
		l.port.Release(p)
		l.arrive(p)
	case fabric.KindReady:
		if l.turns != nil {
			l.turns.serve(l, wire)
			return
		}
		l.inject(fabric.Class(e.A))
	case fabric.KindSent:
		if l.turns != nil {
			l.turns.begins(l, e.P)
		} else if _, plain := e.P.(*Frame); plain {
			l.onWire(0)
		} else {
			l.transport.onWire(e.P)
		}
	case kindTurned:
		l.turns.turned(l)
	case kindLoopback:
		l.arrived++
		f, i := e.P.(*Frame), int(e.A)
		from, to := f.Span(i)
		l.account.takes(to - from)
		l.next.packetArrived(f, i, false)
	case kindEgressSpace:
		l.room.egressSpace()
	case fabric.KindCorrupt: // the check fails; the fabric counts it as a loss
		p := fabric.Unpack(e)
		l.port.Release(p)
		l.account.takes(int(p.Bytes))
		if f, plain := p.Ref.(*Frame); plain && f.Datagram {
			l.arrived++
			l.next.packetArrived(f, int(p.Seq), true)
			return
		}
		l.account.again += int64(p.Bytes)
	default:
		unknown("link", e)
	}
}

func (l *link) arrive(p fabric.Packet) {
	l.account.takes(int(p.Bytes))
	f, plain := p.Ref.(*Frame)
	if !plain {
		l.arrived++
		l.transport.arrived(p)
		return
	}
	if l.known == nil || f.Datagram || l.firstTime(f, int(p.Seq)) {
		l.arrived++
		l.next.packetArrived(f, int(p.Seq), false)
		return
	}
	l.account.again += int64(p.Bytes)
}

// firstTime notes that a packet has arrived. It reports whether this is the
// first time.
func (l *link) firstTime(f *Frame, i int) bool {
	k := l.known[f.Source]
	if k == nil {
		k = &arrivedOf{}
		l.known[f.Source] = k
	}
	return k.firstTime(f.Nth, i, f.Packets)
}

// send sends a packet whose data is at the NIC, behind the packets that the
// fabric does not take yet.
func (l *link) send(p packet) {
	l.trace.ready(p.f, p.i)
	if l.numbers != nil && p.i == 0 && !p.f.Datagram {
		l.numbers[p.f.Target]++
		p.f.Nth = l.numbers[p.f.Target]
	}
	from, to := p.f.Span(p.i)
	d := departure{
		ref: p.f, target: p.f.Target, bytes: int32(to - from), seq: uint32(p.i), class: l.classOf(p.f.Header.Kind),
		tenant: p.f.tenant, inner: p.i > 0, device: p.device, repeat: p.f.Datagram,
	}
	l.enqueue(&d)
}

// classOf is the class of a message's packets. Without bounded buffers, all
// packets have one class, which keeps them in the order of sending.
func (l *link) classOf(k portals.OpKind) fabric.Class {
	if l.classes && (k == portals.OpAck || k == portals.OpReply) {
		return fabric.Answers
	}
	return fabric.Requests
}

func (l *link) depart(d departure) { l.enqueue(&d) }

func (l *link) enqueue(d *departure) {
	if d.device {
		l.hold(d.tenant, 1)
	}
	if l.turns != nil {
		l.turns.enqueue(l, d)
		return
	}
	w := &l.waiting[d.class]
	if w.len() == 0 && (d.target == l.rank || l.port.Ready(d.class)) {
		l.launch(d)
		return
	}
	w.push(*d)
}

// inject sends the waiting packets of a class until the fabric takes no more,
// and asks to be called again for the others.
func (l *link) inject(c fabric.Class) {
	if c == fabric.Requests && l.waiting[fabric.Answers].len() > 0 {
		l.inject(fabric.Answers)
	}
	w := &l.waiting[c]
	for w.len() > 0 {
		if w.front().target != l.rank && !l.port.Ready(c) {
			return
		}
		d := w.pop()
		l.launch(&d)
	}
}

// launch puts a packet on the wire, at the gap g behind the packet before. A
// packet for this node is turned round. sent is false for one that the transport
// does not want any more.
func (l *link) launch(d *departure) (sent bool) {
	if l.transport != nil && !l.transport.leaves(d.ref) {
		if d.device {
			l.hold(d.tenant, -1)
			l.post(l.now(), kindEgressSpace, 0, nil)
		}
		return false
	}
	l.sent++
	l.account.gives(int(d.bytes))
	if l.transport == nil || d.target == l.rank {
		l.account.sent += int64(d.bytes)
	}
	if d.target == l.rank {
		l.looped = true
		l.post(l.turned(d), kindLoopback, uint64(d.seq), d.ref)
		if d.device {
			l.hold(d.tenant, -1)
			l.post(l.now(), kindEgressSpace, 0, nil)
		}
		return true
	}
	l.wired = true
	// A packet needs no event at its departure if its place matters to no other
	// packet.
	notify := d.notify || d.device && l.spec.EgressPackets < maxEgress || l.turns != nil
	l.port.Send(fabric.Packet{
		Src: l.rank, Dst: d.target, Bytes: d.bytes, Seq: d.seq, Class: d.class, Inner: d.inner, Notify: notify, Repeated: d.repeat,
		Path: d.path, Marked: d.marked, Limit: d.limit, Pace: d.pace, Ref: d.ref,
	})
	if d.device && !notify {
		l.device--
	}
	return true
}

// turned is the time when a packet to the same node arrives there. Packets take
// the path one after the other. A program's message of one packet to its own
// process does not take it: the message stands for stores into the interface's
// registers.
func (l *link) turned(d *departure) sim.Time {
	s := l.spec
	at, rate := l.now()+s.Loopback, l.loopbackRate()
	if rate.IsZero() {
		return at
	}
	if f, plain := d.ref.(*Frame); plain && f.Packets == 1 && !d.device && !d.repeat && f.Header.Initiator == f.Header.Target {
		return at
	}
	l.turning = max(l.now(), l.turning) + rate.Time(int64(d.bytes)+int64(l.fabric.Header))
	return l.turning + s.Loopback + s.LoopbackWire
}

// onWire frees the egress place of a packet from HPU memory at its turn on the
// wire.
func (l *link) onWire(tenant uint16) {
	l.hold(tenant, -1)
	l.room.egressSpace()
}

// hold adds n (or removes -n) packets of a tenant from HPU memory that wait for the
// wire, here or at the transport.
func (l *link) hold(tenant uint16, n int) {
	if l.device += int32(n); l.turns != nil {
		l.turns.lines[tenant].device += n
	}
}

// maxEgress is the value of nic.egress_packets for no limit.
const maxEgress = 1 << 20

// egressRoom reports whether handlers of a tenant, or of all, that have promised a
// number of packets from the device may promise one more.
func (l *link) egressRoom(tenant uint16, promised int) bool {
	if t := l.turns; t != nil {
		return t.places == maxEgress || t.lines[tenant].device+promised < t.places
	}
	return l.spec.EgressPackets == maxEgress || int(l.device)+promised < l.spec.EgressPackets
}
