package nic

import (
	"encoding/binary"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/sim"
)

// StepKind is the kind of a HandlerStep.
type StepKind uint8

// Kinds of steps. Each names the fields that it sets beside the common fields
// of a handler's steps.
const (
	// a message was matched to an entry with handlers: Rank, Message, At
	StepArrived StepKind = iota
	StepBegan            // the first cycle of a handler: Record, Memory
	// a request to the device, at the handler's own time: Action, and Suspended
	// or Result
	StepActed
	StepAnswered // the answer to a suspended handler has come: Op, Result
	// a DMA operation has taken effect, perhaps after the handler's end: Op,
	// Handle, Result
	StepLanded
	StepEnded // the handler returned or was ended: Code, Err
)

// HandlerStep is one step of a handler; see Config.Watch. Slices and pointers
// are valid only during the call.
type HandlerStep struct {
	What   StepKind
	Rank   int
	Number int64 // of the handler on its rank in order of beginning, from 1
	// Pool has the processor: "HPU" or a name in the profile, or "kernel"
	// (runtime.KernelHandlers). Handlers in a kernel count by themselves, and have
	// no Message and no HPU.
	Pool    string
	HPU     int    // the processor's number in its pool
	Context int    // hpu.Context.Index; not for StepArrived and StepLanded
	Handler string // "header", "payload" or "completion"
	Message uint64 // the msg_id of the handler's record (docs/abi.md)
	Packet  int    // in the message, from 0
	Timer   int    // number of the periodic timer that has sent the message, from 1; 0: none
	// StepActed: the handler's own time, which may be later than the simulated
	// time
	At     sim.Time
	Cycles int64 // charged to the handler so far; StepLanded: 0

	Record    []byte      // the handler's record
	Memory    []byte      // of the handler's program
	Action    *hpu.Action // the request
	Op        hpu.Op
	Handle    int   // handle of a non-blocking DMA operation, -1 for a blocking one
	Result    int64 // hpu.OK and above, or an error
	Suspended bool  // the answer comes with StepAnswered
	Code      hpu.Code
	// StepEnded: handlers of this kind may not return Code, so it counts as
	// FAIL
	Invalid bool
	Err     *hpu.Trap // why it was ended; nil: it returned Code
}

// watch reports the steps of a node's handlers to Config.Watch. A nil watch
// reports nothing.
type watch struct {
	act  *act
	tell func(*HandlerStep)
	step HandlerStep
}

// device is the device that the programs of the node use.
func (n *NIC) device() hpu.Device {
	if n.env.watch == nil {
		return &n.act
	}
	return n.env.watch
}

// fill begins a step of a run.
func (w *watch) fill(what StepKind, r *run) *HandlerStep {
	w.step = HandlerStep{
		What: what, Rank: int(w.act.rank), Number: r.number, Pool: r.core.pool.name, HPU: int(r.core.number), Context: r.ctx.Index(),
		Handler: r.task.kind.String(), Message: r.task.in.number, Packet: int(r.task.packet), At: w.act.now(), Cycles: r.ctx.Cycles(),
	}
	if t := r.task.in.frame.timer; t != nil {
		w.step.Timer = int(t.index) + 1
	}
	return &w.step
}

// arrived reports a message that handlers will see.
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
	s.Memory = r.ctx.Program().Present()
	s.Record = s.Memory[r.ctx.ArgsAddr():][:record]
	w.tell(s)
}

// Act implements hpu.Device: it carries out the action and reports it.
func (w *watch) Act(c *hpu.Context, a *hpu.Action) (result int64, blocked bool) {
	r := w.act.runs[c.Index()]
	at := r.at(a.Cycles)
	told := *a
	result, blocked = w.act.Act(c, a)
	s := w.fill(StepActed, r)
	s.At, s.Cycles, s.Action, s.Op, s.Result, s.Suspended = at, told.Cycles, &told, told.Op, result, blocked
	s.Memory = c.Program().Present()
	if !blocked {
		s.Result = atomicResult(&told, s.Memory, result)
	}
	w.tell(s)
	return result, blocked
}

// atomicResult is the result of cas, fadd or atomic32. Package hpu executes the
// operation right after the device has allowed it.
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

// answered reports that a suspended handler continues with r.ready.
func (w *watch) answered(r *run) {
	if w == nil {
		return
	}
	s := w.fill(StepAnswered, r)
	s.Memory = r.ctx.Program().Present()
	s.Op = r.wait.op
	s.Result = atomicResult(&hpu.Action{Op: s.Op, Local: r.wait.local, A: r.wait.a}, s.Memory, r.ready)
	w.tell(s)
}

// landed reports that a DMA operation has ended.
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
	s.Memory = r.ctx.Program().Present()
	s.Code, s.Err = out.Code, out.Err
	s.Invalid = out.Err == nil && !failure(out.Code) && !legal(r.task.kind, out.Code)
	w.tell(s)
}
