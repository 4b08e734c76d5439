package nic

import (
	"encoding/binary"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/sim"
)

// StepKind is what a HandlerStep tells.
type StepKind uint8

// Kinds of steps, with the fields that are set besides those of every step of a handler.
const (
	// a message has been matched to an entry with handlers: Rank, Message, At
	StepArrived StepKind = iota
	StepBegan            // the first cycle of a handler: Record, Memory
	// it asked the device for something, at its own time: Action, Suspended, or
	// Result
	StepActed
	StepAnswered // what it was suspended for is there: Op, Result
	// a DMA operation of it has taken effect, perhaps after its end: Op,
	// Handle, Result
	StepLanded
	StepEnded // it returned or was ended: Code, Err
)

// HandlerStep is one step of a handler; see Config.Watch. Slices and pointers
// are valid during the call only.
type HandlerStep struct {
	What    StepKind
	Rank    int
	Number  int64    // of the handler on its rank in the order of their beginnings, from 1
	Pool    string   // of processors that runs it: "HPU" or a name of the profile
	HPU     int      // the processor's number in its pool
	Context int      // hpu.Context.Index; not of StepArrived and StepLanded
	Handler string   // "header", "payload" or "completion"
	Message uint64   // the msg_id of its record (docs/abi.md)
	Packet  int      // of the message, from 0
	At      sim.Time // StepActed: the handler's own time, which may be ahead of the simulation's
	Cycles  int64    // charged to the handler so far; StepLanded: 0

	Record    []byte      // the record the handler is given
	Memory    []byte      // of its program
	Action    *hpu.Action // what it asks for
	Op        hpu.Op
	Handle    int   // non-blocking DMA: the handle, -1 for a blocking operation
	Result    int64 // hpu.OK and above, or an error
	Suspended bool  // the answer comes with StepAnswered
	Code      hpu.Code
	// StepEnded: Code is none that handlers of this kind may return, and counts
	// as FAIL
	Invalid bool
	Err     *hpu.Trap // why it was ended; nil: it returned Code
}

// watch tells Config.Watch what the handlers of a node do. A nil watch tells nothing.
type watch struct {
	act  *act
	tell func(*HandlerStep)
	step HandlerStep
}

// device is what the programs of the node act on.
func (n *NIC) device() hpu.Device {
	if n.env.watch == nil {
		return &n.act
	}
	return n.env.watch
}

// fill begins a step of a run.
func (w *watch) fill(what StepKind, r *run) *HandlerStep {
	w.step = HandlerStep{
		What: what, Rank: int(w.act.rank), Number: r.number, Pool: r.core.pool.name, HPU: r.core.number, Context: r.ctx.Index(),
		Handler: r.task.kind.String(), Message: r.task.in.number, Packet: int(r.task.packet), At: w.act.now(), Cycles: r.ctx.Cycles(),
	}
	return &w.step
}

// arrived tells of a message that handlers will see.
func (w *watch) arrived(in *inbound) {
	if w == nil {
		return
	}
	w.step = HandlerStep{What: StepArrived, Rank: int(w.act.rank), Message: in.number, At: w.act.now()}
	w.tell(&w.step)
}

func (w *watch) began(r *run, record int) {
	if w == nil {
		return
	}
	s := w.fill(StepBegan, r)
	s.Cycles = 0
	s.Memory = r.ctx.Program().Memory()
	s.Record = s.Memory[r.ctx.ArgsAddr():][:record]
	w.tell(s)
}

// Act implements hpu.Device: it carries out the action and tells of it.
func (w *watch) Act(c *hpu.Context, a *hpu.Action) (result int64, blocked bool) {
	r := &w.act.runs[c.Index()]
	at := r.at(a.Cycles)
	told := *a
	result, blocked = w.act.Act(c, a)
	s := w.fill(StepActed, r)
	s.At, s.Cycles, s.Action, s.Op, s.Result, s.Suspended = at, told.Cycles, &told, told.Op, result, blocked
	s.Memory = c.Program().Memory()
	if !blocked {
		s.Result = atomicResult(&told, s.Memory, result)
	}
	w.tell(s)
	return result, blocked
}

// atomicResult is what cas, fadd or atomic32 returns, which package hpu
// executes right after the device has let it.
func atomicResult(a *hpu.Action, memory []byte, result int64) int64 {
	switch a.Op {
	case hpu.OpFAdd:
		return int64(binary.LittleEndian.Uint64(memory[a.Local:]))
	case hpu.OpAtomic32:
		return int64(binary.LittleEndian.Uint32(memory[a.Local:]))
	case hpu.OpCAS:
		if binary.LittleEndian.Uint64(memory[a.Local:]) == a.A {
			return 1
		}
		return 0
	}
	return result
}

// answered tells that a suspended handler goes on with r.ready.
func (w *watch) answered(r *run) {
	if w == nil {
		return
	}
	s := w.fill(StepAnswered, r)
	s.Memory = r.ctx.Program().Memory()
	s.Op = r.wait.op
	s.Result = atomicResult(&hpu.Action{Op: s.Op, Local: r.wait.local, A: r.wait.a}, s.Memory, r.ready)
	w.tell(s)
}

// landed tells that a DMA operation has ended.
func (w *watch) landed(o *dmaOp) {
	if w == nil {
		return
	}
	w.step = HandlerStep{
		What: StepLanded, Rank: int(w.act.rank), Number: o.number, Message: o.message, At: w.act.now(), Op: o.op, Handle: int(max(o.handle, noHandle)), Result: o.result,
	}
	w.tell(&w.step)
}

func (w *watch) ended(r *run, out *hpu.Outcome) {
	if w == nil {
		return
	}
	s := w.fill(StepEnded, r)
	s.Memory = r.ctx.Program().Memory()
	s.Code, s.Err = out.Code, out.Err
	s.Invalid = out.Err == nil && !failure(out.Code) && !legal(r.task.kind, out.Code)
	w.tell(s)
}
