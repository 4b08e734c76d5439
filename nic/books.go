package nic

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/fabric"
)

// Books are the accounts of all NICs of a network, added up: no byte is lost
// without a word. When a run has no event left, every byte that was posted must
// have a fate or be seen to wait for something:
//
//	at a source       posted   = sent + fates of what has never left + what waits to leave
//	in the network    wired    = unwired + lost - doubled + what waits in it
//	at a target       unwired  = came + again + what has come too early
//	in its messages   came     = fates of what has come + what waits for a header or a handler
//
// and each message that has ended has given every byte of it one fate.
type Books struct {
	sum      account
	drained  bool
	reliable bool
	errs     []error
	waits    int64 // bytes that wait to leave, or of messages that go on
}

// NewBooks returns books without an account. drained: the run has no event
// left, so that nothing is on its way.
func NewBooks(drained bool) *Books { return &Books{drained: drained} }

// Add adds the account of a NIC, and holds it against what waits there.
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

// Close holds the accounts of all NICs against the network; stuck: the run has
// ended because somebody waits. It returns an error that names each place where
// bytes have vanished or have come from nowhere; nil: there is none.
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
	if gap := s.sent - s.came; b.reliable && (gap < 0 || gap > s.givenUp) {
		b.errs = append(b.errs, fmt.Errorf("%d B of what was sent have not come, and the transport has given %d B up", gap, s.givenUp))
	}
	if waits := b.waits + net.Waiting.Bytes; waits > 0 && len(b.errs) == 0 && !stuck && net.Lost.Packets == 0 && s.again == 0 {
		b.errs = append(b.errs, fmt.Errorf("%d B wait at the end of a run, and nobody for them", waits))
	}
	return errors.Join(b.errs...)
}

// Posted is how many bytes the messages of all nodes had that began, those of
// answers and of handlers included.
func (b *Books) Posted() int64 { return b.sum.posted }

// Fates calls f with what became of bytes, and of how many, in an order that is always the same.
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
				if ref.tries == 0 && uint32(ref.number) == d.seq {
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

// early is how many bytes have come before others of their source, for which they wait.
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

// holding is how many bytes that have come wait for something: for their
// header, for its handler, for a processor, or for memory.
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
	for i := range n.schedule.runs {
		if r := &n.schedule.runs[i]; r.active {
			look(r.task.in)
		}
	}
	for i := range n.schedule.pools {
		n.schedule.pools[i].tasks.each(func(t *task) {
			look(t.in)
			switch t.kind {
			case headerHandler:
				bytes += int64(t.in.userHeader())
			case payloadHandler:
				bytes += int64(t.in.undealt(int(t.packet)))
			case completionHandler:
			}
		})
	}
	return bytes
}
