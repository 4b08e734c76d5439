package nic

import (
	"encoding/binary"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// dmaOp is a DMA operation of a handler on its way.
type dmaOp struct {
	mark   poison.Mark
	access host.Access
	dmaState
	host [][]byte  // the range in host memory
	one  [1][]byte // of it, where it is in one piece

	// These are filled in for those that look at them only:
	region  portals.Region // of a range in several pieces
	offset  uint64         // in it
	a, b    uint64         // of an atomic
	number  int64          // of the handler, for Watch
	message uint64         // its msg_id
}

// dmaState is what begins anew with each operation.
type dmaState struct {
	memory     *Memory
	in         *inbound // the handler's message; it is there as long as a write is on its way
	run        *run
	data       []byte // towards host memory: the bytes as they were at the call
	result     int64
	handle     int // index of its handle, noHandle if the run is suspended for it, released if it no longer is
	write      int // its number among the writes of the message
	tries      int
	generation uint32 // of the run that made it: the handler may end before the operation does
	space      uint32 // as the handler has named it
	local      uint32
	op         hpu.Op // the blocking form
	posted     bool   // nobody waits for it
	told       bool   // its handler wants to know of a fault, and not that it is tried again
}

const (
	noHandle = -1
	released = -2
)

// dma returns an operation that is the caller's to fill in.
func (c *Core) dma() *dmaOp {
	o := c.dmas.take()
	if o.host = o.host[:0]; cap(o.host) == 0 {
		o.host = o.one[:0]
	}
	return o
}

func (c *Core) releaseDMA(o *dmaOp) {
	if o.mark.Release("a DMA operation"); poison.On {
		*o = dmaOp{mark: o.mark, dmaState: dmaState{handle: released - 1}}
	}
	c.dmas.give(o)
}

func blockingForm(op hpu.Op) hpu.Op {
	switch op {
	case hpu.OpDMAToHostNB, hpu.OpDMAToHostPosted, hpu.OpHostWrite, hpu.OpHostWriteNB:
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
func (d *act) newDMA(r *run, op hpu.Op, space uint32, offset uint64, local, length uint32, a, b uint64) (*dmaOp, int64) {
	value := immediate(op)
	op = blockingForm(op)
	word := value || op == hpu.OpDMACAS || op == hpu.OpDMAFAdd
	if word {
		length = atomicBytes
	}
	in := r.task.in
	o := d.core.dma()
	told, space := space&hpu.TellFaults != 0, space&^hpu.TellFaults
	region, memory, ok := in.hostMemory(space)
	if ok {
		o.host, ok = hostRange(o.host, memory, &region, offset, uint64(length))
	}
	if !ok || word && (len(o.host) != 1 || region.Addr(offset)%atomicBytes != 0) {
		d.core.releaseDMA(o)
		if ok {
			return nil, hpu.Invalid
		}
		return nil, hpu.Denied
	}
	o.dmaState = dmaState{
		memory: in.handlers.memory, in: in, run: r, handle: noHandle, generation: r.generation, space: space, local: local, op: op, told: told,
	}
	o.memory.use(space, 1)
	o.access = host.Access{Space: memory, Length: int(length), Order: in.order, Flow: in.frame.Flow(), Client: d, Ref: o}
	if len(o.host) == 1 {
		o.access.Addr = region.Addr(offset)
	} else {
		o.access.Places, o.region, o.offset = o, region, offset
	}
	if word {
		o.a, o.b = a, b
	}
	if d.watch != nil {
		o.number, o.message = r.number, in.number
	}
	if d.inject != nil {
		o.result = min(d.inject(int(d.rank), op), hpu.OK)
	}
	switch {
	case value:
		o.data = d.core.buffer(atomicBytes)
		binary.LittleEndian.PutUint64(o.data, a)
	case op == hpu.OpDMAToHost && length > 0:
		o.data = d.core.buffer(int(length))
		copy(o.data, o.memory.program.Memory()[local:])
	}
	d.trace.by(r, o, d.now())
	return o, hpu.OK
}

// Place says where the bytes of an operation lie; it implements host.Places.
func (o *dmaOp) Place(a *host.Access, off int) (addr uint64, n int) {
	it := o.region.Segments(o.offset+uint64(off), uint64(a.Length-off))
	addr, k, _ := it.Next()
	return addr, int(k)
}

// startDMA makes a non-blocking operation that goes on the bus at the handler's own time, and returns its handle.
func (d *act) startDMA(r *run, a *hpu.Action, at sim.Time) int64 {
	free := noHandle
	for i := range r.handles {
		if !r.handles[i].used {
			free = i
			break
		}
	}
	if free == noHandle {
		if len(r.handles) == d.hpu.DMAHandles {
			return hpu.NoSpace
		}
		free = len(r.handles)
		r.handles = append(r.handles, dmaHandle{})
	}
	o, result := d.newDMA(r, a.Op, a.Space, a.Offset, a.Local, a.Len, a.A, a.B)
	if o == nil {
		return result
	}
	if !d.dmaRoom(o) {
		d.discard(o)
		return hpu.NoSpace
	}
	d.trace.by(r, o, at)
	d.dmaBytes += int64(o.access.Length)
	r.handles[free] = dmaHandle{used: true}
	o.handle = free
	d.post(at, kindDMAIssue, 0, o)
	return int64(free)
}

// dmaRoom reports whether an operation may go now: hpu.dma_bytes has room for it, and no operation waits for room.
func (d *act) dmaRoom(o *dmaOp) bool { return d.dmaWaits.len() == 0 && d.dmaFits(o) }

// dmaFits reports whether hpu.dma_bytes has room for an operation; one that is larger goes when there is no other.
func (d *act) dmaFits(o *dmaOp) bool {
	return d.dmaBytes == 0 || d.dmaBytes+int64(o.access.Length) <= int64(d.hpu.DMABytes)
}

// blockingDMA puts the operation that a handler is suspended for on the bus.
func (d *act) blockingDMA(r *run) (result int64, ready bool) {
	w := &r.wait
	o, result := d.newDMA(r, w.op, w.space, w.offset, w.local, w.length, w.a, w.b)
	if o == nil {
		return result, true
	}
	if posted(w.op) {
		o.posts()
	}
	if !d.dmaRoom(o) {
		d.dmaWaits.push(o)
		return 0, false
	}
	d.dmaBytes += int64(o.access.Length)
	d.issueDMA(o)
	return o.begun(), o.handle == released
}

// dmaEnded gives the room of an operation back and lets those go on the bus that have waited for it.
func (d *act) dmaEnded(length int) {
	d.dmaBytes -= int64(length)
	for d.dmaWaits.len() > 0 && d.dmaFits(d.dmaWaits.front()) {
		o := d.dmaWaits.pop()
		d.dmaBytes += int64(o.access.Length)
		if d.issueDMA(o); o.handle == released {
			d.sched.resumable(o.run, o.begun())
		}
	}
}

// issueDMA puts an operation on the bus. The handler of a blocking write that waits for no more than that may go on, now if the operation is
// released.
func (d *act) issueDMA(o *dmaOp) {
	a := &o.access
	switch o.op {
	case hpu.OpDMAToHost:
		o.write = o.in.begin()
		a.Begin = o.handle == noHandle && d.hpu.DMAWrite == Initiated
		if d.bus.Write(a) && a.Begin {
			o.handle = released
		}
	case hpu.OpDMAFromHost:
		d.bus.Read(a)
	default:
		d.bus.Atomic(a)
	}
}

// begun is what a handler is told whose write has begun: of a posted one it learns no more.
func (o *dmaOp) begun() int64 {
	if o.posted {
		return hpu.OK
	}
	return o.result
}

// Begun implements host.Client: the bus takes a blocking write.
func (d *act) Begun(a *host.Access) {
	o := a.Ref.(*dmaOp)
	o.handle = released
	d.sched.resumable(o.run, o.result)
}

// Reached implements host.Client: it executes a compare-and-swap or fetch-and-add where the operation has reached host memory.
func (d *act) Reached(a *host.Access) {
	o := a.Ref.(*dmaOp)
	if o.result != hpu.OK {
		return
	}
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

// move delivers the bytes of an operation.
func (d *act) move(o *dmaOp) {
	failed := o.result < hpu.OK
	switch {
	case o.op == hpu.OpDMAToHost:
		rest := o.data
		for _, seg := range o.host {
			if !failed {
				rest = rest[copy(seg, rest):]
			}
		}
		d.core.releaseBuffer(o.data)
	case failed:
	case o.op == hpu.OpDMAFromHost:
		to := o.memory.program.Memory()[o.local:]
		for _, seg := range o.host {
			to = to[copy(to, seg):]
		}
	default:
		binary.LittleEndian.PutUint64(o.memory.program.Memory()[o.local:], o.a)
	}
}
