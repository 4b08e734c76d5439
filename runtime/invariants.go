package runtime

import (
	"fmt"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/poison"
)

// check holds the books of the node against each other. A difference is a bug of this package.
func (n *Node) check() {
	p := &n.hpus
	wrong := func(format string, args ...any) {
		panic("runtime: rank " + fmt.Sprint(n.rank) + " at " + n.now().String() + ": " + fmt.Sprintf(format, args...)) //lint:panic a bug
	}
	if p.buffered < 0 || p.buffered > int64(n.profile.NIC.PacketBuffer) {
		wrong("%d bytes buffered of %d", p.buffered, n.profile.NIC.PacketBuffer)
	}
	if p.dmaBytes < 0 || p.dmaWaits.len() > 0 && p.dmaFits(n, p.dmaWaits.front()) {
		wrong("%d bytes of DMA are on their way of %d, %d operations wait for room", p.dmaBytes, n.profile.HPU.DMABytes, p.dmaWaits.len())
	}
	if n.hpuMemory < 0 || n.hpuMemory > int64(n.profile.HPU.NodeMemory) {
		wrong("programs have %d bytes of %d", n.hpuMemory, n.profile.HPU.NodeMemory)
	}
	if p.promised < 0 || n.tx.device < 0 {
		wrong("%d puts promised, %d packets from HPU memory in the egress", p.promised, n.tx.device)
	}
	for i := range p.cores {
		c := &p.cores[i]
		active := 0
		for k := range p.perCore {
			if p.runs[i*p.perCore+k].active {
				active++
			}
		}
		switch {
		case active != c.active:
			wrong("HPU %d has %d contexts in use, counted %d", i, active, c.active)
		case c.running && active == 0:
			wrong("HPU %d runs without a handler", i)
		case !c.running && c.resume.len() > 0:
			wrong("HPU %d is idle while %d handlers can go on", i, c.resume.len())
		case !c.running && active < p.perCore && p.tasks.len() > 0:
			wrong("HPU %d is idle while %d handlers wait", i, p.tasks.len())
		}
	}
	for _, ni := range n.nis {
		if k := ni.port.QueuedOps(); k > 0 {
			wrong("%d operations were not sent", k)
		}
	}
}

// checkLive panics if an event refers to an object that was given back.
func checkLive(ref any) {
	switch x := ref.(type) {
	case *message:
		x.mark.Live("a message")
	case *dmaOp:
		x.mark.Live("a DMA operation")
	case *issue:
		x.mark.Live("an operation of a handler")
	}
}

// spoil overwrites what a handler has left behind: its context's stack, record and packet, of which the next one must not see
// anything, and what it waited for.
func (r *run) spoil() {
	mem, l := r.ctx.Program().Memory(), r.ctx.Program().Layout()
	poison.Bytes(mem[l.StackLimit(r.ctx.Index()):][:l.Region:l.Region])
	r.ctx, r.wait, r.ready = nil, blockedOn{op: hpu.OpNone}, -1<<62
}

// checkWaiting panics if a handler is to go on that does not wait.
func (r *run) checkWaiting() {
	if !r.active || r.ctx == nil {
		panic("runtime: the answer for a handler that has ended") //lint:panic a bug
	}
}
