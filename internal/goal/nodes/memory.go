package nodes

import (
	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/runtime"
)

// rankFootprint is what a rank takes of the machine's memory besides its
// process and its messages, bytes: measured as runtime.Footprint.
const rankFootprint = 90 << 10

// Memory estimates the memory of the machine that a run of the schedule takes,
// bytes: nodes and ranks, messages that no receive expects, and those that can
// be on their way at the beginning. What comes later is not known: it may be
// more.
func Memory(s *goal.Schedule, cfg Config) int64 {
	total := footprint(cfg, s.Ranks()) + int64(s.Len())*goal.OperationFootprint
	for rank, bytes := range incoming(s, cfg.MPI) {
		total += min(bytes, int64(cfg.MPI.Buffers)*int64(cfg.MPI.BufferBytes)) + atOnce(s.Rank(rank))
	}
	return total
}

// MostMemory is Memory of any schedule of so many ranks and operations whose
// messages fit into the buffers.
func MostMemory(cfg Config, ranks, operations int) int64 {
	return footprint(cfg, ranks) + int64(operations)*goal.OperationFootprint + int64(ranks)*int64(cfg.MPI.Buffers)*int64(cfg.MPI.BufferBytes)
}

func footprint(cfg Config, ranks int) int64 {
	instances := 0
	if cfg.MPI.Matching == mpi.Offload {
		instances = ranks
	}
	return runtime.Footprint(cfg.Profile, cfg.MPI.Nodes(ranks), ranks, instances) + int64(ranks)*rankFootprint
}

// atOnce is the memory of the messages that wait for nothing.
func atOnce(ops goal.Rank) (bytes int64) {
	for i := range ops.Len() {
		if op := ops.Op(i); op.Kind != goal.Calc && ops.Deps(i) == 0 {
			bytes += 1 << classOf(int(op.Size))
		}
	}
	return bytes
}
