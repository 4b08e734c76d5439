package hpu

import (
	"fmt"
	"math"
)

// Status is the present state of a context.
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

// Outcome is the end of a handler.
type Outcome struct {
	// the handler's return code, or Err.Kind.Code(). The caller judges whether
	// the handler's kind may return it
	Code   Code
	Cycles int64 // charged
	Err    *Trap // nil if the handler returned
}

// Context is an execution context of an HPU within a program: it runs one handler at a time.
type Context struct {
	User any // for the caller, for example for state that Device.Act needs

	// Fields for a call in one cache line, and for a suspension in a second
	// one.
	program     *Program
	worker      *worker // of the handler; nil: it cannot be suspended
	status      Status
	killed      bool
	index       int32 // -1: start function and _initialize
	number      int32 // of its processor
	args, state uint32
	record      uint32 // address of its argument record
	limit       uint32 // lowest address of its shadow stack

	fn *export
	// budget of the handler without effort, parts of a cycle
	// (Module.CycleParts)
	budget  int64
	effort  int64 // part of the budget that imports took besides their cycles, cycles
	left    int64 // rest of the budget at the last import call, suspension or end
	result  int64
	outcome Outcome

	abort             *Trap   // why the import call in progress must end the handler
	unit, of          int32   // its number in the pool, and number of contexts there
	cluster, clusters int32   // cluster of its processor, and number of clusters in the pool
	before            int64   // c.left when runtime_begin was called, valid if aside
	cold              int64   // instructions that the run fetches; 0: none
	aside             bool    // the device does in hardware what the handler executes now
	top               uint32  // end of its shadow stack
	_                 [4]byte // three cache lines, if it begins at one
}

// Program returns the program the context belongs to.
func (c *Context) Program() *Program { return c.program }

// Index returns the number of the context in its program.
func (c *Context) Index() int { return int(c.index) }

// HPU returns the number of the context's processor in its pool.
func (c *Context) HPU() int { return int(c.number) }

// Cluster returns the number of the processor's cluster in its pool.
func (c *Context) Cluster() int { return int(c.cluster) }

// ArgsAddr returns the address of the context's argument record, 128 bytes,
// 16-byte aligned.
func (c *Context) ArgsAddr() uint32 { return c.record }

// PacketAddr returns the address where the context has a packet of a number of
// bytes, at most Spec.PacketBytes, 16-byte aligned.
func (c *Context) PacketAddr(bytes int) uint32 {
	if bytes <= ShortPacket {
		return c.record + recordBytes
	}
	return c.program.image.layout.Packet(int(c.index), bytes)
}

// Status returns the present state of the context.
func (c *Context) Status() Status { return c.status }

// Cycles returns the cycles charged to the present or last handler so far.
// While the handler executes, the count is from its present import call. A
// cycle that has begun counts.
func (c *Context) Cycles() int64 {
	if c.status == Done {
		return c.outcome.Cycles
	}
	return c.charged()
}

func (c *Context) charged() int64 {
	parts, left := c.program.module.prices.parts, c.left
	if c.aside {
		left = c.before
	}
	n := (c.budget - left + parts - 1) / parts
	if c.cold > 0 {
		n += c.missed(n)
	}
	return n
}

// Used returns how many cycles of its budget the present or last handler has
// used. It includes the charged cycles and the extra budget of imports
// (docs/abi.md, Metering).
func (c *Context) Used() int64 { return c.Cycles() + c.effort }

// allow sets the budget, cycles.
func (c *Context) allow(cycles int64) {
	parts := c.program.module.prices.parts
	// a handler that may run so long is never killed
	c.budget = min(cycles, math.MaxInt64/2/parts) * parts
	c.left = c.budget
}

// Release gives the context back, with which nothing happens any more. Whoever
// asks the program for a context of its number gets another. It panics if the
// handler has not ended.
func (c *Context) Release() {
	if c.status == Running || c.status == Blocked {
		panic(fmt.Sprintf("hpu: Release of context %d, which is %v, of program %s", c.index, c.status, c.program.owner))
	}
	c.program.contexts[c.index] = nil
	c.program.workers.contexts = append(c.program.workers.contexts, c)
}

// Outcome returns the end of the last handler. It is valid after Start or
// Resume has returned Done, and after Kill.
func (c *Context) Outcome() Outcome { return c.outcome }

// Start runs handler f with the arguments args and state (docs/abi.md,
// Handlers) until it ends or blocks. The handler is killed if, at a check of
// the budget (docs/abi.md, Metering), it has used more than budget cycles, with
// the extra budget of imports. The context must not be blocked, and no handler
// of the program may be executing.
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
	c.effort, c.killed, c.aside, c.outcome = 0, false, false, Outcome{}
	c.status, p.running = Running, c
	if !f.x.suspends {
		c.run()
		return c.status
	}
	c.worker = p.workers.get(c)
	c.settle(c.worker.Start(c.worker.run))
	return c.status
}

// Resume continues a blocked handler; result is the result of the call that blocked.
func (c *Context) Resume(result int64) Status {
	p := c.program
	if c.status != Blocked || p.running != nil {
		panic(fmt.Sprintf("hpu: Resume of context %d, which is %v, of program %s (executing: %t)", c.index, c.status, p.owner, p.running != nil))
	}
	c.result = result
	p.Present() // another program may have it
	c.status, p.running = Running, c
	c.settle(c.worker.Resume())
	return c.status
}

// Kill ends a blocked handler with TrapKilled. If the context is not blocked,
// it does nothing.
func (c *Context) Kill() {
	if c.status != Blocked {
		return
	}
	c.killed = true
	c.Resume(0)
}

// settle takes the worker back after the handler's end.
func (c *Context) settle(done bool) {
	if done {
		c.worker.put()
		c.worker = nil
	}
}

func (c *Context) run() {
	p := c.program
	code, left, err := p.inst.call(c, c.fn, c.args, c.state)
	switch {
	case err == nil:
		c.left = left
	case c.abort == nil:
		c.left = int64(p.inst.get(c, regRemaining))
	}
	c.resumes()
	p.running = nil
	c.status = Done
	c.outcome = Outcome{Code: Code(code), Cycles: c.charged()}
	if err != nil {
		trap := c.trapped(err)
		c.outcome.Code, c.outcome.Err = trap.Kind.Code(), trap
	}
}

// prepare runs the start function or _initialize on the module's own stack.
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

// begin returns the registers at the beginning of a handler.
func (c *Context) begin() registers {
	return registers{
		regRemaining: uint64(c.budget), regStack: uint64(c.top), regLimit: uint64(c.limit),
		regDepth: uint64(c.program.module.spec.MaxCallDepth), regHPU: uint64(c.unit),
	}
}
