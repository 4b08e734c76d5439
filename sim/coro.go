package sim

import (
	"fmt"
	"iter"
	"runtime/debug"
)

// Coro is a reusable coroutine. It runs one job at a time, and the job may
// suspend itself with Yield. It never runs at the same time as its caller.
// Starting, yielding and resuming allocate nothing.
type Coro struct {
	next   func() (struct{}, bool)
	end    func()
	yield  func(struct{}) bool
	job    func()
	fault  *PanicError
	state  coroState
	unwind bool
}

type coroState uint8

const (
	coroIdle coroState = iota
	coroRunning
	coroSuspended
	coroDead
)

// unwinding is the panic of Yield when the job is being stopped.
type unwinding struct{}

func (unwinding) Error() string { return "sim: the coroutine is being stopped" }

// PanicError is a panic in a coroutine. The caller of Start, Resume or Stop
// panics with it.
type PanicError struct {
	Value any    // from the job's panic
	Stack []byte // of the job
}

// Error names the value and the place in the job.
func (p *PanicError) Error() string {
	return fmt.Sprintf("panic in a coroutine: %v\n%s", p.Value, p.Stack)
}

// Unwrap returns the value if it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// NewCoro returns an idle coroutine. It holds a goroutine until Close.
func NewCoro() *Coro {
	c := &Coro{}
	c.next, c.end = iter.Pull(c.loop)
	return c
}

func (c *Coro) loop(yield func(struct{}) bool) {
	c.yield = yield
	for {
		c.run()
		if !yield(struct{}{}) {
			return
		}
	}
}

// run does one job. A job that leaves by runtime.Goexit (a test's FailNow) takes
// the coroutine with it.
func (c *Coro) run() {
	finished := false
	defer func() {
		if finished {
			return
		}
		v := recover()
		switch v.(type) {
		case nil:
			c.state = coroDead
		case unwinding:
		default:
			c.fault = &PanicError{v, debug.Stack()}
		}
	}()
	c.job()
	finished = true
}

// Start runs f until it yields or returns, and reports whether it returned. The
// coroutine must be idle. A panic of f comes out of Start as a *PanicError.
func (c *Coro) Start(f func()) (done bool) {
	if c.state != coroIdle {
		panic("sim: Start of a coroutine that is not idle")
	}
	c.job = f
	return c.transfer()
}

// Yield suspends the job; only the job may call it. It returns after Resume.
// After Stop it panics, to unwind the job.
func (c *Coro) Yield() {
	if c.state != coroRunning {
		panic("sim: Yield outside the running job of the coroutine")
	}
	if c.unwind {
		panic(unwinding{})
	}
	c.state = coroSuspended
	c.yield(struct{}{})
	if c.unwind {
		panic(unwinding{})
	}
}

// Resume continues a suspended job and reports whether it returned.
func (c *Coro) Resume() (done bool) {
	if c.state != coroSuspended {
		panic("sim: Resume of a coroutine that is not suspended")
	}
	return c.transfer()
}

// Stop unwinds a suspended job: its Yield panics, its deferred calls run, and
// the coroutine is idle again. A job that recovers from the panic runs until it
// returns; further Yields panic too. Stop of an idle coroutine does nothing.
func (c *Coro) Stop() {
	switch c.state {
	case coroRunning:
		panic("sim: Stop of a coroutine from within itself")
	case coroSuspended:
		c.unwind = true
		c.transfer()
	}
}

// Idle reports whether the coroutine can Start a job.
func (c *Coro) Idle() bool { return c.state == coroIdle }

// Close stops the job, if any, and ends the goroutine.
func (c *Coro) Close() {
	c.Stop()
	c.state = coroDead
	c.end()
}

func (c *Coro) transfer() (done bool) {
	c.state = coroRunning
	c.next()
	if c.state == coroSuspended {
		return false
	}
	c.job, c.unwind = nil, false
	if c.state == coroRunning {
		c.state = coroIdle
	}
	if fault := c.fault; fault != nil {
		c.fault = nil
		panic(fault) //lint:panic the program's own, passed on to whoever runs it
	}
	return true
}

// CoroPool keeps idle coroutines for reuse. The zero value is ready.
type CoroPool struct {
	idle []*Coro
}

// Get returns an idle coroutine.
func (p *CoroPool) Get() *Coro {
	n := len(p.idle)
	if n == 0 {
		return NewCoro()
	}
	c := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return c
}

// Put takes back a coroutine. It stops a job that is not over.
func (p *CoroPool) Put(c *Coro) {
	c.Stop()
	if c.state == coroIdle {
		p.idle = append(p.idle, c)
	}
}

// Close ends the coroutines in the pool.
func (p *CoroPool) Close() {
	for _, c := range p.idle {
		c.Close()
	}
	p.idle = nil
}
