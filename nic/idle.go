package nic

import (
	"errors"
	"fmt"
)

// Idle returns nil if nothing is on its way through the NIC, and otherwise an
// error that names the rest. After a run without losses it must return nil. It
// is for tests: its time is proportional to the data that was sent.
func (n *NIC) Idle() error {
	var left []error
	check := func(what string, count int) {
		if count != 0 {
			left = append(left, fmt.Errorf("nic: rank %d: %d %s", n.env.rank, count, what))
		}
	}
	behind := 0
	for _, k := range n.transmit.behind { //lint:maporder a sum
		behind += k
	}
	check("messages wait for earlier ones to be read", behind)
	for i := range n.link.waiting {
		check("packets wait for the fabric", n.link.waiting[i].len())
	}
	if t := n.link.turns; t != nil {
		check("packets wait for their tenants' turns", t.waits())
	}
	check("packets from HPU memory are not on the wire", int(n.link.device))
	check("messages are not whole", len(n.receive.open))
	check("packets wait for a processor", int(n.schedule.buffered))
	check("handlers wait for a processor", int(n.schedule.waiting))
	check("puts are promised", n.act.requests.promised)
	check("operations of handlers have not left", n.act.requests.commands)
	check("handlers wait for the egress", n.act.egress.len())
	check("bytes of DMA of handlers are on their way", int(n.act.dma.bytes))
	if t := n.act.dma.turns; t != nil {
		for i := range t.lines {
			check("bytes of DMA of a tenant's handlers are on their way", int(t.lines[i].bytes))
		}
	}
	check("replies are waited for", len(n.act.requests.answers)-len(n.act.requests.unused))
	if r := n.reliable; r != nil {
		check("messages have not been acknowledged", len(n.transmit.undelivered)+len(n.transmit.answers))
		check("nodes do not know of lost answers", len(n.transmit.owed))
		check("messages have failed of which not all is read", len(r.failed))
		check("packets are in windows", r.count(func(p *peer) int { return p.window.len() }))
		check("packets wait for a window", r.count(func(p *peer) int { return p.backlog.len() }))
		check("messages are sent in part", r.count(func(p *peer) int { return len(p.partial) }))
		check("packets have come too early", r.count(func(p *peer) int { return len(p.early) }))
	}
	return errors.Join(left...)
}

func (t *reliable) count(of func(p *peer) int) (sum int) {
	for _, p := range t.peers { //lint:maporder a sum
		sum += of(p)
	}
	return sum
}
