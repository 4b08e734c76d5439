package host

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// Spec describes the processor and memory of a node. Every value comes from a profile.
type Spec struct {
	// Cores is the number of processor cores, at least 1.
	Cores int `yaml:"cores"`
	// Poll is the time of one look at a completion in memory that the NIC has just written.
	Poll sim.Time `yaml:"poll"`
	// Match is the time a process takes to match a message that has arrived against its own list of receives.
	Match sim.Time `yaml:"match"`
	// MemoryLatency is the time of one access to DRAM.
	MemoryLatency sim.Time `yaml:"memory_latency"`
	// MemoryBandwidth is what all cores and, on an integrated NIC, its DMA share.
	MemoryBandwidth sim.Rate `yaml:"memory_bandwidth"`
	// LineBytes is the size of a cache line.
	LineBytes int `yaml:"line_bytes"`
	// OutstandingMisses is how many cache lines one core can have under way; with MemoryLatency it bounds what one core
	// can stream (Little's law).
	OutstandingMisses int `yaml:"outstanding_misses"`
	// CopyChunk is the piece in which a core's stream takes the shared memory bandwidth, bytes.
	CopyChunk int `yaml:"copy_chunk"`
}

// Validate checks ranges and returns every violation, each with the field's path below prefix.
func (s *Spec) Validate(prefix string) error {
	var errs []error
	atLeast := func(field string, v, least int64) {
		if v < least {
			errs = append(errs, fmt.Errorf("%s.%s: %d, expected at least %d", prefix, field, v, least))
		}
	}
	atLeast("cores", int64(s.Cores), 1)
	atLeast("poll", int64(s.Poll), 0)
	atLeast("match", int64(s.Match), 0)
	atLeast("memory_latency", int64(s.MemoryLatency), 1)
	atLeast("line_bytes", int64(s.LineBytes), 1)
	atLeast("outstanding_misses", int64(s.OutstandingMisses), 1)
	atLeast("copy_chunk", int64(s.CopyChunk), int64(max(1, s.LineBytes)))
	return errors.Join(errs...)
}

// StreamTime is how long one core needs at least to read and write n bytes in sequence: at most OutstandingMisses lines
// are under way, each for MemoryLatency.
func (s *Spec) StreamTime(n int64) sim.Time {
	lines := (n + int64(s.LineBytes) - 1) / int64(s.LineBytes)
	return sim.Time(lines) * s.MemoryLatency / sim.Time(s.OutstandingMisses)
}
