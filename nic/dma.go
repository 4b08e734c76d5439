package nic

import (
	"encoding/binary"
	"fmt"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// dmaOp is a DMA operation of a handler on its way.
type dmaOp struct {
	mark   poison.Mark
	access host.Access
	dmaState
	one [1][]byte // the range in host memory, except for a region of vectors

	// These are filled in only when they are needed:
	host    [][]byte       // the range, of a region of vectors
	region  portals.Region // if it is in several pieces
	offset  uint64         // in region
	a, b    uint64         // operands of an atomic
	number  int64          // number of the handler, for Watch
	message uint64         // its msg_id
	// Padding to whole cache lines. The access begins one line, and the fields
	// behind it begin the fourth.
	_ [16]byte
}

// dmaState is the part that is reset for each operation.
type dmaState struct {
	memory *Memory
	in     *inbound // the handler's message, which exists while a write is on its way
	run    *run
	data   []byte // to host memory: a copy of the bytes at the call, if one is kept
	page   *host.Page
	result int64
	// generation of the run that made it: the handler may end before the
	// operation
	generation uint32
	// index of its handle; noHandle if the run is suspended for it; released if
	// the run no longer is
	handle  int32
	write   int32 // number of this write in the message
	tries   int32
	space   uint32 // as the handler named it
	local   uint32
	op      hpu.Op      // the blocking form
	sent    int32       // bytes put on the bus in pieces, with turns
	landing int32       // pieces on the bus
	taken   int32       // bytes of pieces that the bus has begun to take
	status  host.Status // of the pieces that have landed
	asks    bool        // the handler waits until the write begins
	vectors bool        // the range is in host
	inPlace bool        // to host memory: no copy of the bytes is kept
	apart   bool        // the range has no bytes of its own: they are found when they move
	posted  bool        // nobody waits for it
	told    bool        // its handler wants to see page faults, instead of a retry
}

const (
	noHandle = -1
	released = -2
)

// dma returns an operation for the caller to fill in.
func (c *Core) dma() *dmaOp { return c.dmas.take() }

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
	case hpu.OpDMAFAddNB, hpu.OpDMAFAddTyped, hpu.OpDMAFAddTypedNB:
		return hpu.OpDMAFAdd
	}
	return op
}

// atomicBytes is the width of DMA atomics without a type (docs/abi.md).
const atomicBytes = 8

// newDMA prepares an operation. A negative result is the error of the call.
func (d *act) newDMA(r *run, op hpu.Op, space uint32, offset uint64, local, length uint32, a, b uint64) (*dmaOp, int64) {
	value, inPlace := immediate(op), r.inPlace(op, d.hpu.DMAWrite, local, length)
	typed := op == hpu.OpDMAFAddTyped || op == hpu.OpDMAFAddTypedNB
	op = blockingForm(op)
	word := value || op == hpu.OpDMACAS || op == hpu.OpDMAFAdd
	switch {
	case typed && length == 0:
		return nil, hpu.Invalid
	case word && !typed:
		length = atomicBytes
		if op == hpu.OpDMAFAdd {
			b = uint64(portals.Uint64)
		}
	}
	in := r.task.in
	d.core.used.Add(used.DMA)
	o := d.core.dma()
	o.dmaState = dmaState{
		memory: in.handlers.memory, in: in, run: r, generation: r.generation, handle: noHandle, space: space &^ hpu.TellFaults, local: local, op: op,
		inPlace: inPlace, told: space&hpu.TellFaults != 0,
	}
	o.access = host.Access{Order: in.order, Flow: in.frame.Flow(), Client: d, Ref: o, Ports: r.core.pool.ports}
	if result := o.reach(offset, int(length), word); result != hpu.OK {
		d.core.releaseDMA(o)
		return nil, result
	}
	o.use(1)
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
	case op == hpu.OpDMAToHost && length > 0 && !inPlace:
		o.data, o.page = d.core.keep(r.ctx.Program().Present()[local:][:length])
	}
	d.trace.by(r, o, d.now())
	return o, hpu.OK
}

// inPlace reports whether the bytes of a write to host memory can be read when
// it lands, without a copy. The conditions: the handler waits until it has
// landed. No other operation of the handler, or of earlier handlers in its
// context, is on its way. The bytes lie in the context's packet, which nobody
// else uses.
func (r *run) inPlace(op hpu.Op, waits string, local, length uint32) bool {
	return op == hpu.OpDMAToHost && waits != Initiated && !r.looks && r.late == 0 && local >= r.packet && uint64(local)+uint64(length) <= uint64(r.packet)+uint64(r.filled)
}

// reach finds the range of an operation in host memory. A negative result is
// the error of the call.
func (o *dmaOp) reach(offset uint64, length int, word bool) int64 {
	region, memory := o.in.hostMemory(o.space)
	if region == nil {
		return hpu.Denied
	}
	o.access.Space, o.access.Length = memory, length
	o.vectors = region.IOVec != nil
	if addr := region.Addr(offset); !word && !o.vectors && offset <= region.Length && uint64(length) <= region.Length-offset && memory.Apart(addr, uint64(length)) {
		o.apart, o.access.Addr = true, addr
		return hpu.OK
	}
	pieces := o.one[:0]
	if o.vectors {
		pieces = o.host[:0]
	}
	pieces, ok := hostRange(pieces, memory, region, offset, uint64(length))
	switch {
	case !ok:
		return hpu.Denied
	case word && (len(pieces) != 1 || region.Addr(offset)%uint64(length) != 0):
		return hpu.Invalid
	case o.vectors:
		o.host = pieces
	case len(pieces) == 0:
		o.one[0] = nil
	}
	if len(pieces) == 1 {
		o.access.Addr = region.Addr(offset)
	} else {
		o.access.Places, o.region, o.offset = o, *region, offset
	}
	return hpu.OK
}

// pieces are the range of an operation in host memory.
func (o *dmaOp) pieces() [][]byte {
	if o.vectors {
		return o.host
	}
	return o.one[:]
}

// use counts an operation that begins (1) or has ended (-1) among the users of
// its memories. A write to memory of its message's process needs no count: the
// message outlives it, and the message is counted.
func (o *dmaOp) use(n int) {
	if o.op != hpu.OpDMAToHost || o.space >= granted {
		o.memory.use(o.space, n)
	}
}

// Place returns where the bytes of an operation lie; it implements host.Places.
func (o *dmaOp) Place(a *host.Access, off int) (addr uint64, n int) {
	it := o.region.Segments(o.offset+uint64(off), uint64(a.Length-off))
	addr, k, _ := it.Next()
	return addr, int(k)
}

// startDMA makes a non-blocking operation, which goes on the bus at the
// handler's own time. It returns the operation's handle.
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
		r.looks, r.handles = true, append(r.handles, dmaHandle{})
	}
	o, result := d.newDMA(r, a.Op, a.Space, a.Offset, a.Local, a.Len, a.A, a.B)
	if o == nil {
		return result
	}
	if !d.dma.open(o) {
		d.discard(o)
		return hpu.NoSpace
	}
	d.trace.by(r, o, at)
	d.dma.take(o)
	r.handles[free] = dmaHandle{used: true}
	o.handle = int32(free)
	d.post(at, kindDMAIssue, 0, o)
	return int64(free)
}

// dmaRoom is hpu.dma_bytes, the room for handlers' DMA operations on their way.
type dmaRoom struct {
	hpu   *HPUSpec
	bytes int64        // in use
	waits ring[*dmaOp] // blocking operations for which there is no room
	turns *turns       // nil: operations go in the order in which they come
}

// open reports whether an operation may go now: there is room for it, and no
// other operation waits for room.
func (s *dmaRoom) open(o *dmaOp) bool {
	if s.turns != nil {
		return s.turns.accepts(o)
	}
	return s.waits.len() == 0 && s.fits(o)
}

// take gives an operation its room.
func (s *dmaRoom) take(o *dmaOp) {
	if s.turns != nil {
		s.turns.of(o).bytes += int64(o.access.Length)
		return
	}
	s.bytes += int64(o.access.Length)
}

// fits reports whether there is room for an operation. An operation larger than
// hpu.dma_bytes goes when there is no other.
func (s *dmaRoom) fits(o *dmaOp) bool {
	return s.bytes == 0 || s.bytes+int64(o.access.Length) <= int64(s.hpu.DMABytes)
}

// blockingDMA puts the operation that its handler waits for on the bus.
func (d *act) blockingDMA(r *run) (result int64, ready bool) {
	w := &r.wait
	o, result := d.newDMA(r, w.op, w.space, w.offset, w.local, w.length, w.a, w.b)
	if o == nil {
		return result, true
	}
	if posted(w.op) {
		o.posts()
	}
	if d.dma.turns == nil && !d.dma.open(o) {
		d.dma.waits.push(o)
		return 0, false
	}
	d.dma.take(o)
	d.issueDMA(o)
	if d.dma.turns == nil || int(o.sent) == o.access.Length {
		return o.begun(), o.handle == released
	}
	o.asks = true
	return 0, false
}

// dmaEnded frees the room of an operation. Operations that wait for room then
// go on the bus.
func (d *act) dmaEnded(o *dmaOp) {
	if d.dma.turns != nil {
		l := d.dma.turns.of(o)
		l.bytes -= int64(o.access.Length)
		d.dma.turns.put(d, l, nil)
		return
	}
	d.dma.bytes -= int64(o.access.Length)
	for d.dma.waits.len() > 0 && d.dma.fits(d.dma.waits.front()) {
		o := d.dma.waits.pop()
		d.dma.bytes += int64(o.access.Length)
		if d.issueDMA(o); o.handle == released {
			d.sched.resumable(o.run, o.begun())
		}
	}
}

// issueDMA puts an operation on the bus. A blocking write may hold its handler
// only until the write begins. If it begins at once, the operation is released
// and the handler may continue now.
func (d *act) issueDMA(o *dmaOp) {
	if o.op == hpu.OpDMAToHost {
		o.write = int32(o.in.begin())
	}
	if d.dma.turns != nil {
		l := d.dma.turns.of(o)
		if l.ops.push(o); o.op == hpu.OpDMAToHost {
			o.in.turns++
		}
		d.dma.turns.put(d, l, o)
		return
	}
	o.put(d, &o.access)
}

// put puts an access of an operation on the bus.
func (o *dmaOp) put(d *act, a *host.Access) {
	switch o.op {
	case hpu.OpDMAToHost:
		a.Begin = d.dma.turns != nil || o.asksBegin(d.hpu)
		begun := d.bus.Write(a)
		if d.dma.turns != nil {
			d.dma.turns.of(o).waits(o, a, begun)
		}
		if begun && o.asksBegin(d.hpu) && o.allBegun(a) {
			o.handle = released
		}
		return
	case hpu.OpDMAFromHost:
		d.bus.Read(a)
	default:
		d.bus.Atomic(a)
	}
	if d.dma.turns != nil {
		d.dma.turns.of(o).waits(o, a, false)
	}
}

// asksBegin reports whether a handler waits for the bus to take its write.
func (o *dmaOp) asksBegin(h *HPUSpec) bool { return o.handle == noHandle && h.DMAWrite == Initiated }

// begun is the result that a handler gets when its write begins. It learns no
// more about a posted write.
func (o *dmaOp) begun() int64 {
	if o.posted {
		return hpu.OK
	}
	return o.result
}

// Begun implements host.Client: the bus takes a blocking write.
func (d *act) Begun(a *host.Access) {
	o := a.Ref.(*dmaOp)
	if t := d.dma.turns; t != nil {
		l := t.of(o)
		l.begins(a)
		defer d.dma.turns.put(d, l, nil)
	}
	if o.asksBegin(d.hpu) && o.allBegun(a) {
		o.handle = released
		d.sched.resumable(o.run, o.result)
	}
}

// Reached implements host.Client: it executes a compare-and-swap or
// fetch-and-add when the operation reaches host memory.
func (d *act) Reached(a *host.Access) {
	o := a.Ref.(*dmaOp)
	if o.result != hpu.OK {
		return
	}
	word := o.pieces()[0]
	if o.op == hpu.OpDMAFAdd {
		var before, inc [atomicBytes]byte
		copy(before[:], word)
		binary.LittleEndian.PutUint64(inc[:], o.a)
		portals.Add(portals.Datatype(o.b), word, inc[:len(word)])
		o.a = binary.LittleEndian.Uint64(before[:])
		return
	}
	found := binary.LittleEndian.Uint64(word)
	if found == o.a {
		binary.LittleEndian.PutUint64(word, o.b)
		o.result = 1
	}
	o.a = found
}

// move copies the bytes of an operation.
func (d *act) move(o *dmaOp) {
	failed, moved := o.result < hpu.OK, o.access.Length
	switch {
	case o.op == hpu.OpDMAToHost:
		rest := o.data
		if o.inPlace {
			rest = o.run.ctx.Program().Present()[o.local:][:o.access.Length]
		}
		switch {
		case failed:
			moved = 0
		case !o.apart:
			moved = 0
			for _, seg := range o.pieces() {
				n := copy(seg, rest)
				rest = rest[n:]
				moved += n
			}
		case !o.access.Space.Deposit(o.access.Addr, rest):
			moved = 0
		}
		d.core.drop(o.data, o.page)
	case failed:
	case o.op == hpu.OpDMAFromHost:
		to := o.memory.program.Present()[o.local:]
		if moved = 0; o.apart {
			moved = o.access.Space.Load(o.access.Addr, to[:o.access.Length])
			break
		}
		for _, seg := range o.pieces() {
			n := copy(to, seg)
			to = to[n:]
			moved += n
		}
	default:
		var found [atomicBytes]byte
		binary.LittleEndian.PutUint64(found[:], o.a)
		copy(o.memory.program.Present()[o.local:], found[:o.access.Length])
	}
	if moved != o.access.Length && !failed && d.report.first == nil {
		d.report.first = &VanishedError{
			Message: LostMessage{Rank: int(d.rank), At: d.now(), Bytes: uint64(moved), Length: uint64(o.access.Length)}, DMA: fmt.Sprintf("%v of %s", o.op, o.memory.name),
		}
	}
}
