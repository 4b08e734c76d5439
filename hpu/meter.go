package hpu

import (
	"encoding/binary"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// rewriter turns a checked module into the one that engines compile: see README.md, "How a module is rewritten".
type rewriter struct {
	m         *wasm.Module
	costs     [wasm.ClassBulk + 1]int64
	bulkRate  int64   // bytes per cycle, 0: free
	callCosts []int64 // of each function: its import's own cost, 0 if the module defines it
	counted   []bool  // functions that count the depth of calls
	globals   globalSet

	// Of the function being rewritten.
	out     []byte // finished blocks
	block   []byte // the block being read
	cost    int64  // of the block
	first   int    // offset of the block in the file
	head    bool   // the block begins at a loop head or a function entry
	dead    bool   // cannot be reached
	nan     byte   // the value on top of the stack is a float whose NaN is not yet canonical: 'f' or 'F'
	nest    []opened
	wrapped bool
	cached  bool   // the cycles left are kept in a local, too
	counter uint32 // that local
	temps   temporaries
	info    *FuncInfo
}

// globalSet holds the indices of the globals that rewritten code uses.
type globalSet struct {
	remaining uint32 // i64: cycles left of the budget
	limit     uint32 // i32: lowest address of the shadow stack, valid if hasStack
	depth     uint32 // i32: calls left, valid if hasDepth
	stack     uint32 // i32: the module's shadow stack pointer, valid if hasStack
	hasStack  bool
	hasDepth  bool
}

// opened is a control instruction that is open.
type opened struct {
	op       wasm.Opcode
	dead     bool // it cannot be reached
	targeted bool // a branch leads to its end
	thenLive bool // the end of its first arm can be reached
}

// temporaries are locals that the rewriter adds to a function, -1 where not used.
type temporaries struct {
	next     uint32
	types    []wasm.ValueType
	byLetter map[byte]uint32
}

func (t *temporaries) get(letter byte, typ wasm.ValueType) uint32 {
	if i, ok := t.byLetter[letter]; ok {
		return i
	}
	if t.byLetter == nil {
		t.byLetter = make(map[byte]uint32)
	}
	i := t.next + uint32(len(t.types))
	t.byLetter[letter] = i
	t.types = append(t.types, typ)
	return i
}

// classCosts spreads a cost table over the classes of instructions.
func classCosts(t *CostTable) (c [wasm.ClassBulk + 1]int64) {
	c[wasm.ClassMove] = t.Move
	c[wasm.ClassInt] = t.Int
	c[wasm.ClassIntMul] = t.IntMul
	c[wasm.ClassIntDiv] = t.IntDiv
	c[wasm.ClassFloat] = t.Float
	c[wasm.ClassFloatMul] = t.FloatMul
	c[wasm.ClassFloatDiv] = t.FloatDiv
	c[wasm.ClassFloatSqrt] = t.FloatSqrt
	c[wasm.ClassConvert] = t.Convert
	c[wasm.ClassLoad] = t.Load
	c[wasm.ClassStore] = t.Store
	c[wasm.ClassSelect] = t.Select
	c[wasm.ClassBranch] = t.Branch
	c[wasm.ClassCall] = t.Call
	c[wasm.ClassCallIndirect] = t.CallIndirect
	c[wasm.ClassGlobal] = t.Global
	c[wasm.ClassBulk] = t.Bulk
	return c
}

// function rewrites function i of those that the module defines and returns its new body, local declarations included. A
// function with loops keeps the cycles left in a local as well as in the global: the processor then need not wait for what the
// round before has stored.
func (r *rewriter) function(i int, loops bool, info *FuncInfo) []byte {
	code, typ := &r.m.Codes[i], r.m.Types[r.m.Funcs[i]]
	locals := uint32(len(typ.Params))
	for _, g := range code.Locals {
		locals += g.Count
	}
	r.out, r.block, r.nest = r.out[:0], r.block[:0], r.nest[:0]
	r.cost, r.head, r.dead, r.nan = 0, true, false, 0
	r.first = code.Body
	r.temps = temporaries{next: locals}
	r.info = info
	r.wrapped = r.counted[len(r.m.Imports)+i]
	if r.wrapped {
		r.enter(typ)
	}
	if r.cached = loops; loops {
		r.counter = r.temps.get('r', wasm.I64)
		r.reload()
	}
	r.nest = append(r.nest, opened{op: wasm.OpBlock})
	var in wasm.Instr
	for instrs := r.m.Instrs(code); len(r.nest) > 0; {
		if err := instrs.Next(&in); err != nil {
			panic(err) // the module has been validated
		}
		r.instr(&in)
	}
	body := wasm.AppendU32(nil, uint32(len(code.Locals)+len(r.temps.types)))
	for _, g := range code.Locals {
		body = append(wasm.AppendU32(body, g.Count), byte(g.Type))
	}
	for _, t := range r.temps.types {
		body = append(body, 1, byte(t))
	}
	return append(body, r.out...)
}

// enter counts a call and puts the body into a block, so that it has one end, where leave counts the return.
func (r *rewriter) enter(typ wasm.FuncType) {
	d := r.globals.depth
	r.out = wasm.AppendIndexed(r.out, wasm.OpGlobalGet, d)
	r.out = append(r.out, byte(wasm.OpI32Const), 1, byte(wasm.OpI32Sub))
	r.out = wasm.AppendIndexed(r.out, wasm.OpGlobalSet, d)
	r.out = wasm.AppendIndexed(r.out, wasm.OpGlobalGet, d)
	r.out = append(r.out, byte(wasm.OpI32Const), 0, byte(wasm.OpI32LtS))
	r.out = append(r.out, trapIf...)
	r.out = append(r.out, byte(wasm.OpBlock), blockType(typ))
}

func (r *rewriter) leave() {
	d := r.globals.depth
	r.out = append(r.out, byte(wasm.OpEnd))
	r.out = wasm.AppendIndexed(r.out, wasm.OpGlobalGet, d)
	r.out = append(r.out, byte(wasm.OpI32Const), 1, byte(wasm.OpI32Add))
	r.out = wasm.AppendIndexed(r.out, wasm.OpGlobalSet, d)
}

func blockType(typ wasm.FuncType) byte {
	if len(typ.Results) == 0 {
		return 0x40
	}
	return byte(typ.Results[0])
}

// trapIf ends the handler if the condition on the stack holds.
var trapIf = []byte{byte(wasm.OpIf), 0x40, byte(wasm.OpUnreachable), byte(wasm.OpEnd)}

// reload takes the cycles left from the global, where callees have charged for themselves.
func (r *rewriter) reload() {
	r.out = wasm.AppendIndexed(r.out, wasm.OpGlobalGet, r.globals.remaining)
	r.out = wasm.AppendIndexed(r.out, wasm.OpLocalSet, r.counter)
}

func (r *rewriter) getRemaining(b []byte) []byte {
	if r.cached {
		return wasm.AppendIndexed(b, wasm.OpLocalGet, r.counter)
	}
	return wasm.AppendIndexed(b, wasm.OpGlobalGet, r.globals.remaining)
}

func (r *rewriter) setRemaining(b []byte) []byte {
	if r.cached {
		b = wasm.AppendIndexed(b, wasm.OpLocalTee, r.counter)
	}
	return wasm.AppendIndexed(b, wasm.OpGlobalSet, r.globals.remaining)
}

// flush finishes the present block: its charge, the check of the budget if it is a head, and its instructions.
func (r *rewriter) flush(next int) {
	if r.cost > 0 {
		r.out = r.getRemaining(r.out)
		r.out = wasm.AppendS64(append(r.out, byte(wasm.OpI64Const)), r.cost)
		r.out = r.setRemaining(append(r.out, byte(wasm.OpI64Sub)))
		r.info.Blocks++
		r.info.Cost += r.cost
		if r.cost > r.info.WorstBlock.Cost {
			r.info.WorstBlock = Block{Offset: r.first, Cost: r.cost}
		}
	}
	if r.head {
		r.out = r.getRemaining(r.out)
		r.out = append(r.out, byte(wasm.OpI64Const), 0, byte(wasm.OpI64LtS))
		r.out = append(r.out, trapIf...)
	}
	r.out = append(r.out, r.block...)
	r.block, r.cost, r.head, r.first = r.block[:0], 0, false, next
}

func (r *rewriter) instr(in *wasm.Instr) {
	if r.dead {
		r.skip(in)
		return
	}
	r.settle(in)
	r.cost += r.costs[in.Info.Class]
	switch in.Op {
	case wasm.OpBlock, wasm.OpLoop, wasm.OpIf, wasm.OpElse, wasm.OpEnd:
		r.structure(in)
	case wasm.OpBr, wasm.OpBrIf, wasm.OpBrTable, wasm.OpReturn, wasm.OpUnreachable:
		r.branch(in)
	case wasm.OpCall, wasm.OpCallIndirect:
		if in.Op == wasm.OpCall {
			r.cost += r.callCosts[in.Imm]
		}
		r.copy(in)
		r.flush(in.End)
		if r.cached {
			r.reload()
		}
	case wasm.OpGlobalSet:
		r.setGlobal(in)
	case wasm.OpMemorySize:
		r.block = wasm.AppendS64(append(r.block, byte(wasm.OpI32Const)), int64(r.m.Memory))
	case wasm.OpMemoryCopy, wasm.OpMemoryFill, wasm.OpMemoryInit:
		r.chargeBytes()
		r.copy(in)
	default:
		r.copy(in)
		r.nan = in.Info.NaN
	}
}

func (r *rewriter) copy(in *wasm.Instr) {
	r.block = append(r.block, r.m.Bytes[in.Offset:in.End]...)
}

// skip passes over an instruction that cannot be reached. It is left out; only the nesting is followed.
func (r *rewriter) skip(in *wasm.Instr) {
	switch in.Op {
	case wasm.OpBlock, wasm.OpLoop, wasm.OpIf:
		r.nest = append(r.nest, opened{op: in.Op, dead: true})
	case wasm.OpElse, wasm.OpEnd:
		if top := r.top(); !top.dead {
			r.cost += r.costs[in.Info.Class]
			r.structure(in)
		} else if in.Op == wasm.OpEnd {
			r.nest = r.nest[:len(r.nest)-1]
		}
	}
}

func (r *rewriter) top() *opened { return &r.nest[len(r.nest)-1] }

func (r *rewriter) structure(in *wasm.Instr) {
	switch in.Op {
	case wasm.OpBlock:
		r.nest = append(r.nest, opened{op: in.Op})
		r.copy(in)
	case wasm.OpLoop:
		r.nest = append(r.nest, opened{op: in.Op})
		r.copy(in)
		r.flush(in.End)
		r.head = true
		r.info.Loops++
	case wasm.OpIf:
		r.nest = append(r.nest, opened{op: in.Op})
		r.copy(in)
		r.flush(in.End)
	case wasm.OpElse:
		top := r.top()
		top.op, top.thenLive = in.Op, !r.dead
		r.boundary(in)
		r.dead = false
	case wasm.OpEnd:
		r.end(in)
	}
}

// boundary ends the present block before in, an else or end, which it writes behind it. The cost of in belongs to the block
// that it ends; where that block cannot be reached, nobody is charged for it.
func (r *rewriter) boundary(in *wasm.Instr) {
	if r.dead {
		r.cost = 0
	}
	r.flush(in.End)
	r.out = append(r.out, byte(in.Op))
}

func (r *rewriter) end(in *wasm.Instr) {
	top := *r.top()
	r.nest = r.nest[:len(r.nest)-1]
	live := !r.dead
	switch {
	case len(r.nest) == 0:
		if r.dead {
			r.cost = 0
		}
		r.flush(in.End)
		if r.wrapped {
			r.leave()
		}
		r.out = append(r.out, byte(wasm.OpEnd))
		return
	case top.op == wasm.OpIf: // without else: the condition may have skipped it
		r.boundary(in)
		live = true
	case top.op == wasm.OpElse:
		r.boundary(in)
		live = live || top.thenLive || top.targeted
	case top.op == wasm.OpBlock && top.targeted, r.dead:
		r.boundary(in)
		live = live || top.op == wasm.OpBlock && top.targeted
	default: // nothing but the block itself leads here
		r.copy(in)
	}
	if r.dead = !live; r.dead {
		// What follows is left out; the engines' type checkers need to know that it is not missing.
		r.out = append(r.out, byte(wasm.OpUnreachable))
	}
}

func (r *rewriter) target(label uint64) {
	r.nest[len(r.nest)-1-int(label)].targeted = true
}

func (r *rewriter) branch(in *wasm.Instr) {
	switch in.Op {
	case wasm.OpBr, wasm.OpBrIf:
		r.target(in.Imm)
	case wasm.OpBrTable:
		for _, l := range in.Labels {
			r.target(uint64(l))
		}
	case wasm.OpReturn:
		if r.wrapped {
			r.block = wasm.AppendIndexed(r.block, wasm.OpBr, uint32(len(r.nest)-1))
			r.flush(in.End)
			r.dead = true
			return
		}
	}
	r.copy(in)
	r.flush(in.End)
	r.dead = in.Op != wasm.OpBrIf
}

// setGlobal checks the shadow stack pointer where the module sets it.
func (r *rewriter) setGlobal(in *wasm.Instr) {
	if !r.globals.hasStack || in.Imm != uint64(r.globals.stack) {
		r.copy(in)
		return
	}
	t := r.temps.get('i', wasm.I32)
	r.block = wasm.AppendIndexed(r.block, wasm.OpLocalTee, t)
	r.copy(in)
	r.block = wasm.AppendIndexed(r.block, wasm.OpLocalGet, t)
	r.block = wasm.AppendIndexed(r.block, wasm.OpGlobalGet, r.globals.limit)
	r.block = append(r.block, byte(wasm.OpI32LtU))
	r.block = append(r.block, trapIf...)
}

// chargeBytes charges for the bytes that a bulk operation is about to move; their number is on top of the stack.
func (r *rewriter) chargeBytes() {
	if r.bulkRate == 0 {
		return
	}
	t := r.temps.get('i', wasm.I32)
	b := wasm.AppendIndexed(r.block, wasm.OpLocalSet, t)
	b = wasm.AppendIndexed(r.getRemaining(b), wasm.OpLocalGet, t)
	b = append(b, byte(wasm.OpI64ExtendI32))
	if r.bulkRate > 1 {
		b = wasm.AppendS64(append(b, byte(wasm.OpI64Const)), r.bulkRate-1)
		b = append(b, byte(wasm.OpI64Add))
		b = wasm.AppendS64(append(b, byte(wasm.OpI64Const)), r.bulkRate)
		b = append(b, byte(wasm.OpI64DivU))
	}
	b = r.setRemaining(append(b, byte(wasm.OpI64Sub)))
	r.block = wasm.AppendIndexed(b, wasm.OpLocalGet, t)
}

// settle makes a NaN on top of the stack canonical unless in, the next instruction, consumes it without looking at its bits.
func (r *rewriter) settle(in *wasm.Instr) {
	kind := r.nan
	r.nan = 0
	if kind == 0 || ignoresNaN(in.Op, in.Info) {
		return
	}
	typ, equal := wasm.F64, wasm.OpF64Eq
	if kind == 'f' {
		typ, equal = wasm.F32, wasm.OpF32Eq
	}
	t := r.temps.get(kind, typ)
	b := wasm.AppendIndexed(r.block, wasm.OpLocalTee, t)
	if kind == 'f' {
		b = binary.LittleEndian.AppendUint32(append(b, byte(wasm.OpF32Const)), canonicalNaN32)
	} else {
		b = binary.LittleEndian.AppendUint64(append(b, byte(wasm.OpF64Const)), canonicalNaN64)
	}
	b = wasm.AppendIndexed(b, wasm.OpLocalGet, t)
	b = wasm.AppendIndexed(b, wasm.OpLocalGet, t)
	r.block = append(b, byte(equal), byte(wasm.OpSelect))
}

// The canonical NaN of the standard: sign 0, the highest bit of the payload set and no other.
const (
	canonicalNaN32 = 0x7FC00000
	canonicalNaN64 = 0x7FF8000000000000
)

// ignoresNaN reports whether an instruction whose last operand is a float treats all NaNs alike.
func ignoresNaN(op wasm.Opcode, info *wasm.OpInfo) bool {
	comparison := op >= wasm.OpF32Eq && op < wasm.OpF64Eq+6
	return info.NaN != 0 || comparison || info.Class == wasm.ClassConvert || op == wasm.OpDrop
}
