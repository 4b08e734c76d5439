package nic

import (
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// link is a NIC's end of the wire: packets leave when the fabric takes them,
// and those that arrive go up. By itself it is the transport of a lossless
// network (transport.kind none): what is lost all the same is counted by the
// fabric and named at the end of the run.
type link struct {
	*env
	port    fabric.Port
	next    arrivals
	sent    int64
	arrived int64
	// of a network with faults, by source: packets that have arrived; nil: none
	// comes twice
	known     map[int32]*arrivedOf
	numbers   map[int32]uint64                // likewise, by target: messages sent
	transport transport                       // nil: kind none
	classes   bool                            // buffers are bounded: answers have a class of their own
	waiting   [fabric.Classes]ring[departure] // packets that the fabric does not take yet
	room      egress
	device    int      // packets from HPU memory that are not on the wire yet
	turning   sim.Time // the path to the own node is taken until then
}

// arrivals is what takes packets that have arrived.
type arrivals interface {
	// packetArrived is a packet; damaged: what its check says of its payload.
	packetArrived(f *Frame, i int, damaged bool)
}

// transport is told of the packets that it has put together itself, whose Ref is its own.
type transport interface {
	// arrived is such a packet.
	arrived(p fabric.Packet)
	// leaves reports whether a packet that has waited for the fabric is still to be sent.
	leaves(ref any, seq uint32) bool
	// onWire is the turn on the wire of a packet that asked for it.
	onWire(ref any, seq uint32)
}

// egress is told when a packet from HPU memory has left.
type egress interface {
	egressSpace()
}

// departure is a packet on its way out.
type departure struct {
	ref    any // *Frame, or what a transport of its own knows
	target int32
	bytes  int32
	seq    uint32
	class  fabric.Class
	inner  bool // it is not the first of its message
	device bool // it counts against the egress limit of handlers
	notify bool // the transport wants to know when its turn on the wire comes
	repeat bool // handlers send it again if it is lost
}

// The events of link.
const (
	kindLoopback sim.Kind = kindsOfLink + iota // packet, *Frame: a packet to the own node arrives
	// handlers that wait for room in the egress may go on
	kindEgressSpace
)

func (l *link) handle(e *sim.Event) {
	switch e.Kind {
	case fabric.KindArrive:
		p := fabric.Unpack(e)
		l.port.Release(p)
		l.arrive(p)
	case fabric.KindReady:
		l.inject(fabric.Class(e.A))
	case fabric.KindSent:
		if _, plain := e.P.(*Frame); plain {
			l.onWire()
		} else {
			l.transport.onWire(e.P, uint32(e.B))
		}
	case kindLoopback:
		l.arrived++
		f, i := e.P.(*Frame), int(e.A)
		from, to := f.Span(i)
		l.account.takes(to - from)
		l.next.packetArrived(f, i, false)
	case kindEgressSpace:
		l.room.egressSpace()
	case fabric.KindCorrupt: // the check fails; the fabric has it among its losses
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

// firstTime notes that a packet has arrived and reports whether it had not yet.
func (l *link) firstTime(f *Frame, i int) bool {
	k := l.known[f.Source]
	if k == nil {
		k = &arrivedOf{}
		l.known[f.Source] = k
	}
	return k.firstTime(f.Nth, i, f.Packets)
}

// send sends a packet whose data is at the NIC, behind those that the fabric does not take yet.
func (l *link) send(p packet) {
	l.trace.ready(p.f, p.i)
	if l.numbers != nil && p.i == 0 && !p.f.Datagram {
		l.numbers[p.f.Target]++
		p.f.Nth = l.numbers[p.f.Target]
	}
	from, to := p.f.Span(p.i)
	d := departure{p.f, p.f.Target, int32(to - from), uint32(p.i), l.classOf(p.f.Header.Kind), p.i > 0, p.device, false, p.f.Datagram}
	l.enqueue(&d)
}

// classOf is the class of a message's packets. Without bounded buffers all are
// in one, which keeps them in the order of sending.
func (l *link) classOf(k portals.OpKind) fabric.Class {
	if l.classes && (k == portals.OpAck || k == portals.OpReply) {
		return fabric.Answers
	}
	return fabric.Requests
}

func (l *link) depart(d departure) { l.enqueue(&d) }

func (l *link) enqueue(d *departure) {
	if d.device {
		l.device++
	}
	w := &l.waiting[d.class]
	if w.len() == 0 && (d.target == l.rank || l.port.Ready(d.class)) {
		l.launch(d)
		return
	}
	w.push(*d)
}

// inject sends the packets of a class that wait, as far as the fabric takes
// them; it tells when to come back.
func (l *link) inject(c fabric.Class) {
	w := &l.waiting[c]
	for w.len() > 0 {
		if w.front().target != l.rank && !l.port.Ready(c) {
			return
		}
		d := w.pop()
		l.launch(&d)
	}
}

// launch puts a packet on the wire, where it follows the one before at the gap
// g, or turns it round if it is for this node.
func (l *link) launch(d *departure) {
	if l.transport != nil && !l.transport.leaves(d.ref, d.seq) {
		if d.device {
			l.device--
			l.post(l.now(), kindEgressSpace, 0, nil)
		}
		return
	}
	l.sent++
	l.account.gives(int(d.bytes))
	if l.transport == nil || d.target == l.rank {
		l.account.sent += int64(d.bytes)
	}
	if d.target == l.rank {
		l.post(l.turned(d), kindLoopback, uint64(d.seq), d.ref)
		if d.device {
			l.device--
			l.post(l.now(), kindEgressSpace, 0, nil)
		}
		return
	}
	// A packet that takes no place which another might wait for needs no event when it has left.
	notify := d.notify || d.device && l.spec.EgressPackets < maxEgress
	l.port.Send(fabric.Packet{
		Src: l.rank, Dst: d.target, Bytes: d.bytes, Seq: d.seq, Class: d.class, Inner: d.inner, Notify: notify, Repeated: d.repeat, Ref: d.ref,
	})
	if d.device && !notify {
		l.device--
	}
}

// turned is when a packet to the own node arrives there. Packets take the path
// one after the other. A message of one packet from a program to its own
// process is none: it stands for stores into the interface's registers.
func (l *link) turned(d *departure) sim.Time {
	s := l.spec
	at := l.now() + s.Loopback
	if s.LoopbackRate.IsZero() {
		return at
	}
	if f, plain := d.ref.(*Frame); plain && f.Packets == 1 && !d.device && !d.repeat && f.Header.Initiator == f.Header.Target {
		return at
	}
	l.turning = max(l.now(), l.turning) + s.LoopbackRate.Time(int64(d.bytes)+int64(l.fabric.Header))
	return l.turning + s.Loopback + s.LoopbackWire
}

// onWire frees the place in the egress of a packet from HPU memory whose turn on the wire has come.
func (l *link) onWire() {
	l.device--
	l.room.egressSpace()
}

// hold counts n packets from HPU memory more, or less, that wait for the wire at the transport.
func (l *link) hold(n int) { l.device += n }

// maxEgress packets in the egress are no limit.
const maxEgress = 1 << 20

// egressRoom reports whether handlers that have promised so many packets from
// the device may promise one more.
func (l *link) egressRoom(promised int) bool {
	return l.spec.EgressPackets == maxEgress || l.device+promised < l.spec.EgressPackets
}
