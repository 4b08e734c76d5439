package host_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/host"
)

// outside is memory that is not the simulator's.
type outside struct {
	bytes  []byte
	end    uint64 // of what is there
	loads  int
	stores int
}

func (o *outside) Load(off uint64, b []byte) bool {
	if off+uint64(len(b)) > o.end {
		return false
	}
	o.loads++
	copy(b, o.bytes[off:])
	return true
}

func (o *outside) Store(off uint64, b []byte) bool {
	if off+uint64(len(b)) > o.end {
		return false
	}
	o.stores++
	copy(o.bytes[off:], b)
	return true
}

// Adopted memory has the bytes that are elsewhere at the instant of each access,
// whoever changed them: a device, a program by a slice that it holds, or their
// owner while nobody holds one.
func TestAdoptedMemoryIsElsewhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 512
		o := &outside{bytes: make([]byte, size), end: size}
		a := host.NewAddressSpace(nil)
		own := a.Alloc(64)
		base, err := host.Adopt(a, size, o)
		require.NoError(t, err)
		require.Greater(t, a.Alloc(64), base+size-1)
		want := make([]byte, size)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			at := rapid.Uint64Range(0, size-1).Draw(t, "at")
			n := rapid.Uint64Range(1, size-at).Draw(t, "n")
			fill := bytes.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, int(n))
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				require.True(t, a.Deposit(base+at, fill))
				copy(want[at:], fill)
			case 1:
				b, ok := a.Bytes(base+at, n)
				require.True(t, ok)
				copy(b, fill)
				copy(want[at:], fill)
			case 2:
				b, ok := a.Part(base+at, n)
				require.True(t, ok)
				require.Equal(t, want[at:at+uint64(len(b))], b)
			case 3:
				got := make([]byte, n)
				require.Equal(t, int(n), a.Load(base+at, got))
				require.Equal(t, want[at:at+n], got)
			case 4:
				loads := o.loads
				require.True(t, host.Replace(a, base+at, fill))
				require.Equal(t, loads, o.loads)
				require.False(t, host.Replace(a, own, fill[:1]))
				copy(want[at:], fill)
			case 5:
				a.Settle()
				copy(o.bytes[at:], fill)
				copy(want[at:], fill)
			}
		}
		a.Settle()
		require.Equal(t, want, o.bytes)
		b, ok := a.Bytes(own, 64)
		require.True(t, ok)
		require.Equal(t, make([]byte, 64), b)
	})
}

// What is gone elsewhere is no memory any more, and what nobody changes is not
// stored.
func TestAdoptedMemoryThatIsGone(t *testing.T) {
	o := &outside{bytes: make([]byte, 64), end: 32}
	a := host.NewAddressSpace(nil)
	base, err := host.Adopt(a, 64, o)
	require.NoError(t, err)
	require.True(t, a.Has(base, 64))
	require.False(t, a.Has(base, 65))
	require.False(t, a.Deposit(base+16, make([]byte, 32)))
	_, ok := a.Part(base+16, 32)
	require.False(t, ok)
	_, ok = a.Bytes(base+32, 1)
	require.False(t, ok)
	_, ok = a.Bytes(base, 32)
	require.True(t, ok)
	a.Settle()
	require.Zero(t, o.stores)
}

// Pages of adopted memory are absent until they are touched, and again after
// they were given back. The bytes are the owner's, whatever happens to pages.
func TestAdoptedMemoryHasPages(t *testing.T) {
	program(t, func(w *world) {
		o := &outside{bytes: make([]byte, 2*page), end: 2 * page}
		base, err := host.Adopt(w.p.Space(), 2*page, o)
		require.NoError(t, err)
		require.False(t, w.walk(base, false))
		require.NoError(t, w.p.Space().Prepare(base+page, 8))
		require.False(t, w.walk(base, false))
		require.True(t, w.walk(base+page, true))
		require.True(t, w.p.Space().Deposit(base+page, []byte("bytes")))
		require.NoError(t, w.p.Discard(nil, base+page, page))
		require.False(t, w.walk(base+page, false))
		w.touch(base, 2*page, true)
		require.True(t, w.walk(base, true))
		require.Equal(t, "bytes", string(o.bytes[page:][:5]))
		bounds := func(addr uint64) [2]uint64 {
			start, end, ok := w.p.Mapping(addr)
			require.True(t, ok)
			return [2]uint64{start, end}
		}
		require.Equal(t, [2]uint64{base, base + 2*page}, bounds(base))
		w.p.Bound(base+page, base+2*page)
		require.Equal(t, [2]uint64{base, base + page}, bounds(base))
		require.Equal(t, [2]uint64{base + page, base + 2*page}, bounds(base+page))
		w.p.Bound(base, base+2*page)
		require.Equal(t, [2]uint64{base, base + 2*page}, bounds(base+page))
	})
}
