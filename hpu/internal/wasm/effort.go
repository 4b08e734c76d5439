package wasm

import "fmt"

// Effort is an estimate of the work of a compiler for a module.
type Effort struct {
	Nanoseconds int64
	Bytes       int64 // maximum
	// the function with the largest part of an excessive effort, -1: none in
	// particular
	Func int
}

// The time of a compiler for each of several things. They are for wazero on the
// machine of README.md. Some times grow with products. The compiler looks for
// dominators along chains of blocks. It looks for the value of a variable block
// by block, back to its last use, and notes it in each. It merges every
// variable where two paths meet, and resolves all arguments of a merge for each
// path. It treats the code behind a loop as part of the loop, so the variables
// of one loop also count in the next. TestEffort searches for modules that cost
// more than this predicts.
const (
	tollBlock = 8_000 // ns for a block of instructions
	tollPair  = 5     // ns for a pair of blocks in one function
	// ns for a variable that may be merged where paths meet, for each path
	tollMerge   = 2_000
	tollResolve = 2     // ns for two such variables in the same place
	tollLive    = 2     // ns for a variable that lives in a block behind a loop
	tollLook    = 450   // ns for a block in which the value of a variable is looked up
	tollBound   = 250   // ns for an address that was checked before a block
	tollFilled  = 3_000 // ns for a variable that may be merged in the loop of a memory.fill
	blockBytes  = 5_000
	mergeBytes  = 500
	liveBytes   = 2
	lookBytes   = 95
	boundBytes  = 45
	moduleBytes = 16 << 20 // bytes of a compiler without functions
	// percentage of its bytes that remain after a function: code and tables
	keptPercentage = 40
)

// toll is the extra cost of an instruction, beyond the cost of its kind.
type toll struct{ ns, bytes, blocks int64 }

var (
	tollPlain    = toll{ns: 250, bytes: 150}
	tollMemory   = toll{ns: 2_000, bytes: 500}
	tollTrapping = toll{ns: 14_000, bytes: 7_500} // its exits
	tollDirect   = toll{ns: 15_000, bytes: 6_000}
	tollIndirect = toll{ns: 40_000, bytes: 13_000}
	tollCopy     = toll{ns: 40_000, bytes: 26_000, blocks: 3}
	tollFill     = toll{ns: 60_000, bytes: 46_000, blocks: 4}
)

const (
	parameterNs    = 1_000 // for each parameter of a call
	parameterBytes = 500
	globalNs       = 400 // for each global that a call may change
	globalBytes    = 250
)

func tollOf(in *Instr) toll {
	switch in.Info.Class {
	case ClassLoad, ClassStore:
		return tollMemory
	case ClassIntDiv:
		return tollTrapping
	case ClassConvert:
		if in.Op >= 0xA8 && in.Op <= 0xB1 { // the conversions that trap
			return tollTrapping
		}
		return tollMemory
	case ClassCall:
		return tollDirect
	case ClassCallIndirect:
		return tollIndirect
	case ClassBulk:
		switch in.Op {
		case OpMemoryFill:
			return tollFill
		case OpDataDrop:
			return tollTrapping
		}
		return tollCopy
	}
	return tollPlain
}

// scope is an open control instruction.
type scope struct {
	op       Opcode
	changes  int64 // of variables in the scope
	uses     int64 // of variables in the scope, with changes
	branches int64 // to its label
}

// effortOf is the estimate for one function.
type effortOf struct {
	m         *Module
	variables int64 // of the function: locals, mutable globals, base and size of the memory
	globals   int64
	scopes    []scope

	ns, bytes     int64
	blocks, loops int64
	behind        int64 // blocks behind loops, counted once for each loop
	uses          int64 // of variables
	accesses      int64 // to memory
	checked       int64 // addresses checked before blocks, counted once for each block
	fills         int64

	locals []int64 // for each local, the number of blocks at its last use
	// the same for each global, and behind them for base and size of the memory
	shared []int64
	// the number of blocks behind the last call, which gives all variables in
	// shared new values
	called int64
	looks  int64 // blocks in which the value of a variable is looked up
}

// EstimateEffort estimates the work to compile a valid module.
func EstimateEffort(m *Module) (e Effort) {
	x := &effortOf{m: m}
	for _, g := range m.Globals {
		if g.Mutable {
			x.globals++
		}
	}
	e = Effort{Func: -1, Bytes: moduleBytes}
	var kept, most, worst int64
	for i := range m.Codes {
		x.function(i)
		e.Nanoseconds += x.ns
		kept += x.bytes * keptPercentage / 100
		most = max(most, x.bytes)
		if x.ns > worst {
			worst, e.Func = x.ns, len(m.Imports)+i
		}
	}
	e.Bytes += kept + most
	return e
}

func (x *effortOf) function(i int) {
	code, sig := &x.m.Codes[i], x.m.Types[x.m.Funcs[i]]
	x.variables = int64(len(sig.Params)) + x.globals + 2
	for _, g := range code.Locals {
		x.variables += int64(g.Count)
	}
	x.locals, x.shared = make([]int64, x.variables-x.globals-2), make([]int64, len(x.m.Globals)+1)
	x.called, x.looks = 0, 0
	x.ns, x.bytes, x.blocks, x.loops, x.behind, x.uses = 50_000+200*x.variables, 4_000+200*x.variables, 1, 0, 0, 0
	x.accesses, x.checked, x.fills = 0, 0, 0
	x.scopes = append(x.scopes[:0], scope{op: OpBlock})
	var in Instr
	for instrs := x.m.Instrs(code); len(x.scopes) > 0; {
		if err := instrs.Next(&in); err != nil {
			panic(err) //lint:panic the module has been validated
		}
		x.instr(&in)
	}
	live := x.behind * min(x.variables, x.uses)
	x.ns += tollBlock*x.blocks + tollPair*x.blocks*x.blocks + tollLive*live + tollLook*x.looks + tollBound*x.checked + tollFilled*x.fills*min(x.variables, x.uses)
	x.bytes += blockBytes*x.blocks + liveBytes*live + lookBytes*x.looks + boundBytes*x.checked
}

func (x *effortOf) instr(in *Instr) {
	t := tollOf(in)
	x.ns += t.ns
	x.bytes += t.bytes
	x.block(t.blocks)
	if in.Info.Class == ClassLoad || in.Info.Class == ClassStore {
		x.accesses++
		x.look(&x.shared[len(x.shared)-1], x.called)
	}
	top := &x.scopes[len(x.scopes)-1]
	switch in.Op {
	case OpMemoryFill:
		x.fills++
	case OpBlock:
		x.scopes = append(x.scopes, scope{op: in.Op})
		x.block(1) // the code behind it, with or without a branch
	case OpLoop, OpIf:
		x.scopes = append(x.scopes, scope{op: in.Op})
		x.block(3)
		if in.Op == OpLoop {
			x.loops++
		}
	case OpElse:
		x.block(1)
	case OpEnd:
		x.end()
	case OpBr, OpBrIf:
		x.block(2)
		x.branch(in.Imm)
	case OpBrTable:
		for _, l := range in.Labels {
			x.branch(uint64(l))
		}
		x.block(1 + int64(len(in.Labels)+1)/2)
	case OpReturn:
		x.block(1)
	case OpLocalGet:
		x.look(&x.locals[in.Imm], 0)
		top.uses++
		x.uses++
	case OpGlobalGet:
		x.look(&x.shared[in.Imm], x.called)
		top.uses++
		x.uses++
	case OpLocalSet, OpLocalTee, OpGlobalSet:
		if in.Op == OpGlobalSet {
			x.shared[in.Imm] = x.blocks
		} else {
			x.locals[in.Imm] = x.blocks
		}
		top.uses++
		top.changes++
		x.uses++
	case OpCall:
		x.call(x.m.TypeOf(uint32(in.Imm)))
	case OpCallIndirect:
		x.call(x.m.Types[in.Imm])
	}
}

// block begins new blocks.
func (x *effortOf) block(n int64) {
	x.blocks += n
	x.checked += n * x.accesses
	x.behind += n * x.loops
}

// look counts the blocks of a look-up of a variable. used is the number of
// blocks at its last use, given the number where it got its value.
func (x *effortOf) look(used *int64, given int64) {
	x.looks += x.blocks - max(*used, given)
	*used = x.blocks
}

func (x *effortOf) branch(label uint64) {
	x.scopes[len(x.scopes)-1-int(label)].branches++
}

// call counts a call: it may change all globals, and it moves the memory.
func (x *effortOf) call(sig FuncType) {
	n := int64(len(sig.Params))
	x.ns += parameterNs*n + globalNs*x.globals
	x.bytes += parameterBytes*n + globalBytes*x.globals
	top := &x.scopes[len(x.scopes)-1]
	x.called = x.blocks
	top.changes += x.globals + 2
	top.uses += x.globals + 2
	x.uses += x.globals + 2
}

// end closes a scope. The variables changed in the scope are merged at its
// label. For a loop, the variables used in it are merged, too.
func (x *effortOf) end() {
	s := x.scopes[len(x.scopes)-1]
	x.scopes = x.scopes[:len(x.scopes)-1]
	merged, paths := min(s.changes, x.variables), s.branches
	switch s.op {
	case OpLoop:
		merged = min(s.uses, x.variables)
	case OpIf:
		paths++
	}
	if paths > 0 && len(x.scopes) > 0 {
		x.ns += tollMerge*(paths+1)*merged + tollResolve*(paths+1)*merged*merged
		x.bytes += mergeBytes * (paths + 1) * merged
	}
	if len(x.scopes) > 0 {
		top := &x.scopes[len(x.scopes)-1]
		top.changes += s.changes
		top.uses += s.uses
	}
}

// String describes e in words.
func (e Effort) String() string {
	return fmt.Sprintf("about %d ms and %d MiB", e.Nanoseconds/1e6, e.Bytes>>20)
}
