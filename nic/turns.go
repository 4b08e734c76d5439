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
// OSMOSIS). Operations of one tenant keep their order, and land in it.
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
	return n, l.reading == 0 || l.reading+int64(n) <= l.most
}

// sender takes out the handler that waits for the egress and is next: of each tenant
// one in turn. There must be one.
func (t *turns) sender() *run {
	for {
		if t.last = (t.last + 1) % len(t.lines); t.lines[t.last].sends.len() > 0 {
			return t.lines[t.last].sends.pop()
		}
	}
}

// put puts what a line may have there on the bus. by is the operation whose handler
// asks; others learn that their write has begun.
func (t *turns) put(d *act, l *dmaLine, by *dmaOp) {
	for {
		n, ok := t.next(l)
		if !ok {
			return
		}
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
		l.reading += int64(a.Length)
	case !begun:
		a.Serial = 1
		l.queued += int64(a.Length)
	}
}

// begins notes that the bus has taken a write, or that it never will.
func (l *dmaLine) begins(a *host.Access) {
	l.queued -= int64(a.Length * a.Serial)
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
		l.reading -= int64(a.Length)
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
