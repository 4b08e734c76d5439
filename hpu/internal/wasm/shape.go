package wasm

import "fmt"

// shape counts what makes a function slow to compile.
type shape struct{ blocks, exits, loops, variables, accesses, sequences int64 }

// bounds are for the sums over the functions of a module, besides those of a
// device for bytes and functions. They do not depend on the engine: each step
// of a compiler works through one of these products at the most. It finds
// dominators along chains of blocks, merges variables where paths meet,
// remembers in each block which addresses were checked, and keeps variables
// alive behind loops. The code of large programs (a standard library of C, Go
// or Rust) has a tenth of each in a quarter of a mebibyte, and half of the
// variables.
var bounds = [...]struct {
	what string
	of   func(s shape) int64
	most int64
}{
	{"blocks and exits", func(s shape) int64 { return s.blocks + s.exits }, 90_000},
	{"pairs of blocks in a function", func(s shape) int64 { return s.blocks * s.blocks }, 125_000_000},
	{"variables, in each block of their function", func(s shape) int64 { return s.blocks * s.variables }, 2_500_000},
	{"accesses to memory, for each block of their function", func(s shape) int64 { return s.blocks * s.accesses }, 10_000_000},
	{"minima, maxima and bit counts of vectors", func(s shape) int64 { return s.sequences }, 40_000},
	{"variables, in each block and loop of their function", func(s shape) int64 { return s.blocks * s.loops * s.variables }, 400_000_000},
}

// CheckShape refuses a valid module whose shape makes it slow to compile. The
// bounds are multiplied by times. imports is how many functions the module had
// imported before it was rewritten, for the error, and facts are of that module.
// A value that waits on the operand stack where a block begins is a variable to
// a compiler.
func CheckShape(m *Module, imports int, facts []Facts, times int64) error {
	var sums, worst [len(bounds)]int64
	var at [len(bounds)]int
	for i := range m.Codes {
		s := m.shape(i)
		if i < len(facts) && facts[i].Begins > 0 {
			s.variables += facts[i].Waiting / facts[i].Begins
		}
		for k := range bounds {
			n := bounds[k].of(s)
			sums[k] += n
			if n > worst[k] {
				worst[k], at[k] = n, i
			}
		}
	}
	for k, b := range bounds {
		if most := b.most * times; sums[k] > most {
			cause := fmt.Sprintf("too much to compile: the module has %d %s, at most %d", sums[k], b.what, most)
			if 2*worst[k] < sums[k] {
				return &Error{Func: -1, Offset: -1, Cause: cause + "; they are spread over its functions"}
			}
			return &Error{Func: imports + at[k], Offset: -1, Cause: fmt.Sprintf("%s; %d of them here", cause, worst[k])}
		}
	}
	return nil
}

// shape counts function i of a valid module.
func (m *Module) shape(i int) shape {
	const memory = 2 // its base and its size are variables to a compiler
	s := shape{blocks: 1, variables: int64(len(m.Types[m.Funcs[i]].Params)) + memory}
	for _, g := range m.Globals {
		if g.Mutable {
			s.variables++
		}
	}
	for _, g := range m.Codes[i].Locals {
		s.variables += int64(g.Count)
	}
	var in Instr
	for depth, instrs := 1, m.Instrs(&m.Codes[i]); depth > 0; {
		if err := instrs.Next(&in); err != nil {
			panic(err) //lint:panic the module has been validated
		}
		blocks, exits := blocksOf(&in)
		s.blocks, s.exits = s.blocks+blocks, s.exits+exits
		switch in.Op {
		case OpLoop:
			s.loops++
			depth++
		case OpBlock, OpIf:
			depth++
		case OpEnd:
			depth--
		}
		if in.Info.Accesses() {
			s.accesses++
		}
		if isSequence(in.Op) {
			s.sequences++
		}
	}
	return s
}

// isSequence reports whether an instruction, of two bytes, is a sequence of
// machine instructions that takes a compiler kilobytes: a minimum or maximum of
// vectors of floats, whose NaNs no machine has as WebAssembly does, or a count of
// bits.
func isSequence(op Opcode) bool {
	switch op {
	case OpI8x16Popcnt, OpF32x4Min, OpF32x4Min + 1, OpF64x2Min, OpF64x2Min + 1:
		return true
	}
	return false
}

// blocksOf is about how many basic blocks a compiler makes of an instruction,
// and how many exits, which calls have, and what may trap.
func blocksOf(in *Instr) (blocks, exits int64) {
	switch in.Op {
	case OpBlock, OpElse, OpReturn, OpUnreachable:
		return 1, 0
	case OpBr, OpBrIf:
		return 2, 0
	case OpLoop, OpIf:
		return 3, 0
	case OpBrTable:
		return 1 + int64(len(in.Labels)+1)/2, 0
	}
	switch in.Info.Class {
	case ClassIntDiv, ClassCall:
		return 0, 4
	case ClassConvert:
		if in.Op >= 0xA8 && in.Op <= 0xB1 && in.Op != 0xAC && in.Op != 0xAD { // floats to integers
			return 0, 4
		}
	case ClassCallIndirect:
		return 0, 11
	case ClassBulk:
		return 4, 8
	}
	return 0, 0
}
