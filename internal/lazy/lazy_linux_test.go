package lazy

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/memory"
)

// Untouched memory takes nothing: not even 64 GiB.
func TestUntouchedIsFree(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b := Bytes(1 << 36)
	b[1<<35] = 5
	require.Zero(t, b[1<<35+1])
	runtime.ReadMemStats(&after)
	require.Less(t, after.HeapAlloc, before.HeapAlloc+1<<20)
	Free(b)
	Free(Bytes(10))
}

// After Clear, written bytes are zero, except on pages with bytes outside the
// part.
func TestCleared(t *testing.T) {
	b := Bytes(1 << 22)
	for i := range b {
		b[i] = 1
	}
	Clear(b[100 : 1<<21])
	require.Equal(t, []byte{1, 1}, []byte{b[99], b[1<<21]})
	require.Equal(t, []byte{0, 0}, []byte{b[1<<13], b[1<<21-1]})
	Clear(b[1<<21 : 1<<21+100])
	require.EqualValues(t, 1, b[1<<21])
	Free(b)
}

// What Prepare adds to the heap is free, and takes nothing until it is used.
func TestPreparedIsFree(t *testing.T) {
	const n = 1 << 29
	taken := memory.Resident()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	Prepare(n)
	Prepare(n / 2) // it is there
	runtime.ReadMemStats(&after)
	if len(memory.Bounds()) > 0 {
		require.Less(t, after.HeapSys, before.HeapSys+n)
		return
	}
	require.Less(t, memory.Resident(), taken+n/8)
	require.Greater(t, after.HeapIdle, before.HeapIdle+n/2)
	require.Less(t, after.HeapSys, before.HeapSys+n+n/4)
}
