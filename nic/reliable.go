package nic

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

// reliable is a transport between two ends of a network that loses, damages,
// doubles and delays packets. It uses selective repeat with cumulative
// acknowledgements. The packets from one node to another are numbered, from 1
// to the end of the run. The receiver delivers them in that order and keeps
// packets that come too early. It answers every packet with the first missing
// number. The sender has up to a window of unacknowledged packets. The oldest
// of them has a timer.
//
// Packets carry their numbers. The receiver recognizes a second copy by its
// number alone. It does not look at the packet's reference, which may already
// be in use for another packet.
type reliable struct {
	*env
	spec   *TransportSpec
	below  departures
	next   arrivals
	peers  map[int32]*peer
	latest *peer // of peers
	grants grants
	laws   *flowLaws // nil: the window is constant
	// messages that have failed before transmit has sent all their packets: how
	// many packets are not acknowledged; 0: all packets that are still to come
	failed map[uint64]int
	again  int64 // packets sent again
	twice  int64 // packets that have come twice
}

// departures takes the packets of a transport.
type departures interface {
	send(k packet)
	depart(d departure)
	// hold counts n more packets from HPU memory that wait for the wire.
	hold(tenant uint16, n int)
	onWire(tenant uint16)
	classOf(k portals.OpKind) fabric.Class
}

// segment is a packet with its state in the transport. It belongs to the
// sender. A receiver reads packet, number and base only until it has
// acknowledged it.
type segment struct {
	mark poison.Mark
	packet
	number  uint64 // of the packet among those from its source to this node
	base    uint64 // the first number that the source has not given up
	message uint64 // Frame.Number
	flow    uint64
	kind    portals.OpKind
	target  int32
	left    int  // packets of its message from this one on
	over    bool // acknowledged or given up
	arrived bool // acknowledged: it is another packet after its last departure
	turns   int  // departures whose turn on the wire has not come
	bytes   int32
	sent    sim.Time // its last turn on the wire; queued: the turn has not come
	tries   int      // how often it was late
	again   int      // how often it was sent again
	path    uint16   // of its last departure
	tenant  uint16
	flying  bool // with a rate law: sent, and neither acknowledged nor lost
}

const queued sim.Time = -1

// acknowledgement is the reference of an acknowledgement packet. The packet's
// number is the first that is missing.
type acknowledgement struct{ _ byte }

var acknowledges = new(acknowledgement)

// peer is the transport's state of another node.
type peer struct {
	node    int32
	next    uint64         // number of the next packet to it
	base    uint64         // the first number that was not given up
	window  ring[*segment] // unacknowledged packets, the oldest first
	backlog ring[packet]   // packets that the window has no room for
	partial []uint64       // messages that transmit has sent in part
	timer   sim.Timer      // the oldest packet may be lost
	flow    *flow          // with a rate law
	asks    asks           // what it asks for, with a law whose receivers grant
	silent  bool           // packets to it were given up, and nothing has come from it since

	missing uint64              // the first number from it that has not arrived
	early   map[uint64]*segment // packets with higher numbers that have arrived
}

// The events of reliable.
const (
	kindTimeout sim.Kind = kindsOfReliable + iota // *peer
	kindPace                                      // *peer: its next packet may begin
	kindLaw                                       // *peer: its rate law's timer
	kindGrant                                     // the next grant may leave
)

// connectReliable puts the transport between transmit, link and receive.
func connectReliable(n *NIC, cfg *Config) optionalStage {
	if cfg.Transport.Kind != Reliable {
		return nil
	}
	r := &reliable{env: &n.env, spec: cfg.Transport, below: &n.link, next: n.link.next, peers: map[int32]*peer{}, failed: map[uint64]int{}}
	r.laws, r.grants.t = newFlowLaws(&n.env, cfg), r
	n.reliable = r
	n.link.transport = r
	t := &n.transmit
	t.next, t.reason = r, r.undelivered
	t.undelivered, t.answers, t.owed = map[uint64]*outgoing{}, map[uint64]portals.Header{}, map[int32][]portals.Header{}
	return r
}

func (t *reliable) handle(e *sim.Event) {
	switch e.Kind {
	case kindTimeout:
		if p := e.P.(*peer); p.flow != nil {
			t.late(p)
		} else {
			t.repeat(p)
		}
	case kindPace:
		t.pump(e.P.(*peer))
	case kindLaw:
		p := e.P.(*peer)
		t.react(p, spin.FlowTimer, 0, 0, false, 0)
		t.pump(p)
	case kindGrant:
		t.grants.next()
	default:
		unknown("reliable", e)
	}
}

func (t *reliable) peer(node int32) *peer {
	if p := t.latest; p != nil && p.node == node {
		return p
	}
	p := t.peers[node]
	if p == nil {
		p = &peer{node: node, next: 1, base: 1, missing: 1, early: map[uint64]*segment{}}
		p.timer.Init(t.engine, t.id, kindTimeout, p)
		t.peers[node] = p
	}
	t.latest = p
	return p
}

// send sends a packet when the window has room. A packet to the same node
// needs no transport.
func (t *reliable) send(k packet) {
	if k.f.Target == t.rank {
		t.below.send(k)
		return
	}
	if len(t.failed) > 0 && t.discard(k) {
		return
	}
	t.trace.ready(k.f, k.i)
	p := t.peer(k.f.Target)
	if k.f.Packets > 1 {
		p.count(k)
	}
	if t.laws != nil && p.flow == nil {
		t.begin(p)
	}
	if p.flow == nil && p.window.len() < t.spec.Window && p.backlog.len() == 0 {
		t.transmit(p, k)
		return
	}
	if k.device {
		t.below.hold(k.f.tenant, 1)
	}
	p.backlog.push(k)
	if p.flow != nil {
		t.alarm(p)
		t.pump(p)
	}
}

// discard drops a packet if its message has failed; false: the message has not
// failed.
func (t *reliable) discard(k packet) bool {
	left, is := t.failed[k.f.Number]
	if !is {
		return false
	}
	if left == 0 {
		left = k.f.Packets - k.i
		t.failed[k.f.Number] = left
	}
	from, to := k.f.Span(k.i)
	t.unsent(undelivered, to-from)
	if k.last() {
		delete(t.failed, k.f.Number)
		t.ended(k.f.Number, portals.NIUndeliverable, left)
	}
	return true
}

// count notes that transmit has sent the first or the last packet of a message.
func (p *peer) count(k packet) {
	if k.i == 0 {
		p.partial = append(p.partial, k.f.Number)
	} else if k.last() {
		i := slices.Index(p.partial, k.f.Number)
		p.partial = slices.Delete(p.partial, i, i+1)
	}
}

// transmit gives a packet its number and a place in the window.
func (t *reliable) transmit(p *peer, k packet) {
	from, to := k.f.Span(k.i)
	s := t.core.segment()
	s.packet, s.tenant, s.number, s.base, s.bytes = k, k.f.tenant, p.next, p.base, int32(to-from)
	s.message, s.flow, s.kind, s.target, s.left = k.f.Number, k.f.Flow(), k.f.Header.Kind, p.node, k.f.Packets-k.i
	p.next++
	p.window.push(s)
	t.depart(p, s, k.device)
}

func (t *reliable) depart(p *peer, s *segment, device bool) {
	s.sent = queued
	s.turns++
	d := departure{
		ref: s, target: p.node, bytes: s.bytes, seq: uint32(s.number), class: t.below.classOf(s.kind),
		tenant: s.tenant, inner: s.i > 0, device: device, notify: true,
	}
	if p.flow != nil {
		t.fly(p, s)
		d.path = s.path
		t.metered(p, s, &d)
	}
	t.below.depart(d)
}

// leaves implements transport. A packet that is acknowledged while it waits to
// be sent again is not sent.
func (t *reliable) leaves(ref any) bool {
	s, is := ref.(*segment)
	switch {
	case !is:
		return true
	case s.over:
		t.unqueued(s)
		if s.again == 0 { // given up before its turn came
			t.unsent(undelivered, int(s.bytes))
		}
		t.turned(s)
		return false
	case s.again > 0:
		t.again++
	default:
		t.account.sent += int64(s.bytes)
	}
	return true
}

// turned notes the end of a departure of a packet that is over. After the last
// one nobody has the segment of a packet that has arrived.
func (t *reliable) turned(s *segment) {
	if s.turns--; s.turns == 0 && s.arrived {
		t.core.releaseSegment(s)
	}
}

// onWire implements transport.
func (t *reliable) onWire(ref any) {
	s := ref.(*segment)
	t.unqueued(s)
	if s.device {
		s.device = false
		t.below.onWire(s.tenant)
	}
	if s.over { // while it waited to be sent again, or on its way to the wire
		t.turned(s)
		return
	}
	s.turns--
	s.sent = t.now()
	if p := t.peer(s.target); p.flow != nil {
		t.flies(p, s)
	} else if p.window.front() == s {
		p.timer.Set(s.sent + t.spec.Timeout)
	}
}

// repeat sends the oldest packet again after its time-out.
func (t *reliable) repeat(p *peer) {
	s := p.window.front()
	if s.tries == t.spec.Retries {
		t.giveUp(p)
		return
	}
	s.tries++
	s.again++
	t.depart(p, s, false)
}

// acknowledged removes the packets that have arrived from the window, and fills
// the window. The time-out of the oldest remaining packet counts from its
// sending, so it may be over already.
func (t *reliable) acknowledged(p *peer, number uint32) {
	progress := false
	for p.window.len() > 0 && int32(number-uint32(p.window.front().number)) > 0 {
		t.retire(p.window.pop())
		progress = true
	}
	for p.backlog.len() > 0 && p.window.len() < t.spec.Window {
		t.fill(p)
	}
	if !progress {
		return
	}
	p.timer.Stop()
	if p.window.len() == 0 {
		return
	}
	switch s := p.window.front(); {
	case s.sent == queued: // its turn on the wire starts the timer
	case s.sent+t.spec.Timeout <= t.now():
		t.repeat(p)
	default:
		p.timer.Set(s.sent + t.spec.Timeout)
	}
}

// retire ends a packet that has been delivered.
func (t *reliable) retire(s *segment) {
	s.over = true
	if s.left == 1 {
		t.ended(s.message, portals.NIOK, 0)
	}
	if s.arrived = true; s.turns == 0 {
		t.core.releaseSegment(s)
	}
}

// fill sends the first packet of the backlog.
func (t *reliable) fill(p *peer) {
	k := p.backlog.pop()
	if k.device {
		t.below.hold(k.f.tenant, -1)
	}
	t.transmit(p, k)
}

// ended tells transmit the end of a message and how many packets are not
// acknowledged.
func (t *reliable) ended(message uint64, fail portals.FailType, left int) {
	t.engine.Post(t.now(), t.id, t.id, kindEnded, message<<failBits|uint64(fail), uint64(left), nil)
}

// giveUp fails the messages to a node that are on their way. Later packets
// carry a new base, so the receiver learns that the missing packets will not
// come.
func (t *reliable) giveUp(p *peer) {
	var order []uint64
	note := func(message uint64, left int) {
		// left counts from the first unacknowledged packet
		if _, known := t.failed[message]; !known {
			order = append(order, message)
			t.failed[message] = left
		}
	}
	for p.window.len() > 0 {
		s := p.window.pop()
		s.over = true // not released: a copy of it may still arrive, and be the first
		t.account.givenUp += int64(s.bytes)
		note(s.message, s.left)
	}
	for p.backlog.len() > 0 {
		k := p.backlog.pop()
		if k.device {
			t.below.hold(k.f.tenant, -1)
		}
		from, to := k.f.Span(k.i)
		t.unsent(undelivered, to-from)
		note(k.f.Number, k.f.Packets-k.i)
	}
	for _, message := range p.partial {
		note(message, 0)
	}
	for _, message := range order {
		if !slices.Contains(p.partial, message) {
			t.ended(message, portals.NIUndeliverable, t.failed[message])
			delete(t.failed, message)
		}
	}
	p.partial = p.partial[:0]
	// No packet gets this number. So the next packet shows the end even to a
	// receiver that has all the packets that were sent.
	p.next++
	p.base, p.silent = p.next, true
	if p.flow != nil {
		p.flow.clear()
		p.timer.Stop()
	}
	t.post(t.now(), kindEgressSpace, 0, nil)
}

// arrived implements transport.
func (t *reliable) arrived(pk fabric.Packet) {
	p := t.peer(pk.Src)
	if p.silent {
		p.silent = false
		t.post(t.now(), kindHeard, uint64(p.node), nil)
	}
	switch ref := pk.Ref.(type) {
	case *acknowledgement:
		t.account.again += int64(pk.Bytes)
		t.acknowledged(p, pk.Seq)
		return
	case *notice:
		t.account.again += int64(pk.Bytes)
		t.permitted(p, pk.Seq)
		return
	case *response:
		t.account.again += int64(pk.Bytes)
		t.answered(p, &pk, ref)
		return
	}
	if t.laws != nil {
		t.flown(p, &pk)
		return
	}
	if int32(pk.Seq-uint32(p.missing)) < 0 {
		t.twice++
		t.account.again += int64(pk.Bytes)
	} else {
		t.take(p, pk.Ref.(*segment))
	}
	t.below.depart(departure{
		ref: acknowledges, target: p.node, bytes: int32(t.spec.AckBytes), seq: uint32(p.missing), class: t.below.classOf(portals.OpAck),
	})
}

// take takes a packet that has not been delivered.
func (t *reliable) take(p *peer, s *segment) {
	if poison.On {
		s.mark.Live("a packet of a reliable transport")
	}
	if s.base > p.missing {
		t.skip(p, s.base)
	}
	if s.number > p.missing {
		if p.early[s.number] != nil {
			t.twice++
			t.account.again += int64(s.bytes)
		}
		p.early[s.number] = s
		return
	}
	for s != nil {
		p.missing++
		t.next.packetArrived(s.f, s.i, false)
		if len(p.early) == 0 {
			return
		}
		s = p.early[p.missing]
		delete(p.early, p.missing)
	}
}

// skip continues with the first packet after those that the source has given
// up.
func (t *reliable) skip(p *peer, base uint64) {
	for ; p.missing < base && len(p.early) > 0; p.missing++ {
		if s := p.early[p.missing]; s != nil {
			t.account.again += int64(s.bytes)
			delete(p.early, p.missing)
		}
	}
	p.missing = base
	t.next.abandoned(p.node)
}

// undelivered returns the reason for the failure of a message.
func (t *reliable) undelivered(target int32) string {
	times := "once"
	if t.spec.Retries > 0 {
		times = fmt.Sprintf("%d times", t.spec.Retries+1)
	}
	return fmt.Sprintf("node %d did not acknowledge a packet that was sent %s (transport.retries, %d)", target, times, t.spec.Retries)
}
