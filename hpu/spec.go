package hpu

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Spec is what a device offers to handlers and allows them: plain data, part of a device profile.
type Spec struct {
	Cores             int       // HPUs, 1 to 4096
	Contexts          int       // contexts of each HPU, 1 to 4096; Cores times Contexts at most 65,536
	PacketBytes       int       // packet buffer of a context, bytes: the MTU plus the longest user header
	StackBytes        int       // shadow stack of a context, bytes
	MaxCodeBytes      int       // code section of a module, bytes
	MaxFunctions      int       // functions a module defines
	MaxMemoryBytes    int64     // memory a module declares, bytes
	MaxHPUMemoryBytes int64     // HPU memory of one program, bytes
	MaxCallDepth      int       // active calls of functions that may recurse
	Costs             CostTable // cycles by class of instruction and by import
}

// CostTable gives the cycles that a device's HPU charges for each class of instructions. The loader knows no defaults.
// Instructions that only name or move values within the register file (locals, constants, drop, block, loop, end, nop,
// reinterpret) have class Move.
type CostTable struct {
	Move         int64 `yaml:"move"`          // local.get, local.set, local.tee, constants, drop, nop, block, loop, else, end, reinterpret, memory.size
	Int          int64 `yaml:"int"`           // integer addition, logic, shifts, comparisons, bit counts, wrap and extension
	IntMul       int64 `yaml:"int_mul"`       // integer multiplication
	IntDiv       int64 `yaml:"int_div"`       // integer division and remainder
	Float        int64 `yaml:"float"`         // addition, subtraction, comparison, min, max, abs, neg, copysign, rounding
	FloatMul     int64 `yaml:"float_mul"`     // multiplication
	FloatDiv     int64 `yaml:"float_div"`     // division
	FloatSqrt    int64 `yaml:"float_sqrt"`    // square root
	Convert      int64 `yaml:"convert"`       // between integers and floating point, promote, demote
	Load         int64 `yaml:"load"`          // of any width
	Store        int64 `yaml:"store"`         // of any width
	Select       int64 `yaml:"select"`        // select
	Branch       int64 `yaml:"branch"`        // br, br_if, br_table, if, return, unreachable; at least 1
	Call         int64 `yaml:"call"`          // call; at least 1. An import's own cost comes on top
	CallIndirect int64 `yaml:"call_indirect"` // call_indirect; at least 1
	Global       int64 `yaml:"global"`        // global.get and global.set
	Bulk         int64 `yaml:"bulk"`          // memory.copy, memory.fill, memory.init, data.drop, each
	// BulkBytesPerCycle is the bytes that memory.copy, memory.fill and memory.init move per cycle, rounded up to whole
	// cycles and charged on top of Bulk. 0: the bytes cost nothing.
	BulkBytesPerCycle int64            `yaml:"bulk_bytes_per_cycle"`
	Import            int64            `yaml:"import"`  // an import that Imports does not list
	Imports           map[string]int64 `yaml:"imports"` // by name of the import, such as dma_to_host
}

// MaxCost is the largest cost that a cost table may give, cycles.
const MaxCost = 1_000_000

// argsBytes is the size of a context's argument record: the largest of the ABI, with room for later versions.
const argsBytes = 256

// Validate reports everything that is wrong with the specification, each with the path of the field.
func (s *Spec) Validate() error {
	var errs []error
	check := func(field string, v, least, most int64) {
		if v < least || v > most {
			errs = append(errs, fmt.Errorf("%s: %d, expected %d to %d", field, v, least, most))
		}
	}
	check("cores", int64(s.Cores), 1, 4096)
	check("contexts", int64(s.Contexts), 1, 4096)
	check("cores*contexts", int64(s.Cores)*int64(s.Contexts), 1, 65_536)
	check("packet_bytes", int64(s.PacketBytes), 1, 1<<24)
	check("stack_bytes", int64(s.StackBytes), 0, 1<<24)
	check("max_code_bytes", int64(s.MaxCodeBytes), 1, 1<<26)
	check("max_functions", int64(s.MaxFunctions), 1, 1<<20)
	check("max_memory_bytes", s.MaxMemoryBytes, 0, maxTotalMemory)
	check("max_hpu_memory", s.MaxHPUMemoryBytes, 0, maxTotalMemory)
	check("max_call_depth", int64(s.MaxCallDepth), 1, 1<<16)
	return errors.Join(append(errs, s.Costs.problems("costs.")...)...)
}

// Validate reports everything that is wrong with the table, each with the name of the field.
func (t *CostTable) Validate() error { return errors.Join(t.problems("")...) }

func (t *CostTable) problems(path string) (errs []error) {
	check := func(field string, v, least int64) {
		if v < least || v > MaxCost {
			errs = append(errs, fmt.Errorf("%s%s: %d, expected %d to %d", path, field, v, least, MaxCost))
		}
	}
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
	check("call", t.Call, 1)
	check("call_indirect", t.CallIndirect, 1)
	check("global", t.Global, 0)
	check("bulk", t.Bulk, 0)
	check("bulk_bytes_per_cycle", t.BulkBytesPerCycle, 0)
	check("import", t.Import, 0)
	for _, name := range slices.Sorted(maps.Keys(t.Imports)) {
		if _, ok := OpByName(name); !ok {
			errs = append(errs, fmt.Errorf("%simports: no import %q in ABI version 1", path, name))
			continue
		}
		check("imports."+name, t.Imports[name], 0)
	}
	return errs
}

// imported returns the cost of an import, without that of the call.
func (t *CostTable) imported(op Op) int64 {
	if c, ok := t.Imports[op.String()]; ok {
		return c
	}
	return t.Import
}
