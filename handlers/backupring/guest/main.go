// The receive side of an Ethernet interface: frames whose buffers are absent go
// into the IOprovider's backup ring (Lesokhin et al., ASPLOS'17, figure 6).
//
//spin:library backupring 1.0
//spin:needs spaces=entry,granted entry_options=op_put
package main

import (
	"math/bits"
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
		spin.FAdd(&s.Stray, 1)
		return spin.Drop
	}
	f := frame{p: p, s: s, r: r, slot: r.Next, place: r.NextPlace}
	if f.slot >= r.Tail {
		r.Stats.NoBuffer++
		return f.keepOrDrop()
	}
	r.Begun++
	// absent memory leaves no choice but to drop the frame, and its descriptor
	// must be used up because later frames wait
	if r.Skips == 0 && !f.held() {
		return f.alone()
	}
	f.leave()
	return f.ends(f.store())
}

// ends returns the end of a frame that had a descriptor, and a slot of the
// backup ring if it may need one.
func (f *frame) ends(absent bool) spin.Code {
	r := f.r
	switch {
	case absent && r.Skips != 0:
		spin.FAdd(&r.Stats.Dropped, 1)
		spin.FAdd(&r.Stats.Skipped, 1)
		f.done()
		spin.FAdd(&r.Stats.Absent, 1)
		return spin.Drop
	case absent:
		bit := f.mark()
		spin.FAdd(&r.Stats.Absent, 1)
		return f.keep(bit)
	case r.Skips == 0:
		spin.FAdd(&f.s.Free, 1)
	}
	f.done()
	spin.FAdd(&r.Stats.Stored, 1)
	return spin.Success
}

// ring returns the ring with an ID, or nil if there is none, or none any more.
func ring(s *backupring.State, id uint64) *backupring.RingState {
	if r := &s.Rings[id%backupring.MaxRings]; is(r, id) {
		return r
	}
	return nil
}

func is(r *backupring.RingState, id uint64) bool {
	return r.Size != 0 && r.Generation == id/backupring.MaxRings
}

// turn waits until the frames that came before know their destination. Until
// next nobody else takes a descriptor. A waiting frame looks less often the
// more frames are before it (Mellor-Crummey and Scott, "Algorithms for Scalable
// Synchronization on Shared-Memory Multiprocessors", TOCS 1991, §2.2), and the
// longer the line does not move: a look costs far more of the budget than of
// time. It returns false when so much of the budget is spent that the frame is
// dropped, and later frames do not wait for it.
func turn(r *backupring.RingState, patience uint64) bool {
	ticket := spin.FAdd(&r.Ticket, 1)
	looks, stands := uint64(0), uint64(0)
	for at := r.Turn; at != ticket; looks++ {
		if spin.Cycles()+looks*importWork >= patience && ticket-at < backupring.MaxSize {
			return last(r, ticket)
		}
		for range min(stands+(ticket-at-1)*each, longestPause) {
			spin.Cycles()
		}
		spin.Yield()
		stands++
		if now := r.Turn; now != at {
			at, stands = now, 0
		}
	}
	return true
}

const (
	importWork = 100 // budget of a look besides its cycles (docs/abi.md, metering)
	// reads of the cycle counter for each frame before this one: about as long
	// as a turn
	each = 8
	// reads of the cycle counter between two looks: the budget counts only
	// their cycles
	longestPause = 32
)

// last lets a frame leave the line, unless its turn has come meanwhile: then
// the frame takes the bit back, not the frame before it.
func last(r *backupring.RingState, ticket uint64) bool {
	at := ticket % backupring.MaxSize
	set(&r.Late, at)
	if r.Turn == ticket && unset(&r.Late, at) {
		return true
	}
	spin.FAdd(&r.Stats.Late, 1)
	spin.FAdd(&r.Stats.Dropped, 1)
	return false
}

// next lets the next frame take its turn.
func next(r *backupring.RingState) {
	for {
		turn := spin.FAdd(&r.Turn, 1) + 1
		if at := turn % backupring.MaxSize; !has(&r.Late, at) || !unset(&r.Late, at) {
			return
		}
	}
}

// frame is a frame that has arrived.
type frame struct {
	p     *spin.Payload
	s     *backupring.State
	r     *backupring.RingState
	slot  uint64 // its descriptor
	place uint32 // in the ring
}

// held takes a slot of the backup ring, if there is room in the bitmap, too.
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

// leave takes the descriptor, and gives the turn to the next frame.
func (f *frame) leave() {
	r := f.r
	r.Next++
	if r.NextPlace++; r.NextPlace == r.Size {
		r.NextPlace = 0
	}
	next(r)
}

// keepOrDrop ends a frame without a buffer, when it is its turn.
func (f *frame) keepOrDrop() spin.Code {
	if !f.held() {
		spin.FAdd(&f.r.Stats.Dropped, 1)
		next(f.r)
		return spin.Drop
	}
	bit := f.mark()
	f.leave()
	return f.keep(bit)
}

// alone stores a frame while no later one has a descriptor.
func (f *frame) alone() spin.Code {
	if f.store() {
		spin.FAdd(&f.r.Stats.Absent, 1)
		return f.keepOrDrop()
	}
	f.leave()
	f.done()
	spin.FAdd(&f.r.Stats.Stored, 1)
	return spin.Success
}

// done hands the descriptor to the IOuser. If it was the first one not handed
// over, it also moves Head and tells the IOuser. Otherwise the frame with the
// first one does that when it is done.
func (f *frame) done() {
	r := f.r
	set(&r.Done, uint64(f.place))
	if !has(&r.Done, uint64(r.HeadPlace)) {
		return
	}
	lock(&r.Lock)
	before := r.Head
	advance(r)
	moved := r.Head != before
	unlock(&r.Lock)
	if moved {
		spin.FAdd(&r.Told, 1)
		tell(f.s, r)
	}
}

// store writes the frame to its buffer, and its length to its descriptor. It
// reports whether something was absent.
func (f *frame) store() (absent bool) {
	memory := spin.Space(f.r.Space) | spin.TellFaults
	at := f.r.Descriptors + uint64(f.place)*backupring.DescriptorSize
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

// mark sets the bit of the frame's descriptor and returns its index.
func (f *frame) mark() uint64 {
	bit := f.r.BitmapIndex + f.slot - f.r.Head
	set(&f.r.Bitmap, bit%uint64(f.r.BitmapSize))
	spin.FAdd(&f.r.Stats.Backed, 1)
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

// control handles messages of IOusers and the IOprovider.
//
//go:wasmexport control
func control(h *spin.Header, s *backupring.State) spin.Code {
	if h.SourceNID != s.NID || !act(s, h.MatchBits>>8, h.SourcePID, h.MatchBits&0xff, h.HdrData) {
		spin.FAdd(&s.Foreign, 1)
	}
	return spin.Drop
}

// act carries out a message of a process to control, and reports whether it is
// legal.
func act(s *backupring.State, id uint64, pid uint32, kind, number uint64) bool {
	if kind == backupring.GivenBack && pid == s.PID {
		spin.FAdd(&s.Free, number)
		return true
	}
	r := &s.Rings[id%backupring.MaxRings]
	lock(&r.Control)
	// a ring may be closed while a message about it is on its way
	legal, told := r.Generation > id/backupring.MaxRings, false
	if is(r, id) {
		legal, told = say(s, r, pid, kind, number)
	}
	unlock(&r.Control)
	if told {
		tell(s, r)
	}
	return legal
}

// say carries out a message about a ring, whose lock is taken. It reports
// whether the message is legal, and whether the IOuser must be told.
func say(s *backupring.State, r *backupring.RingState, pid uint32, kind, number uint64) (legal, told bool) {
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

// post takes a new tail, which does not go beyond the descriptors of the ring.
// A tail older than the present one is legal but has no effect.
func post(s *backupring.State, r *backupring.RingState, tail uint64) (legal bool) {
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

// watch turns reports of changes of the tail on, or off (0). The IOuser may
// have posted after the IOprovider's look and before this message came; then
// the change is reported now.
func watch(s *backupring.State, r *backupring.RingState, number uint64) {
	if r.Watched = 0; number != 0 {
		r.Watched = 1
		if r.Tail >= number {
			spin.Counter(s.TailCT).Inc(1, 0)
		}
	}
}

// resolve clears a bit.
func resolve(r *backupring.RingState, bit uint64) (legal bool) {
	if r.BitmapSize == 0 || bit-r.BitmapIndex >= uint64(r.BitmapSize) || !unset(&r.Bitmap, bit%uint64(r.BitmapSize)) {
		return false
	}
	set(&r.Done, (r.Head+bit-r.BitmapIndex)%uint64(r.Size))
	lock(&r.Lock)
	advance(r)
	unlock(&r.Lock)
	spin.FAdd(&r.Told, 1)
	return true
}

// advance moves Head to the oldest frame that is not in its buffer.
func advance(r *backupring.RingState) {
	for {
		word, from := &r.Done[r.HeadPlace/64], r.HeadPlace%64
		n := uint32(bits.TrailingZeros64(^(*word >> from)))
		if n == 0 {
			return
		}
		spin.FAdd(word, -(^uint64(0) >> (64 - n) << from))
		r.Head += uint64(n)
		r.BitmapIndex += uint64(n)
		if r.HeadPlace += n; r.HeadPlace == r.Size {
			r.HeadPlace = 0
		}
	}
}

// tell is the interrupt of the IOuser. Handlers that run at the same time may
// tell in another order than they moved Head: the IOuser keeps the largest.
func tell(s *backupring.State, r *backupring.RingState) {
	op := spin.Op{TargetNID: s.NID, TargetPID: r.PID, PTIndex: r.PT, Local: spin.AddrOf(&r.Head), Length: 8, AtomicOp: spin.OpMax, Datatype: spin.TypeUint64}
	spin.AtomicFromDevice(&op)
}

func lock(p *uint64) {
	for !spin.CAS(p, 0, 1) {
		spin.Yield()
	}
}

func unlock(p *uint64) { spin.CAS(p, 1, 0) }

type bitmap = [backupring.MaxSize / 64]uint64

func has(b *bitmap, i uint64) bool { return b[i/64]>>(i%64)&1 != 0 }

// set sets a bit that nobody else sets.
func set(b *bitmap, i uint64) { spin.FAdd(&b[i/64], 1<<(i%64)) }

// unset clears a bit. It returns false if the bit was not set, or somebody else
// has cleared it.
func unset(b *bitmap, i uint64) bool {
	for {
		word := b[i/64]
		if word>>(i%64)&1 == 0 {
			return false
		}
		if spin.CAS(&b[i/64], word, word&^(1<<(i%64))) {
			return true
		}
	}
}

func main() {}
