package nic

import (
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
)

// turns lets the DMA operations of tenants take turns on the bus. Each tenant has
// few bytes that wait for it: a piece of hpu.fragment, or with a smaller weight
// than others a smaller piece. The bus takes what waits in the order of arrival, so
// that tenants who always have something waiting get their parts, and nobody waits
// for more than the pieces of the others (deficit weighted round-robin, as in
// OSMOSIS). Operations of one tenant keep their order, and land in it. In between go
// packets that no handler takes, and records of events, each as a whole.
type turns struct {
	lines []dmaLine // by tenant
	whole bool      // operations are not cut
	last  int       // whose handler went to the egress last
}

// dmaLine is the operations of a tenant.
type dmaLine struct {
	ops     ring[*dmaOp] // not yet on the bus as a whole
	bytes   int64        // of all that have not ended
	most    int64        // of them before further ones are refused, and of reads on their way
	quantum int64        // of the writes that wait for the bus
	queued  int64        // those bytes
	reading int64        // bytes of reads and atomics on their way
	sends   ring[*run]   // handlers that wait for room in the egress

	deposits ring[*host.Access] // packets without handlers and records that are not on the bus
	deposit  *host.Access       // one that waits for the bus; nil: none does
	after    bool               // the next turn of the line is a packet's
}

// newTurns returns nil if operations go in the order in which they come.
func newTurns(h *HPUSpec, t *tenants) *turns {
	if t == nil || t.pick == nil {
		return nil
	}
	s, heaviest := &turns{lines: make([]dmaLine, len(t.list)), whole: h.Fragment == 0}, 1
	for i := range t.list {
		heaviest = max(heaviest, t.list[i].Weight)
	}
	for i := range s.lines {
		l, o := &s.lines[i], &t.list[i]
		if l.most = int64(h.DMABytes); o.DMABytes > 0 {
			l.most = int64(o.DMABytes)
		}
		if l.quantum = int64(h.Fragment); h.Arbiter != RoundRobin {
			l.quantum = max(1, l.quantum*int64(o.Weight)/int64(heaviest))
		}
	}
	return s
}

func (t *turns) of(o *dmaOp) *dmaLine { return &t.lines[o.memory.tenant] }

// accepts reports whether the line of an operation has room for it. One that is too
// large comes when there is no other.
func (t *turns) accepts(o *dmaOp) bool {
	l := t.of(o)
	return l.bytes == 0 || l.bytes+int64(o.access.Length) <= l.most
}

// next is how many bytes of the oldest operation of a line may go on the bus now.
// Not ok: it must wait.
func (t *turns) next(l *dmaLine) (n int, ok bool) {
	if l.ops.len() == 0 {
		return 0, false
	}
	o := l.ops.front()
	n = o.access.Length - int(o.sent)
	if cut := int(l.quantum); !t.whole && n > cut && !o.vectors && (o.op == hpu.OpDMAToHost || o.op == hpu.OpDMAFromHost) {
		n = cut
	}
	if o.op == hpu.OpDMAToHost {
		return n, l.queued == 0 || l.queued+int64(n) <= l.quantum
	}
	return n, l.reading == 0 || l.reading+max(1, int64(n)) <= l.most
}

// sender takes out the handler that waits for the egress and is next: of each tenant
// with room there one in turn; nil: there is none.
func (t *turns) sender(d *act) *run {
	for range t.lines {
		t.last = (t.last + 1) % len(t.lines)
		if l := &t.lines[t.last]; l.sends.len() > 0 && d.egressRoom(l.sends.front()) {
			return l.sends.pop()
		}
	}
	return nil
}

// put puts what a line may have there on the bus. by is the operation whose handler
// asks; others learn that their write has begun.
func (t *turns) put(d *act, l *dmaLine, by *dmaOp) {
	for {
		n, ok := t.next(l)
		switch {
		case (l.after || !ok) && l.mayLand():
			l.land(d)
			continue
		case !ok:
			return
		}
		l.after = true
		o := l.ops.front()
		if o.sent += int32(n); int(o.sent) == o.access.Length {
			if l.ops.pop(); o.op == hpu.OpDMAToHost {
				o.in.turns--
			}
		}
		if a := &o.access; n == a.Length {
			o.put(d, a)
		} else {
			o.put(d, o.pieceOf(d, n))
		}
		if int(o.sent) == o.access.Length && o.handle == released && o.asks && o != by {
			o.asks = false
			d.sched.resumable(o.run, o.begun())
		}
	}
}

// lands lets the write of a packet that no handler takes, or of a record, take its turn
// with the writes of its tenant.
func (t *turns) lands(d *act, a *host.Access) {
	l := &t.lines[a.Line]
	l.deposits.push(a)
	t.put(d, l, nil)
}

// mayLand reports whether there is one that may go on the bus now.
func (l *dmaLine) mayLand() bool {
	return l.deposits.len() > 0 && l.deposit == nil && (l.queued == 0 || l.queued+busy(l.deposits.front()) <= l.quantum)
}

// land puts the next such write on the bus.
func (l *dmaLine) land(d *act) {
	a := l.deposits.pop()
	l.after, a.Begin = false, true
	// what waits for a page holds up no other write of the tenant
	if !d.bus.Write(a) && !a.Held() {
		l.deposit = a
		l.queued += busy(a)
	}
}

// landsNow notes that the bus has taken such a write, or does not take it now.
func (t *turns) landsNow(d *act, a *host.Access) {
	if l := &t.lines[a.Line]; l.deposit == a {
		l.deposit = nil
		l.queued -= busy(a)
		t.put(d, l, nil)
	}
}

// busy is what a write counts while it waits for the bus. One without bytes takes the
// bus, too.
func busy(a *host.Access) int64 { return max(1, int64(a.Length)) }

// pieceOf is the access of the next n bytes of an operation, behind those that are
// on their way.
func (o *dmaOp) pieceOf(d *act, n int) *host.Access {
	from, a := &o.access, d.core.access()
	at := from.Addr
	if from.Places != nil {
		at = o.region.Addr(o.offset)
	}
	a.Space, a.Length, a.Client, a.Ref, a.Addr, a.Order, a.Flow = from.Space, n, d, o, at+uint64(int(o.sent)-n), from.Order, from.Flow
	a.Ports = from.Ports
	o.landing++
	return a
}

// waits notes that an access waits for the bus, or is to read.
func (l *dmaLine) waits(o *dmaOp, a *host.Access, begun bool) {
	switch {
	case o.op != hpu.OpDMAToHost:
		l.reading += busy(a)
	case !begun:
		a.Serial = 1
		l.queued += busy(a)
	}
}

// begins notes that the bus has taken a write, or that it never will.
func (l *dmaLine) begins(a *host.Access) {
	l.queued -= busy(a) * int64(a.Serial)
	a.Serial = 0
}

// allBegun reports whether the bus has taken all of a write, with the piece that it has
// taken now. A piece that fails is never taken.
func (o *dmaOp) allBegun(a *host.Access) bool {
	o.taken += int32(a.Length)
	return int(o.taken) == o.access.Length
}

// landed notes the end of an access of a line. Not over: the operation has further
// pieces.
func (o *dmaOp) landed(d *act, a *host.Access, s host.Status) (over bool) {
	l := d.dma.turns.of(o)
	l.begins(a)
	if o.op != hpu.OpDMAToHost {
		l.reading -= busy(a)
	}
	if o.status == host.OK {
		o.status = s
	}
	if a == &o.access {
		return true
	}
	d.core.releaseAccess(a)
	if o.landing--; o.landing > 0 || int(o.sent) < o.access.Length {
		d.dma.turns.put(d, l, nil)
		return false
	}
	return true
}
