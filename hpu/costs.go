package hpu

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// CostTable describes the core of a device's HPU by what its instructions cost,
// in cycles. The loader knows no defaults.
//
// A class of instructions costs what its field says; Instructions says it for
// single ones. Without [Core.Fetch] the core executes one instruction after the
// other, and a basic block costs the sum. With it the core is wide: a block
// costs the most that one of its parts needs: fetch, or a kind of execution
// unit. Fractions of a cycle count; see [Module.CycleParts].
type CostTable struct {
	// local.get, local.set, local.tee, constants, drop, nop, block, loop, else,
	// end, reinterpret, memory.size
	Move int64 `yaml:"move"`
	// integer addition, logic, shifts, comparisons, bit counts, wrap and
	// extension
	Int    int64 `yaml:"int"`
	IntMul int64 `yaml:"int_mul"` // integer multiplication
	IntDiv int64 `yaml:"int_div"` // integer division and remainder
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
	// br_if to the head of a loop, which is nearly always taken; 0: as any
	// other
	LoopBranch   int64 `yaml:"loop_branch"`
	Call         int64 `yaml:"call"`          // call; at least 1. An import's own cost comes on top
	CallIndirect int64 `yaml:"call_indirect"` // call_indirect; at least 1
	Global       int64 `yaml:"global"`        // global.get and global.set
	Bulk         int64 `yaml:"bulk"`          // memory.copy, memory.fill, memory.init, data.drop, each
	// BulkBytesPerCycle is the bytes that memory.copy, memory.fill and
	// memory.init move per cycle, rounded up to whole cycles and charged on top
	// of Bulk, 1 to 64: a machine that simulates must be able to keep up.
	BulkBytesPerCycle int64            `yaml:"bulk_bytes_per_cycle"`
	Import            int64            `yaml:"import"`  // an import that Imports does not list
	Imports           map[string]int64 `yaml:"imports"` // by name of the import, such as dma_to_host

	// Where Move is 0, a block may name as many values (local.get, local.set,
	// local.tee, constants) as the core has registers and its instructions have
	// operands, for nothing: Registers plus Operands for each instruction that
	// is none of class move. Each name beyond that is a move between registers
	// or to memory and costs Spill, which must then be 1 at least.
	Registers int64 `yaml:"registers"`
	Operands  int64 `yaml:"operands"`
	Spill     int64 `yaml:"spill"`

	Core Core `yaml:"core,omitempty"`
	// Instructions is what single instructions cost, in place of their classes.
	// A key is a WebAssembly name such as i64.add, or several of them with
	// spaces between.
	Instructions map[string]InstrCost `yaml:"instructions,omitempty"`
}

// Core is how the instructions of a block share a core.
type Core struct {
	// Fetch is the machine instructions that the core fetches and decodes in a
	// cycle. 0: one instruction after the other, and the numbers of units must
	// be 0.
	Fetch int64 `yaml:"fetch"`
	// Units by kind, each of which begins an instruction as soon as it has
	// finished the one before. Int executes Int, Select and moves, Mul
	// multiplications and divisions of integers, Load and Store also globals,
	// Float everything of floating point, Branch branches and calls. Mul and
	// Branch may be 0: Int executes theirs, too.
	Int    int64 `yaml:"int"`
	Mul    int64 `yaml:"mul"`
	Load   int64 `yaml:"load"`
	Store  int64 `yaml:"store"`
	Float  int64 `yaml:"float"`
	Branch int64 `yaml:"branch"`

	// Chain says which chains of instructions that wait for each other's
	// results bound the cost of a block from below.
	Chain Chain `yaml:"chain"`
	// Latency is the cycles from the beginning of an instruction until another
	// can use its result, by class. A class that is 0 here has a result when it
	// has left its unit.
	Latency Latency `yaml:"latency"`

	// Fold… name instructions that become a part of the one that uses their result, and cost nothing.
	FoldAddress Address `yaml:"fold_address"` // a 32-bit addition that gives an address
	// a 32-bit shift by a constant that an addition, subtraction, logic or
	// comparison uses
	FoldShift bool `yaml:"fold_shift"`
	// a 32-bit comparison that decides an if or br_if: compare and branch
	FoldCompare bool `yaml:"fold_compare"`
	// a multiplication of floating point that an addition or subtraction uses:
	// multiply and accumulate
	FoldMultiply bool `yaml:"fold_multiply"`
}

// Chain names the chains of dependent instructions that count.
type Chain string

// Kinds of chains.
const (
	ChainNone Chain = "" // none
	// within a block: in-order cores, where a compiler has put what is
	// independent in between
	ChainBlock Chain = "block"
	// from one round to the next of a loop that is a single block: out-of-order
	// cores, which overlap rounds
	ChainLoop Chain = "loop"
)

// Address says what an address of a load or store may consist of.
type Address string

// Kinds of addresses.
const (
	AddressBase   Address = ""       // a register and the instruction's own constant
	AddressOffset Address = "offset" // also an addition of a constant
	// also, for integers and in place of a constant, an addition of a register
	AddressIndex Address = "index"
)

// Latency is cycles until a result can be used, by class of instructions.
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

// InstrCost is what an instruction costs.
type InstrCost struct {
	Cost    int64 `yaml:"cost"`    // cycles of its unit
	Slots   int64 `yaml:"slots"`   // machine instructions that are fetched; 0: as many as Cost
	Latency int64 `yaml:"latency"` // cycles until its result can be used; 0: as many as Cost
}

// MaxCost is the largest cost or latency that a cost table may give, cycles.
const MaxCost = 1_000_000

// maxBulkRate is the most that memory.copy and the like may move per cycle, bytes.
const maxBulkRate = 64

// MaxWidth is the largest number of units of a kind, and of instructions fetched in a cycle.
const MaxWidth = 8

// Validate reports everything that is wrong with the table, each with the name of the field.
func (t *CostTable) Validate() error { return errors.Join(t.problems("")...) }

func (t *CostTable) problems(path string) []error {
	p := problems{path: path}
	p.classes(t)
	p.core(&t.Core)
	for _, name := range slices.Sorted(maps.Keys(t.Imports)) {
		if _, ok := OpByName(name); !ok {
			p.errs = append(p.errs, fmt.Errorf("%simports: no import %q in ABI version 1", path, name))
			continue
		}
		p.check("imports."+name, t.Imports[name], 0, MaxCost)
	}
	seen := make(map[string]bool)
	for _, key := range slices.Sorted(maps.Keys(t.Instructions)) {
		for _, name := range strings.Fields(key) {
			if _, ok := wasm.OpcodeByName(name); !ok {
				p.errs = append(p.errs, fmt.Errorf("%sinstructions: no instruction %q in ABI version 1", path, name))
			} else if seen[name] {
				p.errs = append(p.errs, fmt.Errorf("%sinstructions: %s is given twice", path, name))
			}
			seen[name] = true
		}
		p.instruction("instructions."+key, t.Instructions[key], key)
	}
	return p.errs
}

// problems collects what is wrong with a table.
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
	check("registers", t.Registers, 0)
	check("operands", t.Operands, 0)
	least := int64(0)
	if t.Move == 0 {
		least = 1 // else a block of any length could cost nothing
	}
	check("spill", t.Spill, least)
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
	for _, name := range strings.Fields(names) {
		if op, ok := wasm.OpcodeByName(name); ok && ends(op.Info().Class) {
			least = 1
		}
	}
	p.check(field+".cost", c.Cost, least, MaxCost)
	p.check(field+".slots", c.Slots, 0, MaxCost)
	p.check(field+".latency", c.Latency, 0, MaxCost)
}

// ends reports whether instructions of a class may lead back to code that has
// been executed: they must cost something.
func ends(class wasm.Class) bool {
	return class == wasm.ClassBranch || class == wasm.ClassCall || class == wasm.ClassCallIndirect
}

// imported returns the cost of an import, cycles, without that of the call.
func (t *CostTable) imported(op Op) int64 {
	if c, ok := t.Imports[op.String()]; ok {
		return c
	}
	return t.Import
}
