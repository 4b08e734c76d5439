package host

import (
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/sim"
)

// Bounds of a Spec: far beyond any node, and such that no sum of times overflows.
const (
	maxTime  = sim.Second
	maxCores = 4096
	maxLine  = 1 << 16
	maxChunk = 1 << 20
)

// Spec describes the processor and memory of a node. Every value comes from a profile.
type Spec struct {
	// Cores is the number of processor cores, 1 to 4096.
	Cores int `yaml:"cores"`
	// Poll is the time of one look at a completion in memory that the NIC has just written, at most 1 s.
	Poll sim.Time `yaml:"poll"`
	// Match is the time a process takes to match a message that has arrived against its own list of receives, at most 1 s.
	Match sim.Time `yaml:"match"`
	// MemoryLatency is the time of one access to DRAM, 1 ps to 1 s.
	MemoryLatency sim.Time `yaml:"memory_latency"`
	// MemoryBandwidth is what all cores and, on an integrated NIC, its DMA share. A byte takes at most 1 ms.
	MemoryBandwidth sim.Rate `yaml:"memory_bandwidth"`
	// LineBytes is the size of a cache line, 1 to 65,536.
	LineBytes int `yaml:"line_bytes" unit:"B"`
	// CoreBandwidth is how fast one core can read and write memory in sequence: it has only a few cache lines under way. A byte takes at
	// most 1 ms.
	CoreBandwidth sim.Rate `yaml:"core_bandwidth"`
	// CopyChunk is the piece in which a core's stream takes the shared memory bandwidth, bytes: a line to 1 MiB.
	CopyChunk int `yaml:"copy_chunk" unit:"B"`
}

// Validate checks ranges and returns every violation, each with the field's path below prefix.
func (s *Spec) Validate(prefix string) error {
	var errs []error
	wrong := func(field string, v, least, most any) {
		errs = append(errs, fmt.Errorf("%s.%s: %v, expected %v to %v", prefix, field, v, least, most))
	}
	count := func(field string, v, least, most int) {
		if v < least || v > most {
			wrong(field, v, least, most)
		}
	}
	time := func(field string, v, least sim.Time) {
		if v < least || v > maxTime {
			wrong(field, v, least, maxTime)
		}
	}
	count("cores", s.Cores, 1, maxCores)
	time("poll", s.Poll, 0)
	time("match", s.Match, 0)
	time("memory_latency", s.MemoryLatency, 1)
	if err := s.MemoryBandwidth.Check(); err != nil {
		errs = append(errs, fmt.Errorf("%s.memory_bandwidth: %w", prefix, err))
	}
	count("line_bytes", s.LineBytes, 1, maxLine)
	if err := s.CoreBandwidth.Check(); err != nil {
		errs = append(errs, fmt.Errorf("%s.core_bandwidth: %w", prefix, err))
	}
	count("copy_chunk", s.CopyChunk, max(1, s.LineBytes), maxChunk)
	return errors.Join(errs...)
}

// StreamTime is how long one core needs at least to read and write n bytes in sequence: whole lines at CoreBandwidth.
func (s *Spec) StreamTime(n int64) sim.Time {
	line := int64(s.LineBytes)
	return s.CoreBandwidth.Time((n + line - 1) / line * line)
}
