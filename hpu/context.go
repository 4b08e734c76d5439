package hpu

import (
	"fmt"
	"math"
)

// Status is what a context is doing.
type Status uint8

// States of a context.
const (
	Idle    Status = iota // nothing was started yet
	Running               // the handler is executing: inside Device.Act
	Blocked               // the handler waits for Context.Resume
	Done                  // the handler has ended; see Context.Outcome
)

var statusNames = [...]string{"idle", "running", "blocked", "done"}

// String names the state.
func (s Status) String() string { return statusNames[s] }

// Outcome is how a handler ended.
type Outcome struct {
	Code   Code  // what the handler returned, or Err.Kind.Code(). Whether its kind may return it is for the caller to judge
	Cycles int64 // charged
	Err    *Trap // nil if the handler returned
}

// Context is an execution context of an HPU within a program: it runs one handler at a time.
type Context struct {
	User any // for the caller, who may keep here what Device.Act needs

	program           *Program
	index             int // -1: start function and _initialize
	number            int // of its processor
	of                int // processors of the pool
	cluster, clusters int // of its processor, and how many the pool has
	status            Status
	fn                *export
	args              uint32
	state             uint32
	budget            int64 // that the handler was given, without effort, parts of a cycle (Module.CycleParts)
	effort            int64 // of the budget, that imports took besides their cycles, cycles
	left              int64 // of the budget, as of the last import call, suspension or end
	fiber             fiber
	body              func() // runs the handler; made once, so that starting allocates nothing
	result            int64
	killed            bool
	abort             *Trap // why the import call in progress must end the handler
	outcome           Outcome
	engine            any // what the engine keeps for the context
}

// Program returns the program the context belongs to.
func (c *Context) Program() *Program { return c.program }

// Index returns the number of the context in its program.
func (c *Context) Index() int { return c.index }

// HPU returns the number of the processor that the context belongs to, among those of its pool.
func (c *Context) HPU() int { return c.number }

// ArgsAddr returns the address of the context's argument record, 256 bytes, 16-byte aligned.
func (c *Context) ArgsAddr() uint32 { return c.program.layout.Args(c.index) }

// PacketAddr returns the address of the context's packet buffer, Spec.PacketBytes long, 16-byte aligned.
func (c *Context) PacketAddr() uint32 { return c.program.layout.Packet(c.index) }

// Status returns what the context is doing.
func (c *Context) Status() Status { return c.status }

// Cycles returns the cycles charged to the present or last handler so far. While the handler executes the count is that of
// its present import call. A cycle that has begun counts.
func (c *Context) Cycles() int64 {
	if c.status == Done {
		return c.outcome.Cycles
	}
	return c.charged()
}

// charged computes what Cycles returns.
func (c *Context) charged() int64 {
	parts := c.program.module.prices.parts
	return (c.budget - c.left + parts - 1) / parts
}

// Used returns what the present or last handler has used of its budget so far, cycles: those charged to it and what imports take
// besides (docs/abi.md, Metering).
func (c *Context) Used() int64 { return c.Cycles() + c.effort }

// allow sets the budget, cycles.
func (c *Context) allow(cycles int64) {
	parts := c.program.module.prices.parts
	c.budget = min(cycles, math.MaxInt64/2/parts) * parts // a handler that may run for so long is never killed
	c.left = c.budget
}

// Outcome returns how the last handler ended. It is valid when Start or Resume returned Done, and after Kill.
func (c *Context) Outcome() Outcome { return c.outcome }

// Start runs handler f with the arguments args and state (docs/abi.md, Handlers) until it ends or blocks. It is killed when, where
// the budget is checked (docs/abi.md, Metering), more cycles than budget have been charged, with what imports take besides. The context must not be blocked, and no
// handler of the program may be executing.
func (c *Context) Start(f Func, args, state uint32, budget int64) Status {
	p := c.program
	if f.x == nil || f.x.module != p.module {
		panic("hpu: Start of a function of another module")
	}
	if c.status == Blocked || p.running != nil || p.closed {
		panic(fmt.Sprintf("hpu: Start in context %d, which is %v, of program %s (closed: %t, executing: %t)",
			c.index, c.status, p.owner, p.closed, p.running != nil))
	}
	c.fn, c.args, c.state = f.x, args, state
	c.allow(budget)
	c.effort, c.killed, c.abort, c.outcome = 0, false, nil, Outcome{}
	c.status, p.running = Running, c
	if !f.x.suspends {
		c.run()
		return c.status
	}
	if c.body == nil {
		c.body = c.run
	}
	c.fiber = p.fibers.get()
	c.settle(c.fiber.Start(c.body))
	return c.status
}

// Resume continues a blocked handler; result is the result of the call that blocked.
func (c *Context) Resume(result int64) Status {
	p := c.program
	if c.status != Blocked || p.running != nil {
		panic(fmt.Sprintf("hpu: Resume of context %d, which is %v, of program %s (executing: %t)", c.index, c.status, p.owner, p.running != nil))
	}
	c.result = result
	c.status, p.running = Running, c
	c.settle(c.fiber.Resume())
	return c.status
}

// Kill ends a blocked handler with TrapKilled. It does nothing if the context is not blocked.
func (c *Context) Kill() {
	if c.status != Blocked {
		return
	}
	c.killed = true
	c.Resume(0)
}

// settle takes the fiber back when the handler has ended.
func (c *Context) settle(done bool) {
	if !done {
		return
	}
	c.program.fibers.put(c.fiber)
	c.fiber = nil
}

// run executes the handler. It is the body of the fiber, if there is one.
func (c *Context) run() {
	p := c.program
	code, left, err := p.inst.call(c, c.fn, c.args, c.state)
	switch {
	case err == nil:
		c.left = left
	case c.abort == nil:
		c.left = int64(p.inst.get(c, regRemaining))
	}
	p.running = nil
	c.status = Done
	c.outcome = Outcome{Code: Code(code), Cycles: c.charged()}
	if err != nil {
		trap := c.trapped(err)
		c.outcome.Code, c.outcome.Err = trap.Kind.Code(), trap
	}
}

// prepare runs the start function or _initialize, with the module's own stack.
func (c *Context) prepare(fn uint32) *Trap {
	p := c.program
	c.allow(initCycles)
	p.inst.set(c, regRemaining, uint64(c.budget))
	if p.module.globals.hasDepth {
		p.inst.set(c, regDepth, uint64(p.module.spec.MaxCallDepth))
	}
	if p.module.globals.hasHPU {
		p.inst.set(c, regHPU, math.MaxUint32)
	}
	p.running = c
	err := p.inst.prepare(c, fn)
	p.running = nil
	if err == nil {
		return nil
	}
	if c.abort == nil {
		c.left = int64(p.inst.get(c, regRemaining))
	}
	return c.trapped(err)
}

// begin is the registers of a handler that begins.
func (c *Context) begin() registers {
	p := c.program
	return registers{
		regRemaining: uint64(c.budget), regStack: uint64(p.layout.Args(c.index)), regLimit: uint64(p.layout.StackLimit(c.index)),
		regDepth: uint64(p.module.spec.MaxCallDepth), regHPU: uint64(c.number),
	}
}
