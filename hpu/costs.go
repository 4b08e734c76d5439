package hpu

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// CostTable describes the core of a device's HPU by the costs of its
// instructions, in cycles. The loader has no default values.
//
// Each class of instructions has a field for its cost. Instructions replaces it
// for single instructions. Without [Core.Fetch], the core executes one
// instruction after the other, and a basic block costs the sum. With it, the
// core is wide: a block costs the maximum over its parts, fetch and each kind
// of execution unit. Fractions of a cycle count; see [Module.CycleParts].
type CostTable struct {
	// local.get, local.set, local.tee, constants, drop, nop, block, loop, else,
	// end, reinterpret, memory.size
	Move int64 `yaml:"move"`
	// integer addition, logic, shifts, comparisons, bit counts, wrap and
	// extension
	Int    int64 `yaml:"int"`
	IntMul int64 `yaml:"int_mul"` // integer multiplication
	IntDiv int64 `yaml:"int_div"` // integer division and remainder
	// IntDivBit is added to a division or remainder of 32 bits for each leading
	// bit of the divisor that repeats its sign: a divider of one bit per cycle
	// needs more of them for a small divisor. 0: the time does not depend on
	// the operands. At most 1,000.
	IntDivBit int64 `yaml:"int_div_bit,omitempty"`
	// addition, subtraction, comparison, min, max, abs, neg, copysign, rounding
	Float     int64 `yaml:"float"`
	FloatMul  int64 `yaml:"float_mul"`  // multiplication
	FloatDiv  int64 `yaml:"float_div"`  // division
	FloatSqrt int64 `yaml:"float_sqrt"` // square root
	Convert   int64 `yaml:"convert"`    // between integers and floating point, promote, demote
	Load      int64 `yaml:"load"`       // of any width
	Store     int64 `yaml:"store"`      // of any width
	Select    int64 `yaml:"select"`     // select
	// br, br_if, br_table, if, return, unreachable; at least 1
	Branch int64 `yaml:"branch"`
	// br_if to the head of a loop, which is nearly always taken; 0: the cost of
	// any other br_if
	LoopBranch   int64 `yaml:"loop_branch"`
	Call         int64 `yaml:"call"`          // call; at least 1. The cost of an import is added
	CallIndirect int64 `yaml:"call_indirect"` // call_indirect; at least 1
	Global       int64 `yaml:"global"`        // global.get and global.set
	Bulk         int64 `yaml:"bulk"`          // memory.copy, memory.fill, memory.init, data.drop, each
	// BulkBytesPerCycle is how many bytes memory.copy, memory.fill and
	// memory.init move per cycle. The time is rounded up to whole cycles and
	// added to Bulk. 1 to 64: the simulating machine must be able to keep up.
	BulkBytesPerCycle int64 `yaml:"bulk_bytes_per_cycle"`
	Import            int64 `yaml:"import"` // an import that is not in Imports
	// by name of the import, for example dma_to_host
	Imports map[string]int64 `yaml:"imports"`
	// Atomic is the whole cost of cas, fadd and atomic32 on a core that has
	// instructions for them, the call included. 0: a call and an import.
	Atomic int64 `yaml:"atomic,omitempty"`
	// HardwareRuntime means that the device does in hardware what handlers
	// have between runtime_begin and runtime_end (docs/abi.md): it uses budget,
	// but takes no time. Imports there cost what they cost anywhere.
	HardwareRuntime bool `yaml:"hardware_runtime,omitempty"`

	// Registers and Operands count only if Move is 0. A block may then name a
	// number of values for free (local.get, local.set, local.tee, constants):
	// Registers, plus Operands for each instruction outside class move. Each
	// further name is a move between registers or to memory. It costs Spill,
	// which must then be at least 1.
	Registers int64 `yaml:"registers"`
	Operands  int64 `yaml:"operands"`
	Spill     int64 `yaml:"spill"`

	SIMD   SIMD   `yaml:"simd,omitempty"`
	Core   Core   `yaml:"core,omitempty"`
	Levels Levels `yaml:"levels,omitempty"`
	Misses Misses `yaml:"misses,omitempty"`
	// Instructions is the cost of single instructions, in place of the cost of
	// their class. A key is a WebAssembly name such as i64.add, or several
	// names with spaces between.
	Instructions map[string]InstrCost `yaml:"instructions,omitempty"`
}

// Core describes how the instructions of a block share a core.
type Core struct {
	// Fetch is how many machine instructions the core fetches and decodes per
	// cycle. 0: the core executes one instruction after the other, and the
	// numbers of units must be 0.
	Fetch int64 `yaml:"fetch"`
	// Units by kind. A unit begins an instruction as soon as it has finished
	// the one before. Int executes Int, Select and moves. Mul executes
	// multiplications and divisions of integers. Load and Store also execute
	// globals. Float executes all floating point. Branch executes branches and
	// calls. Mul and Branch may be 0: then Int executes their instructions.
	Int    int64 `yaml:"int"`
	Mul    int64 `yaml:"mul"`
	Load   int64 `yaml:"load"`
	Store  int64 `yaml:"store"`
	Float  int64 `yaml:"float"`
	Branch int64 `yaml:"branch"`

	// Chain chooses the chains of dependent instructions that are a lower bound
	// for the cost of a block.
	Chain Chain `yaml:"chain"`
	// Latency is how many cycles after the beginning of an instruction another
	// can use its result, by class. 0: the result is ready when the instruction
	// leaves its unit.
	Latency Latency `yaml:"latency"`

	// Fold… choose instructions that become part of the instruction that uses
	// their result, and cost nothing.
	FoldAddress Address `yaml:"fold_address"` // a 32-bit addition that makes an address
	// a 32-bit shift by a constant, used by an addition, subtraction, logic or
	// comparison
	FoldShift bool `yaml:"fold_shift"`
	// a 32-bit comparison, used by an if or br_if: compare and branch
	FoldCompare bool `yaml:"fold_compare"`
	// a floating-point multiplication, used by an addition or subtraction:
	// multiply and accumulate
	FoldMultiply bool `yaml:"fold_multiply"`
	// FoldRounds means that compilers for the core let a pointer count a loop's
	// rounds: in a loop of one block that moves a pointer and counts down, the
	// count is free.
	FoldRounds bool `yaml:"fold_rounds,omitempty"`
	// LoadUse is how many cycles the core waits if an instruction uses what the
	// one before it has loaded, at most MaxCost. It counts in loops of one
	// block, which have little to put between, and not where the value is added
	// to a sum, which waits till the round's end. 0: see Chain.
	LoadUse int64 `yaml:"load_use,omitempty"`
	// FoldHalves means that a 64-bit number is in two registers, so that a shift
	// or rotation of it by the constant 32 only names registers.
	FoldHalves bool `yaml:"fold_halves,omitempty"`
}

// Levels are the memories of a device whose HPUs form clusters. An access in the
// cluster's own memory costs what its instruction costs: the scratchpad of the
// handler's cluster, packets, argument records and stacks. The fields are cycles
// that an access elsewhere costs more, at most 10,000. The zero value is one
// memory. The bytes of bulk operations, and what imports read and write, cost
// the same in all memories.
type Levels struct {
	// of memory outside clusters: the module's own memory and the HPU memory
	// that is no scratchpad
	OuterLoad  int64 `yaml:"outer_load,omitempty"`
	OuterStore int64 `yaml:"outer_store,omitempty"`
	// of the scratchpad of another cluster
	OtherLoad  int64 `yaml:"other_load,omitempty"`
	OtherStore int64 `yaml:"other_store,omitempty"`
	// WordBytes is how many bytes one access moves: wider ones are several. 1
	// to 16; 0: 8.
	WordBytes int64 `yaml:"word_bytes,omitempty"`
}

// Misses are the first run of a handler in a cluster, whose instruction cache
// does not have its code yet. The model is structural: the handler's first
// instructions, as many as it and its callees have, each come with the time to
// fetch them, and the rest of the run does not. What other handlers evict is not
// modelled. The zero value is a cache that has everything.
type Misses struct {
	Line int64 `yaml:"line,omitempty"` // cycles to fetch a line, at most 10,000
	// instructions in a line, 1 to 64; 0 only without Line
	LineInstructions int64 `yaml:"line_instructions,omitempty"`
}

// Chain is a kind of chains of dependent instructions that count.
type Chain string

// Kinds of chains.
const (
	ChainNone Chain = "" // none
	// within a block: for in-order cores, where a compiler has put independent
	// instructions between
	ChainBlock Chain = "block"
	// from one round to the next of a loop that is a single block: for
	// out-of-order cores, which overlap rounds
	ChainLoop Chain = "loop"
)

// Address is a form of the addresses of loads and stores.
type Address string

// Forms of addresses.
const (
	AddressBase   Address = ""       // a register and the instruction's own constant
	AddressOffset Address = "offset" // also the addition of a constant
	// also, for integers and in place of a constant, the addition of a register
	AddressIndex Address = "index"
)

// Latency is the number of cycles until a result can be used, by class of
// instructions.
type Latency struct {
	Int       int64 `yaml:"int"`
	IntMul    int64 `yaml:"int_mul"`
	IntDiv    int64 `yaml:"int_div"`
	Float     int64 `yaml:"float"`
	FloatMul  int64 `yaml:"float_mul"`
	FloatDiv  int64 `yaml:"float_div"`
	FloatSqrt int64 `yaml:"float_sqrt"`
	Convert   int64 `yaml:"convert"`
	Load      int64 `yaml:"load"`
	Select    int64 `yaml:"select"`
}

// InstrCost is the cost of an instruction.
type InstrCost struct {
	Cost int64 `yaml:"cost"` // cycles of its unit
	// machine instructions to fetch; 0: the same number as Cost
	Slots int64 `yaml:"slots"`
	// cycles until its result can be used; 0: the same number as Cost
	Latency int64 `yaml:"latency"`
}

// MaxCost is the largest cost or latency in a cost table, cycles.
const MaxCost = 1_000_000

// maxBulkRate is the largest rate of memory.copy and similar instructions,
// bytes per cycle.
const maxBulkRate = 64

// MaxWidth is the largest number of units of a kind, and of instructions
// fetched per cycle.
const MaxWidth = 8

// Validate reports every error in the table, each with the name of the field.
func (t *CostTable) Validate() error { return errors.Join(t.problems("")...) }

func (t *CostTable) problems(path string) []error {
	p := problems{path: path}
	p.classes(t)
	p.core(&t.Core)
	p.memories(t)
	p.simd(&t.SIMD)
	for _, name := range slices.Sorted(maps.Keys(t.Imports)) {
		if _, ok := OpByName(name); !ok {
			p.errs = append(p.errs, fmt.Errorf("%simports: no import %q in ABI version 1", path, name))
			continue
		}
		p.check("imports."+name, t.Imports[name], 0, MaxCost)
	}
	seen := make(map[string]bool)
	for _, key := range slices.Sorted(maps.Keys(t.Instructions)) {
		for name := range strings.FieldsSeq(key) {
			if op, ok := wasm.OpcodeByName(name); !ok {
				p.errs = append(p.errs, fmt.Errorf("%sinstructions: no instruction %q in ABI version 1", path, name))
			} else if op.Info().Vector() && !t.SIMD.has() {
				p.errs = append(p.errs, fmt.Errorf("%sinstructions: %s is an instruction of SIMD, which the core lacks (simd.access_bytes)", path, name))
			} else if seen[name] {
				p.errs = append(p.errs, fmt.Errorf("%sinstructions: %s is given twice", path, name))
			}
			seen[name] = true
		}
		p.instruction("instructions."+key, t.Instructions[key], key)
	}
	return p.errs
}

// problems collects the errors in a table.
type problems struct {
	path string
	errs []error
}

func (p *problems) check(field string, v, least, most int64) {
	if v < least || v > most {
		p.errs = append(p.errs, fmt.Errorf("%s%s: %d, expected %d to %d", p.path, field, v, least, most))
	}
}

func (p *problems) classes(t *CostTable) {
	check := func(field string, v, least int64) { p.check(field, v, least, MaxCost) }
	check("move", t.Move, 0)
	check("int", t.Int, 0)
	check("int_mul", t.IntMul, 0)
	check("int_div", t.IntDiv, 0)
	p.check("int_div_bit", t.IntDivBit, 0, 1000)
	check("float", t.Float, 0)
	check("float_mul", t.FloatMul, 0)
	check("float_div", t.FloatDiv, 0)
	check("float_sqrt", t.FloatSqrt, 0)
	check("convert", t.Convert, 0)
	check("load", t.Load, 0)
	check("store", t.Store, 0)
	check("select", t.Select, 0)
	check("branch", t.Branch, 1) // a loop without cost would never exceed its budget
	check("loop_branch", t.LoopBranch, 0)
	check("call", t.Call, 1)
	check("call_indirect", t.CallIndirect, 1)
	check("global", t.Global, 0)
	check("bulk", t.Bulk, 0)
	p.check("bulk_bytes_per_cycle", t.BulkBytesPerCycle, 1, maxBulkRate)
	check("import", t.Import, 0)
	check("atomic", t.Atomic, 0)
	check("registers", t.Registers, 0)
	check("operands", t.Operands, 0)
	least := int64(0)
	if t.Move == 0 {
		least = 1 // otherwise a block of any length could cost nothing
	}
	check("spill", t.Spill, least)
}

func (p *problems) memories(t *CostTable) {
	const most = 10_000
	l := &t.Levels
	p.check("levels.outer_load", l.OuterLoad, 0, most)
	p.check("levels.outer_store", l.OuterStore, 0, most)
	p.check("levels.other_load", l.OtherLoad, 0, most)
	p.check("levels.other_store", l.OtherStore, 0, most)
	p.check("levels.word_bytes", l.WordBytes, 0, vectorBytes)
	p.check("misses.line", t.Misses.Line, 0, most)
	least := min(t.Misses.Line, 1)
	p.check("misses.line_instructions", t.Misses.LineInstructions, least, 64)
}

func (p *problems) core(c *Core) {
	p.check("core.fetch", c.Fetch, 0, MaxWidth)
	least, most := int64(0), int64(0)
	if c.Fetch > 0 {
		least, most = 1, MaxWidth
	}
	p.check("core.int", c.Int, least, most)
	p.check("core.mul", c.Mul, 0, most)
	p.check("core.load", c.Load, least, most)
	p.check("core.store", c.Store, least, most)
	p.check("core.float", c.Float, least, most)
	p.check("core.branch", c.Branch, 0, most)
	p.check("core.load_use", c.LoadUse, 0, MaxCost)
	if c.Fetch > 0 && (c.LoadUse > 0 || c.FoldRounds) {
		p.errs = append(p.errs, fmt.Errorf("%score: load_use and fold_rounds are for cores that execute one instruction after the other, with fetch: 0", p.path))
	}
	if c.Chain != ChainNone && c.Chain != ChainBlock && c.Chain != ChainLoop {
		p.errs = append(p.errs, fmt.Errorf("%score.chain: %q, expected %q, %q or nothing", p.path, c.Chain, ChainBlock, ChainLoop))
	}
	if c.FoldAddress != AddressBase && c.FoldAddress != AddressOffset && c.FoldAddress != AddressIndex {
		p.errs = append(p.errs, fmt.Errorf("%score.fold_address: %q, expected %q, %q or nothing", p.path, c.FoldAddress, AddressOffset, AddressIndex))
	}
	l := &c.Latency
	for _, f := range []struct {
		name string
		v    int64
	}{
		{"int", l.Int},
		{"int_mul", l.IntMul},
		{"int_div", l.IntDiv},
		{"float", l.Float},
		{"float_mul", l.FloatMul},
		{"float_div", l.FloatDiv},
		{"float_sqrt", l.FloatSqrt},
		{"convert", l.Convert},
		{"load", l.Load},
		{"select", l.Select},
	} {
		p.check("core.latency."+f.name, f.v, 0, MaxCost)
	}
}

func (p *problems) instruction(field string, c InstrCost, names string) {
	least := int64(0)
	for name := range strings.FieldsSeq(names) {
		if op, ok := wasm.OpcodeByName(name); ok && ends(op.Info().Class) {
			least = 1
		}
	}
	p.check(field+".cost", c.Cost, least, MaxCost)
	p.check(field+".slots", c.Slots, 0, MaxCost)
	p.check(field+".latency", c.Latency, 0, MaxCost)
}

// ends reports whether instructions of a class may lead back to code that has
// already run. Such instructions must cost something.
func ends(class wasm.Class) bool {
	return class == wasm.ClassBranch || class == wasm.ClassCall || class == wasm.ClassCallIndirect
}

// imported returns the cost of an import without its call, cycles.
func (t *CostTable) imported(op Op) int64 {
	if own, whole := t.whole(op); whole {
		return own
	}
	if c, ok := t.Imports[op.String()]; ok {
		return c
	}
	return t.Import
}

// Depends reports whether the cost of a handler depends on where its memory is
// or on whether it has run before, which a device tells a context
// ([Context.Begins]).
func (t *CostTable) Depends() bool {
	l := &t.Levels
	return l.OuterLoad|l.OuterStore|l.OtherLoad|l.OtherStore|t.Misses.Line > 0
}

// whole returns the cost of an import with its call, if the table gives that.
func (t *CostTable) whole(op Op) (cost int64, is bool) {
	switch op {
	case OpRuntimeBegin, OpRuntimeEnd: // marks, which no core executes
		return 0, true
	case OpCAS, OpFAdd, OpAtomic32:
		return t.Atomic, t.Atomic > 0
	}
	return 0, false
}
