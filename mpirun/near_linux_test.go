package mpirun

import (
	"os"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Copies of a process's memory are what the memory would be without them: reads
// see what was written, and after the simulator's turn the process does.
func TestCopiesAreTheMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 3 * most
		there := make([]byte, size)
		want := make([]byte, size)
		base := uint64(uintptr(unsafe.Pointer(&there[0])))
		l := link{pid: int32(os.Getpid())}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			at := rapid.Uint64Range(0, size-1).Draw(t, "at")
			n := min(rapid.SampledFrom([]uint64{1, 100, 4096, most, size}).Draw(t, "n"), size-at)
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				l.uses(base+at, n)
			case 1, 2: // one packet after the other
				step := max(n/8, 1)
				for ; n >= step; at, n = at+step, n-step {
					got := make([]byte, step)
					require.NoError(t, l.read(base+at, got))
					require.Equal(t, want[at:at+step], got)
				}
			case 3, 4:
				step := max(n/8, 1)
				for ; n >= step; at, n = at+step, n-step {
					b := slices.Repeat([]byte{rapid.Byte().Draw(t, "byte")}, int(step))
					require.NoError(t, l.write(base+at, b))
					copy(want[at:], b)
				}
			case 5:
				require.NoError(t, l.turns())
				require.Equal(t, want, there)
				for i := range n {
					there[at+i] ^= 0x55
					want[at+i] ^= 0x55
				}
			}
		}
		require.NoError(t, l.turns())
		require.Equal(t, want, there)
	})
}

// A buffer whose end is gone is read as far as it is there.
func TestBuffersThatEnd(t *testing.T) {
	b := make([]byte, 8)
	copy(b, "there it")
	at := uint64(uintptr(unsafe.Pointer(&b[0])))
	l := link{pid: int32(os.Getpid())}
	l.uses(at, 1<<46)
	got := make([]byte, 8)
	require.NoError(t, l.read(at, got))
	require.Equal(t, "there it", string(got))
}
