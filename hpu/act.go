package hpu

import (
	"encoding/binary"
	"fmt"
)

// The budget that an import takes besides its cycles. This part takes no time
// of the handler. It pays for the simulator's work on the call, so that a
// budget bounds that work, too (README.md, "What the budget bounds").
const (
	// importEffort is for a request to the device: one or two events, and
	// perhaps a suspension.
	importEffort = 100
	// messageEffort replaces importEffort for an import that makes a message.
	// It includes the message's way through the network.
	messageEffort = 300
	// markEffort replaces it for runtime_begin and runtime_end, which cost no
	// cycles.
	markEffort = 4
	// movedBytes is how many bytes in HPU memory an import reads or writes for
	// one cycle of the budget. For log, one cycle is one byte.
	movedBytes = 64
	// MaxLogBytes is how many bytes of a line OpLog gives to the device. The
	// rest of a longer line is left out.
	MaxLogBytes = 1024
)

// endsHandler as the rest of the budget lets the rewritten module end the
// handler when the import returns: there, both engines know the function. It is
// -2^62, which no cost of a block makes positive.
const endsHandler uint64 = 0xC000_0000_0000_0000

// host carries out the import call op of the handler that runs in c. On entry,
// stack holds the module's arguments and behind them the cycles left. On
// return, it holds the result and the cycles left. If the handler must end,
// c.abort is the reason, and the module ends the handler when the import
// returns.
func (c *Context) host(op *hostOp, stack []uint64) {
	c.left = int64(stack[op.params])
	if op.Op >= OpRuntimeBegin || c.aside {
		c.runtime(op.Op)
	}
	result, blocked, ok := c.carryOut(op.Op, stack)
	if blocked {
		if c.worker == nil || !op.MayBlock() {
			panic(fmt.Sprintf("hpu: the device blocks %v, which may not block", op.Op))
		}
		c.status, c.program.running = Blocked, nil
		c.worker.Yield() // to the caller of Start or Resume, until the next Resume
		result, ok = uint64(c.result), !c.killed || c.fail(TrapKilled, OpNone, "")
	}
	switch op.Op {
	case OpCAS, OpFAdd, OpAtomic32:
		if ok {
			result = c.atomic(op.Op, stack)
		}
	}
	left := uint64(c.left)
	if !ok {
		result, left = 0, endsHandler
	}
	stack[0] = result
	stack[op.results] = left
}

// hostOp is an import as engines call it.
type hostOp struct {
	Op
	params, results int // without the cycles left
}

var hostOps = func() (ops [NumOps]hostOp) {
	for op := OpNone + 1; op < NumOps; op++ {
		t := op.signature()
		ops[op] = hostOp{op, len(t.Params), len(t.Results)}
	}
	return ops
}()

// carryOut asks the device to carry out an import, unless it has the answer
// itself.
func (c *Context) carryOut(op Op, args []uint64) (result uint64, blocked, ok bool) {
	switch op {
	case OpNumHPUs:
		return uint64(c.of), false, true
	case OpNumClusters:
		return uint64(c.clusters), false, true
	case OpCycles:
		return uint64(c.Cycles()), false, true
	case OpRuntimeBegin, OpRuntimeEnd: // they take no time, but a loop of them must end
		return 0, false, c.spend(op, markEffort)
	}
	if c.index < 0 {
		return 0, false, c.fail(TrapForbidden, op, "")
	}
	switch op {
	case OpMyHPU:
		return uint64(c.unit), false, true
	case OpMyCluster:
		return uint64(c.cluster), false, true
	}
	p := c.program
	a := p.workers.action()
	a.Op, a.Cycles = op, c.Cycles()
	if ok = c.decode(a, args) && c.pay(a); ok {
		var r int64
		r, blocked = p.dev.Act(c, a)
		result = uint64(r)
	}
	p.workers.give(a)
	return result, blocked, ok
}

// atomic executes an atomic operation on the program's memory.
func (c *Context) atomic(op Op, args []uint64) (result uint64) {
	if op != OpCAS && op != OpFAdd {
		return c.atomic32(Atomic32(args[0]), uint32(args[1]), uint32(args[2]), uint32(args[3]))
	}
	addr := uint32(args[0])
	at := c.program.mem[addr : addr+8]
	before := binary.LittleEndian.Uint64(at)
	switch {
	case op == OpFAdd:
		binary.LittleEndian.PutUint64(at, before+args[1])
		return before
	case before != args[1]:
		return 0
	}
	binary.LittleEndian.PutUint64(at, args[2])
	return 1
}

// pay takes the simulator's work for an action from the budget. It reports
// whether there was enough.
func (c *Context) pay(a *Action) bool {
	effort := int64(importEffort)
	switch a.Op {
	case OpLog:
		effort += int64(a.Len)
	case OpPutFromDevice, OpGetFromDevice, OpAtomicFromDevice, OpToSelf, OpTimer, OpTimerAt:
		effort = messageEffort + int64(a.Desc.Length+uint64(a.Desc.UserHdrLen))/movedBytes
	case OpPutFromHost, OpGetFromHost, OpAtomicFromHost:
		effort = messageEffort
	default:
		effort += int64(a.Len) / movedBytes
	}
	return c.spend(a.Op, effort)
}

// spend takes work of the simulator from the budget, but no time. It reports
// whether there was enough.
func (c *Context) spend(op Op, effort int64) bool {
	c.effort += effort
	effort *= c.program.module.prices.parts
	c.budget -= effort
	c.left -= effort
	if c.aside {
		c.before -= effort
	}
	if c.left < 0 {
		return c.fail(TrapBudget, op, "")
	}
	return true
}

// fail sets the reason why the handler must end, and returns false.
func (c *Context) fail(kind TrapKind, op Op, detail string) bool {
	c.abort = &Trap{Kind: kind, Op: op, Detail: detail}
	return false
}

// within checks that a range of addresses lies in the memory.
func (c *Context) within(op Op, what string, addr uint32, n uint64) bool {
	p := c.program
	if uint64(addr) >= uint64(p.module.null) && uint64(addr) <= uint64(len(p.mem)) && n <= uint64(len(p.mem))-uint64(addr) {
		return true
	}
	return c.outside(op, what, addr, n)
}

// outside describes an error in a range of addresses. An empty range near NULL
// is no error.
func (c *Context) outside(op Op, what string, addr uint32, n uint64) bool {
	size := uint64(len(c.program.mem))
	if n > 0 && addr < c.program.module.null {
		return c.fail(TrapNull, op, fmt.Sprintf("%s: %d bytes at 0x%x", what, n, addr))
	}
	if n <= size && uint64(addr) <= size-n {
		return true
	}
	return c.fail(TrapOutOfBounds, op, fmt.Sprintf("%s: %d bytes at 0x%x in a memory of %d bytes", what, n, addr, size))
}

func (c *Context) aligned(op Op, addr, size uint32) bool {
	if addr%size == 0 {
		return true
	}
	return c.fail(TrapMisaligned, op, fmt.Sprintf("0x%x is not a multiple of %d", addr, size))
}

// numberBytes are the sizes, bytes, of the datatypes that are one number of at
// most 64 bits (docs/abi.md, Atomic operations and types).
var numberBytes = [...]uint32{1, 1, 2, 2, 4, 4, 4, 8, 8, 8}

// decode fills in the action from the arguments (docs/abi.md, Imports) and
// checks every address.
func (c *Context) decode(a *Action, args []uint64) bool {
	switch a.Op {
	case OpDMAToHost, OpDMAFromHost, OpDMAToHostNB, OpDMAFromHostNB, OpDMAToHostPosted:
		a.Space, a.Offset, a.Local, a.Len = uint32(args[0]), args[1], uint32(args[2]), uint32(args[3])
		return c.within(a.Op, "local", a.Local, uint64(a.Len))
	case OpDMACAS, OpDMACASNB:
		a.Space, a.Offset, a.A, a.B, a.Local = uint32(args[0]), args[1], args[2], args[3], uint32(args[4])
		return c.within(a.Op, "found", a.Local, 8)
	case OpDMAFAdd, OpDMAFAddNB:
		a.Space, a.Offset, a.A, a.Local = uint32(args[0]), args[1], args[2], uint32(args[3])
		return c.within(a.Op, "found", a.Local, 8)
	case OpDMAFAddTyped, OpDMAFAddTypedNB:
		a.Space, a.Offset, a.B, a.A, a.Local = uint32(args[0]), args[1], uint64(uint32(args[2])), args[3], uint32(args[4])
		if a.B < uint64(len(numberBytes)) {
			a.Len = numberBytes[a.B]
		}
		return c.within(a.Op, "found", a.Local, uint64(a.Len))
	case OpHostWrite, OpHostWriteNB:
		a.Space, a.Offset, a.A = uint32(args[0]), args[1], args[2]
	case OpWait32:
		a.Local, a.A = uint32(args[0]), uint64(uint32(args[1]))
		return c.within(a.Op, "addr", a.Local, 4) && c.aligned(a.Op, a.Local, 4)
	case OpDMATest, OpDMAWait, OpAck, OpTimerCancel, OpScratchpad:
		a.A = uint64(uint32(args[0]))
	case OpCAS:
		a.Local, a.A, a.B = uint32(args[0]), args[1], args[2]
		return c.within(a.Op, "addr", a.Local, 8) && c.aligned(a.Op, a.Local, 8)
	case OpFAdd:
		a.Local, a.A = uint32(args[0]), args[1]
		return c.within(a.Op, "addr", a.Local, 8) && c.aligned(a.Op, a.Local, 8)
	case OpAtomic32:
		a.Space, a.Local, a.A, a.B = uint32(args[0]), uint32(args[1]), uint64(uint32(args[2])), uint64(uint32(args[3]))
		if a.Space >= uint32(numAtomics32) {
			return c.fail(TrapArgument, a.Op, fmt.Sprintf("operation %d, expected 0 to %d", a.Space, numAtomics32-1))
		}
		return c.within(a.Op, "addr", a.Local, 4) && c.aligned(a.Op, a.Local, 4)
	case OpCTGet:
		a.CT, a.Local = uint32(args[0]), uint32(args[1])
		return c.within(a.Op, "out", a.Local, 16)
	case OpCTSet, OpCTInc:
		a.CT, a.A, a.B = uint32(args[0]), args[1], args[2]
	case OpLog:
		a.Local, a.Len, a.A = uint32(args[0]), uint32(args[1]), uint64(uint32(args[1]))
		if !c.within(a.Op, "addr", a.Local, a.A) {
			return false
		}
		a.Len = min(a.Len, MaxLogBytes)
	case OpTimer:
		a.A = args[0]
		return c.operation(a, uint32(args[1]))
	case OpTimerAt:
		a.A, a.B = args[0], args[1]
		return c.operation(a, uint32(args[2]))
	case OpPutFromHost, OpPutFromDevice, OpGetFromHost, OpGetFromDevice, OpAtomicFromHost, OpAtomicFromDevice, OpToSelf:
		return c.operation(a, uint32(args[0]))
	}
	return true
}

// operation reads the operation record at addr. It checks the addresses in the
// record that the operation uses.
func (c *Context) operation(a *Action, addr uint32) bool {
	if !c.within(a.Op, "op", addr, OperationSize) {
		return false
	}
	a.Desc.decode(c.program.mem[addr : addr+OperationSize])
	d := &a.Desc
	switch a.Op {
	case OpPutFromDevice, OpGetFromDevice, OpAtomicFromDevice, OpToSelf, OpTimer, OpTimerAt:
		if !c.within(a.Op, "op.local", d.Local, d.Length) {
			return false
		}
	}
	switch a.Op {
	case OpAtomicFromDevice:
		if d.Fetch != 0 && !c.within(a.Op, "op.fetch", d.Fetch, d.Length) {
			return false
		}
		fallthrough
	case OpAtomicFromHost:
		if d.Operand != 0 && !c.within(a.Op, "op.operand", d.Operand, operandBytes) {
			return false
		}
	}
	return c.within(a.Op, "op.user_hdr", d.UserHdr, uint64(d.UserHdrLen))
}

// decode reads the record of docs/abi.md, Operation record.
func (d *Operation) decode(b []byte) {
	le := binary.LittleEndian
	_ = b[OperationSize-1]
	d.Local, d.Space = le.Uint32(b[0:]), le.Uint32(b[4:])
	d.Offset, d.Length = le.Uint64(b[8:]), le.Uint64(b[16:])
	d.TargetNID, d.TargetPID = le.Uint32(b[24:]), le.Uint32(b[28:])
	d.PTIndex, d.AckReq = le.Uint32(b[32:]), le.Uint32(b[36:])
	d.MatchBits, d.RemoteOffset = le.Uint64(b[40:]), le.Uint64(b[48:])
	d.HdrData, d.UserPtr = le.Uint64(b[56:]), le.Uint64(b[64:])
	d.MD, d.Options = le.Uint32(b[72:]), le.Uint32(b[76:])
	d.AtomicOp, d.Datatype = le.Uint32(b[80:]), le.Uint32(b[84:])
	d.Operand, d.Fetch = le.Uint32(b[88:]), le.Uint32(b[92:])
	d.FetchOffset = le.Uint64(b[96:])
	d.UserHdr, d.UserHdrLen = le.Uint32(b[104:]), le.Uint32(b[108:])
}
