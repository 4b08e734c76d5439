package nic

import (
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

// Credits of receivers, for rate laws with Grants. A packet tells how many
// packets its message still has, and the receiver knows which of them are here.
// It grants its sources bytes in turn, at the rate of its link: as many as
// packets are missing and neither granted nor on their way. When nobody lacks
// any, each source gets some ahead, so that its next message need not wait.

// asks is a receiver's state of a source.
type asks struct {
	last    uint64 // number of the last packet of the messages that it has seen
	out     int64  // bytes that are granted and have not come
	most    int64  // bytes that are granted ahead
	granted uint64 // bytes since the beginning of the flow
	active  bool   // it is among those that lack bytes
	idle    bool   // among the others
}

// grants is the pace of a receiver.
type grants struct {
	t            *reliable
	active, idle ring[*peer]
	timer        sim.Timer
	running      bool
}

// notice is the reference of a grant. The number of its packet is the lower bits
// of asks.granted.
type notice struct{ _ byte }

var granting = new(notice)

// lacks returns how many bytes of a source are missing and not granted.
func (g *grants) lacks(p *peer) int64 {
	f := g.t.fabric
	missing := int64(p.asks.last-p.missing) + 1 - int64(len(p.early))
	return missing*(int64(f.MTU)+int64(f.Header)) - p.asks.out
}

// asked notes that a packet has come, with or without its payload.
func (g *grants) asked(p *peer, s *segment) {
	t, a := g.t, &p.asks
	if !t.laws.rate.Grants {
		return
	}
	if a.most == 0 {
		a.most = int64(t.laws.trip(int(p.node))) * 3 / 2 / max(1, int64(t.fabric.Serial(int(t.fabric.MTU)))) * int64(t.fabric.MTU)
	}
	a.last = max(a.last, s.number+uint64(s.left)-1)
	a.out -= min(a.out, t.wireBytes(s))
	if a.active || g.lacks(p) <= 0 {
		return
	}
	a.active = true
	g.active.push(p)
	if !g.running {
		g.running = true
		g.timer.Init(t.engine, t.id, kindGrant, t)
		g.timer.Set(t.now())
	}
}

// next gives the next source its bytes.
func (g *grants) next() {
	t := g.t
	each := int64(t.spec.GrantBytes)
	var bytes int64
	switch {
	case g.active.len() > 0:
		p := g.active.pop()
		a := &p.asks
		if bytes = max(0, min(each, g.lacks(p))); bytes > 0 {
			g.give(p, bytes)
		}
		if g.lacks(p) > 0 {
			g.active.push(p)
			break
		}
		if a.active = false; !a.idle {
			a.idle = true
			g.idle.push(p)
		}
	case g.idle.len() > 0:
		p := g.idle.pop()
		a := &p.asks
		if a.idle = false; a.active || g.lacks(p) <= -a.most {
			break
		}
		bytes = each
		g.give(p, bytes)
		a.idle = true
		g.idle.push(p)
	default:
		g.running = false
		return
	}
	time := t.fabric.Rate.Time(bytes)
	g.timer.Set(t.now() + sim.Time(float64(time)/t.spec.GrantShare))
}

func (g *grants) give(p *peer, bytes int64) {
	t := g.t
	p.asks.granted += uint64(bytes)
	p.asks.out += bytes
	t.below.depart(departure{ref: granting, target: p.node, bytes: int32(t.spec.AckBytes), seq: uint32(p.asks.granted), class: t.answerClass()})
}

// permitted handles a grant.
func (t *reliable) permitted(p *peer, number uint32) {
	f := p.flow
	if f == nil {
		return
	}
	more := int64(int32(number - uint32(f.granted)))
	if more <= 0 { // a later one has come before
		return
	}
	f.granted += uint64(more)
	t.react(p, spin.FlowGranted, more, 0, false, 0)
	t.pump(p)
}
