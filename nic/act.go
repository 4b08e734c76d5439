package nic

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// act executes handlers and carries out their requests to the device. It
// implements hpu.Device.
//
// A segment of a handler is executed at its first instant, ahead of the
// handler's own time. Each request gets the time that the handler's cycles have
// reached. A call without an answer becomes an event of that time. A call whose
// answer depends on others suspends the handler until that time.
type act struct {
	*env
	sched    resuming
	runs     []*run // contexts, by their index
	dma      dmaRoom
	inject   func(rank int, op hpu.Op) int64
	deposits landing
	out      origin
	room     roomy
	log      func(rank int, at sim.Time, program, line string)
	nodes    uint32

	requests   requests
	scratch    []byte     // buffer of gather
	timers     timers     // messages to self of a later moment
	egress     ring[*run] // handlers that wait for room in the egress
	woken      ring[*run] // buffer of changed
	hostWrites freeList[hostWrite]
	tells      bool  // contexts what the costs of handlers depend on
	lost       int64 // actions on counters that were freed before the action's time
}

// resuming lets suspended handlers continue.
type resuming interface {
	resumable(r *run, result int64)
}

type origin interface {
	drain()
	prepare(ni *Interface, op *portals.Op, by *issue) *outgoing
	start(o *outgoing)
}

// roomy reports whether the egress has room.
type roomy interface {
	egressRoom(tenant uint16, promised int) bool
}

// landing learns when writes to host memory end.
type landing interface {
	wrote(in *inbound, write int)
}

// blockedOn is the operation that a suspended handler waits for.
type blockedOn struct {
	offset uint64
	a, b   uint64
	space  uint32
	local  uint32
	length uint32
	op     hpu.Op
}

// String describes the wait for the diagnosis of a stuck run.
func (b *blockedOn) String() string {
	if b.op == hpu.OpWait32 {
		return fmt.Sprintf("another value than %#x in HPU memory at %#x (wait32)", b.a, b.local)
	}
	return "the result of " + b.op.String()
}

// The events of act.
const (
	// *issue: the handler's time has reached its operation
	kindIssue sim.Kind = kindsOfAct + iota
	// *dmaOp: the handler's time has come, and the operation goes on the bus
	kindDMAIssue
	kindDMAAgain  // *host.Access: a write to memory that was absent is tried again
	kindHostWrote // *hostWrite: bytes of the host have reached HPU memory
)

func (d *act) handle(e *sim.Event) {
	switch e.Kind {
	case kindIssue:
		d.issueDue(e.P.(*issue))
	case kindDMAIssue:
		d.issueDMA(e.P.(*dmaOp))
	case kindDMAAgain:
		d.bus.Again(e.P.(*host.Access), 0)
	case kindHostWrote:
		d.hostWrote(e.P.(*hostWrite))
	default:
		unknown("act", e)
	}
}

// Act carries out one action of the handler in context c; it implements hpu.Device.
func (d *act) Act(c *hpu.Context, a *hpu.Action) (result int64, blocked bool) {
	r := d.runs[c.Index()]
	if r.core.pool.varied && (a.Op == hpu.OpPutFromHost || a.Op == hpu.OpPutFromDevice) {
		r.core.pool.sending(r)
	}
	at := r.at(a.Cycles)
	switch a.Op {
	case hpu.OpDMAToHostNB, hpu.OpDMAFromHostNB, hpu.OpDMACASNB, hpu.OpDMAFAddNB, hpu.OpDMAFAddTypedNB, hpu.OpHostWriteNB:
		return d.startDMA(r, a, at), false
	case hpu.OpDMAToHostPosted, hpu.OpHostWrite:
		if result, blocked = d.postWrite(r, a, at); !blocked {
			return result, false
		}
	case hpu.OpFlowID, hpu.OpScratchpad, hpu.OpMessageMemory:
		return r.task.in.memoryOf(a, d.hpu.Clusters), false
	case hpu.OpWait32:
		if at == d.now() && r.ctx.Program().Word(a.Local) != uint32(a.A) {
			return 0, false
		}
	case hpu.OpPutFromHost, hpu.OpGetFromHost, hpu.OpAtomicFromHost, hpu.OpTimer, hpu.OpToSelf:
		return d.issueLater(r, a.Op, &a.Desc, a.A, at), false
	case hpu.OpPutFromDevice, hpu.OpAtomicFromDevice:
		if sends(a.Op, &a.Desc) && d.egressRoom(r) {
			d.sends(r, a.Desc.Length, at)
			return d.issueLater(r, a.Op, &a.Desc, 0, at), false
		}
	case hpu.OpCTGet:
		// A counter may change before the handler's own time. The answer is the
		// counter at that time.
	case hpu.OpCTSet, hpu.OpCTInc, hpu.OpAck:
		return d.issueCounter(r, a, at), false
	case hpu.OpNow:
		return int64(at), false
	case hpu.OpExpiries:
		return r.task.in.expiries(), false
	case hpu.OpTimerAt:
		return d.timerAt(r, a, at), false
	case hpu.OpTimerCancel:
		return d.cancelLater(r, a.A, at), false
	case hpu.OpLog:
		d.say(r, c, a, at)
		return 0, false
	case hpu.OpCAS, hpu.OpFAdd, hpu.OpAtomic32:
		if at == d.now() {
			return 0, false
		}
	}
	r.wait = blockedOn{op: a.Op, space: a.Space, offset: a.Offset, local: a.Local, length: a.Len, a: a.A, b: a.B}
	switch a.Op {
	case hpu.OpCTGet:
		r.wait.a = uint64(a.CT)
	case hpu.OpPutFromDevice, hpu.OpAtomicFromDevice, hpu.OpGetFromDevice:
		r.desc = a.Desc
	}
	return 0, true
}

func (d *act) say(r *run, c *hpu.Context, a *hpu.Action, at sim.Time) {
	if d.log == nil {
		return
	}
	d.log(int(d.rank), at, r.task.in.handlers.memory.name, a.Line(c.Program()))
}

// egressRoom reports whether a handler may promise a packet from HPU memory.
func (d *act) egressRoom(r *run) bool {
	if d.dma.turns == nil {
		return d.room.egressRoom(0, d.requests.promised)
	}
	tenant := r.task.in.handlers.memory.tenant
	return d.room.egressRoom(tenant, d.requests.tenants.list[tenant].promised)
}

// suspended carries out the call that a handler waits for, when the handler has
// used the cycles before the call.
func (d *act) suspended(r *run) (result int64, ready bool) {
	w := &r.wait
	if sends(w.op, &r.desc) {
		if d.egressRoom(r) {
			d.sends(r, r.desc.Length, d.now())
			return d.issueLater(r, w.op, &r.desc, 0, d.now()), true
		}
		if t := d.dma.turns; t != nil {
			t.lines[r.task.in.handlers.memory.tenant].sends.push(r)
		}
		d.egress.push(r)
		return 0, false
	}
	switch w.op {
	case hpu.OpCAS, hpu.OpFAdd, hpu.OpAtomic32:
		return 0, true
	case hpu.OpWait32:
		return d.waitWord(r)
	case hpu.OpDMATest:
		return r.testDMA(w.a), true
	case hpu.OpDMAWait:
		return r.waitDMA(w.a)
	case hpu.OpCTGet:
		return r.readCounter(uint32(w.a), w.local), true
	case hpu.OpGetFromDevice, hpu.OpAtomicFromDevice:
		return d.issueWaiting(r)
	}
	return d.blockingDMA(r)
}

// egressSpace lets handlers that wait for room in the egress continue.
func (d *act) egressSpace() {
	for d.egress.len() > 0 {
		r := d.egress.front()
		if t := d.dma.turns; t != nil {
			if r = t.sender(d); r == nil {
				return
			}
		} else if !d.egressRoom(r) {
			return
		}
		d.egress.pop() // with turns this ring has their number
		d.sends(r, r.desc.Length, d.now())
		d.sched.resumable(r, d.issueLater(r, r.wait.op, &r.desc, 0, d.now()))
	}
}

// readCounter stores the success and failure counts of a counter in HPU memory.
func (r *run) readCounter(ct, out uint32) int64 {
	v, err := r.task.in.iface.NI.CTGet(portals.Handle(ct))
	if err != nil {
		return hpu.Invalid
	}
	mem := r.ctx.Program().Present()
	binary.LittleEndian.PutUint64(mem[out:], v.Success)
	binary.LittleEndian.PutUint64(mem[out+8:], v.Failure)
	return hpu.OK
}
