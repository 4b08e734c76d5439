package mpitrace

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/goal"
)

// player makes the operations of a rank.
type player struct {
	im         *Importer
	t          *trace
	rank       int
	before     []edge // what the next operation waits for
	last       int64  // the end of the last call
	began      bool
	ended      bool
	pending    map[uint64][]int // operations of requests
	persistent map[uint64]*call
	nth        map[*comm]int
	small      bool // handles of requests have 4 bytes
}

// edge is an operation that another one waits for: its end, or its start.
type edge struct {
	op    int
	start bool
}

// play makes the operations.
func (p *player) play() error {
	for i := range p.t.calls {
		c := &p.t.calls[i]
		if c.verb != wait && c.verb != waitFirst && c.request%8 == 4 {
			p.small = true
		}
	}
	for i := range p.t.calls {
		c := &p.t.calls[i]
		err := p.call(c)
		if err == nil && p.im.ops > goal.MaxOps {
			err = fmt.Errorf("the schedule would have more than %d operations", goal.MaxOps)
		}
		if err != nil {
			return p.t.at(c, err)
		}
	}
	switch p.im.notes.left += len(p.pending); {
	case !p.began:
		return &Error{p.t.file, 1, fmt.Errorf("expected a call of MPI_Init: this is no trace of %s", p.im.format)}
	case !p.ended:
		p.im.notes.cut++
	}
	return nil
}

func (p *player) call(c *call) error {
	switch {
	case p.ended:
		return errors.New("a call after MPI_Finalize")
	case c.verb == begin && p.began:
		return errors.New("MPI_Init for the second time")
	case c.verb == begin:
		p.began, p.last = true, c.to
		return nil
	case !p.began:
		return errors.New("expected MPI_Init before all other calls")
	}
	switch c.verb { // calls whose time is a computation
	case create, inquire, group:
		return nil
	case sendInit, recvInit:
		p.persistent[c.request] = c
		return nil
	case forget:
		for _, request := range array(p, c, p.pending) {
			p.im.notes.left++
			delete(p.pending, request)
		}
		return nil
	default:
	}
	p.compute(c)
	p.ended = c.verb == end
	switch c.verb {
	case send, recv, sendrecv:
		return p.messages(c)
	case start:
		return p.start(c)
	case wait, waitFirst:
		return p.wait(c)
	case collect:
		return p.collect(c)
	default:
		return nil
	}
}

// compute makes the computation before a call.
func (p *player) compute(c *call) {
	ns := c.from - p.last
	if p.last = max(p.last, c.to); ns < 0 {
		p.im.notes.backward++
		return
	}
	if ns > 0 {
		p.before = []edge{{p.add(goal.Op{Kind: goal.Calc, Size: uint64(ns)}), false}}
	}
}

// add adds an operation that waits for what was before.
func (p *player) add(op goal.Op) int {
	p.im.ops += 1 + len(p.before)
	x := p.im.b.Add(op)
	for _, e := range p.before {
		if e.start {
			p.im.b.IRequires(x, e.op)
		} else {
			p.im.b.Requires(x, e.op)
		}
	}
	return x
}

// messages makes the operations of a call that sends or receives.
func (p *player) messages(c *call) error {
	var list []int
	for _, half := range []struct {
		m        *message
		receives bool
		is       bool
	}{{&c.out, false, c.verb != recv && c.verb != recvInit}, {&c.in, true, c.verb == recv || c.verb == recvInit || c.verb == sendrecv}} {
		if !half.is || half.m.peer == nobody {
			continue
		}
		op, at := goal.Op{Size: half.m.bytes, Peer: goal.Any}, p.rank
		if half.m.peer != wildcard {
			op.Peer = uint32(c.comm.members[half.m.peer])
		}
		if op.Kind = goal.Recv; !half.receives {
			op.Kind, at = goal.Send, c.comm.members[half.m.peer]
		}
		var err error
		if op.Tag, err = p.im.tag(c, half.m, at); err != nil {
			return err
		}
		list = append(list, p.add(op))
	}
	p.follow(c, list, true)
	return nil
}

// follow makes what comes later wait for operations: for their end if the call
// blocks, else for their start, if they are to start before.
func (p *player) follow(c *call, list []int, starts bool) {
	if len(list) == 0 {
		return
	}
	if !c.blocks {
		if p.im.format == Dumpi { // libraries may give a handle to several small sends
			list = append(p.pending[c.request], list...)
		}
		p.pending[c.request] = list
		if !starts {
			return
		}
	}
	p.before = p.before[:0:0]
	for _, op := range list {
		p.before = append(p.before, edge{op, !c.blocks})
	}
}

// start starts persistent requests.
func (p *player) start(c *call) error {
	for _, request := range array(p, c, p.persistent) {
		if err := p.messages(p.persistent[request]); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for requests.
func (p *player) wait(c *call) error {
	list := array(p, c, p.pending)
	if c.verb == waitFirst {
		p.im.notes.first++
		list = list[:min(1, len(list))]
	}
	for _, request := range list {
		for _, op := range p.pending[request] {
			p.before = append(p.before, edge{op, false})
		}
		delete(p.pending, request)
	}
	return nil
}

// array returns the requests of a call's array that are among some.
func array[T any](p *player, c *call, some map[uint64]T) (list []uint64) {
	if c.requests != nil {
		for _, request := range c.requests {
			if _, is := some[request]; is {
				list = append(list, request)
			}
		}
		return list
	}
	size := uint64(8)
	if p.small {
		size = 4
	}
	if n := uint64(max(0, c.count)); n <= uint64(len(some)) {
		for i := range n {
			if _, is := some[c.request+i*size]; is {
				list = append(list, c.request+i*size)
			}
		}
	} else {
		for at := range some { //lint:maporder sorted below
			if off := at - c.request; off%size == 0 && off/size < n {
				list = append(list, at)
			}
		}
		slices.Sort(list)
	}
	return list
}

// collect makes the operations of a collective.
func (p *player) collect(c *call) error {
	n := p.nth[c.comm]
	p.nth[c.comm]++
	if len(c.comm.members) == 1 {
		return nil
	}
	j := p.im.colls[occasion{c.comm, n}]
	if p.im.b.Begin(j.def); !j.direct {
		p.follow(c, []int{p.add(goal.Op{Kind: goal.Calc})}, false)
		p.im.b.End()
		return nil
	}
	var list []int
	me := slices.Index(c.comm.members, p.rank)
	for k := range c.comm.members {
		m := (me + k) % len(c.comm.members)
		if m == me {
			continue
		}
		op := goal.Op{Kind: goal.Recv, Peer: uint32(c.comm.members[m]), Tag: directTag + uint64(j.number)}
		if op.Size = c.part.by(me, m); op.Size > 0 {
			list = append(list, p.add(op))
		}
		if op.Kind, op.Size = goal.Send, c.part.to(me, m); op.Size > 0 {
			list = append(list, p.add(op))
		}
	}
	p.im.b.End()
	p.follow(c, list, false)
	return nil
}
