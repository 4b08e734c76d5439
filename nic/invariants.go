package nic

import (
	"fmt"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/poison"
)

// check compares the counts of the NIC with each other. A difference is a bug
// of this package.
func (n *NIC) check() {
	s, d := &n.schedule, &n.act
	wrong := func(format string, args ...any) {
		panic("nic: rank " + fmt.Sprint(n.env.rank) + " at " + n.env.now().String() + ": " + fmt.Sprintf(format, args...)) //lint:panic a bug
	}
	if s.buffered < 0 || s.buffered > int64(n.env.spec.PacketBuffer) {
		wrong("%d bytes buffered of %d", s.buffered, n.env.spec.PacketBuffer)
	}
	if d.dma.bytes < 0 || d.dma.waits.len() > 0 && d.dma.fits(d.dma.waits.front()) {
		wrong("%d bytes of DMA are on their way of %d, %d operations wait for room", d.dma.bytes, n.env.hpu.DMABytes, d.dma.waits.len())
	}
	if n.memoryUsed < 0 || n.memoryUsed > int64(n.env.hpu.NodeMemory) {
		wrong("programs have %d bytes of %d", n.memoryUsed, n.env.hpu.NodeMemory)
	}
	if d.requests.promised < 0 || n.link.device < 0 {
		wrong("%d puts promised, %d packets from HPU memory in the egress", d.requests.promised, n.link.device)
	}
	waiting := 0
	for i := range s.pools {
		p := &s.pools[i]
		waiting += p.tasks.len()
		first := int(uint64(n.env.now()) % uint64(len(p.cores)))
		for k := range min(len(p.cores), checkedCores) {
			p.cores[(first+k)%len(p.cores)].check(wrong)
		}
	}
	if s.homes != nil {
		waiting += s.homes.tasks.len()
	}
	if s.tenants != nil {
		waiting += s.tenants.waiting
		s.tenants.check(wrong)
	}
	if waiting != int(s.waiting) {
		wrong("%d handlers wait for a processor, counted %d", waiting, s.waiting)
	}
	for _, ni := range n.transmit.interfaces {
		if k := ni.Port.QueuedOps(); k > 0 {
			wrong("%d operations were not sent", k)
		}
	}
}

// checkedCores bounds how many cores of a pool are checked at a time: a pipeline may
// have thousands.
const checkedCores = 64

func (c *core) check(wrong func(format string, args ...any)) {
	active := 0
	for k := range c.runs {
		if r := c.runs[k]; r != nil && r.active {
			active++
		}
	}
	idle := *c.pool.idleOf(c)>>(c.number%64)&1 != 0
	switch {
	case idle != (!c.running && active < len(c.runs)):
		wrong("%s %d: running %t, %d contexts in use of %d, noted as idle %t", c.pool.name, c.number, c.running, active, len(c.runs), idle)
	case active != int(c.active):
		wrong("%s %d has %d contexts in use, counted %d", c.pool.name, c.number, active, c.active)
	case c.running && active == 0:
		wrong("%s %d runs without a handler", c.pool.name, c.number)
	case !c.running && c.resume.head != nil:
		wrong("%s %d is idle while handlers can go on", c.pool.name, c.number)
	case !c.running && active < len(c.runs) && c.pool.tasks.len() > 0:
		wrong("%s %d is idle while %d handlers wait", c.pool.name, c.number, c.pool.tasks.len())
	}
}

// spoil overwrites the remains of a handler: the stack, record and packet of
// its context, and its wait. The next handler must not see them.
func (r *run) spoil() {
	mem, l, i := r.ctx.Program().Present(), r.ctx.Program().Layout(), r.ctx.Index()
	poison.Bytes(mem[l.Args(i):][:l.Block:l.Block])
	poison.Bytes(mem[l.Packets+uint32(i)*l.PacketBytes:][:l.PacketBytes:l.PacketBytes])
	poison.Bytes(mem[l.StackLimit(i):][:l.StackBytes:l.StackBytes])
	r.ctx, r.wait, r.ready = nil, blockedOn{op: hpu.OpNone}, -1<<62
}

// checkWaiting panics if a handler is to continue but does not wait.
func (r *run) checkWaiting() {
	if !r.active {
		panic("nic: the answer for a handler that has ended") //lint:panic a bug
	}
}
