package goal

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// To read and to run a schedule takes less memory than its file has: 39 bytes
// for an operation and 4 for a dependency, which LogGOPSim maps.
func TestMemoryOfOperations(t *testing.T) {
	for pattern, p := range map[string]GenParams{
		"dissemination":     {Ranks: 1 << 13, Size: 8},
		"alltoall-pairwise": {Ranks: 300, Size: 8},
		"allreduce-recdoub": {Ranks: 1 << 12, Size: 8, CalcNS: 100},
		"halo3d":            {Ranks: 1000, Size: 70000, CalcNS: 1000, Iterations: 20},
	} {
		file := binaryOf(t, generate(t, pattern, p))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := ReadBinary(bytes.NewReader(file), ReadOptions{})
		require.NoError(t, err)
		_, err = NewSimulator(s).Run(DefaultParams())
		require.NoError(t, err)
		runtime.ReadMemStats(&after)
		took := int64(after.TotalAlloc - before.TotalAlloc)
		t.Logf("%s: %.1f bytes for each operation, in the file %.1f", pattern, float64(took)/float64(s.Len()), float64(len(file))/float64(s.Len()))
		require.Less(t, took, int64(len(file)), pattern)
	}
}
