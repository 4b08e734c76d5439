package nic

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// act executes handlers and carries out what they ask of the device; it
// implements hpu.Device.
//
// A handler is executed at the first instant of a segment, ahead of its own
// time. What it asks for is stamped with the time its cycles have reached:
// calls with no answer to wait for become events of that time, calls whose
// answer depends on others suspend the handler until then.
type act struct {
	*env
	sched    resuming
	runs     []run        // contexts, by their index
	dmaBytes int64        // of DMA operations of handlers on their way
	dmaWaits ring[*dmaOp] // blocking ones that hpu.dma_bytes has no room for
	inject   func(rank int, op hpu.Op) int64
	deposits landing
	out      origin
	room     roomy
	log      func(rank int, at sim.Time, program, line string)
	nodes    uint32

	answers  []answer // who waits for a reply
	unused   []uint64 // cookies of answers that nobody uses
	scratch  []byte   // of gather
	promised int      // puts that handlers have made for a later moment
	// operations from host memory and timers that handlers have asked for and
	// that have not left
	commands   int
	timers     []*timer     // messages to self of a later moment
	idleTimers []*timer     // those that nobody uses
	egress     ring[*run]   // handlers that wait for room in it
	woken      ring[*run]   // of changed
	idleWrites []*hostWrite // that nobody uses
	lost       int64        // actions on counters that were freed meanwhile
	_          [56]byte
}

// resuming lets suspended handlers go on.
type resuming interface {
	resumable(r *run, result int64)
}

// origin is where messages begin.
type origin interface {
	drain()
	prepare(ni *Interface, op *portals.Op) *outgoing
	start(o *outgoing)
}

// roomy knows whether the egress has room.
type roomy interface {
	egressRoom(promised int) bool
}

// landing is told of the ends of writes to host memory.
type landing interface {
	wrote(in *inbound, write int)
}

// blockedOn is what a suspended handler waits for.
type blockedOn struct {
	offset uint64
	a, b   uint64
	space  uint32
	local  uint32
	length uint32
	op     hpu.Op
}

// String says what is waited for, for the diagnosis of a stuck run.
func (b *blockedOn) String() string {
	if b.op == hpu.OpWait32 {
		return fmt.Sprintf("another value than %#x in HPU memory at %#x (wait32)", b.a, b.local)
	}
	return "the result of " + b.op.String()
}

// The events of act.
const (
	kindIssue sim.Kind = kindsOfAct + iota // *issue: a handler's operation is due
	// *dmaOp: the handler's own time has come: the operation goes on the bus
	kindDMAIssue
	kindDMAAgain  // *dmaOp: memory that was absent is written again
	kindHostWrote // *hostWrite: bytes of the host are at HPU memory
)

func (d *act) handle(e *sim.Event) {
	switch e.Kind {
	case kindIssue:
		d.issueDue(e.P.(*issue))
	case kindDMAIssue:
		d.issueDMA(e.P.(*dmaOp))
	case kindDMAAgain:
		d.bus.Again(&e.P.(*dmaOp).access, 0)
	case kindHostWrote:
		d.hostWrote(e.P.(*hostWrite))
	default:
		unknown("act", e)
	}
}

// Act carries out one action of the handler in context c; it implements hpu.Device.
func (d *act) Act(c *hpu.Context, a *hpu.Action) (result int64, blocked bool) {
	r := &d.runs[c.Index()]
	at := r.at(a.Cycles)
	switch a.Op {
	case hpu.OpDMAToHostNB, hpu.OpDMAFromHostNB, hpu.OpDMACASNB, hpu.OpDMAFAddNB, hpu.OpDMAFAddTypedNB, hpu.OpHostWriteNB:
		return d.startDMA(r, a, at), false
	case hpu.OpDMAToHostPosted, hpu.OpHostWrite:
		if result, blocked = d.postWrite(r, a, at); !blocked {
			return result, false
		}
	case hpu.OpFlowID, hpu.OpScratchpad, hpu.OpMessageMemory:
		return d.memoryOf(r.task.in, a), false
	case hpu.OpWait32:
		if at == d.now() && r.ctx.Program().Word(a.Local) != uint32(a.A) {
			return 0, false
		}
	case hpu.OpPutFromHost, hpu.OpGetFromHost, hpu.OpAtomicFromHost, hpu.OpTimer, hpu.OpToSelf:
		return d.issueLater(r, a.Op, &a.Desc, a.A, at), false
	case hpu.OpPutFromDevice, hpu.OpAtomicFromDevice:
		if sends(a.Op, &a.Desc) && d.egressRoom() {
			return d.issueLater(r, a.Op, &a.Desc, 0, at), false
		}
	case hpu.OpCTGet:
		// A counter may change before the handler's own time: the answer is that of its time.
	case hpu.OpCTSet, hpu.OpCTInc, hpu.OpAck:
		return d.issueCounter(r, a, at), false
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
	mem := c.Program().Memory()
	line := string(mem[a.Local : a.Local+a.Len])
	if cut := a.A - uint64(a.Len); cut > 0 {
		line += fmt.Sprintf("… and %d bytes", cut)
	}
	d.log(int(d.rank), at, r.task.in.handlers.memory.name, line)
}

func (d *act) egressRoom() bool { return d.room.egressRoom(d.promised) }

// suspended carries out what a handler waits for, at the moment at which it has
// used up the cycles before the call.
func (d *act) suspended(r *run) (result int64, ready bool) {
	w := &r.wait
	if sends(w.op, &r.desc) {
		if d.egressRoom() {
			return d.issueLater(r, w.op, &r.desc, 0, d.now()), true
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
		return d.testDMA(r, w.a), true
	case hpu.OpDMAWait:
		return d.waitDMA(r, w.a)
	case hpu.OpCTGet:
		return d.readCounter(r, uint32(w.a), w.local), true
	case hpu.OpGetFromDevice, hpu.OpAtomicFromDevice:
		return d.issueWaiting(r)
	}
	return d.blockingDMA(r)
}

// egressSpace lets handlers go on that wait for the egress.
func (d *act) egressSpace() {
	for d.egress.len() > 0 && d.egressRoom() {
		r := d.egress.pop()
		d.sched.resumable(r, d.issueLater(r, r.wait.op, &r.desc, 0, d.now()))
	}
}

// commandRead is an operation of a handler whose data has been read.
func (d *act) commandRead() { d.commands-- }

// readCounter stores success and failure of a counter in HPU memory.
func (d *act) readCounter(r *run, ct, out uint32) int64 {
	v, err := r.task.in.iface.NI.CTGet(portals.Handle(ct))
	if err != nil {
		return hpu.Invalid
	}
	mem := r.ctx.Program().Memory()
	binary.LittleEndian.PutUint64(mem[out:], v.Success)
	binary.LittleEndian.PutUint64(mem[out+8:], v.Failure)
	return hpu.OK
}
