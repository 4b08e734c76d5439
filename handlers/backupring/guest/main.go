// The receive side of an Ethernet interface: frames whose buffers are absent go into the IOprovider's backup ring (Lesokhin et al., ASPLOS'17, figure 6).
//
//spin:library backupring 1.0
//spin:needs spaces=entry,granted entry_options=op_put
package main

import (
	"unsafe"

	"github.com/spinsim/spinsim/handlers/backupring"
	"github.com/spinsim/spinsim/spin"
)

// receive gives a frame its descriptor and stores it there, or in the backup ring.
//
//go:wasmexport receive
func receive(p *spin.Payload, s *backupring.State) spin.Code {
	r := ring(s, p.MatchBits)
	if r == nil {
		spin.FAdd(&s.Stray, 1)
		return spin.Drop
	}
	if !turn(r, s.Patience) {
		return spin.Drop
	}
	if !is(r, p.MatchBits) { // it was closed meanwhile
		next(r)
		unlock(r)
		spin.FAdd(&s.Stray, 1)
		return spin.Drop
	}
	f := frame{p: p, s: s, r: r, slot: r.Head + r.HeadOffset}
	if f.slot >= r.Tail {
		r.Stats.NoBuffer++
		return f.keepOrDrop()
	}
	if r.Skips == 0 && !f.held() { // nothing can be done about absent memory but to drop the frame, and no descriptor may be left out: those behind wait
		return f.alone()
	}
	set(&r.Storing, f.slot%uint64(r.Size))
	f.leave()
	absent := f.store()
	lock(r)
	unset(&r.Storing, f.slot%uint64(r.Size))
	switch {
	case absent && r.Skips != 0:
		r.Stats.Absent++
		r.Stats.Dropped++
		r.Stats.Skipped++
		f.tells()
		return spin.Drop
	case absent:
		r.Stats.Absent++
		bit := f.mark()
		unlock(r)
		return f.keep(bit)
	case r.Skips == 0:
		spin.FAdd(&s.Free, 1)
	}
	r.Stats.Stored++
	f.tells()
	return spin.Success
}

// ring is that of an ID; nil: there is none, or none any more.
func ring(s *backupring.State, id uint64) *backupring.Ring {
	if r := &s.Rings[id%backupring.MaxRings]; is(r, id) {
		return r
	}
	return nil
}

func is(r *backupring.Ring, id uint64) bool {
	return r.Size != 0 && r.Generation == id/backupring.MaxRings
}

// turn waits until the frames that came before know where they go, and takes the lock. The longer that takes the less often it looks, since a look costs far more of the budget than it takes.
// It reports false when so much of the budget is spent that the frame is dropped: those behind do not wait for it.
func turn(r *backupring.Ring, patience uint64) bool {
	ticket := spin.FAdd(&r.Ticket, 1)
	for looks := uint64(0); r.Turn != ticket; looks++ {
		if spin.Cycles()+looks*importWork >= patience && ticket-r.Turn < backupring.MaxSize {
			return last(r, ticket)
		}
		for range min(looks, longestPause) {
			spin.Cycles()
		}
		spin.Yield()
	}
	lock(r)
	return true
}

const (
	importWork   = 100 // that a look takes of the budget besides its cycles (docs/abi.md, metering)
	longestPause = 32  // cycle counters that are read between two looks: of them the budget counts the cycles alone
)

// last takes the lock if it is a frame's turn after all. Else it is not waited for.
func last(r *backupring.Ring, ticket uint64) bool {
	lock(r)
	if r.Turn == ticket {
		return true
	}
	set(&r.Late, ticket%backupring.MaxSize)
	r.Stats.Late++
	r.Stats.Dropped++
	unlock(r)
	return false
}

// next has the frame behind take its turn.
func next(r *backupring.Ring) {
	for r.Turn++; has(&r.Late, r.Turn%backupring.MaxSize); r.Turn++ {
		unset(&r.Late, r.Turn%backupring.MaxSize)
	}
}

// frame is one that has come.
type frame struct {
	p    *spin.Payload
	s    *backupring.State
	r    *backupring.Ring
	slot uint64 // its descriptor
}

// held takes a slot of the backup ring, if the bitmap has room, too.
func (f *frame) held() bool {
	if f.slot-f.r.Head >= uint64(f.r.BitmapSize) {
		return false
	}
	for n := f.s.Free; n > 0; n = f.s.Free {
		if spin.CAS(&f.s.Free, n, n-1) {
			return true
		}
	}
	return false
}

// leave takes the descriptor, and lets the next frame have its own.
func (f *frame) leave() {
	f.r.HeadOffset++
	next(f.r)
	unlock(f.r)
}

// keepOrDrop is what becomes of a frame without a buffer.
func (f *frame) keepOrDrop() spin.Code {
	if !f.held() {
		f.r.Stats.Dropped++
		next(f.r)
		unlock(f.r)
		return spin.Drop
	}
	bit := f.mark()
	f.leave()
	return f.keep(bit)
}

// alone stores a frame while none behind it has a descriptor.
func (f *frame) alone() spin.Code {
	unlock(f.r)
	absent := f.store()
	lock(f.r)
	if absent {
		f.r.Stats.Absent++
		return f.keepOrDrop()
	}
	f.r.Stats.Stored++
	f.r.HeadOffset++
	next(f.r)
	f.tells()
	return spin.Success
}

// tells moves Head, gives the ring back, and tells the IOuser if there is something new for it.
func (f *frame) tells() {
	before := f.r.Head
	advance(f.r)
	moved := f.r.Head != before
	if moved {
		f.r.Told++
	}
	unlock(f.r)
	if moved {
		tell(f.s, f.r)
	}
}

// store writes the frame to its buffer, and its length to its descriptor. It reports whether something was absent.
func (f *frame) store() (absent bool) {
	memory := spin.Space(f.r.Space) | spin.TellFaults
	at := f.r.Descriptors + f.slot%uint64(f.r.Size)*backupring.DescriptorSize
	var d backupring.Descriptor
	if r := spin.ReadHost(memory, at, unsafe.Pointer(&d), backupring.DescriptorSize); r.Failed() {
		return r == spin.Fault
	}
	d.Used = f.p.Length
	if d.Length < d.Used {
		d.Used = backupring.TooLong
		spin.FAdd(&f.r.Stats.Unsuitable, 1)
		return f.describe(memory, at, &d)
	}
	data := spin.DMAToHostNB(memory, d.Offset, f.p.Bytes())
	absent = f.describe(memory, at, &d)
	switch r := data.Wait(); {
	case r == spin.Fault:
		if f.r.Skips != 0 && !absent {
			d.Used = backupring.Unused
			f.describe(memory, at, &d)
		}
		return true
	case r.Failed() && !absent:
		d.Used = backupring.Illegal
		spin.FAdd(&f.r.Stats.Unsuitable, 1)
		return f.describe(memory, at, &d)
	}
	return absent
}

// describe writes a descriptor.
func (f *frame) describe(memory spin.Space, at uint64, d *backupring.Descriptor) (absent bool) {
	return spin.WriteHost(memory, at, unsafe.Pointer(d), backupring.DescriptorSize) == spin.Fault
}

// mark sets the bit of the frame's descriptor and returns which it is.
func (f *frame) mark() uint64 {
	bit := f.r.BitmapIndex + f.slot - f.r.Head
	set(&f.r.Bitmap, bit%uint64(f.r.BitmapSize))
	f.r.Stats.Backed++
	return bit
}

// keep puts the frame into the backup ring.
func (f *frame) keep(bit uint64) spin.Code {
	n := spin.FAdd(&f.s.Head, 1)
	e := backupring.Entry{Number: n + 1, Slot: f.slot, Bit: bit, Ring: f.p.MatchBits, Length: uint64(f.p.Length)}
	at := n % f.s.Slots * f.s.SlotBytes
	data := spin.DMAToHostNB(spin.MEHostMem, at+backupring.EntrySize, f.p.Bytes())
	head := spin.WriteHost(spin.MEHostMem, at, unsafe.Pointer(&e), backupring.EntrySize)
	if data.Wait().Failed() || head.Failed() {
		return spin.Fail
	}
	spin.Counter(f.s.BackupCT).Inc(1, 0)
	return spin.Success
}

// control is what IOusers and the IOprovider say to the interface.
//
//go:wasmexport control
func control(h *spin.Header, s *backupring.State) spin.Code {
	if h.SourceNID != s.NID || !act(s, h.MatchBits>>8, h.SourcePID, h.MatchBits&0xff, h.HdrData) {
		spin.FAdd(&s.Foreign, 1)
	}
	return spin.Drop
}

// act carries out a message to control of a process. It reports whether that is legal.
func act(s *backupring.State, id uint64, pid uint32, kind, number uint64) bool {
	if kind == backupring.GivenBack && pid == s.PID {
		spin.FAdd(&s.Free, number)
		return true
	}
	r := &s.Rings[id%backupring.MaxRings]
	lock(r)
	legal, told := r.Generation > id/backupring.MaxRings, false // a ring may be closed while a message about it is on its way
	if is(r, id) {
		legal, told = say(s, r, pid, kind, number)
	}
	unlock(r)
	if told {
		tell(s, r)
	}
	return legal
}

// say carries out a message about a ring, whose lock is taken. It reports whether that is legal, and whether the IOuser is to be told of it.
func say(s *backupring.State, r *backupring.Ring, pid uint32, kind, number uint64) (legal, told bool) {
	switch {
	case kind == backupring.Posted && pid == r.PID:
		return post(s, r, number), false
	case pid != s.PID:
		return false, false
	case kind == backupring.Resolved:
		legal = resolve(r, number)
		return legal, legal
	case kind == backupring.Watch:
		watch(s, r, number)
		return true, false
	case kind == backupring.Closed:
		r.Generation++
		return true, false
	}
	return false, false
}

// post takes a new tail, which does not go beyond the descriptors of the ring. One that has been overtaken by a later one is old, but legal.
func post(s *backupring.State, r *backupring.Ring, tail uint64) (legal bool) {
	size := uint64(r.Size)
	old := r.Tail-tail <= size
	legal = old || tail-r.Tail <= size && tail-r.Head <= size
	if legal && !old {
		r.Tail = tail
	}
	if legal && r.Watched != 0 {
		spin.Counter(s.TailCT).Inc(1, 0)
	}
	return legal
}

// watch has changes of Tail told from now on, or no more (0). The IOuser may have posted before this message has come, and after the IOprovider has looked: then that is told now.
func watch(s *backupring.State, r *backupring.Ring, number uint64) {
	if r.Watched = 0; number != 0 {
		r.Watched = 1
		if r.Tail >= number {
			spin.Counter(s.TailCT).Inc(1, 0)
		}
	}
}

// resolve clears a bit.
func resolve(r *backupring.Ring, bit uint64) (legal bool) {
	if r.BitmapSize == 0 {
		return false
	}
	legal = bit-r.BitmapIndex < uint64(r.BitmapSize) && has(&r.Bitmap, bit%uint64(r.BitmapSize))
	if legal {
		unset(&r.Bitmap, bit%uint64(r.BitmapSize))
		advance(r)
		r.Told++
	}
	return legal
}

// advance moves Head to the oldest frame that is not in its buffer. Head and HeadOffset change together: their sum says where the next frame goes.
func advance(r *backupring.Ring) {
	for r.HeadOffset > 0 && !has(&r.Storing, r.Head%uint64(r.Size)) && (r.BitmapSize == 0 || !has(&r.Bitmap, r.BitmapIndex%uint64(r.BitmapSize))) {
		r.HeadOffset--
		r.Head++
		r.BitmapIndex++
	}
}

// tell is the interrupt of the IOuser. Handlers that run at once may tell in another order than they have moved Head: the IOuser has the largest.
func tell(s *backupring.State, r *backupring.Ring) {
	op := spin.Op{TargetNID: s.NID, TargetPID: r.PID, PTIndex: r.PT, Local: spin.AddrOf(&r.Head), Length: 8, AtomicOp: spin.OpMax, Datatype: spin.TypeUint64}
	spin.AtomicFromDevice(&op)
}

func lock(r *backupring.Ring) {
	for !spin.CAS(&r.Lock, 0, 1) {
		spin.Yield()
	}
}

func unlock(r *backupring.Ring) { spin.CAS(&r.Lock, 1, 0) }

type bits = [backupring.MaxSize / 64]uint64

func has(b *bits, i uint64) bool { return b[i/64]>>(i%64)&1 != 0 }

func set(b *bits, i uint64) { b[i/64] |= 1 << (i % 64) }

func unset(b *bits, i uint64) { b[i/64] &^= 1 << (i % 64) }

func main() {}
