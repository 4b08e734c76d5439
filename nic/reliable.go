package nic

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// reliable is a transport between two ends of a network that loses, damages,
// doubles and delays packets: selective repeat with cumulative
// acknowledgements. The packets from one node to another are numbered, from 1
// to the end of the run. The receiver hands them on in that order, keeps those
// that come too early, and answers every packet with the number of the first
// that is missing. The sender has up to a window of packets without
// acknowledgement; the oldest of them has a timer.
//
// Numbers travel in the packets themselves. A packet that has come before is
// known by its number alone, and what it refers to is not looked at: that may
// be in use for another by then.
type reliable struct {
	*env
	spec   *TransportSpec
	below  departures
	next   inOrder
	peers  map[int32]*peer
	latest *peer // of them
	// messages that have failed, of which transmit has not sent all packets:
	// how many are not acknowledged; 0: all that come
	failed map[uint64]int
	again  int64 // packets sent again
	twice  int64 // packets that have come twice
}

// departures is what a transport sends its packets through.
type departures interface {
	send(k packet)
	depart(d departure)
	// hold counts n packets from HPU memory more that wait for the wire.
	hold(n int)
	onWire()
	classOf(k portals.OpKind) fabric.Class
}

// inOrder takes the packets of every other node in the order of sending, and is
// told of those that will never come.
type inOrder interface {
	arrivals
	// abandoned ends all messages of a node of which packets are missing.
	abandoned(source int32)
}

// segment is a packet with what the transport knows of it. It is its sender's;
// a receiver looks at packet, number and base until it has acknowledged it.
type segment struct {
	mark poison.Mark
	packet
	number  uint64 // of the packet among those of its source to this node
	base    uint64 // the first number that the source has not given up
	message uint64 // Frame.Number
	flow    uint64
	kind    portals.OpKind
	target  int32
	left    int  // packets of its message from it on
	over    bool // it is acknowledged, or given up
	bytes   int32
	sent    sim.Time // when its turn on the wire came last; queued: it has not
	tries   int      // how often it was sent again
}

const queued sim.Time = -1

// acknowledgement is what a packet refers to that says, by its number, which is
// the first that is missing.
type acknowledgement struct{ _ byte }

var acknowledges = new(acknowledgement)

// peer is another node as the transport sees it.
type peer struct {
	node    int32
	next    uint64         // number of the next packet
	base    uint64         // of the first that was not given up
	window  ring[*segment] // packets without acknowledgement, the oldest first
	backlog ring[packet]   // packets that the window has no room for
	partial []uint64       // messages of which transmit has sent some packets, but not all
	timer   sim.Timer      // the oldest packet may be lost
	silent  bool           // packets to it were given up, and nothing has come from it since

	missing uint64              // number of the first packet from it that has not arrived
	early   map[uint64]*segment // that have
}

// The events of reliable.
const kindTimeout sim.Kind = kindsOfReliable // *peer

func (t *reliable) handle(e *sim.Event) {
	switch e.Kind {
	case kindTimeout:
		t.repeat(e.P.(*peer))
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

// send sends a packet when the window has room for it. To the own node nothing gets lost.
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
	if p.window.len() < t.spec.Window && p.backlog.len() == 0 {
		t.transmit(p, k)
		return
	}
	if k.device {
		t.below.hold(1)
	}
	p.backlog.push(k)
}

// discard drops a packet of a message that has failed; false: it is of another.
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

// count notes that transmit has sent the first packet of a message, or the last.
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
	s.packet, s.number, s.base, s.bytes = k, p.next, p.base, int32(to-from)
	s.message, s.flow, s.kind, s.target, s.left = k.f.Number, k.f.Flow(), k.f.Header.Kind, p.node, k.f.Packets-k.i
	p.next++
	p.window.push(s)
	t.depart(p, s, k.device)
}

func (t *reliable) depart(p *peer, s *segment, device bool) {
	s.sent = queued
	t.below.depart(departure{s, p.node, s.bytes, uint32(s.number), t.below.classOf(s.kind), s.i > 0, device, true, false})
}

// leaves implements transport: what was acknowledged while it waited to be sent again need not be.
func (t *reliable) leaves(ref any, seq uint32) bool {
	s, is := ref.(*segment)
	switch {
	case !is:
		return true
	case uint32(s.number) != seq:
		return false
	case s.over:
		if s.tries == 0 { // given up before its turn came
			t.unsent(undelivered, int(s.bytes))
		}
		return false
	case s.tries > 0:
		t.again++
	default:
		t.account.sent += int64(s.bytes)
	}
	return true
}

// onWire implements transport.
func (t *reliable) onWire(ref any, seq uint32) {
	s := ref.(*segment)
	// it was acknowledged while it waited to be sent again, and is another now
	if uint32(s.number) != seq {
		return
	}
	if s.device {
		s.device = false
		t.below.onWire()
	}
	if s.over {
		return
	}
	s.sent = t.now()
	if p := t.peer(s.target); p.window.front() == s {
		p.timer.Set(s.sent + t.spec.Timeout)
	}
}

// repeat sends the oldest packet again, whose time is over.
func (t *reliable) repeat(p *peer) {
	s := p.window.front()
	if s.tries == t.spec.Retries {
		t.giveUp(p)
		return
	}
	s.tries++
	t.depart(p, s, false)
}

// acknowledged takes the packets that have arrived out of the window, and fills
// it. The oldest that is left has its own time since it was sent; that may be
// over already.
func (t *reliable) acknowledged(p *peer, number uint32) {
	progress := false
	for p.window.len() > 0 && int32(number-uint32(p.window.front().number)) > 0 {
		s := p.window.pop()
		s.over, progress = true, true
		if s.left == 1 {
			t.ended(s.message, portals.NIOK, 0)
		}
		t.core.releaseSegment(s)
	}
	for p.backlog.len() > 0 && p.window.len() < t.spec.Window {
		k := p.backlog.pop()
		if k.device {
			t.below.hold(-1)
		}
		t.transmit(p, k)
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

// ended tells transmit the end of a message, of which so many packets are not acknowledged.
func (t *reliable) ended(message uint64, fail portals.FailType, left int) {
	t.engine.Post(t.now(), t.id, t.id, kindEnded, message<<failBits|uint64(fail), uint64(left), nil)
}

// giveUp fails the messages to a node that are on their way. The packets of
// later ones say by their base that nothing of these will come.
func (t *reliable) giveUp(p *peer) {
	var order []uint64
	note := func(message uint64, left int) {
		if _, known := t.failed[message]; !known { // by its first packet that is not acknowledged
			order = append(order, message)
			t.failed[message] = left
		}
	}
	for p.window.len() > 0 {
		s := p.window.pop()
		s.over = true // and not released: a copy of it may still arrive, and be the first
		t.account.givenUp += int64(s.bytes)
		note(s.message, s.left)
	}
	for p.backlog.len() > 0 {
		k := p.backlog.pop()
		if k.device {
			t.below.hold(-1)
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
	// nobody gets this number: the next packet tells of the end also who has
	// got all that was sent
	p.next++
	p.base, p.silent = p.next, true
	t.post(t.now(), kindEgressSpace, 0, nil)
}

// arrived implements transport.
func (t *reliable) arrived(pk fabric.Packet) {
	p := t.peer(pk.Src)
	if p.silent {
		p.silent = false
		t.post(t.now(), kindHeard, uint64(p.node), nil)
	}
	if pk.Ref == any(acknowledges) {
		t.account.again += int64(pk.Bytes)
		t.acknowledged(p, pk.Seq)
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

// take takes a packet that has not been handed on.
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

// skip goes on with the first packet after those that the source has given up.
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

// undelivered says why a message has failed.
func (t *reliable) undelivered(target int32) string {
	times := "once"
	if t.spec.Retries > 0 {
		times = fmt.Sprintf("%d times", t.spec.Retries+1)
	}
	return fmt.Sprintf("node %d did not acknowledge a packet that was sent %s (transport.retries, %d)", target, times, t.spec.Retries)
}
