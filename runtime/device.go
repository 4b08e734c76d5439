package runtime

import (
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
)

// answer says who waits for a reply: a handler that is suspended until the data is in HPU memory, a message that the reply
// completes, or both.
type answer struct {
	run        *run // nil: no handler waits
	generation uint32
	program    *hpu.Program
	local      uint32
	length     uint64
	completes  *unfinished
}

// issueWaiting sends a get or a fetching atomic from the device and suspends the handler until the reply is in HPU memory.
func (n *Node) issueWaiting(r *run) {
	w := &r.wait
	d := &w.desc
	ho, result := n.handlerOp(r, w.op, d)
	if result == hpu.OK {
		local := d.Local
		if w.op == hpu.OpAtomicFromDevice {
			local = d.Fetch
		}
		ho.Cookie = n.remember(answer{
			run: r, generation: r.generation, program: r.ctx.Program(), local: local, length: d.Length,
		})
		if result = n.issueOp(r, w.op, d, &ho, n.now()); result == hpu.OK {
			n.coreIdle(n.hpus.coreOf(r))
			return
		}
	}
	n.proceed(r, result)
}

// remember notes who waits for a reply; the cookie, which is not 0, names the note.
func (n *Node) remember(a answer) (cookie uint64) {
	if k := len(n.unused) - 1; k >= 0 {
		cookie = n.unused[k]
		n.unused = n.unused[:k]
		n.answers[cookie-1] = a
		return cookie
	}
	n.answers = append(n.answers, a)
	return uint64(len(n.answers))
}

// note adds to a cookie, or to a new one if it is 0, the message that the reply completes.
func (n *Node) note(cookie uint64, u *unfinished) uint64 {
	if cookie == 0 {
		return n.remember(answer{completes: u})
	}
	n.answers[cookie-1].completes = u
	return cookie
}

// forget drops what was noted for an operation that is through or did not leave.
func (n *Node) forget(cookie uint64) {
	if cookie != 0 {
		n.unused = append(n.unused, cookie)
	}
}

// answered puts a packet of a reply into HPU memory.
func (n *Node) answered(m *message, i int) {
	a := &n.answers[m.rx.d.Cookie-1]
	from, to := m.span(i)
	to = min(to, int(min(a.length, m.rx.d.MLength)))
	if from < to {
		copy(a.program.Memory()[uint64(a.local)+uint64(from):], m.data[from:to])
	}
	n.dealt(m)
}

// answerThere lets the handler that waits for a reply go on: all of it is in HPU memory, or it was refused.
func (n *Node) answerThere(a *answer, fail portals.FailType) {
	r := a.run
	a.run = nil
	if r == nil || !r.active || r.generation != a.generation {
		return
	}
	result := hpu.OK
	if fail != portals.NIOK {
		result = hpu.Denied
	}
	n.resumable(r, result)
}

// replied completes the message that a reply completes, with the record of the reply's end.
func (n *Node) replied(cookie, bytes uint64, fail portals.FailType) {
	completes := n.answers[cookie-1].completes
	n.forget(cookie)
	if completes != nil {
		completes.operationEnded(bytes, fail)
	}
}

// unfinished is a message whose entry waits for an operation of one of its handlers (sPIN'17 §2, the _PENDING codes): the
// communication event counts the bytes of both.
type unfinished struct {
	ni         *NI
	d          *portals.Delivery
	out        portals.Outcome
	held       bool // the message itself is through
	operations int  // that are to complete it and are not through
}

// unfinish is what operations that complete the message note themselves in.
func (r *receive) unfinish() *unfinished {
	if r.open == nil {
		return &unfinished{ni: r.ni, d: r.d}
	}
	return r.open
}

// messageEnded completes a pending message, if its operations are through.
func (u *unfinished) messageEnded(out portals.Outcome) {
	u.held = true
	u.out.Delivered += out.Delivered
	if out.Fail != portals.NIOK {
		u.out.Fail = out.Fail
	}
	u.finish()
}

// operationEnded completes a pending message, if its own packets are through and this was the last of its operations.
func (u *unfinished) operationEnded(bytes uint64, fail portals.FailType) {
	u.operations--
	u.out.Delivered += bytes
	if u.out.Fail == portals.NIOK {
		u.out.Fail = fail
	}
	u.finish()
}

func (u *unfinished) finish() {
	if u.held && u.operations == 0 {
		u.ni.port.Finish(u.d, u.out)
	}
}

// hostRegion is the host memory that handlers of a message reach as space; false if there is no such space.
func (r *receive) hostRegion(space uint32) (portals.Region, bool) {
	switch space {
	case meHostMem:
		return *r.d.Region(), true
	case handlerHostMem:
		return r.d.Spin.HostMem, true
	}
	return portals.Region{}, false
}

// The spaces of host memory (docs/abi.md).
const (
	meHostMem      = 0
	handlerHostMem = 1
)

// hostRange appends the pieces of host memory that n bytes at offset of a space cover, and returns the address of the first
// byte. It reports whether all of them exist.
func (r *receive) hostRange(pieces [][]byte, space uint32, offset, n uint64) (_ [][]byte, address uint64, ok bool) {
	region, ok := r.hostRegion(space)
	if !ok || offset > region.Length || n > region.Length-offset {
		return pieces, 0, false
	}
	covered := uint64(0) // less than n if the region claims to be longer than its vectors
	it := region.Segments(offset, n)
	for addr, k, more := it.Next(); more; addr, k, more = it.Next() {
		b, ok := r.ni.proc.memory.Bytes(addr, k)
		if !ok {
			return pieces, 0, false
		}
		pieces = append(pieces, b)
		covered += k
	}
	return pieces, region.Addr(offset), covered == n
}
