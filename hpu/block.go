package hpu

import (
	"slices"
	"strings"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// block adds up the cost of a basic block's instructions on a core (README.md,
// "What a block costs"). It gets the instructions in order. Where the cost
// depends on values, it follows them through the operand stack and the locals.
type block struct {
	p      *prices
	used   [numUnits]int64 // cycles of each kind of unit; for fetch, instructions
	serial int64           // cycles of imports, which overlap with nothing
	moves  int64           // names of values
	instrs int64           // instructions outside class move

	nodes  []node
	stack  []value
	locals []localValue // of the block's locals, valid if their round is the block's
	half   bool         // the last instruction is the constant 32
	round  uint32
	sets   []uint32 // the locals that the block sets, each once
}

// node is an instruction that has a result or waits for one.
type node struct {
	from    [3]value // operands
	latency int64
	ready   int64 // scratch: when its result can be used
	op      wasm.Opcode
	named   bool // a local holds the result, too, so it must be computed
}

// localValue is the value of a local at the present end of the block.
type localValue struct {
	round uint32
	now   value
	start int64 // scratch: when the value at the beginning of the block can be used
}

// value is the source of an operand. It is a node (0 and above), one of the
// constants below, or at firstLocal and below a local that was set before the
// block.
type value int32

const (
	valueUnknown value = -1 // left on the stack by another block
	valueConst   value = -2
	firstLocal   value = -3 // local 0; local i is firstLocal-i
)

// begin starts a new block. The locals of the function have numbers below n.
func (b *block) begin(n int) {
	b.used, b.serial, b.moves, b.instrs = [numUnits]int64{}, 0, 0, 0
	b.nodes, b.stack, b.sets = b.nodes[:0], b.stack[:0], b.sets[:0]
	b.round++
	if b.p.values && (len(b.locals) < n || b.round == 0) {
		b.locals, b.round = make([]localValue, n), 1
	}
}

// add adds an instruction to the block. loop means that it is a br_if to the
// head of a loop.
func (b *block) add(in *wasm.Instr, loop bool) {
	p := &b.p.ops[in.Op.Index()]
	if loop && b.p.hasLoop {
		p = &b.p.loopBranch
	}
	if in.Op == wasm.OpCall && in.Imm < uint64(len(b.p.whole)) && b.p.whole[in.Imm] {
		p = &price{}
	}
	if b.p.core.FoldHalves {
		if b.half && (in.Op >= wasm.OpI64Shl && in.Op <= wasm.OpI64Rotr) {
			p = &price{}
		}
		b.half = in.Op == wasm.OpI64Const && in.Imm == 32
	}
	b.charge(p, 1)
	switch {
	case in.Info.Class != wasm.ClassMove:
		b.instrs++
	case isName(in.Op):
		b.moves++
	}
	if b.p.values {
		b.follow(in, p)
	}
}

// isName reports whether an instruction of class move only names a value.
func isName(op wasm.Opcode) bool {
	return op >= wasm.OpLocalGet && op <= wasm.OpLocalTee || op >= wasm.OpI32Const && op <= wasm.OpF64Const || op == wasm.OpV128Const
}

func (b *block) charge(p *price, times int64) {
	b.used[p.unit] += p.cost * times
	b.used[unitFetch] += p.slots * times
}

// follow notes which value an instruction uses and which it makes.
func (b *block) follow(in *wasm.Instr, p *price) {
	switch in.Op {
	case wasm.OpLocalGet:
		b.push(b.local(uint32(in.Imm)))
	case wasm.OpLocalSet, wasm.OpLocalTee:
		v := b.pop()
		b.set(uint32(in.Imm), v)
		if in.Op == wasm.OpLocalTee {
			b.push(v)
		}
	case wasm.OpI32Const, wasm.OpI64Const, wasm.OpF32Const, wasm.OpF64Const, wasm.OpV128Const, wasm.OpMemorySize:
		b.push(valueConst)
	case wasm.OpDrop:
		b.pop()
	case wasm.OpIf, wasm.OpBrIf, wasm.OpBrTable, wasm.OpCallIndirect, wasm.OpGlobalSet:
		b.operate(in, p, 1, false)
	case wasm.OpSelect:
		b.operate(in, p, 3, true)
	case wasm.OpGlobalGet:
		b.operate(in, p, 0, true)
	default:
		params, results, _ := strings.Cut(in.Info.Sig, ":")
		b.operate(in, p, len(params), results != "")
	}
}

// operate adds a node for an instruction with n operands.
func (b *block) operate(in *wasm.Instr, p *price, n int, result bool) {
	x := node{from: [3]value{valueConst, valueConst, valueConst}, latency: p.latency, op: in.Op}
	for i := n - 1; i >= 0; i-- {
		x.from[i] = b.pop()
	}
	b.foldInto(in, &x)
	b.nodes = append(b.nodes, x)
	if result {
		b.push(value(len(b.nodes) - 1))
	}
}

func (b *block) push(v value) { b.stack = append(b.stack, v) }

func (b *block) pop() value {
	n := len(b.stack) - 1
	if n < 0 {
		return valueUnknown
	}
	v := b.stack[n]
	b.stack = b.stack[:n]
	return v
}

func (b *block) local(i uint32) value {
	if l := &b.locals[i]; l.round == b.round {
		return l.now
	}
	return firstLocal - value(i)
}

func (b *block) set(i uint32, v value) {
	l := &b.locals[i]
	if l.round != b.round {
		b.sets = append(b.sets, i)
		l.round = b.round
	}
	l.now = v
	if v >= 0 {
		b.nodes[v].named = true
	}
}

// node returns the instruction that made v if only the user of v needs it; nil:
// there is none.
func (b *block) node(v value) *node {
	if v < 0 || b.nodes[v].named {
		return nil
	}
	return &b.nodes[v]
}

// fold makes an instruction part of the one that uses its result.
func (b *block) fold(n *node) {
	b.charge(&b.p.ops[n.op.Index()], -1)
	n.latency, n.named = 0, true
}

// foldInto folds operands into x, the node of in, as far as it allows.
func (b *block) foldInto(in *wasm.Instr, x *node) {
	c := b.p.core
	switch in.Info.Class {
	case wasm.ClassBranch:
		if n := b.node(x.from[0]); c.FoldCompare && n != nil && isCompare(n.op) && in.Op != wasm.OpBrTable {
			b.fold(n)
		}
	case wasm.ClassLoad, wasm.ClassStore, wasm.ClassVectorLoad, wasm.ClassVectorStore:
		n := b.node(x.from[0])
		if n == nil || n.op != wasm.OpI32Add {
			return
		}
		offset := n.from[0] == valueConst || n.from[1] == valueConst
		if offset && c.FoldAddress != AddressBase || c.FoldAddress == AddressIndex && in.Imm == 0 && !isFloatAccess(in.Op) {
			b.fold(n)
		}
	case wasm.ClassFloat:
		if c.FoldMultiply && isFloatAdd(in.Op) {
			b.foldOne(x, isFloatMul)
		}
	case wasm.ClassInt:
		if c.FoldShift && takesShift(in.Op) {
			b.foldOne(x, isShift)
		}
	}
}

// foldOne folds the last operand that an instruction of the given kind made.
func (b *block) foldOne(x *node, kind func(wasm.Opcode) bool) {
	for i := 1; i >= 0; i-- {
		n := b.node(x.from[i])
		if n != nil && kind(n.op) && (n.from[1] == valueConst || !isShift(n.op)) {
			b.fold(n)
			return
		}
	}
}

// The groups of opcodes that fold (names in hpu/internal/wasm).
func isCompare(op wasm.Opcode) bool  { return op >= wasm.OpI32Eqz && op <= wasm.OpI32GeU }
func isShift(op wasm.Opcode) bool    { return op >= wasm.OpI32Shl && op <= wasm.OpI32Rotr }
func isFloatMul(op wasm.Opcode) bool { return op == wasm.OpF32Mul || op == wasm.OpF64Mul }

func isFloatAdd(op wasm.Opcode) bool {
	return op == wasm.OpF32Add || op == wasm.OpF32Sub || op == wasm.OpF64Add || op == wasm.OpF64Sub
}

func isFloatAccess(op wasm.Opcode) bool {
	return op == wasm.OpF32Load || op == wasm.OpF64Load || op == wasm.OpF32Store || op == wasm.OpF64Store || op.Info().Vector()
}

func takesShift(op wasm.Opcode) bool {
	return op == wasm.OpI32Add || op == wasm.OpI32Sub || op >= wasm.OpI32And && op <= wasm.OpI32Xor || op > wasm.OpI32Eqz && op <= wasm.OpI32GeU
}

// cost returns the cost of executing the block once, in parts of a cycle. again
// means that the block ends with a branch to its own beginning.
func (b *block) cost(again bool) int64 {
	p := b.p
	if p.moveFree {
		if extra := b.moves - p.registers - p.operands*b.instrs; extra > 0 {
			b.used[unitInt] += extra * p.spill
			if p.core.Fetch > 0 {
				b.used[unitFetch] += extra * p.spill
			}
		}
	}
	if again {
		b.used[unitInt] += b.waits() - b.rounds()
	}
	most := int64(0)
	for u, n := range b.used {
		most = max(most, n*p.worth[u])
	}
	switch {
	case p.core.Chain == ChainBlock:
		most = max(most, b.chain()*p.parts)
	case p.core.Chain == ChainLoop && again:
		most = max(most, b.recurrence())
	}
	return most + b.serial*p.parts
}

// rounds returns what the block's count of rounds costs, if a pointer could
// count them: the last instruction branches on a local that the block steps,
// and it steps another.
func (b *block) rounds() int64 {
	n := len(b.nodes)
	if !b.p.core.FoldRounds || n == 0 {
		return 0
	}
	last, others := b.nodes[n-1].from[0], 0
	counts := false
	for _, i := range b.sets {
		switch v := b.locals[i].now; {
		case v < 0 || !b.steps(&b.nodes[v], i):
		case v == last:
			counts = true
		default:
			others++
		}
	}
	if !counts || others == 0 {
		return 0
	}
	return b.p.ops[wasm.OpI32Add.Index()].cost
}

// steps reports whether n adds a constant to what local i was before the block.
func (b *block) steps(n *node, i uint32) bool {
	old := firstLocal - value(i)
	return n.op == wasm.OpI32Add && (n.from[0] == old && n.from[1] == valueConst || n.from[1] == old && n.from[0] == valueConst)
}

// waits returns for how long instructions wait for what the one before them has
// loaded (Core.LoadUse).
func (b *block) waits() (cycles int64) {
	if b.p.core.LoadUse == 0 {
		return 0
	}
	for i := 1; i < len(b.nodes); i++ {
		n := &b.nodes[i]
		if info := b.nodes[i-1].op.Info(); info.Loads() && slices.Contains(n.from[:], value(i-1)) && !b.sums(n, value(i)) && !isCompare(n.op) {
			cycles += b.p.core.LoadUse
		}
	}
	return cycles
}

// sums reports whether a node, v, is the new value of a local that it has used.
func (b *block) sums(n *node, v value) bool {
	return slices.ContainsFunc(b.sets, func(i uint32) bool {
		return b.locals[i].now == v && slices.Contains(n.from[:], firstLocal-value(i))
	})
}

// chain returns the length in cycles of the longest chain of dependent
// instructions, if all locals from before the block are ready.
func (b *block) chain() (longest int64) {
	for i := range b.nodes {
		n := &b.nodes[i]
		n.ready = n.latency + max(b.ready(n.from[0]), b.ready(n.from[1]), b.ready(n.from[2]))
		longest = max(longest, n.ready)
	}
	return longest
}

func (b *block) ready(v value) int64 {
	switch {
	case v >= 0:
		return b.nodes[v].ready
	case v <= firstLocal:
		if l := &b.locals[firstLocal-v]; l.round == b.round {
			return l.start
		}
	}
	return 0
}

// recurrenceRounds is how many rounds of a loop are measured. The result is
// exact for recurrences whose period, in rounds, divides it.
const recurrenceRounds = 12

// recurrence returns the time between rounds of the block if the only waits are
// for values in locals, in parts of a cycle, rounded up. It simulates rounds
// until they are regular.
func (b *block) recurrence() (most int64) {
	for _, i := range b.sets {
		b.locals[i].start = 0
	}
	half := make([]int64, len(b.sets))
	after := make([]int64, len(b.sets))
	for round := range 2 * recurrenceRounds {
		b.chain()
		for k, i := range b.sets {
			after[k] = b.ready(b.locals[i].now)
		}
		for k, i := range b.sets { // all change at once
			b.locals[i].start = after[k]
		}
		if round == recurrenceRounds-1 {
			copy(half, after)
		}
	}
	for k := range b.sets {
		most = max(most, after[k]-half[k])
	}
	return (most*b.p.parts + recurrenceRounds - 1) / recurrenceRounds
}
