package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// BenchmarkCalibration measures the machine, not the simulator: it sorts 65,536
// numbers, with branches that nobody can predict and more memory than the first
// cache has. .ci/speed.txt promises times in relation to it.
func BenchmarkCalibration(b *testing.B) {
	draw := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	mixed := make([]uint64, 1<<16)
	for i := range mixed {
		mixed[i] = draw.Uint64()
	}
	sorted := make([]uint64, len(mixed))
	for b.Loop() {
		copy(sorted, mixed)
		slices.Sort(sorted)
	}
}
