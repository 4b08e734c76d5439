package hpu

import (
	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// reference executes a module as it was before rewriting, instruction by
// instruction, and charges each block where it begins. It shares with the
// package only the decoder; the blocks come from a search of the control flow
// graph, their costs from refBlock.
type reference struct {
	m       *wasm.Module
	spec    *Spec
	parts   int64 // of a cycle
	ops     []Op
	funcs   []refFunc
	counted []bool // calls of these have a depth
	weights []int64
	mem     []byte
	globals []uint64
	table   []int // function, -1: none
	dropped []bool
	hasSP   bool
	host    func(op Op, args []uint64) (uint64, TrapKind)
	refRun
}

// refRun is what belongs to one handler; it is exchanged when handlers are suspended.
type refRun struct {
	limit  uint32 // of the shadow stack
	depth  int
	used   int64 // parts of a cycle
	budget int64 // cycles
	hpu    int
	yield  func()
	at     refPlace // of what is being executed, the calls that lead there included
}

// refPlace is a place in the module.
type refPlace struct{ fn, offset int }

// suspended lets others run and then puts the state of this handler back.
func (r *reference) suspended() {
	saved, sp := r.refRun, r.globals[0]
	saved.yield()
	r.refRun, r.globals[0] = saved, sp
}

// refFunc is a function with its control flow resolved.
type refFunc struct {
	code   []refInstr
	locals []wasm.ValueType // behind the parameters
}

type refInstr struct {
	wasm.Instr
	cost     int64 // of the block that begins here, parts of a cycle
	loops    bool  // branches to the head of a loop
	end      int   // of block, loop, if, else: the matching end
	els      int   // of if: the else, or end
	targets  []int
	ends     bool // the last instruction of a block
	owner    int  // of end: the control instruction it closes, -1: the function
	labelled bool // of block, if: a branch that can be reached leads to its end
}

// refTrap ends an execution, at the place of r.at.
type refTrap struct{ kind TrapKind }

func newReference(m *Module, mem []byte) *reference {
	r := &reference{m: m.wasm, spec: &m.spec, parts: m.prices.parts, ops: m.ops, mem: mem, hasSP: m.globals.hasStack}
	r.dropped = make([]bool, len(m.wasm.Data))
	for _, g := range m.wasm.Globals {
		r.globals = append(r.globals, g.Value)
	}
	r.table = make([]int, m.wasm.Table)
	for i := range r.table {
		r.table[i] = -1
	}
	for _, e := range m.wasm.Elems {
		for i, fn := range e.Funcs {
			r.table[int(e.At)+i] = int(fn)
		}
	}
	for _, d := range m.wasm.Data {
		if !d.Passive {
			copy(r.mem[d.At:], d.Bytes)
		}
	}
	for i := range m.wasm.Codes {
		r.funcs = append(r.funcs, r.resolve(&m.wasm.Codes[i]))
	}
	r.counted, r.weights = r.recursive(), m.weights
	return r
}

// recursive finds the functions that can reach themselves, by a search from each.
func (r *reference) recursive() []bool {
	n := len(r.ops) + len(r.funcs)
	next := make([][]int, n)
	for i, f := range r.funcs {
		for _, in := range f.code {
			switch in.Op {
			case wasm.OpCall:
				next[len(r.ops)+i] = append(next[len(r.ops)+i], int(in.Imm))
			case wasm.OpCallIndirect:
				for _, fn := range r.table {
					if fn >= 0 && r.m.TypeOf(uint32(fn)).Equal(r.m.Types[in.Imm]) {
						next[len(r.ops)+i] = append(next[len(r.ops)+i], fn)
					}
				}
			}
		}
	}
	out := make([]bool, n)
	for start := range out {
		seen := make([]bool, n)
		work := append([]int(nil), next[start]...)
		for len(work) > 0 {
			fn := work[len(work)-1]
			work = work[:len(work)-1]
			if !seen[fn] {
				seen[fn] = true
				work = append(work, next[fn]...)
			}
		}
		out[start] = seen[start]
	}
	return out
}

func (r *reference) resolve(code *wasm.Code) refFunc {
	var f refFunc
	for _, g := range code.Locals {
		for range g.Count {
			f.locals = append(f.locals, g.Type)
		}
	}
	var open []int
	for instrs := r.m.Instrs(code); instrs.More(); {
		var in refInstr
		if err := instrs.Next(&in.Instr); err != nil {
			panic(err)
		}
		pc := len(f.code)
		in.owner = -1
		switch in.Op {
		case wasm.OpBlock, wasm.OpLoop, wasm.OpIf:
			open = append(open, pc)
		case wasm.OpElse:
			f.code[open[len(open)-1]].els = pc
		case wasm.OpEnd:
			if len(open) > 0 {
				in.owner = open[len(open)-1]
				open = open[:len(open)-1]
				f.code[in.owner].end = pc
				if els := f.code[in.owner].els; els > 0 {
					f.code[els].end = pc
				} else {
					f.code[in.owner].els = pc
				}
			}
		case wasm.OpBr, wasm.OpBrIf, wasm.OpBrTable:
			labels := in.Labels
			if in.Op != wasm.OpBrTable {
				labels = []uint32{uint32(in.Imm)}
			}
			for _, l := range labels {
				if int(l) == len(open) {
					in.targets = append(in.targets, -1)
				} else {
					in.targets = append(in.targets, open[len(open)-1-int(l)])
					in.loops = in.Op != wasm.OpBrTable && f.code[open[len(open)-1-int(l)]].Op == wasm.OpLoop
				}
			}
		}
		f.code = append(f.code, in)
	}
	f.blocks()
	r.price(&f)
	return f
}

// blocks finds where basic blocks end: at every change of control, and where a branch arrives.
func (f *refFunc) blocks() {
	seen := make([]bool, len(f.code)+1)
	work := []int{0}
	for len(work) > 0 {
		pc := work[len(work)-1]
		work = work[:len(work)-1]
		if pc >= len(f.code) || seen[pc] {
			continue
		}
		seen[pc] = true
		in := &f.code[pc]
		switch in.Op {
		case wasm.OpIf:
			work = append(work, pc+1, in.els+1)
		case wasm.OpElse:
			work = append(work, in.end+1)
		case wasm.OpBr, wasm.OpBrIf, wasm.OpBrTable:
			for _, t := range in.targets {
				if t >= 0 && f.code[t].Op != wasm.OpLoop {
					f.code[t].labelled = true
					work = append(work, f.code[t].end+1)
				}
			}
			if in.Op == wasm.OpBrIf {
				work = append(work, pc+1)
			}
		case wasm.OpReturn, wasm.OpUnreachable:
		default:
			work = append(work, pc+1)
		}
	}
	for pc := range f.code {
		in := &f.code[pc]
		switch in.Op {
		case wasm.OpLoop, wasm.OpIf, wasm.OpElse, wasm.OpBr, wasm.OpBrIf, wasm.OpBrTable, wasm.OpReturn, wasm.OpUnreachable,
			wasm.OpCall, wasm.OpCallIndirect:
			in.ends = true
		case wasm.OpEnd:
			in.ends = in.owner < 0 || f.code[in.owner].Op == wasm.OpIf || f.code[in.owner].Op == wasm.OpBlock && f.code[in.owner].labelled
		}
	}
}

// run executes a handler and returns its result, cycles and how it ended.
func (r *reference) run(fn, args, state, sp uint32, run refRun) (code int32, cycles int64, kind TrapKind, at refPlace) {
	r.refRun = run
	r.depth = r.spec.MaxCallDepth
	if r.hasSP {
		r.globals[0] = uint64(sp)
	}
	defer func() {
		cycles = r.cycles()
		switch t := recover().(type) {
		case nil:
		case refTrap:
			kind, at = t.kind, r.at
			code = int32(kind.Code())
		default:
			panic(t)
		}
	}()
	out := r.call(int(fn), []uint64{uint64(args), uint64(state)})
	return int32(uint32(out)), r.cycles(), TrapNone, refPlace{}
}

func (r *reference) call(fn int, args []uint64) uint64 {
	if fn < len(r.ops) {
		v, kind := r.host(r.ops[fn], args)
		if kind != TrapNone {
			panic(refTrap{kind})
		}
		return v
	}
	f := &r.funcs[fn-len(r.ops)]
	if r.counted[fn] {
		weight := int(r.weights[fn])
		r.depth -= weight
		if r.depth < 0 {
			r.at = refPlace{fn, f.code[0].Offset}
			panic(refTrap{TrapCallDepth})
		}
		defer func() { r.depth += weight }()
	}
	x := &refFrame{r: r, fn: fn, f: f, locals: append(append([]uint64(nil), args...), make([]uint64, len(f.locals))...)}
	x.head(-1)
	x.run()
	if len(r.m.TypeOf(uint32(fn)).Results) == 0 {
		return 0
	}
	return x.stack[len(x.stack)-1]
}

// refFrame is an active call.
type refFrame struct {
	r      *reference
	fn     int
	f      *refFunc
	locals []uint64
	stack  []uint64
	labels []refLabel
	pc     int
}

type refLabel struct{ at, height int }

// head checks the budget as if the block behind pc were charged already.
func (x *refFrame) head(pc int) {
	sum := int64(0)
	if pc+1 < len(x.f.code) {
		sum = x.f.code[pc+1].cost
	}
	if x.r.used+sum > x.r.budget*x.r.parts {
		x.r.used += sum
		x.r.at = refPlace{x.fn, x.f.code[min(pc+1, len(x.f.code)-1)].Offset}
		panic(refTrap{TrapBudget})
	}
}

// trap ends the execution; the whole block has been charged.
func (x *refFrame) trap(kind TrapKind) {
	if kind == TrapUnreachable && x.r.used > x.r.budget*x.r.parts {
		kind = TrapBudget
	}
	panic(refTrap{kind})
}

func (x *refFrame) push(v uint64) { x.stack = append(x.stack, v) }

func (x *refFrame) pop() uint64 {
	v := x.stack[len(x.stack)-1]
	x.stack = x.stack[:len(x.stack)-1]
	return v
}

func (x *refFrame) load(addr uint64, n int) []byte {
	if addr+uint64(n) > uint64(len(x.r.mem)) {
		x.trap(TrapOutOfBounds)
	}
	return x.r.mem[addr : addr+uint64(n)]
}

func (x *refFrame) run() {
	for x.pc = 0; x.pc < len(x.f.code); x.pc++ {
		in := &x.f.code[x.pc]
		x.r.at = refPlace{x.fn, in.Offset}
		x.r.used += in.cost
		switch in.Info.Class {
		case wasm.ClassMove, wasm.ClassBranch, wasm.ClassSelect, wasm.ClassGlobal:
			if in.Info.Sig != "" && in.Op != wasm.OpNop && in.Info.Imm == wasm.ImmNone {
				x.reinterpret(in.Op)
			} else {
				x.control(in)
			}
		case wasm.ClassCall, wasm.ClassCallIndirect:
			x.invoke(in)
		case wasm.ClassLoad, wasm.ClassStore, wasm.ClassBulk:
			x.memory(in)
		default:
			x.numeric(in)
			x.frame(in)
		}
	}
}

// frame checks the difference of the shadow stack pointer and a constant, which
// is the lowest address of a frame.
func (x *refFrame) frame(in *refInstr) {
	if in.Op != wasm.OpI32Sub || !x.r.hasSP || x.pc < 2 {
		return
	}
	size, pointer := &x.f.code[x.pc-1], &x.f.code[x.pc-2]
	if size.Op == wasm.OpI32Const && pointer.Op == wasm.OpGlobalGet && pointer.Imm == 0 && uint32(x.stack[len(x.stack)-1]) < x.r.limit {
		x.trap(TrapStackOverflow)
	}
}

// reinterpret changes the type only: values are bits here.
func (x *refFrame) reinterpret(wasm.Opcode) {}

func (x *refFrame) invoke(in *refInstr) {
	fn := int(in.Imm)
	if in.Op == wasm.OpCallIndirect {
		i := uint32(x.pop())
		if i >= uint32(len(x.r.table)) || x.r.table[i] < 0 {
			x.trap(TrapIndirectCall)
		}
		if !x.r.m.TypeOf(uint32(x.r.table[i])).Equal(x.r.m.Types[in.Imm]) {
			x.trap(TrapSignature)
		}
		fn = x.r.table[i]
		if fn < len(x.r.ops) {
			x.r.used += x.r.importCost(x.r.ops[fn])
		}
	}
	n := len(x.r.m.TypeOf(uint32(fn)).Params)
	args := append([]uint64(nil), x.stack[len(x.stack)-n:]...)
	x.stack = x.stack[:len(x.stack)-n]
	v := x.r.call(fn, args)
	x.r.at = refPlace{x.fn, in.Offset}
	// the budget is checked behind imports: of a direct call, with the block
	// that follows
	if fn < len(x.r.ops) {
		if in.Op == wasm.OpCall {
			x.head(x.pc)
		} else if x.r.used > x.r.budget*x.r.parts {
			panic(refTrap{TrapBudget})
		}
	}
	if len(x.r.m.TypeOf(uint32(fn)).Results) == 1 {
		x.push(v)
	}
}

func (x *refFrame) branchTo(t int) {
	if t < 0 {
		x.pc = len(x.f.code)
		return
	}
	for x.labels[len(x.labels)-1].at != t {
		x.labels = x.labels[:len(x.labels)-1]
	}
	l := x.labels[len(x.labels)-1]
	target := &x.f.code[t]
	if target.Op == wasm.OpLoop {
		x.stack = x.stack[:l.height]
		x.pc = t
		x.head(t)
		return
	}
	x.labels = x.labels[:len(x.labels)-1]
	if target.Imm != 0x40 {
		v := x.pop()
		x.stack = append(x.stack[:l.height], v)
	} else {
		x.stack = x.stack[:l.height]
	}
	x.pc = target.end
}

func (x *refFrame) control(in *refInstr) {
	switch in.Op {
	case wasm.OpUnreachable:
		x.trap(TrapUnreachable)
	case wasm.OpBlock:
		x.labels = append(x.labels, refLabel{x.pc, len(x.stack)})
	case wasm.OpLoop:
		x.labels = append(x.labels, refLabel{x.pc, len(x.stack)})
		x.head(x.pc)
	case wasm.OpIf:
		cond := uint32(x.pop())
		if cond == 0 && in.els == in.end {
			x.pc = in.end
			return
		}
		x.labels = append(x.labels, refLabel{x.pc, len(x.stack)})
		if cond == 0 {
			x.pc = in.els
		}
	case wasm.OpElse: // the end of the first arm
		x.labels = x.labels[:len(x.labels)-1]
		x.pc = in.end
	case wasm.OpEnd:
		if in.owner >= 0 {
			x.labels = x.labels[:len(x.labels)-1]
		}
	case wasm.OpBr:
		x.branchTo(in.targets[0])
	case wasm.OpBrIf:
		if uint32(x.pop()) != 0 {
			x.branchTo(in.targets[0])
		}
	case wasm.OpBrTable:
		x.branchTo(in.targets[min(int(uint32(x.pop())), len(in.targets)-1)])
	case wasm.OpReturn:
		x.branchTo(-1)
	default:
		x.variable(in)
	}
}
