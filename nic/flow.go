package nic

import (
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/laws"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

// Congestion control of the reliable transport. With transport.law the packets
// to a node are a flow: a rate law says how many bytes may be on their way, and
// a path choice gives each packet its way. Packets may pass each other, so each
// is acknowledged by its own number, and the receiver puts them in order. A
// packet that a switch has trimmed is refused at once, and sent again.

// flowLaws are the modules of a NIC's flows.
type flowLaws struct {
	*env
	spec          *TransportSpec
	calls, cycles int64 // of modules
	rate, way     *laws.Law
	// the rate law and the path choice; nil: none
	handleRate, handleWay func(f *spin.Flow, s *laws.State)
	modules               func(way bool) (*LawModule, error) // made with the first flow
	trip                  func(target int) sim.Time          // unloaded round trip of a full packet
	seed                  uint64
	meter                 *fabric.Meter // of the node's link, with a law that needs it; nil: none
	queued                int64         // bytes of the packets that wait for it
}

// flow is the state of the packets to one node.
type flow struct {
	rate, way           spin.Flow
	rateState, wayState laws.State
	lost                ring[uint64] // numbers of packets to send again
	turns               ring[turn]   // packets in the order of their turns on the wire
	next                sim.Time     // with Flow.Pause: no packet begins earlier
	pace                sim.Timer    // until next
	timer               sim.Timer    // Flow.Timer
	granted             uint64       // bytes that the receiver has granted since the beginning
}

// turn is the turn of a packet that has been sent again so often before.
type turn struct {
	number uint64
	again  int
}

// response is the reference of the answer to one packet. The number of the fabric
// packet is that packet's.
type response struct {
	// the first missing number is that far behind the packet's number; ±far: it
	// is not known
	ahead   int32
	trimmed bool // the payload has not come
}

const far = 1 << 10

var (
	responses = func() (all [2*far + 1]response) {
		for i := range all {
			all[i].ahead = int32(i) - far
		}
		return all
	}()
	refusal = &response{ahead: -far, trimmed: true}
)

func newFlowLaws(e *env, cfg *Config) *flowLaws {
	if cfg.Transport.Law == "" {
		return nil
	}
	l := &flowLaws{env: e, spec: cfg.Transport, trip: cfg.RoundTrip, modules: cfg.LawModule, seed: cfg.Engine.Rand("nic.flow", cfg.Rank).Uint64()}
	l.rate, l.way = laws.Find(laws.Rates, cfg.Transport.Law), laws.Find(laws.Ways, cfg.Transport.Way)
	if l.rate.Rated {
		m := fabric.NewMeter(e.fabric.Rates, e.fabric.Occupied(int(e.fabric.MTU)))
		l.meter = &m
	}
	return l
}

// load makes the laws ready, with the first flow of the node. A module that
// cannot be made fails the run, and its place has the law of package laws.
func (s *flowLaws) load() {
	for _, way := range []bool{false, true} {
		law, place := s.rate, &s.handleRate
		if way {
			law, place = s.way, &s.handleWay
		}
		if law == nil {
			continue
		}
		m, err := s.modules(way)
		if err != nil {
			s.failed("transport", err)
		}
		*place = s.lawOf(law, m)
	}
}

// begin makes the flow to a node.
func (t *reliable) begin(p *peer) {
	if t.laws.handleRate == nil {
		t.laws.load()
	}
	s := t.fabric
	f := &flow{rate: spin.Flow{
		Base: uint64(t.laws.trip(int(p.node))), MTU: uint64(s.MTU) + uint64(s.Header), MTUTime: uint64(max(1, s.Serial(int(s.MTU)))), Payload: uint64(s.MTU),
		Paths: uint32(min(t.spec.Paths, fabric.Paths)), Seed: t.laws.seed + uint64(p.node)<<32, Now: uint64(t.now()),
	}}
	if s.Trim != "" {
		f.rate.Trims = 1
	}
	f.way = f.rate
	f.rate.Window = uint64(t.spec.FirstWindow) * f.rate.MTU
	f.pace.Init(t.engine, t.id, kindPace, p)
	f.timer.Init(t.engine, t.id, kindLaw, p)
	p.flow = f
	t.laws.handleRate(&f.rate, &f.rateState)
	if t.laws.handleWay != nil {
		t.laws.handleWay(&f.way, &f.wayState)
	}
}

// alarm sets the timer that a law wants. It stands still while the flow has no
// packets.
func (t *reliable) alarm(p *peer) {
	f := p.flow
	if at := sim.Time(f.rate.Timer); at > 0 && p.window.len()+p.backlog.len() > 0 {
		f.timer.Set(max(at, t.now()+1))
	} else {
		f.timer.Stop()
	}
}

// react tells the modules an event about bytes bytes of a flow.
func (t *reliable) react(p *peer, event spin.FlowEvent, bytes int64, trip sim.Time, marked bool, path uint16) {
	f := p.flow
	r := &f.rate
	r.Event, r.Now, r.RTT, r.Bytes, r.Path, r.Marked = event, uint64(t.now()), uint64(trip), uint64(bytes), uint64(path), 0
	if marked {
		r.Marked = 1
	}
	t.laws.handleRate(r, &f.rateState)
	t.alarm(p)
	if t.laws.way != nil {
		w := &f.way
		w.Event, w.Now, w.RTT, w.Bytes, w.Path, w.Marked, w.InFlight = r.Event, r.Now, r.RTT, r.Bytes, uint64(path), r.Marked, r.InFlight
		t.laws.handleWay(w, &f.wayState)
	}
}

func (t *reliable) wireBytes(s *segment) int64 { return int64(s.bytes) + int64(t.fabric.Header) }

// pump sends packets while the law lets more bytes fly, lost ones first. One
// packet may always fly.
func (t *reliable) pump(p *peer) {
	f := p.flow
	for {
		for f.lost.len() > 0 {
			if s := p.at(f.lost.front()); s != nil && !s.over && !s.flying {
				break
			}
			f.lost.pop()
		}
		var s *segment
		var bytes int64
		switch {
		case f.lost.len() > 0:
			s = p.at(f.lost.front())
			bytes = t.wireBytes(s)
		case p.backlog.len() > 0 && p.window.len() < t.spec.Window:
			k := p.backlog.front()
			from, to := k.f.Span(k.i)
			bytes = int64(to-from) + int64(t.fabric.Header)
		default:
			return
		}
		if f.rate.InFlight > 0 && f.rate.InFlight+uint64(bytes) > f.rate.Window {
			return
		}
		if f.rate.Pause > 0 {
			if f.next > t.now() {
				f.pace.Set(f.next)
				return
			}
			f.next = t.now() + sim.Time(f.rate.Pause*uint64(bytes)/f.rate.MTU)
		}
		if s == nil {
			t.fill(p)
			continue
		}
		f.lost.pop()
		s.again++
		t.depart(p, s, false)
	}
}

// fly counts a packet that departs and chooses its path.
func (t *reliable) fly(p *peer, s *segment) {
	f := p.flow
	s.flying = true
	f.rate.InFlight += uint64(t.wireBytes(s))
	if t.laws.way != nil {
		w := &f.way
		w.Event, w.Now, w.Bytes, w.InFlight = spin.FlowSends, uint64(t.now()), uint64(t.wireBytes(s)), f.rate.InFlight
		t.laws.handleWay(w, &f.wayState)
		s.path = uint16(w.Path % fabric.Paths)
	}
}

// lands ends the flight of a packet and returns its bytes.
func (t *reliable) lands(f *flow, s *segment) int64 {
	bytes := t.wireBytes(s)
	if s.flying {
		s.flying = false
		f.rate.InFlight -= uint64(bytes)
	}
	return bytes
}

// flies starts the clock of a packet whose turn on the wire has come.
func (t *reliable) flies(p *peer, s *segment) {
	p.flow.turns.push(turn{s.number, s.again})
	if _, set := p.timer.Due(); !set {
		p.timer.Set(s.sent + t.spec.Timeout)
	}
}

// late finds packets that were not acknowledged in time.
func (t *reliable) late(p *peer) {
	f := p.flow
	for f.turns.len() > 0 {
		n := f.turns.front()
		s := p.at(n.number)
		if s == nil || s.over || !s.flying || s.again != n.again {
			f.turns.pop()
			continue
		}
		if due := s.sent + t.spec.Timeout; due > t.now() {
			p.timer.Set(due)
			break
		}
		f.turns.pop()
		if s.tries == t.spec.Retries {
			t.giveUp(p)
			return
		}
		s.tries++
		bytes := t.lands(f, s)
		f.lost.push(s.number)
		t.react(p, spin.FlowLost, bytes, 0, false, s.path)
	}
	t.pump(p)
}

// answered handles the answer to a packet.
func (t *reliable) answered(p *peer, pk *fabric.Packet, a *response) {
	f := p.flow
	if p.window.len() == 0 {
		return
	}
	if pk.Limit > 0 {
		f.rate.LeastPause = uint64(pk.Limit.Time())
	}
	first := p.window.front().number
	number := first + uint64(int64(int32(pk.Seq-uint32(first))))
	s := p.at(number)
	if a.trimmed {
		if s != nil && s.flying && s.sent != queued {
			bytes := t.lands(f, s)
			f.lost.push(number)
			t.react(p, spin.FlowTrimmed, bytes, t.trip(s), false, pk.Path)
			t.pump(p)
		}
		return
	}
	var bytes int64 // perhaps none: a packet may be empty, and its header
	var trip sim.Time
	progress := false
	if s != nil && !s.over {
		trip = t.trip(s)
		bytes += t.lands(f, s)
		s.over, progress = true, true
	}
	if a.ahead > -far && a.ahead < far {
		for i := 0; i < p.window.len() && int64(p.window.at(i).number-number) < int64(a.ahead); i++ {
			if s := p.window.at(i); !s.over { // its own answer was lost
				bytes += t.lands(f, s)
				s.over, progress = true, true
			}
		}
	}
	if !progress {
		return
	}
	for p.window.len() > 0 && p.window.front().over {
		t.retire(p.window.pop())
	}
	if p.window.len() == 0 {
		f.turns = ring[turn]{items: f.turns.items}
		p.timer.Stop()
	}
	if bytes > 0 {
		t.react(p, spin.FlowAcked, bytes, trip, pk.Marked, pk.Path)
	}
	t.pump(p)
}

// trip is the round trip of a packet, 0 if more than one copy may have been
// answered.
func (t *reliable) trip(s *segment) sim.Time {
	if s.tries > 0 || s.sent == queued {
		return 0
	}
	return t.now() - s.sent
}

// flown takes a packet of a flow and answers it.
func (t *reliable) flown(p *peer, pk *fabric.Packet) {
	number := p.missing + uint64(int64(int32(pk.Seq-uint32(p.missing))))
	known := int64(number-p.missing) < 0 || p.early[number] != nil
	switch {
	case known:
		t.twice++
		t.account.again += int64(pk.Bytes)
	case pk.Trimmed:
		t.grants.asked(p, pk.Ref.(*segment))
		t.reply(p, pk, refusal)
		return
	default:
		s := pk.Ref.(*segment)
		t.take(p, s)
		t.grants.asked(p, s)
	}
	ahead := max(-far, min(far, int64(p.missing-number)))
	t.reply(p, pk, &responses[ahead+far])
}

// answerClass is the class of the transport's own packets.
func (t *reliable) answerClass() fabric.Class {
	if t.fabric.AnswersFirst {
		return fabric.Answers
	}
	return t.below.classOf(portals.OpAck)
}

func (t *reliable) reply(p *peer, pk *fabric.Packet, a *response) {
	if m := t.laws.meter; m != nil {
		m.Rest(t.now(), t.fabric.Occupied(t.spec.AckBytes))
	}
	t.below.depart(departure{
		ref: a, target: p.node, bytes: int32(t.spec.AckBytes), seq: pk.Seq, class: t.answerClass(), path: pk.Path, marked: pk.Marked,
		limit: pk.Limit,
	})
}

// at returns the packet with a number, nil if it is not in the window.
func (p *peer) at(number uint64) *segment {
	if p.window.len() == 0 {
		return nil
	}
	i := number - p.window.front().number
	if i >= uint64(p.window.len()) {
		return nil
	}
	return p.window.at(int(i))
}

// clear forgets all packets of a flow.
func (f *flow) clear() {
	f.pace.Stop()
	f.timer.Stop()
	f.lost, f.turns, f.rate.InFlight = ring[uint64]{items: f.lost.items}, ring[turn]{items: f.turns.items}, 0
}

// metered gives a packet that departs the limit of the node's link. A flow asks
// for a rate if it has none, or one from before a pause, and has more to send.
func (t *reliable) metered(p *peer, s *segment, d *departure) {
	l := t.laws
	if l.meter == nil {
		return
	}
	r := &p.flow.rate
	old := r.Pause == 0 || r.Timer != 0 && sim.Time(r.Timer) <= t.now()
	if !old {
		d.pace = fabric.PaceOf(sim.Time(min(r.Pause, uint64(MaxTime))))
	} else if s.left == 1 && p.backlog.len() == 0 {
		d.pace = fabric.PaceOf(sim.Time(r.Base))
	}
	d.limit = l.meter.Pass(t.now(), t.fabric.Occupied(int(s.bytes)), t.fabric.Rate.Time(l.queued), d.pace)
	l.queued += t.wireBytes(s)
}

// unqueued counts the end of a packet's wait for the node's link.
func (t *reliable) unqueued(s *segment) {
	if t.laws != nil && t.laws.meter != nil {
		t.laws.queued -= t.wireBytes(s)
	}
}
