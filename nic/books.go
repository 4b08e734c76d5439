package nic

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/fabric"
)

// Books are the accounts of all NICs of a network, added up. They show that no
// byte is lost silently. When a run has no event left, every byte that was
// posted must have a fate or visibly wait for something:
//
//	at a source       posted   = sent + fates of bytes that never leave + bytes that wait to leave
//	in the network    wired    = unwired + lost - doubled + bytes that wait in it
//	at a target       unwired  = came + again + bytes that have come too early
//	in its messages   came     = fates of bytes that came + bytes that wait for a header or a handler
//
// Each message that has ended must have given every byte exactly one fate.
type Books struct {
	sum      account
	drained  bool
	reliable bool
	errs     []error
	waits    int64 // bytes that wait to leave, or belong to messages that have not ended
}

// NewBooks returns empty books. drained means that the run has no event left,
// so nothing is on its way.
func NewBooks(drained bool) *Books { return &Books{drained: drained} }

// Add adds the account of a NIC and compares it with the bytes that wait there.
func (b *Books) Add(n *NIC) {
	a := &n.env.account
	b.sum.add(a)
	vanished := n.env.report.first
	if vanished != nil {
		b.errs = append(b.errs, vanished)
	}
	if !b.drained {
		return
	}
	b.reliable = b.reliable || n.reliable != nil
	held := a.came + a.unsent + a.absent
	for _, of := range a.of {
		held -= of
	}
	leaving := n.leaving()
	b.waits += held + leaving
	b.equal(n, "posted", a.posted, "left, or wait for that", a.sent+a.unsent+leaving)
	b.equal(n, "arrived", a.unwired, "were given to messages", a.came+a.again+n.early())
	if vanished == nil {
		b.equal(n, "have no fate", held, "wait for it", n.holding())
	}
	for _, ni := range n.transmit.interfaces {
		if k := ni.Port.QueuedOps(); k > 0 {
			b.errs = append(b.errs, fmt.Errorf("rank %d: %d operations were not sent", n.env.rank, k))
		}
	}
}

func (b *Books) equal(n *NIC, what string, one int64, must string, other int64) {
	if one != other {
		b.errs = append(b.errs, fmt.Errorf("rank %d: %d B %s, and %d B %s", n.env.rank, one, what, other, must))
	}
}

// Close compares the accounts of all NICs with the network. stuck means that
// the run ended because something waits. The error names each place where bytes
// vanished or appeared from nowhere; nil: there is none.
func (b *Books) Close(f fabric.Fabric, stuck bool) error {
	if !b.drained {
		return errors.Join(b.errs...)
	}
	s := &b.sum
	net, exact := fabric.BalanceOf(f)
	missing := fabric.Tally{Packets: int64(int32(s.out - s.in)), Bytes: s.wired - s.unwired}
	if known := net.Lost.Plus(net.Waiting).Minus(net.Doubled); exact && missing != known {
		b.errs = append(b.errs, fmt.Errorf("the network has brought %d packets and %d B less than it was given, and knows of %d packets and %d B",
			missing.Packets, missing.Bytes, known.Packets, known.Bytes))
	}
	// A network in which packets wait to the end (PFC deadlock) keeps others from
	// being sent, perhaps again.
	if gap := s.sent - s.came; b.reliable && (gap < 0 || gap > s.givenUp && net.Waiting.Packets == 0) {
		b.errs = append(b.errs, fmt.Errorf("%d B of what was sent have not come, and the transport has given %d B up", gap, s.givenUp))
	}
	if waits := b.waits + net.Waiting.Bytes; waits > 0 && len(b.errs) == 0 && !stuck && net.Lost.Packets == 0 && s.again == 0 {
		b.errs = append(b.errs, fmt.Errorf("%d B wait at the end of a run, and nobody for them", waits))
	}
	return errors.Join(b.errs...)
}

// Posted is the bytes of all messages that began on any node, with answers and
// messages of handlers.
func (b *Books) Posted() int64 { return b.sum.posted }

// Fates calls f with each fate and its number of bytes, always in the same
// order.
func (b *Books) Fates(f func(name string, bytes int64)) {
	for i, n := range b.sum.of {
		f(fateNames[i], n)
	}
}

func (a *account) add(o *account) {
	a.came += o.came
	a.posted += o.posted
	a.sent += o.sent
	a.wired += o.wired
	a.unwired += o.unwired
	a.out += o.out
	a.in += o.in
	a.unsent += o.unsent
	a.absent += o.absent
	a.again += o.again
	a.copies += o.copies
	a.givenUp += o.givenUp
	for i := range a.of {
		a.of[i] += o.of[i]
	}
}

// leaving is how many bytes of messages wait to leave.
func (n *NIC) leaving() int64 {
	bytes := n.transmit.fetching
	for c := range n.link.waiting {
		n.link.waiting[c].each(func(d *departure) {
			switch ref := d.ref.(type) {
			case *Frame:
				bytes += int64(d.bytes)
			case *segment:
				if ref.again == 0 && uint32(ref.number) == d.seq {
					bytes += int64(d.bytes)
				}
			}
		})
	}
	if n.reliable != nil {
		for _, p := range n.reliable.peers { //lint:maporder a sum
			p.backlog.each(func(k *packet) {
				from, to := k.f.Span(k.i)
				bytes += int64(to - from)
			})
		}
	}
	return bytes
}

// early is how many bytes came too early and wait for earlier packets of their
// source.
func (n *NIC) early() (bytes int64) {
	if n.reliable != nil {
		for _, p := range n.reliable.peers { //lint:maporder a sum
			for _, s := range p.early { //lint:maporder a sum
				bytes += int64(s.bytes)
			}
		}
	}
	return bytes
}

// holding is how many bytes have come and wait for a header, a header handler,
// a processor or memory.
func (n *NIC) holding() int64 {
	bytes := n.deposit.landing
	seen := map[*inbound]bool{}
	look := func(in *inbound) {
		if in == nil || seen[in] {
			return
		}
		seen[in] = true
		for _, i := range in.held {
			from, to := in.frame.Span(int(i))
			bytes += int64(to - from)
		}
		for _, i := range in.waiting {
			bytes += int64(in.undealt(int(i)))
		}
	}
	for _, in := range n.receive.open { //lint:maporder a sum
		look(in)
	}
	for _, r := range n.schedule.runs {
		if r != nil && r.active {
			look(r.task.in)
		}
	}
	n.schedule.eachTask(func(t *task) {
		look(t.in)
		switch t.kind {
		case headerHandler:
			bytes += int64(t.in.userHeader())
		case payloadHandler:
			bytes += int64(t.in.undealt(int(t.packet)))
		case completionHandler:
		}
	})
	return bytes
}
