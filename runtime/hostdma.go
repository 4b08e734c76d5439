package runtime

import (
	"encoding/binary"

	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/sim"
)

// dmaHandle is one non-blocking DMA operation of a handler.
type dmaHandle struct {
	used, done, waited bool
	result             int64
}

// dmaOp is a DMA operation of a handler on its way.
type dmaOp struct {
	mark       poison.Mark
	op         hpu.Op // the blocking form
	run        *run
	generation uint32 // of the run that made it: the handler may end before the operation does
	handle     int    // index of its handle, noHandle if the run is suspended for it, released if it no longer is
	program    *hpu.Program
	memory     *HPUMemory
	host       [][]byte // the range in host memory
	length     int
	local      uint32
	data       []byte   // towards host memory: the bytes as they were at the call
	follows    sim.Time // an atomic: when the last of the writes issued before it lands
	a, b       uint64
	result     int64
	flow       uint64
	number     int64 // of the handler, for Config.Watch
	next       *dmaOp
}

const (
	noHandle = -1
	released = -2
)

// The stages of a DMA operation, the argument of kindDMA.
const (
	dmaIssue  = iota // the handler's own time has come: the operation goes on the bus
	dmaMemory        // a read or an atomic has reached memory
	dmaBegun         // the bus has taken a write, whose handler may go on
	dmaDone          // the data has landed, or the answer is at the NIC
)

type dmaPool struct{ free *dmaOp }

func (p *dmaPool) get() *dmaOp {
	o := p.free
	if o == nil {
		return new(dmaOp)
	}
	p.free = o.next
	*o = dmaOp{host: o.host[:0]}
	return o
}

func (p *dmaPool) put(o *dmaOp) {
	if o.mark.Release("a DMA operation"); poison.On {
		*o = dmaOp{mark: o.mark, handle: noHandle - 1, length: -1}
		return
	}
	o.next = p.free
	p.free = o
}

func blockingForm(op hpu.Op) hpu.Op {
	switch op {
	case hpu.OpDMAToHostNB:
		return hpu.OpDMAToHost
	case hpu.OpDMAFromHostNB:
		return hpu.OpDMAFromHost
	case hpu.OpDMACASNB:
		return hpu.OpDMACAS
	case hpu.OpDMAFAddNB:
		return hpu.OpDMAFAdd
	}
	return op
}

// atomicBytes is the width of DMA atomics (docs/abi.md).
const atomicBytes = 8

// newDMA prepares an operation; a negative result is the error of the call.
func (n *Node) newDMA(r *run, op hpu.Op, space uint32, offset uint64, local, length uint32, a, b uint64) (*dmaOp, int64) {
	op = blockingForm(op)
	if op == hpu.OpDMACAS || op == hpu.OpDMAFAdd {
		length = atomicBytes
	}
	o := n.cluster.dmaOps.get()
	var ok bool
	var address uint64
	o.host, address, ok = r.task.m.rx.hostRange(o.host, space, offset, uint64(length))
	atomic := op == hpu.OpDMACAS || op == hpu.OpDMAFAdd
	if !ok || atomic && (len(o.host) != 1 || address%atomicBytes != 0) {
		n.cluster.dmaOps.put(o)
		if ok {
			return nil, hpu.Invalid
		}
		return nil, hpu.Denied
	}
	o.op, o.run, o.generation, o.handle, o.program = op, r, r.generation, noHandle, r.ctx.Program()
	o.memory = r.task.m.rx.handlers.memory
	o.memory.uses++
	o.local, o.length, o.a, o.b, o.flow, o.number = local, int(length), a, b, r.task.m.flow, n.watch.number(r)
	if inject := n.cluster.inject; inject != nil {
		o.result = min(inject(int(n.rank), op), hpu.OK)
	}
	if op == hpu.OpDMAToHost && length > 0 {
		o.data = n.pool().buffer(int(length))
		copy(o.data, o.program.Memory()[local:])
	}
	return o, hpu.OK
}

// startDMA makes a non-blocking operation that goes on the bus at the handler's own time, and returns its handle.
func (n *Node) startDMA(r *run, a *hpu.Action, at sim.Time) int64 {
	free := noHandle
	for i := range r.handles {
		if !r.handles[i].used {
			free = i
			break
		}
	}
	if free == noHandle {
		if len(r.handles) == n.profile.HPU.DMAHandles {
			return hpu.NoSpace
		}
		free = len(r.handles)
		r.handles = append(r.handles, dmaHandle{})
	}
	o, result := n.newDMA(r, a.Op, a.Space, a.Offset, a.Local, a.Len, a.A, a.B)
	if o == nil {
		return result
	}
	if !n.hpus.dmaRoom(n, o) {
		n.dropDMA(o)
		return hpu.NoSpace
	}
	n.hpus.dmaBytes += int64(o.length)
	r.handles[free] = dmaHandle{used: true}
	o.handle = free
	n.post(at, kindDMA, dmaIssue, o)
	return int64(free)
}

// dmaRoom reports whether an operation may go now: hpu.dma_bytes has room for it, and no operation waits for room.
func (p *hpuPool) dmaRoom(n *Node, o *dmaOp) bool {
	return p.dmaWaits.len() == 0 && p.dmaFits(n, o)
}

// dmaFits reports whether hpu.dma_bytes has room for an operation; one that is larger goes when there is no other.
func (p *hpuPool) dmaFits(n *Node, o *dmaOp) bool {
	return p.dmaBytes == 0 || p.dmaBytes+int64(o.length) <= int64(n.profile.HPU.DMABytes)
}

// dropDMA gives up an operation that is not to be made.
func (n *Node) dropDMA(o *dmaOp) {
	n.pool().release(o.data)
	o.memory.uses--
	n.cluster.dmaOps.put(o)
}

// blockingDMA puts the operation that a handler is suspended for on the bus.
func (n *Node) blockingDMA(r *run) {
	w := &r.wait
	o, result := n.newDMA(r, w.op, w.space, w.offset, w.local, w.length, w.a, w.b)
	if o == nil {
		n.proceed(r, result)
		return
	}
	if p := &n.hpus; p.dmaRoom(n, o) {
		p.dmaBytes += int64(o.length)
		if n.dmaStage(o, dmaIssue); o.handle == released {
			n.proceed(r, o.result)
			return
		}
	} else {
		p.dmaWaits.push(o)
	}
	n.coreIdle(n.hpus.coreOf(r))
}

// dmaEnded gives the room of an operation back and lets those go on the bus that have waited for it.
func (n *Node) dmaEnded(length int) {
	p := &n.hpus
	p.dmaBytes -= int64(length)
	for p.dmaWaits.len() > 0 && p.dmaFits(n, p.dmaWaits.front()) {
		o := p.dmaWaits.pop()
		p.dmaBytes += int64(o.length)
		if n.dmaStage(o, dmaIssue); o.handle == released {
			n.resumable(o.run, o.result)
		}
	}
}

// writeDMA puts a write on the bus; a handler that waits for no more than that may go on, now if the operation is released.
func (n *Node) writeDMA(o *dmaOp) {
	now := n.now()
	begun, landed := n.dma.begin(now, o.length)
	if o.run.active && o.run.generation == o.generation {
		o.run.task.m.rx.lands = landed
	}
	n.trace.transfer(&n.dma, true, o.flow, landed-n.dma.latency, o.length)
	if o.handle == noHandle && n.profile.HPU.DMAWrite == nic.Initiated {
		if begun > now {
			n.post(begun, kindDMA, dmaBegun, o)
		} else {
			o.handle = released
		}
	}
	n.post(landed, kindDMA, dmaDone, o)
}

// dmaStage takes an operation one step further. Each step makes the next: no operation ends before it has taken effect.
func (n *Node) dmaStage(o *dmaOp, stage int) {
	now := n.now()
	switch {
	case stage == dmaDone:
		n.dmaDone(o)
	case stage == dmaIssue && o.op == hpu.OpDMAToHost:
		n.writeDMA(o)
	case stage == dmaBegun:
		o.handle = released
		n.resumable(o.run, o.result)
	case stage == dmaIssue:
		o.follows = n.dma.landed
		n.post(n.dma.request(now), kindDMA, dmaMemory, o)
	case o.op != hpu.OpDMAFromHost && now < o.follows:
		// Where reads share the bus with writes, the request is at memory before the writes it follows. The answer of an atomic
		// cannot leave before they have landed.
		n.post(o.follows, kindDMA, dmaMemory, o)
	default:
		if o.op != hpu.OpDMAFromHost && o.result == hpu.OK {
			o.atomic()
		}
		sent, done := n.dma.read(now, o.length)
		n.trace.transfer(&n.dma, false, o.flow, sent, o.length)
		n.post(done, kindDMA, dmaDone, o)
	}
}

// atomic executes a compare-and-swap or fetch-and-add where the operation has reached host memory.
func (o *dmaOp) atomic() {
	word := o.host[0]
	found := binary.LittleEndian.Uint64(word)
	if o.op == hpu.OpDMAFAdd {
		binary.LittleEndian.PutUint64(word, found+o.a)
	} else if found == o.a {
		binary.LittleEndian.PutUint64(word, o.b)
		o.result = 1
	}
	o.a = found
}

// dmaDone delivers the bytes of an operation and tells the handler, if it still runs.
func (n *Node) dmaDone(o *dmaOp) {
	memory := o.program.Memory()
	failed := o.result < hpu.OK
	switch {
	case o.op == hpu.OpDMAToHost:
		rest := o.data
		for _, seg := range o.host {
			if !failed {
				rest = rest[copy(seg, rest):]
			}
		}
		n.pool().release(o.data)
	case failed:
	case o.op == hpu.OpDMAFromHost:
		to := memory[o.local:]
		for _, seg := range o.host {
			to = to[copy(to, seg):]
		}
	default:
		binary.LittleEndian.PutUint64(memory[o.local:], o.a)
	}
	n.watch.landed(o)
	o.memory.uses--
	r, result := o.run, o.result
	current := r.active && r.generation == o.generation
	handle, op, length := o.handle, o.op, o.length
	n.cluster.dmaOps.put(o)
	n.dmaEnded(length)
	switch {
	case !current || handle == released:
	case handle == noHandle:
		r.landed = op == hpu.OpDMAToHost
		n.resumable(r, result)
	default:
		h := &r.handles[handle]
		h.done, h.result = true, result
		if h.waited {
			*h = dmaHandle{}
			n.resumable(r, result)
		}
	}
}

// testDMA answers dma_test at the present moment.
func (r *run) testDMA(handle uint64) int64 {
	if handle >= uint64(len(r.handles)) || !r.handles[handle].used {
		return hpu.Invalid
	}
	h := &r.handles[handle]
	if !h.done {
		return 0
	}
	result := h.result
	*h = dmaHandle{}
	if result < 0 {
		return result
	}
	return 1
}

// waitDMA carries out dma_wait: the handler goes on at once if the operation is done, and else gives its core away.
func (n *Node) waitDMA(r *run, handle uint64) {
	if handle >= uint64(len(r.handles)) || !r.handles[handle].used {
		n.proceed(r, hpu.Invalid)
		return
	}
	h := &r.handles[handle]
	if h.done {
		result := h.result
		*h = dmaHandle{}
		n.proceed(r, result)
		return
	}
	h.waited = true
	n.coreIdle(n.hpus.coreOf(r))
}
