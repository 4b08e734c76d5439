package hpu

import (
	"fmt"

	"github.com/spinsim/spinsim/hpu/internal/wasm"
)

// trapped turns the error of an engine into a trap with its place.
func (c *Context) trapped(err error) *Trap {
	p := c.program
	kind, fn := p.inst.fault(err)
	t := c.abort
	if t == nil {
		if kind == TrapNone {
			panic(fmt.Sprintf("hpu: %s, program %s: %v", p.module.name, p.owner, err))
		}
		t = &Trap{Kind: kind}
		if kind == TrapUnreachable {
			t.Kind = c.unreachable()
		}
	}
	t.Module, t.Index, t.Offset = p.module.name, fn, -1
	if t.Kind == TrapBudget {
		t.Detail = c.spent()
	}
	if fn < 0 || fn >= len(p.module.functions) {
		t.Index = -1
		return t
	}
	t.Func = p.module.functions[fn].Name
	t.Offset = p.module.onlyPlace(fn, t)
	return t
}

// spent says what has used up the budget.
func (c *Context) spent() string {
	allowed := c.budget/c.program.module.prices.parts + c.effort
	if c.effort == 0 {
		return fmt.Sprintf("%d cycles charged, %d allowed", c.Cycles(), allowed)
	}
	return fmt.Sprintf("%d cycles charged and %d for the work of imports, %d allowed", c.Cycles(), c.effort, allowed)
}

// unreachable tells apart what the rewritten code expresses by the instruction unreachable: its own checks, in the order in
// which they can hold at once, and the module's.
func (c *Context) unreachable() TrapKind {
	p := c.program
	g := &p.module.globals
	switch {
	case g.hasDepth && int32(p.inst.get(c, regDepth)) < 0:
		return TrapCallDepth
	case g.hasStack && uint32(p.inst.get(c, regStack)) < uint32(p.inst.get(c, regLimit)):
		return TrapStackOverflow
	case c.left < 0:
		return TrapBudget
	}
	return TrapUnreachable
}

// onlyPlace returns the offset of the one instruction of a function that can have caused the trap, -1 if there are several.
func (m *Module) onlyPlace(fn int, t *Trap) int {
	if fn < len(m.ops) {
		return -1
	}
	found := -1
	var in wasm.Instr
	for instrs := m.wasm.Instrs(&m.wasm.Codes[fn-len(m.ops)]); instrs.More(); {
		if err := instrs.Next(&in); err != nil {
			return -1
		}
		if !m.canCause(&in, t) {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = in.Offset
	}
	return found
}

func (m *Module) canCause(in *wasm.Instr, t *Trap) bool {
	if t.Op != OpNone {
		return in.Op == wasm.OpCallIndirect || in.Op == wasm.OpCall && int(in.Imm) < len(m.ops) && m.ops[in.Imm] == t.Op
	}
	class := in.Info.Class
	switch t.Kind {
	case TrapOutOfBounds:
		return class == wasm.ClassLoad || class == wasm.ClassStore || class == wasm.ClassBulk
	case TrapUnreachable:
		return in.Op == wasm.OpUnreachable
	case TrapDivideByZero:
		return class == wasm.ClassIntDiv
	case TrapIntegerOverflow:
		return class == wasm.ClassIntDiv || class == wasm.ClassConvert
	case TrapInvalidConversion:
		return class == wasm.ClassConvert
	case TrapIndirectCall:
		return in.Op == wasm.OpCallIndirect
	case TrapStackOverflow:
		return m.globals.hasStack && in.Op == wasm.OpGlobalSet && in.Imm == uint64(m.globals.stack)
	}
	return false
}
