package runtime

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
)

// actions is what the device offers the handlers of a node; it implements hpu.Device.
//
// A handler is executed at the first instant of a segment, ahead of its own time. What it asks for is stamped with the time
// its cycles have reached: calls with no answer to wait for become events of that time, calls whose answer depends on
// others suspend the handler until then.
type actions struct{ n *Node }

// blockedOn is what a suspended handler waits for.
type blockedOn struct {
	op     hpu.Op
	space  uint32
	offset uint64
	local  uint32
	length uint32
	a, b   uint64
	desc   hpu.Operation
}

// String says what is waited for, for the diagnosis of a stuck run.
func (b *blockedOn) String() string { return "the result of " + b.op.String() }

// Act carries out one action of the handler in context c.
func (d *actions) Act(c *hpu.Context, a *hpu.Action) (result int64, blocked bool) {
	n := d.n
	r := &n.hpus.runs[c.Index()]
	at := r.start + n.profile.HPU.Time(a.Cycles-r.charged)
	switch a.Op {
	case hpu.OpDMAToHostNB, hpu.OpDMAFromHostNB, hpu.OpDMACASNB, hpu.OpDMAFAddNB:
		return n.startDMA(r, a, at), false
	case hpu.OpPutFromHost, hpu.OpGetFromHost, hpu.OpAtomicFromHost, hpu.OpTimer, hpu.OpToSelf:
		return n.issueLater(r, a.Op, &a.Desc, a.A, at), false
	case hpu.OpPutFromDevice, hpu.OpAtomicFromDevice:
		if sends(a.Op, &a.Desc) && n.egressRoom() {
			return n.issueLater(r, a.Op, &a.Desc, 0, at), false
		}
	case hpu.OpCTGet:
		// A counter may change before the handler's own time: the answer is that of its time.
	case hpu.OpCTSet, hpu.OpCTInc, hpu.OpAck:
		return n.issueCounter(r, a, at), false
	case hpu.OpLog:
		if n.cluster.log != nil {
			mem := c.Program().Memory()
			line := string(mem[a.Local : a.Local+a.Len])
			if cut := a.A - uint64(a.Len); cut > 0 {
				line += fmt.Sprintf("… and %d bytes", cut)
			}
			n.cluster.log(int(n.rank), at, r.task.m.rx.handlers.memory.name, line)
		}
		return 0, false
	case hpu.OpCAS, hpu.OpFAdd:
		if at == n.now() {
			return 0, false
		}
	}
	r.wait = blockedOn{op: a.Op, space: a.Space, offset: a.Offset, local: a.Local, length: a.Len, a: a.A, b: a.B, desc: a.Desc}
	if a.Op == hpu.OpCTGet || a.Op == hpu.OpCTSet {
		r.wait.a = uint64(a.CT)
	}
	return 0, true
}

// suspended is the moment at which a handler has used up the cycles before a call that waits: the call takes effect now.
func (n *Node) suspended(r *run) {
	w := &r.wait
	c := n.hpus.coreOf(r)
	r.since = n.now()
	r.landed = false
	if sends(w.op, &w.desc) {
		n.awaitRoom(r)
		return
	}
	switch w.op {
	case hpu.OpCAS, hpu.OpFAdd:
		n.proceed(r, 0)
	case hpu.OpYield:
		if c.resume.len() == 0 && n.hpus.tasks.len() == 0 {
			n.proceed(r, 0)
			return
		}
		c.resume.push(r)
		if c.resume.len() == 1 && n.hpus.tasks.len() > 0 && c.active < n.hpus.perCore {
			c.running = false
			n.startTask(c.index, n.hpus.tasks.pop())
			return
		}
		n.coreIdle(c)
	case hpu.OpDMATest:
		n.proceed(r, r.testDMA(w.a))
	case hpu.OpDMAWait:
		n.waitDMA(r, w.a)
	case hpu.OpCTGet:
		n.proceed(r, n.readCounter(r, uint32(w.a), w.local))
	case hpu.OpGetFromDevice, hpu.OpAtomicFromDevice:
		n.issueWaiting(r)
	default:
		n.blockingDMA(r)
	}
}

// awaitRoom sends a message of a handler from HPU memory once the egress has room.
func (n *Node) awaitRoom(r *run) {
	if n.egressRoom() {
		n.proceed(r, n.issueLater(r, r.wait.op, &r.wait.desc, 0, n.now()))
		return
	}
	n.hpus.egress.push(r)
	n.coreIdle(n.hpus.coreOf(r))
}

// proceed goes on with a handler that did not have to wait: it keeps its core.
func (n *Node) proceed(r *run, result int64) {
	r.ready = result
	n.resumeRun(r)
}

// egressSpace lets handlers go on that wait for the egress.
func (n *Node) egressSpace() {
	p := &n.hpus
	for p.egress.len() > 0 && n.egressRoom() {
		r := p.egress.pop()
		n.resumable(r, n.issueLater(r, r.wait.op, &r.wait.desc, 0, n.now()))
	}
}

// readCounter stores success and failure of a counter in HPU memory.
func (n *Node) readCounter(r *run, ct, out uint32) int64 {
	v, err := r.task.m.rx.ni.CTGet(portals.Handle(ct))
	if err != nil {
		return hpu.Invalid
	}
	mem := r.ctx.Program().Memory()
	binary.LittleEndian.PutUint64(mem[out:], v.Success)
	binary.LittleEndian.PutUint64(mem[out+8:], v.Failure)
	return hpu.OK
}
