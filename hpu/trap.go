package hpu

import "fmt"

// trapped makes a trap, with its place, from the error of an engine.
func (c *Context) trapped(err error) *Trap {
	p := c.program
	kind, stack := p.inst.fault(err)
	t := c.abort
	c.abort = nil
	if t == nil {
		if kind == TrapNone {
			panic(fmt.Sprintf("hpu: %s, program %s: %v", p.module.name, p.owner, err))
		}
		t = &Trap{Kind: kind}
		if kind == TrapUnreachable {
			t.Kind = c.unreachable()
		}
	}
	t.Module, t.Index, t.Offset = p.module.name, -1, -1
	if t.Kind == TrapBudget {
		t.Detail = c.spent()
	}
	if len(stack) == 0 {
		return t
	}
	fn := stack[0].fn
	t.Index, t.Func = fn, p.module.functions[fn].Name
	t.Offset = p.module.whence(fn, stack[0].at, t)
	if t.Kind == TrapUnreachable && p.module.refusesNull(fn, t.Offset) {
		t.Kind, t.Detail = TrapNull, fmt.Sprintf("an access to one of the first %d bytes", p.module.null)
	}
	t.Source = p.module.Source(t.Offset)
	p.module.callers(&t.Source, stack[1:])
	return t
}

// spent describes what has used up the budget.
func (c *Context) spent() string {
	allowed := c.budget/c.program.module.prices.parts + c.effort
	if c.effort == 0 {
		return fmt.Sprintf("%d cycles charged, %d allowed", c.Cycles(), allowed)
	}
	return fmt.Sprintf("%d cycles charged and %d for the work of imports, %d allowed", c.Cycles(), c.effort, allowed)
}

// unreachable returns the cause of a trap of the instruction unreachable. It
// may be one of the rewriter's checks, tested in the order in which they can
// hold at once, or the module's own instruction.
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
