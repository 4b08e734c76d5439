package nic

import (
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/sim"
)

// egressTurns lets the packets of tenants take turns on the wire, and on the path to
// their own node, whoever has made them: hosts, handlers, or the NIC as an answer.
// Each tenant has bytes there by its weight (start-time fair queueing), and its own
// places of nic.egress_packets. The choice falls when the packet before begins to
// pass, so a packet waits for two of others that have been chosen, and then for its
// tenant's turn. Packets of a tenant keep their order, but for answers, which go
// first where the fabric has buffers of their own for them.
type egressTurns struct {
	lines  []egressLine     // by tenant
	places int              // of each, for packets from HPU memory; maxEgress: no limit
	now    [outlets]float64 // virtual time, bytes by weight
	busy   [outlets]bool    // a packet that was chosen has not begun to pass
	chosen departure        // that packet, of the wire
}

// outlet is a way out of a NIC.
type outlet uint8

const (
	wire outlet = iota
	own         // the path to the same node
	outlets
)

// egressLine is the packets of a tenant.
type egressLine struct {
	weight  float64
	virtual [outlets]float64
	waiting [fabric.Classes + 1]ring[departure] // by class, then those to the same node
	device  int                                 // from HPU memory, that are not on the wire
}

// newEgressTurns returns nil if packets go in the order in which they come.
func newEgressTurns(h *HPUSpec, n *Spec, t *tenants) *egressTurns {
	if t == nil || t.pick == nil {
		return nil
	}
	s := &egressTurns{lines: make([]egressLine, len(t.list)), places: n.EgressPackets}
	if n.EgressPackets < maxEgress {
		s.places = max(1, n.EgressPackets/len(t.list))
	}
	for i, w := range t.parts(h.Arbiter) {
		s.lines[i].weight = w
	}
	return s
}

// parts are the weights of tenants where they take turns.
func (t *tenants) parts(arbiter string) (list []float64) {
	for i := range t.list {
		if arbiter == RoundRobin {
			list = append(list, 1)
		} else {
			list = append(list, float64(t.list[i].Weight))
		}
	}
	return list
}

// enqueue puts a packet behind those of its tenant.
func (t *egressTurns) enqueue(l *link, d *departure) {
	o, q := wire, int(d.class)
	if d.target == l.rank {
		o, q = own, fabric.Classes
	}
	line := &t.lines[d.tenant]
	if line.empty(o) {
		line.virtual[o] = max(line.virtual[o], t.now[o]) // what it did not use is no credit
	}
	line.waiting[q].push(*d)
	t.serve(l, o)
}

// empty reports whether no packet of a tenant waits for a way out.
func (e *egressLine) empty(o outlet) bool {
	if o == own {
		return e.waiting[fabric.Classes].len() == 0
	}
	return e.waiting[fabric.Requests].len()+e.waiting[fabric.Answers].len() == 0
}

// serve launches packets as long as the way out takes some.
func (t *egressTurns) serve(l *link, o outlet) {
	for !t.busy[o] {
		line, q := t.next(l, o)
		if line == nil {
			return
		}
		d := line.waiting[q].pop()
		t.now[o] = line.virtual[o]
		line.virtual[o] += float64(max(1, d.bytes+l.fabric.Header)) / line.weight
		switch sent := l.launch(&d); {
		case !sent:
		case o == wire:
			t.busy[wire], t.chosen = true, d
		case l.turning > l.now():
			t.busy[own] = true
			l.post(l.turning, kindTurned, 0, nil)
		}
	}
}

// next is the tenant with the least virtual time of those with a packet that can go,
// and the place of that packet. nil: there is none.
func (t *egressTurns) next(l *link, o outlet) (best *egressLine, q int) {
	var full [fabric.Classes]bool
	for i := range t.lines {
		line := &t.lines[i]
		if best != nil && best.virtual[o] <= line.virtual[o] {
			continue
		}
		if o == own {
			if !line.empty(own) {
				best, q = line, fabric.Classes
			}
			continue
		}
		for _, c := range [...]fabric.Class{fabric.Answers, fabric.Requests} {
			if line.waiting[c].len() == 0 || full[c] {
				continue
			}
			if full[c] = !l.port.Ready(c); !full[c] {
				best, q = line, int(c)
				break
			}
		}
	}
	return best, q
}

// begins notes that the chosen packet begins to pass the wire. ref is its own.
func (t *egressTurns) begins(l *link, ref any) {
	t.busy[wire] = false
	switch d := &t.chosen; {
	case d.notify:
		l.transport.onWire(ref)
	case d.device:
		l.onWire(d.tenant)
	}
	t.chosen.ref = nil
	t.serve(l, wire)
}

// turned notes that the path to the same node is free.
func (t *egressTurns) turned(l *link) {
	t.busy[own] = false
	t.serve(l, own)
}

// waits is how many packets wait for their turn.
func (t *egressTurns) waits() (packets int) {
	for i := range t.lines {
		for q := range t.lines[i].waiting {
			packets += t.lines[i].waiting[q].len()
		}
	}
	return packets
}

// loopbackRate is the rate of the path to the same node. Tenants share a path of
// some rate: without nic.loopback_rate, that of the links.
func (l *link) loopbackRate() sim.Rate {
	if r := l.spec.LoopbackRate; !r.IsZero() || l.turns == nil {
		return r
	}
	return l.fabric.Rate
}
