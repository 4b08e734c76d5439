package nodes

import (
	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/runtime"
)

// rankFootprint is how much of the machine's memory a rank takes besides its
// node and its messages, bytes: measured as runtime.Footprint.
const rankFootprint = 180 << 10

// threadFootprint is the same for each core of a rank that uses several.
const threadFootprint = 4 << 10

// Memory estimates the memory of the machine that a run of the schedule takes,
// bytes: nodes, ranks, and the messages whose operations depend on no other.
// Later messages are not predictable, so a run may take more.
func Memory(s *goal.Schedule, cfg Config) int64 {
	least := footprint(cfg, s.Ranks(), len(nics(s)), s.Len()) + threadFootprint*threads(s)
	total := least
	if cfg.Empty {
		return total
	}
	for _, c := range s.Collectives() {
		if cfg.Calls[c.Name] { // one under way, with its result
			parts := int64(2)
			if c.Kind == goal.AllGather {
				parts = int64(1 + s.Ranks())
			}
			total = max(total, least+parts*int64(c.Bytes)*int64(s.Ranks()))
		}
	}
	// a message has its bytes once
	shared := int(cfg.Profile.Fabric.MTU) >= host.PageLeast && !cfg.Profile.OS.On()
	for _, ops := range s.All() {
		for i := range ops.Len() {
			if op := ops.Op(i); op.Kind != goal.Calc && ops.Deps(i) == 0 && !(shared && op.Kind == goal.Recv) {
				total += int64(op.Size)
			}
		}
	}
	return total
}

// MostMemory bounds Memory for any schedule with this many ranks and
// operations, if its messages fit into the buffers.
func MostMemory(cfg Config, ranks, operations int) int64 {
	return footprint(cfg, ranks, 1, operations) + int64(ranks)*int64(cfg.MPI.Buffers)*int64(cfg.MPI.BufferBytes)
}

func footprint(cfg Config, ranks, nics, operations int) int64 {
	return int64(nics)*(runtime.Footprint(cfg.Profile, cfg.MPI.Nodes(ranks))+int64(ranks)*rankFootprint) + int64(operations)*goal.OperationFootprint
}
