package memory_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/memory"
)

var used []byte

// A program that allocates 400 MiB, and uses no more than one at a time, is
// interrupted four times, not a hundred times.
func TestCollectLate(t *testing.T) {
	memory.CollectLate()
	runtime.GC() // earlier garbage does not count
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 400 {
		used = make([]byte, 1<<20)
	}
	runtime.ReadMemStats(&after)
	used = nil
	if os.Getenv("GOGC") == "" {
		require.LessOrEqual(t, after.NumGC-before.NumGC, uint32(5))
	}
}
