package patterns

import (
	"fmt"
	"math/rand/v2"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Message is a part of an exchange.
type Message struct{ Rank, Bytes int }

// Work is work for a core.
type Work struct {
	Operations int64 // of floating point
	Bytes      int64 // of memory, read or written
}

func (w Work) plus(o Work) Work { return Work{w.Operations + o.Operations, w.Bytes + o.Bytes} }

// Step is a part of an iteration: an exchange, computation, and a reduction of
// all ranks. Each may be missing.
type Step struct {
	// In all three applications a rank posts its Receives, then sends its Sends
	// one after the other, then waits for the receives.
	Receives, Sends []Message
	Work            Work
	Reduce          int // bytes of an allreduce, sum of float64
}

// Plan is an iteration at a rank. It does not change.
type Plan struct {
	Grid  Grid
	Steps []Step
}

// Core is the speed of a rank's computation.
type Core struct {
	Operations float64  // floating-point operations per second
	Bytes      sim.Rate // of memory
	Sum        bool     // operations and bytes take their times one after the other
	Jitter     float64  // the share by which a computation takes longer at most
	Seed       uint64   // of jitter
}

// CoreOf returns the core of a rank on a node with onNode ranks. Its bandwidth
// is the core's own, or its share of the memory's, and host.cores_penalty slows
// it for every other rank. Ranks beyond the number of cores take turns, so no
// more than all cores read memory at once. operations is per second.
func CoreOf(p *profile.Profile, onNode int, operations float64) Core {
	const probe = 1 << 20
	h := &p.Host
	cores := max(1, min(onNode, h.Cores))
	own, shared := h.CoreBandwidth, h.CoresRate()
	if all := shared.Time(probe) * sim.Time(cores); all > own.Time(probe) {
		own = sim.NewRate(all, probe)
	}
	if others := float64(cores - 1); h.CoresPenalty > 0 && others > 0 {
		own = sim.NewRate(sim.Time(float64(own.Time(probe))*(1+others*h.CoresPenalty)), probe)
	}
	return Core{Operations: operations, Bytes: own, Sum: h.Compute == host.ComputeSum, Jitter: h.Jitter}
}

// Time returns the time for work: the longer of its operations and its bytes,
// or their sum.
func (c Core) Time(w Work) sim.Time {
	bytes, operations := c.Bytes.Time(w.Bytes), sim.Time(0)
	if c.Operations > 0 {
		operations = sim.Time(float64(w.Operations) / c.Operations * float64(sim.Second))
	}
	if c.Sum {
		return bytes + operations
	}
	return max(bytes, operations)
}

// Result is the time of iterations at a rank.
type Result struct {
	Time                      sim.Time // of all iterations
	Compute, Exchange, Reduce sim.Time // parts of Time
}

// Sum counts the messages and bytes that a rank sends in an iteration, and the
// neighbours of its exchanges.
func (p *Plan) Sum() (messages, bytes, neighbours int) {
	seen := map[int]bool{}
	for _, s := range p.Steps {
		for _, m := range s.Sends {
			messages++
			bytes += m.Bytes
			seen[m.Rank] = true
		}
	}
	return messages, bytes, len(seen)
}

const tag = 99

// running is a plan under way.
type running struct {
	*Plan
	c        *mpi.Comm
	r        *mpi.Rank
	core     Core
	memory   [2]runtime.View // to send and to receive
	sum      runtime.View
	requests []*mpi.Request
	drawn    *rand.Rand // jitter of the rank; nil: none
	Result
}

// Run runs iterations of the plan at a rank. All ranks of c must call it with
// plans of the same problem. They begin together, after a barrier.
func (p *Plan) Run(c *mpi.Comm, core Core, iterations int) (Result, error) {
	if c.Size() != p.Grid.Ranks() {
		return Result{}, fmt.Errorf("patterns: %d ranks, the plan is for %v", c.Size(), p.Grid)
	}
	x := &running{Plan: p, c: c, r: c.Owner(), core: core}
	if core.Jitter > 0 {
		x.drawn = rand.New(rand.NewPCG(core.Seed, uint64(c.Rank())))
	}
	if err := x.prepare(); err != nil {
		return Result{}, err
	}
	if err := c.Barrier(); err != nil {
		return Result{}, err
	}
	begin := x.r.Now()
	for range iterations {
		for i := range p.Steps {
			if err := x.step(&p.Steps[i]); err != nil {
				return Result{}, err
			}
		}
	}
	x.Time = x.r.Now() - begin
	return x.Result, nil
}

// prepare allocates the memory of the largest exchange and touches it: real
// applications have written to it long before.
func (x *running) prepare() (err error) {
	var most [2]int
	reduce, receives := 0, 0
	for _, s := range x.Steps {
		for i, list := range [2][]Message{s.Sends, s.Receives} {
			n := 0
			for _, m := range list {
				n += m.Bytes
			}
			most[i] = max(most[i], n)
		}
		reduce, receives = max(reduce, s.Reduce), max(receives, len(s.Receives))
	}
	for i, n := range most {
		if x.memory[i], err = x.r.Alloc(n); err != nil {
			return err
		}
		x.memory[i].Write()
	}
	x.requests = make([]*mpi.Request, receives)
	x.sum, err = x.r.Alloc(reduce)
	return err
}

func (x *running) step(s *Step) error {
	start := x.r.Now()
	if err := x.exchange(s); err != nil {
		return err
	}
	exchanged := x.r.Now()
	x.r.Compute(x.computation(s.Work))
	computed := x.r.Now()
	if s.Reduce > 0 {
		if err := x.c.Allreduce(mpi.InPlace, x.sum.Slice(0, s.Reduce), mpi.Float64, mpi.Sum); err != nil {
			return err
		}
	}
	x.Exchange += exchanged - start
	x.Compute += computed - exchanged
	x.Reduce += x.r.Now() - computed
	return nil
}

// computation returns the time for work, with jitter.
func (x *running) computation(w Work) sim.Time {
	d := x.core.Time(w)
	if x.drawn == nil {
		return d
	}
	return d + sim.Time(float64(d)*x.core.Jitter*x.drawn.Float64())
}

func (x *running) exchange(s *Step) (err error) {
	at := 0
	requests := x.requests[:len(s.Receives)]
	for i, m := range s.Receives {
		if requests[i], err = x.c.Irecv(x.memory[1].Slice(at, at+m.Bytes), m.Rank, tag); err != nil {
			return err
		}
		at += m.Bytes
	}
	at = 0
	for _, m := range s.Sends {
		if err := x.c.Send(x.memory[0].Slice(at, at+m.Bytes), m.Rank, tag); err != nil {
			return err
		}
		at += m.Bytes
	}
	return x.r.WaitAll(requests, nil)
}
