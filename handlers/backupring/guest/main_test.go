package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/backupring"
	"github.com/spinsim/spinsim/handlers/internal/wasmtest"
	"github.com/spinsim/spinsim/spin"
	"github.com/spinsim/spinsim/spin/spintest"
)

var runs = flag.Int("rings.runs", 300, "random runs of the rings against the model")

const (
	provider = 9 // processes
	firstPID = 20
	frameMax = 96
	memoryAt = 64 * 1024 // of buffers in granted memory, behind the descriptors
)

// published is figure 6 of NPF'17 with room in the ring as it must be: a slot
// below tail, which is one past the last descriptor posted.
type published struct {
	size, bitmapSize, tail, head, headOffset, bitmapIndex uint64
	bitmap                                                map[uint64]bool
	// ours: a frame that is dropped for an absent buffer uses up its descriptor
	skips bool
}

// receive says whether a frame is stored, kept in the backup ring, or neither.
func (r *published) receive(present bool, free uint64) (stored, kept bool, slot, bit uint64) {
	slot = r.head + r.headOffset
	switch {
	case slot < r.tail && present:
		if r.headOffset > 0 {
			r.headOffset++
		} else {
			r.head++
			r.bitmapIndex++ // not printed, and of no consequence: no bit is set
		}
		return true, false, slot, 0
	case r.headOffset < r.bitmapSize && free > 0:
		bit = r.bitmapIndex + r.headOffset
		r.bitmap[bit%r.bitmapSize] = true
		r.headOffset++
		return false, true, slot, bit
	case slot < r.tail && r.skips:
		r.head++
		r.bitmapIndex++
	}
	return false, false, slot, 0
}

func (r *published) resolve(bit uint64) {
	delete(r.bitmap, bit%r.bitmapSize)
	for r.headOffset > 0 && (r.bitmapSize == 0 || !r.bitmap[r.bitmapIndex%r.bitmapSize]) {
		r.headOffset--
		r.head++
		r.bitmapIndex++
	}
}

// user is an IOuser and the model of its ring.
type user struct {
	published
	absent   map[uint64]bool // descriptors and buffers by their places in the ring
	accepted []uint32        // frames that were not dropped, and 0 for a descriptor that was skipped
	seen     uint64          // frames that the IOuser has taken
	told     uint64
	queue    []backupring.Entry // of the IOprovider
}

// rig is an interface with its IOusers.
type rig struct {
	t       *testing.T
	d       *spintest.Device
	frames  spintest.Handlers[backupring.State]
	control spintest.Handlers[backupring.State]
	s       *backupring.State
	users   []*user
	taken   uint64 // entries of the backup ring that the IOprovider has read
	free    uint64
	next    uint32
	data    map[uint64][]byte // frames of the queues, by their numbers
}

func newRig(t *testing.T, wasm bool, sizes [][2]uint64, slots uint64) *rig {
	r := &rig{
		t: t, s: &backupring.State{NID: 3, PID: provider, BackupCT: 1, TailCT: 2, Slots: slots, SlotBytes: backupring.EntrySize + frameMax, Free: slots},
		free: slots, data: map[uint64][]byte{},
	}
	r.d = spintest.New(t, spintest.Config{HostMem: int(slots * r.s.SlotBytes), MTU: 128, NID: 3})
	r.d.Counters[1], r.d.Counters[2] = &spintest.Count{}, &spintest.Count{}
	r.frames = spintest.Handlers[backupring.State]{Payload: receive}
	r.control = spintest.Handlers[backupring.State]{Header: control}
	if wasm {
		e := wasmtest.Entries[backupring.State](t, r.d, backupring.Library.Wasm, map[string]wasmtest.Names{
			"frames": {Payload: backupring.Receive}, "control": {Header: backupring.Control},
		}, 0)
		r.frames, r.control = e["frames"], e["control"]
	}
	for i, size := range sizes {
		u := &user{published: published{size: size[0], bitmapSize: size[1], bitmap: map[uint64]bool{}}, absent: map[uint64]bool{}}
		r.users = append(r.users, u)
		r.s.Rings[i] = backupring.RingState{Space: uint32(spin.Granted) + uint32(i), Size: uint32(size[0]), BitmapSize: uint32(size[1]), PID: firstPID + uint32(i), PT: 4}
		if u.skips = size[1] == 0 && slots%2 == 1; u.skips {
			r.s.Rings[i].Skips = 1
		}
		r.d.Granted = append(r.d.Granted, make([]byte, memoryAt+int(size[0])*frameMax))
		for k := range size[0] {
			r.describe(i, k, backupring.Descriptor{Offset: memoryAt + k*frameMax, Length: frameMax})
		}
	}
	r.d.Absent = func(space spin.Space, offset, _ uint64, _ bool) bool {
		i := int(space - spin.Granted)
		place := offset / backupring.DescriptorSize
		if offset >= memoryAt {
			place = (offset - memoryAt) / frameMax
		}
		return i >= 0 && i < len(r.users) && r.users[i].absent[place]
	}
	return r
}

func (r *rig) describe(ring int, place uint64, d backupring.Descriptor) {
	copy(r.d.Granted[ring][place*backupring.DescriptorSize:], spin.EncodeState(&d))
}

// say sends a message to control.
func (r *rig) say(pid, kind, ring uint32, number uint64) {
	spintest.Run(r.d, r.control.Header, &spin.Header{SourceNID: 3, SourcePID: pid, MatchBits: backupring.Bits(kind, uint64(ring)), HdrData: number}, r.s)
	r.listen()
}

// listen takes what IOusers are told.
func (r *rig) listen() {
	for _, c := range r.d.Named("atomic_from_device") {
		u := r.users[c.Op.TargetPID-firstPID]
		head := binary.LittleEndian.Uint64(c.Data)
		if head > u.head {
			require.FailNow(r.t, "the IOuser is told of more than there is")
		}
		u.told = max(u.told, head)
	}
	r.d.Calls = r.d.Calls[:0]
}

// frame has one come for a ring.
func (r *rig) frame(ring int, n int) {
	r.next++
	data := make([]byte, n)
	binary.LittleEndian.PutUint32(data, r.next)
	for i := 4; i < n; i++ {
		data[i] = byte(int(r.next) + i)
	}
	u := r.users[ring]
	stored, kept, slot, _ := u.receive(!u.absent[(u.head+u.headOffset)%u.size], r.free)
	if kept {
		r.free--
	}
	out := spintest.Deliver(r.d, r.frames, r.s, spintest.Message{Data: data, MatchBits: uint64(ring), SourceNID: 1})
	r.listen()
	want := spin.Success
	switch {
	case stored || kept:
		u.accepted = append(u.accepted, r.next)
	case u.skips && u.head > slot:
		u.accepted = append(u.accepted, 0)
		fallthrough
	default:
		want = spin.Drop
	}
	require.Equal(r.t, []spin.Code{want}, out.Payloads, "frame %d for descriptor %d", r.next, slot)
}

// drain is the IOprovider's interrupt handler: it puts frames into queues and
// gives their slots back.
func (r *rig) drain() {
	n := r.d.Counters[1].Success - r.taken
	for range n {
		at := r.taken % r.s.Slots * r.s.SlotBytes
		var e backupring.Entry
		require.NoError(r.t, spin.DecodeState(r.d.Host[at:], &e))
		r.taken++
		require.Equal(r.t, r.taken, e.Number)
		u := r.users[e.Ring]
		u.queue = append(u.queue, e)
		r.data[e.Number] = append([]byte(nil), r.d.Host[at+backupring.EntrySize:][:e.Length]...)
	}
	r.free += n
	r.say(provider, backupring.GivenBack, 0, n)
}

// resolve has the IOprovider deal with one of a queue, if it can.
func (r *rig) resolve(ring, which int) bool {
	u := r.users[ring]
	if which >= len(u.queue) || u.queue[which].Slot >= u.tail {
		return false
	}
	e := u.queue[which]
	u.queue = append(u.queue[:which], u.queue[which+1:]...)
	place := e.Slot % u.size
	delete(u.absent, place)
	copy(r.d.Granted[ring][memoryAt+place*frameMax:], r.data[e.Number])
	r.describe(ring, place, backupring.Descriptor{Offset: memoryAt + place*frameMax, Length: frameMax, Used: uint32(e.Length)})
	delete(r.data, e.Number)
	u.published.resolve(e.Bit)
	r.say(provider, backupring.Resolved, uint32(ring), e.Bit)
	require.Equal(r.t, u.head, u.told, "the IOuser is told of the end of every fault")
	return true
}

// take has the IOuser take the frames it was told of, and look at each byte.
func (r *rig) take(ring int) {
	u := r.users[ring]
	for ; u.seen < u.told; u.seen++ {
		place := u.seen % u.size
		var d backupring.Descriptor
		require.NoError(r.t, spin.DecodeState(r.d.Granted[ring][place*backupring.DescriptorSize:], &d))
		if u.accepted[u.seen] == 0 {
			require.EqualValues(r.t, backupring.Unused, d.Used)
			continue
		}
		b := r.d.Granted[ring][memoryAt+place*frameMax:][:d.Used]
		id := binary.LittleEndian.Uint32(b)
		require.Equal(r.t, u.accepted[u.seen], id, "in order, each once")
		for i := 4; i < len(b); i++ {
			if b[i] != byte(int(id)+i) {
				require.FailNow(r.t, "wrong bytes", "frame %d, byte %d", id, i)
			}
		}
	}
}

// post has the IOuser post n descriptors, as far as the ring has room.
func (r *rig) post(ring int, n uint64) {
	u := r.users[ring]
	n = min(n, u.seen+u.size-u.tail)
	for ; n > 0; n-- {
		place := u.tail % u.size
		r.describe(ring, place, backupring.Descriptor{Offset: memoryAt + place*frameMax, Length: frameMax})
		u.tail++
	}
	r.say(firstPID+uint32(ring), backupring.Posted, uint32(ring), u.tail)
}

// same compares the interface with the model.
func (r *rig) same() {
	if r.free != r.s.Free || r.s.Foreign != 0 {
		require.FailNow(r.t, "the backup ring", "%d slots are free, expected %d; %d foreign messages", r.s.Free, r.free, r.s.Foreign)
	}
	for i, u := range r.users {
		x := &r.s.Rings[i]
		want, is := [4]uint64{u.tail, u.head, u.headOffset, u.bitmapIndex}, [4]uint64{x.Tail, x.Head, x.HeadOffset(), x.BitmapIndex}
		if want != is || x.Head != u.told {
			require.FailNow(r.t, "a ring", "ring %d has %d, expected %d; the IOuser knows of %d", i, is, want, u.told)
		}
	}
}

// drive does random things, and in the end lets everything come to rest.
func (r *rig) drive(rng *rand.Rand, steps int) {
	for range steps {
		ring := rng.IntN(len(r.users))
		u := r.users[ring]
		switch rng.IntN(8) {
		case 0, 1, 2:
			r.frame(ring, 4+rng.IntN(frameMax-3))
		case 3:
			r.post(ring, rng.Uint64N(u.size+1))
		case 4:
			r.take(ring)
		case 5:
			r.drain()
		case 6:
			r.resolve(ring, rng.IntN(3))
		case 7:
			u.absent[rng.Uint64N(u.size)] = rng.IntN(2) == 0
		}
		r.same()
	}
	for i, u := range r.users {
		for u.seen < uint64(len(u.accepted)) {
			before := u.seen
			r.drain()
			r.post(i, u.size)
			for r.resolve(i, 0) {
			}
			r.take(i)
			require.Less(r.t, before, u.seen, "frames are left that nobody will ever get")
		}
		require.Zero(r.t, u.headOffset)
		require.Empty(r.t, u.queue)
	}
	r.same()
}

// anySize is a number of descriptors or bits: often an edge, of a word or of
// the range, or small, else any from 1 to 4,096.
func anySize(rng *rand.Rand) uint64 {
	edges := []uint64{1, 2, 3, 4, 7, 16, 63, 64, 65, 127, 128, 129, 4032, 4033, 4095, 4096}
	if i := rng.IntN(2 * len(edges)); i < len(edges) {
		return edges[i]
	}
	return 1 + rng.Uint64N(backupring.MaxSize)
}

// Random frames, descriptors, absent pages and speeds of IOusers and IOprovider
// against the published pseudo-code: the same is stored, kept and dropped; what
// is not dropped arrives once, in order, whole; descriptors are skipped where
// the ring asks for it. Rings of 1 to 4,096, bitmaps smaller and larger than
// them by one, none, and backup rings that fill up.
func TestRings(t *testing.T) {
	for seed := range uint64(*runs) {
		rng := rand.New(rand.NewPCG(seed, 6))
		var sizes [][2]uint64
		for range 1 + rng.IntN(3) {
			size := anySize(rng)
			bitmap := []uint64{0, 1, max(size, 2) - 1, size, min(size+1, 4096), min(2*size, 4096), anySize(rng)}[rng.IntN(7)]
			sizes = append(sizes, [2]uint64{size, bitmap})
		}
		wasm := seed%100 == 0
		t.Run(fmt.Sprint(seed, sizes), func(t *testing.T) {
			newRig(t, wasm, sizes, []uint64{1, 2, 5, 64}[rng.IntN(4)]).drive(rng, 150)
		})
	}
}

// Rings of sizes at edges whose every descriptor is used, several times, with
// bitmaps that have a bit less, as many, and one more (as far as there are
// any), and backup rings that are full: the same decisions as the
// pseudo-code's, over the end of the ring and of the bitmap.
func TestRingsGoRound(t *testing.T) {
	for _, size := range []uint64{1, 2, 63, 64, 65, 1000, 4095, 4096} {
		for _, bitmap := range []uint64{size - 1, size, min(size+1, backupring.MaxSize)} {
			t.Run(fmt.Sprint(size, bitmap), func(t *testing.T) {
				slots := min(bitmap+2, 64)
				r := newRig(t, false, [][2]uint64{{size, bitmap}}, max(1, slots))
				u := r.users[0]
				rng := rand.New(rand.NewPCG(size, bitmap))
				for u.head < 2*size+3 {
					r.post(0, size)
					if u.absent = map[uint64]bool{}; rng.IntN(2) == 0 {
						for range 1 + rng.IntN(3) {
							u.absent[rng.Uint64N(size)] = true
						}
					}
					for range 1 + rng.Uint64N(min(size, 600)) {
						r.frame(0, 8)
					}
					r.same()
					r.drain()
					for u.absent = map[uint64]bool{}; r.resolve(0, rng.IntN(1+min(2, len(u.queue)))) || r.resolve(0, 0); {
					}
					r.take(0)
					r.same()
				}
			})
		}
	}
}

// A ring that holds as many frames as its bitmap has bits, with 4,096 of them,
// takes no more, and has them all delivered in order.
func TestTheBitmapIsFull(t *testing.T) {
	for _, bitmap := range []uint64{4095, 4096} {
		r := newRig(t, false, [][2]uint64{{4096, bitmap}}, 8192)
		u := r.users[0]
		for range bitmap + 3 {
			r.frame(0, 8)
		}
		require.Equal(t, bitmap, r.s.Rings[0].Stats.Backed)
		require.EqualValues(t, 3, r.s.Rings[0].Stats.Dropped)
		r.drain()
		r.post(0, 4096)
		for len(u.queue) > 0 {
			require.True(t, r.resolve(0, len(u.queue)-1), "the youngest first: head moves with the last of them")
		}
		r.take(0)
		require.Equal(t, bitmap, u.seen)
		r.same()
	}
}
