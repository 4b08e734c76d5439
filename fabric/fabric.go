package fabric

import (
	"github.com/spinsim/spinsim/sim"
)

// Packet is the unit that crosses the fabric: a small value with a reference to
// its message.
type Packet struct {
	Src, Dst int32  // node indices
	Bytes    int32  // from 0 to the MTU; the fabric adds Spec.Header
	Seq      uint32 // for the receiver's use; the fabric does not look at it
	Class    Class
	Notify   bool // its source gets a KindSent event
	// the source sends it again if it is lost: it is then counted, and not among
	// the losses
	Repeated bool
	// it is not the first of its message, so the gap of Spec.AddGap does not come
	// before it. Not set in a packet that has arrived
	Inner bool
	// Path is the source's choice of a way, 0 to Paths - 1, with Spec.Paths
	// [ByPacket]: packets of a pair with the same Path take the same way.
	Path    uint16
	Marked  bool // it has left a switch with many bytes behind it; see Spec.MarkFrom
	Trimmed bool // a switch had no room for its payload; Bytes is 0
	// Limit is the longest pace that a link on its way allows, with Spec.Rates; 0:
	// no link looks at it. A packet with a Limit has no Path.
	Limit Pace
	// Pace is the pace of its flow; 0: it has none yet, and more packets follow. Only
	// with Limit, and not set in a packet that has arrived.
	Pace Pace
	fate fate // the decision of a Faulty
	Ref  any  // the message; a pointer, so that nothing is allocated
}

// Class is a kind of traffic with its own buffers. Packets of one class do not
// wait until receivers take packets of another.
type Class uint8

// Classes of packets. Answers have their own buffers, because requests may wait
// until answers have gone.
const (
	Requests Class = iota
	Answers
	Classes = 2
)

// Kinds of events that the fabric sends to attached actors.
const (
	// KindArrive brings a packet, at the time when its last byte arrives.
	KindArrive = sim.KindShared + iota
	// KindCorrupt brings a packet whose bytes were damaged on the way. The
	// receiver's check detects it. Only a [Faulty] fabric sends it.
	KindCorrupt
	// KindReady reports that Ready, which was false, may now be true. A is the
	// class.
	KindReady
	// KindSent reports that a packet of the node with Packet.Notify begins to pass
	// the node's link. It has left the node's buffers, and its last byte follows
	// after Spec.Serial. B is the packet's sequence number in its lower 32 bits, P
	// its Ref.
	KindSent

	kindAgain  // a packet delayed or duplicated by Faulty
	kindCredit // bytes that are free again at the first switch
	kindPause  // the sender of link A pauses, or with B = 0 resumes
)

// An event carries a packet in A, B and P. In A each node has 22 bits; the
// decision of a Faulty is in the ten bits above the source and the ten above
// the destination. In B the length has 17 bits; class, Notify and Repeated are
// above. For a Limit see withLimit.
const (
	nodeBits   = 22
	nodeMask   = 1<<nodeBits - 1
	fateMask   = hopMask<<nodeBits | fateKinds<<(32+nodeBits)
	lengthMask = 1<<17 - 1
	classShift = 32 + 17
	limitBit   = 1 << (classShift + 1)
	notifyBit  = 1 << (classShift + 2)
	repeatBit  = 1 << (classShift + 3)
	markBit    = 1 << (classShift + 4)
	trimBit    = 1 << (classShift + 5)
	pathShift  = classShift + 6
)

// Paths is the number of different values of Packet.Path.
const Paths = 1 << (64 - pathShift)

// Unpack returns the packet of a KindArrive or KindCorrupt event.
func Unpack(e *sim.Event) Packet {
	p := Packet{
		Src: int32(e.A >> 32 & nodeMask), Dst: int32(e.A & nodeMask),
		Bytes: int32(e.B >> 32 & lengthMask), Seq: uint32(e.B), Class: classOf(e.B), Notify: e.B&notifyBit != 0,
		Repeated: e.B&repeatBit != 0, Marked: e.B&markBit != 0, Trimmed: e.B&trimBit != 0, Limit: limitOf(e.A, e.B),
		fate: fateOf(e.A), Ref: e.P,
	}
	if p.Limit == 0 {
		p.Path = uint16(e.B >> pathShift)
	}
	return p
}

// words returns p's numbers in the form that an event carries.
func (p *Packet) words() (a, b uint64) {
	a, b = uint64(uint32(p.Src))<<32|uint64(uint32(p.Dst)), uint64(uint32(p.Bytes))<<32|uint64(p.Seq)|uint64(p.Class)<<classShift|uint64(p.Path)<<pathShift
	if p.Notify {
		b |= notifyBit
	}
	if p.Repeated {
		b |= repeatBit
	}
	if p.Marked {
		b |= markBit
	}
	if p.Trimmed {
		b |= trimBit
	}
	if p.Limit > 0 {
		a, b = withLimit(a, b, p.Limit)
	}
	return a | p.fate.word(), b
}

// Arrive posts the event that brings p to the actor dst. It is for a Fabric of
// another package. kind is KindArrive or KindCorrupt.
func (p Packet) Arrive(eng *sim.Engine, at sim.Time, dst, src sim.ID, kind sim.Kind) {
	a, b := p.words()
	eng.Post(at, dst, src, kind, a, b, p.Ref)
}

// Port is a node's connection to the fabric. It belongs to the node.
type Port interface {
	// Ready reports whether the node may Send one more packet of that class, of
	// any size. If not, the node gets a KindReady event when it may ask again.
	Ready(c Class) bool

	// Send sends p at the present time. Its source is the port's node, and the
	// port must be Ready for its class. The node's link serialises packets in the
	// order of sending.
	Send(p Packet)

	// Release frees the room of p, a packet that has arrived, in the buffer at the
	// end of the node's link. The receiver calls it once for each packet that has
	// arrived, damaged or not. Until then senders wait, back to the source.
	// Without Spec.Buffer buffers are unbounded and Release does nothing.
	Release(p Packet)
}

// Fabric is a network of nodes numbered from 0. Each packet arrives once. Those of
// a class from one node to another arrive in the order of sending, unless they may
// take different ways (Spec.Paths) or one is trimmed (Spec.Trim).
type Fabric interface {
	// Attach makes the actor id receive the packets for node and the events of its
	// port, and returns the port. Attach every node that is a source or a
	// destination once, before the first packet.
	Attach(node int, id sim.ID) Port

	// Watch calls f for every packet that a node sends, with the time from which
	// to which the packet has the node's link for itself, gap included. It is for
	// a timeline: the call may come before that time, and f must not change the
	// simulation.
	Watch(f func(p Packet, from, to sim.Time))

	// Nodes returns the number of nodes.
	Nodes() int

	// Latency returns the time from Send to arrival of a packet of bytes bytes
	// when nothing is in its way. No packet is faster.
	Latency(src, dst int, bytes int32) sim.Time

	// Path returns the links a packet takes, in order.
	Path(src, dst int) []Hop

	// Links returns the totals of each link that has carried a packet: first the
	// nodes' links in order, then the switches' links in the order of the topology
	// (trees: by level, index and port).
	Links() []LinkStats

	// Losses returns the packets that were lost or damaged so far, in order of
	// time, and their total number. Both leave out packets that their sources
	// repeat. Beyond 100 the list has at least the first 100 of each switch and
	// node.
	Losses() ([]Loss, int)
}

// Hop is one link of a path.
type Hop struct {
	Link string   // the link's name, "Node[0].Tx" or "Switch[1][0].Up[3]"
	Wait sim.Time // traversal of the switch the link leaves, 0 for a node's own link
	Wire sim.Time // propagation
	Rate sim.Rate // serialisation
}

// LinkStats is the totals of a link.
type LinkStats struct {
	Name    string
	Packets int64
	Bytes   int64    // headers included
	Busy    sim.Time // time spent sending: Bytes at the link's rate
	// MaxWait is the longest wait of a packet for the link, for room in the buffer
	// at its end, or for the end of a pause.
	MaxWait sim.Time
	// MaxQueue is MaxWait at the link's rate. Without buffers and pauses, that is the
	// most bytes that were ahead of a packet when it came to the link.
	MaxQueue int64
	// MaxBuffer is the most bytes in use at once in a buffer at the link's end (of
	// one class and virtual channel), including bytes on their way; with
	// Spec.PauseFrom, the most that it has compared with it; 0 without both.
	MaxBuffer int64
	Pauses    int64    // how often its sender was paused; see Spec.PauseFrom
	Paused    sim.Time // how long, in all
}

// Loss is a packet that was lost or damaged.
type Loss struct {
	At      sim.Time // when the packet would have begun to pass the link
	Link    string
	Cause   string // such as "loss", "corrupt", "link down"
	Damaged bool   // it arrives, with KindCorrupt
	Packet  Packet
}
