package fabric

import (
	"github.com/spinsim/spinsim/sim"
)

// Packet is what crosses the fabric: a small value that refers to its message.
type Packet struct {
	Src, Dst int32  // node indices
	Bytes    int32  // from 0 to the MTU; the fabric adds Spec.Header
	Seq      uint32 // index in the message: the gap of Spec.AddGap stands before 0
	Ref      any    // the message; a pointer, so that nothing is allocated
}

// Kinds of events the fabric sends to attached actors.
const (
	// KindArrive brings a packet, at the time its last byte is there.
	KindArrive = sim.KindShared + iota
	// KindCorrupt brings a packet whose bytes were damaged on the way, which the
	// receiver's check sees; only a [Faulty] fabric sends it.
	KindCorrupt
	// KindReady says that Ready, which was false, may now be true.
	KindReady

	kindAgain // a packet delayed or duplicated by Faulty
)

// Unpack returns the packet of a KindArrive or KindCorrupt event.
func Unpack(e *sim.Event) Packet {
	return Packet{
		Src: int32(e.A >> 32), Dst: int32(e.A),
		Bytes: int32(e.B >> 32), Seq: uint32(e.B), Ref: e.P,
	}
}

// words returns p's numbers as an event carries them.
func (p *Packet) words() (a, b uint64) {
	return uint64(uint32(p.Src))<<32 | uint64(uint32(p.Dst)), uint64(uint32(p.Bytes))<<32 | uint64(p.Seq)
}

// Fabric is a network of nodes numbered from 0. Packets from one node to another
// arrive in the order they were injected, each exactly once.
type Fabric interface {
	// Attach makes the actor id receive what arrives at node and its KindReady
	// events. Every node that is a source or a destination is attached once,
	// before its first packet.
	Attach(node int, id sim.ID)

	// Ready reports whether node may Inject one more packet of any size. If not,
	// the node gets a KindReady event when it may ask again.
	Ready(node int) bool

	// Inject sends p from p.Src at the present time; p.Src must be Ready. The
	// node's link serialises packets in the order of injection. At the time
	// returned it has sent the last byte of this one and may begin the next: the
	// gap, if that is longer, is over too.
	Inject(p Packet) (free sim.Time)

	// Nodes returns the number of nodes.
	Nodes() int

	// Latency returns the time from Inject to arrival of a packet of bytes bytes
	// when nothing is in its way. No packet is faster.
	Latency(src, dst int, bytes int32) sim.Time

	// Path returns the links a packet takes, in order.
	Path(src, dst int) []Hop

	// Links returns what each link that carried a packet did so far: first the
	// nodes' links in order, then the switches' by level, index and port.
	Links() []LinkStats
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
	// MaxWait is the longest a packet waited for the link.
	MaxWait sim.Time
	// MaxQueue is the most bytes that were ahead of a packet when it came to the
	// link: MaxWait at the link's rate.
	MaxQueue int64
}
