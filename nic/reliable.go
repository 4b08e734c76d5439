package nic

import (
	"fmt"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// reliable is a transport between two ends of a network that loses, damages, doubles and delays packets: selective repeat with cumulative
// acknowledgements. Packets to one node are numbered; the receiver keeps those that come too early and acknowledges, for each packet, up
// to where it has all of them; the sender sends the oldest packet again when its time is over.
type reliable struct {
	*env
	spec   *TransportSpec
	below  *link
	next   arrivals
	source deliveries
	peers  map[int32]*peer
	failed map[*Frame]bool // messages given up of which transmit has not sent all packets
	again  int64           // packets sent again
	twice  int64           // packets that have come twice
}

// deliveries is told what became of messages.
type deliveries interface {
	delivered(f *Frame, fail portals.FailType)
}

// segment is a packet with what the transport adds, or an acknowledgement.
type segment struct {
	packet
	source int32
	epoch  uint32 // counts the times that the source has given up
	number uint64 // of the packet among those of its source to this node; an acknowledgement: of the first that is missing
	ack    bool
	sent   sim.Time // when its turn on the wire came last; queued: it has not
	tries  int      // how often it was sent again
}

const queued sim.Time = -1

// peer is another node as the transport sees it.
type peer struct {
	node     int32
	epoch    uint32
	next     uint64         // number of the next packet
	window   ring[*segment] // packets without acknowledgement, the oldest first
	backlog  ring[packet]   // packets that the window has no room for
	timer    bool           // an event is to come
	received struct {
		epoch  uint32
		number uint64 // of the first packet that is missing
		early  map[uint64]*segment
	}
}

// The events of reliable.
const (
	kindTimeout sim.Kind = kindsOfReliable + iota // *peer: its oldest packet may be lost
	kindGivenUp                                   // *Frame: the last packet of a message that has failed before
)

func (t *reliable) handle(e *sim.Event) {
	switch e.Kind {
	case kindTimeout:
		t.timeout(e.P.(*peer))
	case kindGivenUp:
		t.source.delivered(e.P.(*Frame), portals.NIUndeliverable)
	default:
		unknown("reliable", e)
	}
}

func (t *reliable) peer(node int32) *peer {
	p := t.peers[node]
	if p == nil {
		p = &peer{node: node}
		p.received.early = map[uint64]*segment{}
		t.peers[node] = p
	}
	return p
}

// send sends a packet when the window has room for it. To the own node nothing gets lost.
func (t *reliable) send(k packet) {
	if k.f.Target == t.rank {
		t.below.send(k)
		return
	}
	if t.failed[k.f] {
		if k.last() {
			delete(t.failed, k.f)
			t.post(t.now(), kindGivenUp, 0, k.f)
		}
		return
	}
	p := t.peer(k.f.Target)
	if p.window.len() == t.spec.Window {
		if k.device {
			t.below.device++
		}
		p.backlog.push(k)
		return
	}
	t.transmit(p, k)
}

func (t *reliable) transmit(p *peer, k packet) {
	s := &segment{packet: k, source: t.rank, epoch: p.epoch, number: p.next}
	p.next++
	p.window.push(s)
	t.depart(p, s, k.device)
}

func (t *reliable) depart(p *peer, s *segment, device bool) {
	from, to := s.f.Span(s.i)
	s.sent = queued
	t.below.depart(departure{s, p.node, int32(to - from), uint32(s.i), t.below.classOf(&s.f.Header), device, true})
}

// onWire is the turn of a packet on the wire.
func (t *reliable) onWire(s *segment) {
	if s.ack {
		return
	}
	if s.device {
		s.device = false
		t.below.onWire()
	}
	s.sent = t.now()
	if p := t.peer(s.f.Target); !p.timer {
		p.timer = true
		t.post(s.sent+t.spec.Timeout, kindTimeout, 0, p)
	}
}

// timeout sends the oldest packet again if its time is over.
func (t *reliable) timeout(p *peer) {
	p.timer = false
	if p.window.len() == 0 {
		return
	}
	s := p.window.front()
	switch due := s.sent + t.spec.Timeout; {
	case s.sent == queued: // its turn on the wire starts the timer again
	case t.now() < due:
		p.timer = true
		t.post(due, kindTimeout, 0, p)
	case s.tries == t.spec.Retries:
		t.giveUp(p)
	default:
		s.tries++
		t.again++
		t.depart(p, s, false)
	}
}

// giveUp fails the messages to a node that are on their way.
func (t *reliable) giveUp(p *peer) {
	whole := map[*Frame]bool{} // its last packet is here, too
	var order []*Frame
	note := func(k packet) {
		if _, known := whole[k.f]; !known {
			order = append(order, k.f)
		}
		whole[k.f] = k.last()
	}
	for p.window.len() > 0 {
		note(p.window.pop().packet)
	}
	for p.backlog.len() > 0 {
		k := p.backlog.pop()
		if k.device {
			t.below.device--
		}
		note(k)
	}
	p.epoch++
	p.next = 0
	for _, f := range order {
		t.report.lost(t.env, &f.Header, &LostMessage{
			At: t.now(), Packets: f.Packets, Of: f.Packets, Bytes: uint64(len(f.Data)), Length: uint64(len(f.Data)),
			Cause: fmt.Sprintf("node %d has acknowledged nothing after %d retries (transport.retries)", p.node, t.spec.Retries),
		})
		if whole[f] {
			t.source.delivered(f, portals.NIUndeliverable)
		} else {
			t.failed[f] = true
		}
	}
	t.below.room.egressSpace()
}

// packetArrived is a packet from the own node.
func (t *reliable) packetArrived(f *Frame, i int) {
	t.next.packetArrived(f, i)
	if i+1 == f.Packets {
		t.source.delivered(f, portals.NIOK)
	}
}

// segmentArrived is a packet or an acknowledgement from another node.
func (t *reliable) segmentArrived(s *segment) {
	p := t.peer(s.source)
	if s.ack {
		t.acknowledged(p, s)
		return
	}
	in := &p.received
	if s.epoch > in.epoch {
		in.epoch, in.number = s.epoch, 0
		clear(in.early)
	}
	switch {
	case s.epoch < in.epoch:
		return
	case s.number < in.number || in.early[s.number] != nil:
		t.twice++
	default:
		in.early[s.number] = s
	}
	for next := in.early[in.number]; next != nil; next = in.early[in.number] {
		delete(in.early, in.number)
		in.number++
		t.next.packetArrived(next.f, next.i)
	}
	t.below.depart(departure{
		ref: &segment{source: t.rank, epoch: in.epoch, number: in.number, ack: true}, target: p.node, bytes: int32(t.spec.AckBytes), class: t.below.answers(),
	})
}

// answers is the class of acknowledgements.
func (l *link) answers() fabric.Class {
	if l.classes {
		return fabric.Answers
	}
	return fabric.Requests
}

// acknowledged takes the packets that have arrived out of the window, and fills it.
func (t *reliable) acknowledged(p *peer, ack *segment) {
	if ack.epoch != p.epoch {
		return
	}
	for p.window.len() > 0 && p.window.front().number < ack.number {
		if s := p.window.pop(); s.last() {
			t.source.delivered(s.f, portals.NIOK)
		}
	}
	for p.backlog.len() > 0 && p.window.len() < t.spec.Window {
		k := p.backlog.pop()
		if k.device {
			t.below.device--
		}
		t.transmit(p, k)
	}
}
