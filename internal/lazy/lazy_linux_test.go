package lazy

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// What nobody touches takes nothing: 64 GiB of it do.
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
