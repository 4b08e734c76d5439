package fabric

import (
	"github.com/spinsim/spinsim/sim"
)

// Packet is what crosses the fabric: a small value that refers to its message.
type Packet struct {
	Src, Dst int32  // node indices
	Bytes    int32  // from 0 to the MTU; the fabric adds Spec.Header
	Seq      uint32 // what its receiver knows it by; the fabric does not look at it
	Class    Class
	Notify   bool // its source gets a KindSent event
	// its source sees to it that it is sent again if it is lost: it is counted
	// then, and not among the losses
	Repeated bool
	// it is not the first of its message: the gap of Spec.AddGap does not stand
	// before it. Not known at the end of its way
	Inner bool
	fate  fate // what a Faulty has decided
	Ref   any  // the message; a pointer, so that nothing is allocated
}

// Class is a kind of traffic with buffers of its own, so that it does not wait
// for another class to be taken by its receivers.
type Class uint8

// Classes of packets: answers have buffers of their own, because requests may
// wait until answers have gone.
const (
	Requests Class = iota
	Answers
	Classes = 2
)

// Kinds of events the fabric sends to attached actors.
const (
	// KindArrive brings a packet, at the time its last byte is there.
	KindArrive = sim.KindShared + iota
	// KindCorrupt brings a packet whose bytes were damaged on the way, which the
	// receiver's check sees; only a [Faulty] fabric sends it.
	KindCorrupt
	// KindReady says that Ready, which was false, may now be true. A is the class.
	KindReady
	// KindSent says that a packet of the node with Packet.Notify has its turn
	// on the node's link: it has left the node's buffers, and its last byte
	// follows after Spec.Serial. B is the packet's sequence number in its lower
	// 32 bits, P its Ref.
	KindSent

	kindAgain  // a packet delayed or duplicated by Faulty
	kindCredit // bytes that the first switch has room for again
)

// An event carries a packet in A, B and P: nodes have 22 bits, what a Faulty
// has decided the ten above the source's and the ten above the destination's;
// the length has 17 bits, class, Notify and Repeated those above.
const (
	nodeBits   = 22
	nodeMask   = 1<<nodeBits - 1
	fateMask   = ^uint64(nodeMask<<32 | nodeMask)
	lengthMask = 1<<17 - 1
	classShift = 32 + 17
	notifyBit  = 1 << (classShift + 2)
	repeatBit  = 1 << (classShift + 3)
)

// Unpack returns the packet of a KindArrive or KindCorrupt event.
func Unpack(e *sim.Event) Packet {
	return Packet{
		Src: int32(e.A >> 32 & nodeMask), Dst: int32(e.A & nodeMask),
		Bytes: int32(e.B >> 32 & lengthMask), Seq: uint32(e.B), Class: Class(e.B >> classShift & 3), Notify: e.B&notifyBit != 0,
		Repeated: e.B&repeatBit != 0, fate: fateOf(e.A), Ref: e.P,
	}
}

// words returns p's numbers as an event carries them.
func (p *Packet) words() (a, b uint64) {
	a, b = uint64(uint32(p.Src))<<32|uint64(uint32(p.Dst)), uint64(uint32(p.Bytes))<<32|uint64(p.Seq)|uint64(p.Class)<<classShift
	if p.Notify {
		b |= notifyBit
	}
	if p.Repeated {
		b |= repeatBit
	}
	return a | p.fate.word(), b
}

// Arrive posts the event that brings p to the actor dst: for a Fabric of one's
// own. kind is KindArrive or KindCorrupt.
func (p Packet) Arrive(eng *sim.Engine, at sim.Time, dst, src sim.ID, kind sim.Kind) {
	a, b := p.words()
	eng.Post(at, dst, src, kind, a, b, p.Ref)
}

// Port is a node's way into the fabric and out of it. It belongs to the node.
type Port interface {
	// Ready reports whether the node may Send one more packet of any size and
	// of that class. If not, the node gets a KindReady event when it may ask
	// again.
	Ready(c Class) bool

	// Send sends p, whose source is the port's node, at the present time; the
	// port must be Ready for its class. The node's link serialises packets in
	// the order of sending.
	Send(p Packet)

	// Release says that the node has taken p, which has arrived, out of the
	// buffer at the end of its link: the bytes are free for others. The
	// receiver does this once for each packet that has arrived, damaged or not;
	// as long as it does not, senders wait, back to the source. Without
	// Spec.Buffer buffers have no end and this does nothing.
	Release(p Packet)
}

// Fabric is a network of nodes numbered from 0. Packets of a class from one node to another
// arrive in the order they were sent, each exactly once.
type Fabric interface {
	// Attach makes the actor id receive what arrives at node and the events of
	// its port, and returns the port. Every node that is a source or a
	// destination is attached once, before the first packet.
	Attach(node int, id sim.ID) Port

	// Watch tells f of every packet that a node sends: the time from which to
	// which it has the node's link for itself, the gap included. For a
	// timeline: f may be told before that time has come, and must not change
	// what is simulated.
	Watch(f func(p Packet, from, to sim.Time))

	// Nodes returns the number of nodes.
	Nodes() int

	// Latency returns the time from Send to arrival of a packet of bytes bytes
	// when nothing is in its way. No packet is faster.
	Latency(src, dst int, bytes int32) sim.Time

	// Path returns the links a packet takes, in order.
	Path(src, dst int) []Hop

	// Links returns what each link that carried a packet did so far: first the
	// nodes' links in order, then those of the switches in the order of the
	// topology (trees: by level, index and port).
	Links() []LinkStats

	// Losses returns the packets that were lost or damaged so far, but for
	// those that their sources repeat, in the order of time, of more than 100
	// the first 100 of each switch and node at least, and how many in all.
	Losses() ([]Loss, int)
}

// Hop is one link of a path.
type Hop struct {
	Link string   // the link's name, "Node[0].Tx" or "Switch[1][0].Up[3]"
	Wait sim.Time // traversal of the switch the link leaves, 0 for a node's own link
	Wire sim.Time // propagation
	Rate sim.Rate // serialisation
}

// LinkStats is what a link did.
type LinkStats struct {
	Name    string
	Packets int64
	Bytes   int64    // headers included
	Busy    sim.Time // time spent sending: Bytes at the link's rate
	// MaxWait is the longest a packet waited for the link, or for room in the buffer at its end.
	MaxWait sim.Time
	// MaxQueue is the most bytes that were ahead of a packet when it came to the
	// link: MaxWait at the link's rate.
	MaxQueue int64
	// MaxBuffer is the most bytes that were taken at once in a buffer at the
	// link's end (of one class and virtual channel), those on their way
	// included; 0 without Spec.Buffer.
	MaxBuffer int64
}

// Loss is a packet that was lost or damaged.
type Loss struct {
	At      sim.Time // when the packet would have begun to pass the link
	Link    string
	Cause   string // such as "loss", "corrupt", "link down"
	Damaged bool   // it arrives, by KindCorrupt
	Packet  Packet
}
