package runtime

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// LostMessage is a message that a node has lost, wholly or in part, for want of room or of a process, or the network by a fault. Its event and its
// acknowledgement, where there are any, carry PTL_NI_DROPPED, or PTL_NI_UNDELIVERABLE if there is no such process.
type LostMessage struct {
	Rank      int      // that lost it
	At        sim.Time // when it lost the first packet
	Kind      portals.OpKind
	Initiator portals.ID
	PT        uint32
	MatchBits uint64
	Packets   int    // that were dropped
	Of        int    // packets of the message
	Bytes     uint64 // of its payload in them, as far as they would have been delivered
	Length    uint64 // bytes that would have been delivered
	Cause     string // what there was no room in, with the field of the profile
}

// Error says what was lost, where and for want of what.
func (l LostMessage) Error() string {
	return fmt.Sprintf("rank %d at %v: %d of %d packets (%d of %d B) of a %v from rank %d were dropped: %s (portal table index %d, match bits %#x)",
		l.Rank, l.At, l.Packets, l.Of, l.Bytes, l.Length, l.Kind, l.Initiator.NID, l.Cause, l.PT, l.MatchBits)
}

// keptLosses is how many lost messages a run remembers; the others are counted.
const keptLosses = 100

// LostMessages returns the messages that were lost in the order in which their ends came, at most 100, and how many were lost in
// all. A message whose packets a handler has chosen to drop is not lost.
// What the network has lost or damaged stands behind those, in the order of time.
func (c *Cluster) LostMessages() ([]LostMessage, int) {
	network, n := c.networkLosses()
	if n == 0 {
		return c.losses, c.lost
	}
	all := append(slices.Clone(c.losses), network...)
	return all[:min(len(all), keptLosses)], c.lost + n
}

// networkLosses returns the messages of which the network has lost packets, and how many there are at least. A message that has lost a
// packet is never complete, so that what the packets refer to is still there.
func (c *Cluster) networkLosses() (list []LostMessage, n int) {
	if k := &c.network; k.list != nil && k.at == c.engine.Handled() {
		return k.list, k.n
	}
	losses, packets := c.fabric.Losses()
	place := map[*message]int{}
	for i := range losses {
		l := &losses[i]
		m, p := l.Packet.Ref.(*message), &l.Packet
		k, known := place[m]
		if !known {
			k = len(list)
			place[m] = k
			what := "lost"
			if l.Damaged {
				what = "damaged"
			}
			list = append(list, LostMessage{
				Rank: int(p.Dst), At: l.At, Kind: m.hdr.Kind, Initiator: m.hdr.Initiator, PT: m.hdr.PT, MatchBits: m.hdr.MatchBits,
				Of: m.packets, Length: uint64(len(m.data)),
				Cause: fmt.Sprintf("packet %d of %d was %s on %s at %v (%s, fabric.faults)", p.Seq+1, m.packets, what, l.Link, l.At, l.Cause),
			})
		}
		list[k].Packets++
		list[k].Bytes += uint64(p.Bytes)
	}
	n = len(list) + packets - len(losses)
	c.network = networkLosses{c.engine.Handled(), list, n}
	return list, n
}

// networkLosses is the answer of Cluster.networkLosses after so many events.
type networkLosses struct {
	at   uint64
	list []LostMessage
	n    int
}

// Failures returns an error for everything in the run so far that makes its result doubtful although the run went on: handlers
// that failed and messages that were lost. Of more than 100 of a kind the first 100 are returned; all counts them all.
func (c *Cluster) Failures() (list []error, all int) {
	for _, e := range c.errors {
		list = append(list, e)
	}
	lost, n := c.LostMessages()
	for _, l := range lost {
		list = append(list, l)
	}
	return list, len(c.errors) + c.dropped + n
}

// shortage is what a packet found no room in.
type shortage uint8

const (
	noShortage shortage = iota
	packetBufferFull
	handlersWaiting
)

func (n *Node) describe(s shortage) string {
	switch s {
	case packetBufferFull:
		return fmt.Sprintf("the packet buffer was full (nic.packet_buffer, %v)", n.profile.NIC.PacketBuffer)
	default:
		return fmt.Sprintf("too many handlers waited for an HPU (hpu.waiting_handlers, %d)", n.profile.HPU.WaitingHandlers)
	}
}

// loss is what a message has lost at its receiver.
type loss struct {
	cause   shortage // of the first packet
	at      sim.Time
	packets int
	bytes   uint64
}

// lose notes that packet i of a message was dropped, and with it bytes that would have been delivered.
func (n *Node) lose(m *message, cause shortage, packets int, bytes uint64) {
	l := &m.rx.lost
	if l.cause == noShortage {
		l.cause, l.at = cause, n.now()
	}
	l.packets += packets
	l.bytes += bytes
	m.rx.dropped += bytes
	n.stats.PacketsDropped += int64(packets)
}

// damaged reports whether the message has lost what it was to deliver: bytes, or all of a message that has none.
func (r *receive) damaged() bool {
	return r.lost.cause != noShortage && (r.lost.bytes > 0 || r.d.MLength == 0)
}

// messageLost records a lost message at its end.
func (n *Node) messageLost(h *portals.Header, l *LostMessage) {
	c := n.cluster
	n.stats.MessagesLost++
	c.lost++
	if len(c.losses) == keptLosses {
		return
	}
	l.Rank, l.Kind, l.Initiator, l.PT, l.MatchBits = int(n.rank), h.Kind, h.Initiator, h.PT, h.MatchBits
	c.losses = append(c.losses, *l)
}
