package hpu

import "github.com/spinsim/spinsim/hpu/internal/wasm"

// rewriter makes the module for engines from a checked module.
//
//   - Blocks. A block ends at every branch, condition, call and loop head, and
//     where a branch arrives. Its cost is subtracted from the global remaining
//     when it begins.
//   - Budget. At function entries and loop heads, before bulk operations and
//     behind imports the handler ends if remaining is negative. Every branch and
//     call costs at least a cycle (CostTable.Validate), so every loop and
//     recursion ends. At most MaxUnchecked instructions of a function run
//     between two checks.
//   - Imports get remaining behind their arguments and return it behind their
//     result: an access to a global from outside is slow on every engine. A
//     call ends its block, so an action's time does not contain later work.
//     my_hpu is a global, because it must not leave the module.
//   - Entries take the registers of the module (budget, stack pointer and its
//     limit, depth, number of the HPU) as parameters, for the same reason.
//   - Bulk operations charge for their bytes before they move them.
//   - Functions that may recurse count active calls, those with large frames
//     several times (frameBytes). So endless recursion ends at the same call on
//     every engine, before one has used up its own stack.
//   - A store into the shadow stack pointer is compared with the end of the
//     context's stack. So an overflow is an error of the handler that caused it.
//   - Remainders, on arm64 only: a % b becomes a - a/b*b at the same cost,
//     because wazero v1.12.0 computes some wrongly there (rem.go).
//   - NaN results of arithmetic are made canonical, unless the next instruction
//     treats all NaNs alike: the standard leaves their bits open.
//   - memory.size gives the module's own memory; HPU memory and contexts are
//     behind it. data.drop sets a global, which memory.init reads.
type rewriter struct {
	m        *wasm.Module
	ops      []Op // of each imported function
	prices   *prices
	bulkRate int64 // bytes per cycle
	// of each function: the cost of the import, cycles; 0 if the module defines
	// the function
	callCosts []int64
	// how many calls an active call of each function counts as, 0: it is not
	// counted
	counted   []int64
	globals   globalSet
	unchecked int  // instructions that may run without a check of the budget
	divide    bool // remainders are written as divisions

	extent extent

	// Of the rewritten module.
	all    []place // for the contents of its code section
	allEnd int     // end of the module's own functions
	codeAt int     // beginning of the contents

	watch   Watch
	null    uint32 // end of the addresses of NULL pointers, 0: none
	reports reports

	// Of the function being rewritten.
	out    []byte  // finished blocks
	block  []byte  // the block being read
	places []place // of out
	marks  []place // of block
	cost   block   // of the block
	locals int     // of the function, parameters included
	first  int     // offset of the first instruction in the file
	loop   int     // index in nest of the loop whose head begins the block, -1: none
	again  bool    // the block ends with a branch to that head
	// the block begins with a check: at a loop head, at a function entry, or
	// behind an import
	head  bool
	count int  // instructions of the block
	since int  // instructions that may have run since the last check
	dead  bool // unreachable
	// kind of the value on top of the stack whose NaNs are not canonical yet
	// (wasm.OpInfo)
	nan     byte
	frame   frame
	nest    nest
	wrapped int64 // how many calls the function counts as
	budget  budget
	temps   temporaries
	info    *FuncInfo
}

// globalSet holds the indices of the globals that rewritten code uses.
type globalSet struct {
	remaining uint32 // i64: cycles left of the budget
	limit     uint32 // i32: lowest address of the shadow stack, valid if hasStack
	depth     uint32 // i32: calls left, valid if hasDepth
	stack     uint32 // i32: the module's shadow stack pointer, valid if hasStack
	// i32: the result of my_hpu, negative where it is not allowed, valid if
	// hasHPU
	hpu      uint32
	hasStack bool
	hasDepth bool
	hasHPU   bool
	// i32: the registers of memory.go, in their order, valid if hasLevels
	levels    uint32
	hasLevels bool
	// dropped has an i32 for each data segment that code may drop: whether the
	// segment is dropped. The contexts of a program share segments, but an
	// engine may have an instance for each context.
	dropped map[uint32]uint32
}

// temporaries are locals that the rewriter adds to a function. A letter names one
// of each type.
type temporaries struct {
	next  uint32
	types []wasm.ValueType
	known map[temporary]uint32
}

type temporary struct {
	letter byte
	typ    wasm.ValueType
}

func (t *temporaries) get(letter byte, typ wasm.ValueType) uint32 {
	which := temporary{letter, typ}
	if i, ok := t.known[which]; ok {
		return i
	}
	if t.known == nil {
		t.known = make(map[temporary]uint32)
	}
	i := t.next + uint32(len(t.types))
	t.known[which] = i
	t.types = append(t.types, typ)
	return i
}

// declare appends the declarations of a function's own locals and of the
// temporaries.
func (t *temporaries) declare(b []byte, own []wasm.LocalGroup) []byte {
	b = wasm.AppendU32(b, uint32(len(own)+len(t.types)))
	for _, g := range own {
		b = append(wasm.AppendU32(b, g.Count), byte(g.Type))
	}
	for _, typ := range t.types {
		b = append(b, 1, byte(typ))
	}
	return b
}

// function rewrites function i of the module's own functions. It returns the
// new body with the local declarations. A function with loops keeps the cycles
// left in a local as well as in the global. The processor then need not wait
// for the store of the previous round.
func (r *rewriter) function(i int, loops bool, info *FuncInfo) []byte {
	code, typ := &r.m.Codes[i], r.m.Types[r.m.Funcs[i]]
	locals := uint32(len(typ.Params))
	for _, g := range code.Locals {
		locals += g.Count
	}
	r.out, r.block, r.nest = r.out[:0], r.block[:0], r.nest[:0]
	r.places, r.marks = mark(r.places[:0], 0, code.Body), r.marks[:0]
	r.head, r.dead, r.nan, r.loop, r.again = true, false, 0, -1, false
	r.first, r.locals = code.Body, int(locals)
	r.cost.p = r.prices
	r.cost.begin(r.locals)
	r.count, r.since, r.frame = 0, 0, frameNone
	r.temps = temporaries{next: locals}
	r.info = info
	r.extent.fn, r.extent.aside = len(r.m.Imports)+i, false
	r.wrapped = r.counted[len(r.m.Imports)+i]
	if r.wrapped > 0 {
		r.enter(typ)
	}
	if r.budget = (budget{global: r.globals.remaining, cached: loops}); loops {
		r.budget.local = r.temps.get('r', wasm.I64)
		r.out = r.budget.reload(r.out)
	}
	r.nest = append(r.nest, opened{op: wasm.OpBlock})
	var in wasm.Instr
	for instrs := r.m.Instrs(code); len(r.nest) > 0; {
		if err := instrs.Next(&in); err != nil {
			panic(err) // the module has been validated
		}
		r.instr(&in)
	}
	return append(r.temps.declare(nil, code.Locals), r.out...)
}

// enter counts a call and puts the body into a block. So the body has one end,
// where leave counts the return.
func (r *rewriter) enter(typ wasm.FuncType) {
	d := r.globals.depth
	r.out = wasm.AppendIndexed(r.out, wasm.OpGlobalGet, d)
	r.out = append(wasm.AppendS64(append(r.out, byte(wasm.OpI32Const)), r.wrapped), byte(wasm.OpI32Sub))
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
	r.out = append(wasm.AppendS64(append(r.out, byte(wasm.OpI32Const)), r.wrapped), byte(wasm.OpI32Add))
	r.out = wasm.AppendIndexed(r.out, wasm.OpGlobalSet, d)
}

func blockType(typ wasm.FuncType) byte {
	if len(typ.Results) == 0 {
		return 0x40
	}
	return byte(typ.Results[0])
}

// trapIf ends the handler if the condition on the stack is true.
var trapIf = []byte{byte(wasm.OpIf), 0x40, byte(wasm.OpUnreachable), byte(wasm.OpEnd)}

// flush finishes the present block: its charge, a check of the budget, and its
// instructions. The check is needed at a head, or if the block would otherwise
// be too long.
func (r *rewriter) flush(next int) {
	r.places = mark(r.places, len(r.out), r.first)
	cost := r.cost.cost(r.again)
	r.extent.block(r.cost.instrs)
	if cost > 0 {
		r.out = r.budget.get(r.out)
		r.out = wasm.AppendS64(append(r.out, byte(wasm.OpI64Const)), cost)
		r.out = r.budget.set(append(r.out, byte(wasm.OpI64Sub)))
		r.info.Blocks++
		r.info.Cost += cost
		if cost > r.info.WorstBlock.Cost {
			r.info.WorstBlock = Block{Offset: r.first, Cost: cost}
		}
	}
	if r.since += r.count; r.head || r.since > r.unchecked {
		r.out = r.budget.check(r.out)
		r.since = 0
	}
	r.out = r.reports.tellBlock(r.out, cost)
	for _, p := range r.marks {
		r.places = mark(r.places, len(r.out)+int(p.at), int(p.offset))
	}
	r.out = append(r.out, r.block...)
	r.block, r.marks, r.head, r.count, r.first = r.block[:0], r.marks[:0], false, 0, next
	r.loop, r.again = -1, false
	r.cost.begin(r.locals)
}

func (r *rewriter) instr(in *wasm.Instr) {
	if r.dead {
		r.skip(in)
		return
	}
	r.marks = mark(r.marks, len(r.block), in.Offset)
	r.settle(in)
	r.cost.add(in, r.nest.backward(in))
	r.seen(in)
	r.count++
	switch in.Op {
	case wasm.OpBlock, wasm.OpLoop, wasm.OpIf, wasm.OpElse, wasm.OpEnd:
		r.structure(in)
	case wasm.OpBr, wasm.OpBrIf, wasm.OpBrTable, wasm.OpReturn, wasm.OpUnreachable:
		r.branch(in)
	case wasm.OpCall, wasm.OpCallIndirect:
		if in.Op == wasm.OpCall {
			r.cost.serial += r.callCosts[in.Imm]
		}
		if in.Op == wasm.OpCall && in.Imm < uint64(len(r.ops)) && r.ops[in.Imm] == OpMyHPU {
			r.myHPU(in)
		} else {
			r.call(in)
		}
		r.flush(in.End)
		r.extent.calls(in, r.ops)
		r.out = r.budget.reload(r.out)
		// the import may have ended the handler
		r.head = in.Op == wasm.OpCall && in.Imm < uint64(len(r.m.Imports))
	case wasm.OpGlobalSet:
		r.setGlobal(in)
	case wasm.OpMemorySize:
		r.block = wasm.AppendS64(append(r.block, byte(wasm.OpI32Const)), int64(r.m.Memory))
	case wasm.OpMemoryCopy, wasm.OpMemoryFill, wasm.OpMemoryInit:
		r.chargeBytes()
		r.lookBulk(in)
		if dropped, may := r.globals.dropped[uint32(in.Imm)]; may && in.Op == wasm.OpMemoryInit {
			r.missDropped(dropped)
		}
		r.copy(in)
	case wasm.OpDataDrop:
		r.block = append(r.block, byte(wasm.OpI32Const), 1)
		r.block = wasm.AppendIndexed(r.block, wasm.OpGlobalSet, r.globals.dropped[uint32(in.Imm)])
	case wasm.OpI32RemS, wasm.OpI32RemU, wasm.OpI64RemS, wasm.OpI64RemU:
		r.chargeDivisor(in)
		r.remainder(in)
	default:
		if in.Info.Accesses() {
			r.look(in)
			r.chargeLevel(in)
		}
		r.chargeDivisor(in)
		r.copy(in)
		r.nan = in.Info.NaN
	}
	r.watchFrame(in)
}

// myHPU answers a call of the import my_hpu from a global, without leaving the
// module. Where my_hpu is not allowed, the import is called and reports the
// error.
func (r *rewriter) myHPU(call *wasm.Instr) {
	r.block = wasm.AppendIndexed(r.block, wasm.OpGlobalGet, r.globals.hpu)
	r.block = append(r.block, byte(wasm.OpI32Const), 0, byte(wasm.OpI32LtS), byte(wasm.OpIf), byte(wasm.I32))
	r.block = r.callImport(r.block, uint32(call.Imm))
	r.block = wasm.AppendIndexed(append(r.block, byte(wasm.OpElse)), wasm.OpGlobalGet, r.globals.hpu)
	r.block = append(r.block, byte(wasm.OpEnd))
}

func (r *rewriter) copy(in *wasm.Instr) {
	r.block = append(r.block, r.m.Bytes[in.Offset:in.End]...)
}

// skip leaves out an unreachable instruction. It only follows the nesting.
func (r *rewriter) skip(in *wasm.Instr) {
	switch in.Op {
	case wasm.OpBlock, wasm.OpLoop, wasm.OpIf:
		r.nest = append(r.nest, opened{op: in.Op, dead: true})
	case wasm.OpElse, wasm.OpEnd:
		if top := r.nest.top(); !top.dead {
			r.cost.add(in, false)
			r.seen(in)
			r.count++
			r.structure(in)
		} else if in.Op == wasm.OpEnd {
			r.nest = r.nest[:len(r.nest)-1]
		}
	}
}

func (r *rewriter) structure(in *wasm.Instr) {
	switch in.Op {
	case wasm.OpBlock:
		r.nest = append(r.nest, opened{op: in.Op})
		r.copy(in)
	case wasm.OpLoop:
		r.nest = append(r.nest, opened{op: in.Op})
		r.copy(in)
		r.flush(in.End)
		r.head, r.loop = true, len(r.nest)-1
		r.info.Loops++
	case wasm.OpIf:
		r.copy(in)
		r.flush(in.End)
		r.nest = append(r.nest, opened{op: in.Op, since: r.since})
	case wasm.OpElse:
		top := r.nest.top()
		top.op, top.thenLive = in.Op, !r.dead
		r.boundary(in)
		top.most = max(top.most, r.since)
		r.dead, r.since = false, top.since
	case wasm.OpEnd:
		r.end(in)
	}
}

// forget leaves the present block, which is unreachable, without a charge.
func (r *rewriter) forget() {
	r.cost.begin(r.locals)
	r.reports.drop()
}

// boundary ends the present block before in, an else or end, and writes in
// behind it. The cost of in belongs to the block before it. If that block is
// unreachable, in costs nothing.
func (r *rewriter) boundary(in *wasm.Instr) {
	if r.dead {
		r.forget()
	}
	r.flush(in.End)
	r.out = append(r.out, byte(in.Op))
}

func (r *rewriter) end(in *wasm.Instr) {
	top := *r.nest.top()
	r.nest = r.nest[:len(r.nest)-1]
	live := !r.dead
	switch {
	case len(r.nest) == 0:
		if r.dead {
			r.forget()
		}
		r.flush(in.End)
		if r.wrapped > 0 {
			r.leave()
		}
		r.out = append(r.out, byte(wasm.OpEnd))
		return
	case top.op == wasm.OpIf: // without else: the condition may have skipped it
		r.boundary(in)
		r.since = max(r.since, top.since)
		live = true
	case top.op == wasm.OpElse:
		r.boundary(in)
		live = live || top.thenLive || top.targeted
	case top.op == wasm.OpBlock && top.targeted, r.dead:
		r.boundary(in)
		live = live || top.op == wasm.OpBlock && top.targeted
	default: // only the block itself leads here
		r.copy(in)
	}
	r.since = max(r.since, top.most)
	if r.dead = !live; r.dead {
		// The code behind is left out. This instruction tells the engines' type
		// checkers that no value is missing.
		r.out = append(r.out, byte(wasm.OpUnreachable))
	}
}

func (r *rewriter) branch(in *wasm.Instr) {
	switch in.Op {
	case wasm.OpBr, wasm.OpBrIf:
		r.nest.at(in.Imm).targeted = true
		r.again = r.loop == len(r.nest)-1-int(in.Imm)
	case wasm.OpBrTable:
		for _, l := range in.Labels {
			r.nest.at(uint64(l)).targeted = true
		}
	case wasm.OpReturn:
		if r.wrapped > 0 {
			r.block = wasm.AppendIndexed(r.block, wasm.OpBr, uint32(len(r.nest)-1))
			r.flush(in.End)
			r.dead = true
			return
		}
	}
	r.copy(in)
	r.flush(in.End)
	r.nest.left(in, r.since)
	r.dead = in.Op != wasm.OpBrIf
}

// chargeBytes charges for the bytes that a bulk operation will move, and checks
// the budget. The number of bytes is on top of the stack. If the budget is too
// small for them, nothing is moved and their time is not taken. Otherwise one
// instruction could hold an HPU for 4 GiB.
func (r *rewriter) chargeBytes() {
	t := r.temps.get('i', wasm.I32)
	b := r.budget.check(wasm.AppendIndexed(r.block, wasm.OpLocalSet, t))
	b = wasm.AppendIndexed(r.budget.get(b), wasm.OpLocalGet, t)
	b = append(b, byte(wasm.OpI64ExtendI32))
	if r.bulkRate > 1 {
		b = wasm.AppendS64(append(b, byte(wasm.OpI64Const)), r.bulkRate-1)
		b = append(b, byte(wasm.OpI64Add))
		b = wasm.AppendS64(append(b, byte(wasm.OpI64Const)), r.bulkRate)
		b = append(b, byte(wasm.OpI64DivU))
	}
	if parts := r.prices.parts; parts > 1 {
		b = wasm.AppendS64(append(b, byte(wasm.OpI64Const)), parts)
		b = append(b, byte(wasm.OpI64Mul))
	}
	b = r.budget.get(r.budget.set(append(b, byte(wasm.OpI64Sub))))
	b = append(b, byte(wasm.OpI64Const), 0, byte(wasm.OpI64LtS), byte(wasm.OpIf), 0x40)
	// killed in the cycle after its budget
	b = wasm.AppendS64(append(b, byte(wasm.OpI64Const)), -r.prices.parts)
	b = append(r.budget.set(b), byte(wasm.OpUnreachable), byte(wasm.OpEnd))
	r.block = wasm.AppendIndexed(b, wasm.OpLocalGet, t)
}

// missDropped changes the source of a memory.init from a dropped segment to an
// address outside it, so that it traps. The exception is a copy of no bytes
// from the beginning, which is legal. Destination, source and length are on the
// stack.
func (r *rewriter) missDropped(dropped uint32) {
	n, src := r.temps.get('i', wasm.I32), r.temps.get('s', wasm.I32)
	b := wasm.AppendIndexed(wasm.AppendIndexed(r.block, wasm.OpLocalSet, n), wasm.OpLocalSet, src)
	b = append(b, byte(wasm.OpI32Const), 0x7F) // -1
	b = wasm.AppendIndexed(wasm.AppendIndexed(b, wasm.OpLocalGet, src), wasm.OpLocalGet, src)
	b = append(wasm.AppendIndexed(b, wasm.OpLocalGet, n), byte(wasm.OpI32Or), byte(wasm.OpI32Const), 0, byte(wasm.OpI32Ne))
	b = append(wasm.AppendIndexed(b, wasm.OpGlobalGet, dropped), byte(wasm.OpI32And), byte(wasm.OpSelect))
	r.block = wasm.AppendIndexed(b, wasm.OpLocalGet, n)
}
