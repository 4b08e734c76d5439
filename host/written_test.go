package host

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/internal/poison"
)

// unwatched is an address space whose programs no guard watches.
func unwatched() *AddressSpace {
	a := NewAddressSpace(nil)
	if a.guard != nil {
		a.guard.Release()
		a.guard, a.asks = nil, false
	}
	return a
}

// twin is an address space with two ranges without bytes of their own, and flat
// memory with what they should have.
type twin struct {
	*AddressSpace
	addr [2]uint64
	flat [2][]byte
}

func newTwin(t *rapid.T, slab *Slab, n int) *twin {
	w := &twin{AddressSpace: unwatched()}
	w.From(slab)
	w.Alloc(100)
	for k, n := range []int{n, leastWritten} {
		w.addr[k], w.flat[k] = w.Alloc(n), make([]byte, n)
		require.True(t, w.Apart(w.addr[k], uint64(n)))
	}
	return w
}

// step stores, loads, moves or changes length bytes at a place of the first range.
func (w *twin) step(t *rapid.T, at, length int) {
	a, piece := w.addr[0]+uint64(at), w.flat[0][at:at+length]
	switch rapid.SampledFrom([]string{"deposit", "deposit", "deposit", "load", "part", "move", "bytes"}).Draw(t, "what") {
	case "deposit":
		b := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte") % 4}, length)
		require.True(t, w.Deposit(a, b))
		copy(piece, b)
		clear(b)
	case "load":
		b := make([]byte, length)
		require.Equal(t, length, w.Load(a, b))
		require.Equal(t, piece, b)
	case "part":
		b, ok := w.Part(a, uint64(length))
		require.True(t, ok)
		require.Equal(t, length > 0, len(b) > 0)
		require.Equal(t, piece[:len(b)], b)
	case "move":
		w.move(t, a, piece)
	case "bytes": // a program, or an atomic, that may change them
		if rapid.IntRange(0, 9).Draw(t, "now") == 0 {
			b, ok := w.Bytes(a, uint64(length))
			require.True(t, ok)
			require.Equal(t, piece, b)
			for k := range b {
				b[k], piece[k] = 9, 9
			}
		}
	}
}

// move moves bytes to the other range or from there.
func (w *twin) move(t *rapid.T, to uint64, want []byte) {
	length := uint64(len(want))
	at := rapid.IntRange(0, leastWritten-len(want)).Draw(t, "there")
	from, have := w.addr[1]+uint64(at), w.flat[1][at:at+len(want)]
	if rapid.Bool().Draw(t, "back") {
		from, to, have, want = to, from, want, have
	}
	apart := w.Apart(from, length)
	require.Equal(t, apart, Move(w.AddressSpace, to, from, length))
	require.False(t, Move(w.AddressSpace, to, to, length))
	if apart {
		copy(want, have)
	}
}

// Whatever devices store, load and change, in whatever pieces, and whenever
// programs look: memory without bytes of its own has the bytes of flat memory.
// Two processes of a domain share pages, but not their changes.
func TestWrittenRangesHaveTheirBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var slab Slab
		n := rapid.IntRange(leastWritten, 4*leastWritten).Draw(t, "size")
		twins := []*twin{newTwin(t, &slab, n), newTwin(t, &slab, n)}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w := twins[rapid.IntRange(0, 1).Draw(t, "process")]
			length := rapid.OneOf(rapid.Just(PageLeast), rapid.IntRange(0, 3*PageLeast)).Draw(t, "length")
			at := rapid.OneOf(rapid.IntRange(0, n-length), rapid.Just((n-length)/PageLeast*PageLeast)).Draw(t, "at")
			w.step(t, at, length)
		}
		for _, w := range twins {
			start := w.addr[0]
			require.False(t, w.Deposit(start+uint64(n)-1, []byte{1, 2}))
			require.Zero(t, w.Load(start-8, make([]byte, 9)))
			require.False(t, w.Apart(start, uint64(n)+1))
			all := make([]byte, n)
			require.Equal(t, n, w.Load(start, all))
			require.Equal(t, w.flat[0], all)
			for k, flat := range w.flat {
				b, ok := w.Bytes(w.addr[k], uint64(len(flat)))
				require.True(t, ok)
				require.Equal(t, flat, b)
				require.False(t, w.Apart(w.addr[k], uint64(len(flat))))
			}
			w.Release()
		}
		require.Zero(t, slab.live.Live())
	})
}

// What devices store in the memories of 1,000 processes is there once.
func TestEqualMemoriesTakeRoomOnce(t *testing.T) {
	const size, piece = 1 << 16, 1 << 12
	var slab Slab
	message := make([]byte, size)
	for i := range message {
		message[i] = byte(i ^ i>>8)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 1000 {
		a := unwatched()
		defer a.Release()
		a.From(&slab)
		addr := a.Alloc(size)
		for at := 0; at < size; at += piece {
			require.True(t, a.Deposit(addr+uint64(at), message[at:at+piece]))
		}
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2*slabBytes))
	require.Less(t, slab.next, 2*size)
}

// A device that stores a range piece by piece backwards is not slow: the range
// gets bytes of its own.
func TestScatteredStoresOpenTheRange(t *testing.T) {
	var slab Slab
	for _, n := range []int{8, PageLeast} {
		a := unwatched()
		defer a.Release()
		a.From(&slab)
		const pieces = 4 * partsMoved
		addr := a.Alloc(pieces * PageBytes)
		for i := range pieces {
			require.True(t, a.Deposit(addr+uint64(pieces-1-i)*PageBytes, make([]byte, n)))
		}
		require.False(t, a.Apart(addr, 1))
	}
}

// Small messages in a large buffer take a few pages, not the buffer.
func TestSmallPiecesLieTogether(t *testing.T) {
	var slab Slab
	a := unwatched()
	defer a.Release()
	a.From(&slab)
	const size = 256 << 10
	addr := a.Alloc(size)
	for at := range uint64(100) {
		require.True(t, a.Deposit(addr+8*at, []byte{1, 2, 3, 4, 5, 6, 7, 8}))
	}
	require.True(t, a.Apart(addr, size))
	require.Less(t, slab.next, size)
	b := make([]byte, 9)
	require.Equal(t, 9, a.Load(addr+8*99, b))
	require.Equal(t, []byte{1, 2, 3, 4, 5, 6, 7, 8, 0}, b)
}

// A device that reads takes pages. They keep their bytes while it has them,
// whatever happens to the memory, and go to the memory of the target without a
// copy if both are of one slab.
func TestTakenPagesKeepTheirBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slabs := make([]Slab, 2)
		const n = 8 * PageLeast
		source, target := unwatched(), unwatched()
		defer source.Release()
		defer target.Release()
		source.From(&slabs[0])
		target.From(&slabs[rapid.IntRange(0, 1).Draw(t, "slab of the target")])
		from, to := source.Alloc(n), target.Alloc(n)
		type taken struct {
			page *Page
			want []byte
		}
		var all []taken
		for i := range rapid.IntRange(1, 30).Draw(t, "steps") {
			at := uint64(rapid.IntRange(0, 13).Draw(t, "at") * PageLeast / 2)
			switch rapid.SampledFrom([]string{"write", "take", "send", "discard", "open"}).Draw(t, "what") {
			case "write":
				require.True(t, source.Deposit(from+at, bytes.Repeat([]byte{byte(i)}, PageLeast)))
			case "take":
				p, ok := source.Take(from+at, PageLeast)
				require.True(t, ok)
				want := make([]byte, PageLeast)
				source.Load(from+at, want)
				all = append(all, taken{p, want})
			case "send":
				if len(all) > 0 {
					x := all[len(all)-1]
					target.Offer(x.page)
					require.True(t, target.Deposit(to+at, x.page.Bytes()))
					got := make([]byte, PageLeast)
					target.Load(to+at, got)
					require.Equal(t, x.want, got)
				}
			case "discard":
				source.Discard(from+at, PageLeast)
			case "open":
				if rapid.IntRange(0, 4).Draw(t, "now") == 0 {
					b, _ := source.Bytes(from, n)
					b[at]++
				}
			}
			for _, x := range all {
				require.Equal(t, x.want, x.page.Bytes())
			}
		}
		_, ok := source.Take(from+n-1, 2)
		require.False(t, ok)
		for _, x := range all {
			slabs[0].Drop(x.page)
		}
		for i, a := range []*AddressSpace{source, target} {
			a.Bytes([]uint64{from, to}[i], n) // gives back the pages of the range
		}
		require.Zero(t, slabs[0].live.Live()+slabs[1].live.Live())
	})
}

// Memory, frame and memory: one page of the slab.
func TestOfferedPagesAreNotCopied(t *testing.T) {
	var slab Slab
	a, b := unwatched(), unwatched()
	defer a.Release()
	defer b.Release()
	a.From(&slab)
	b.From(&slab)
	from, to := a.Alloc(8*PageLeast), b.Alloc(8*PageLeast)
	require.True(t, a.Deposit(from, bytes.Repeat([]byte{7}, PageLeast)))
	p, _ := a.Take(from, PageLeast)
	clear(slab.recent) // others have come since
	b.Offer(p)
	require.True(t, b.Deposit(to, p.Bytes()))
	same, _ := b.Part(to, PageLeast)
	require.Same(t, &p.Bytes()[0], &same[0])
	b.Discard(to, PageLeast)
	a.Discard(from, PageLeast)
	slab.Drop(p)
	if !poison.On {
		require.Same(t, p, slab.Keep(make([]byte, PageLeast)), "the page is free again")
	}
}
