package host

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/sim"
)

// Bounds of a Spec: far beyond any real node, but no sum of times overflows.
const (
	maxTime  = sim.Second // bound of every latency
	maxCores = 4096
	maxLine  = 1 << 16
	maxChunk = 1 << 20
)

// Spec describes the processor and memory of a node. It is the host section of
// a profile, which also has the source of each value. There are no defaults.
type Spec struct {
	// Cores is the number of processor cores, 1 to 4096.
	Cores int `yaml:"cores"`
	// Poll is the time to look at a completion in memory that the NIC has just
	// written, at most 1 s.
	Poll sim.Time `yaml:"poll"`
	// PollCached is the same for a completion that the interface has written into
	// the core's cache, as ExaNeSt's mailbox does (TR-488 §4.4), at most 1 s.
	// Absent: no interface does, and such a look takes Poll.
	PollCached sim.Time `yaml:"poll_cached,omitempty"`
	// Message is the time of ExaNet-MPI's code per message and side, at most 1 s.
	// It excludes work that other fields charge: stores, looks, list elements.
	// Absent: 0. MPI over Portals does not charge it.
	Message sim.Time `yaml:"message,omitempty"`
	// Match is the time of a process to match an arrived message against its own
	// list of receives, at most 1 s.
	Match sim.Time `yaml:"match"`
	// MemoryLatency is the time of one access to DRAM, 1 ps to 1 s.
	MemoryLatency sim.Time `yaml:"memory_latency"`
	// MemoryBandwidth is shared by all cores and, on an integrated NIC, its DMA. A
	// byte takes at most 1 ms.
	MemoryBandwidth sim.Rate `yaml:"memory_bandwidth"`
	// LineBytes is the size of a cache line, 1 to 65,536.
	LineBytes int `yaml:"line_bytes" unit:"B"`
	// CoreBandwidth is the rate at which one core reads and writes memory
	// sequentially; few cache lines can be in flight at once. A byte takes at most
	// 1 ms.
	CoreBandwidth sim.Rate `yaml:"core_bandwidth"`
	// CoresBandwidth is what all cores together move at most, as STREAM measures
	// it, where devices may use the rest of MemoryBandwidth. Absent: all of it. A
	// byte takes at most 1 ms. TR-488 §6.2: one memory channel serves the four
	// cores of an MPSoC, and is the reason of its efficiencies.
	CoresBandwidth sim.Rate `yaml:"cores_bandwidth,omitempty"`
	// CoresPenalty is the share by which the bytes of a computation take longer
	// for each other core that computes at the same time, 0 to 1: rows and banks
	// of memory, and a cache in common. It is for computations of applications,
	// not for copies. Absent: 0. Source: none, ours.
	CoresPenalty float64 `yaml:"cores_penalty,omitempty"`
	// Compute is how operations and bytes of a computation share a core's time:
	// ComputeOverlap or ComputeSum. Absent: ComputeOverlap, the longer of both.
	// Source: none, ours.
	Compute string `yaml:"compute,omitempty"`
	// Jitter is the share by which a computation of an application takes longer
	// at most, drawn evenly from the seed for each rank and step, 0 to 1: other
	// processes, interrupts and memory refresh. Absent: 0. Source: none, ours.
	Jitter float64 `yaml:"jitter,omitempty"`
	// Library has what TR-488 leaves open about ExaNet-MPI.
	Library LibrarySpec `yaml:"library,omitempty"`
	// CopyChunk is the piece in which a core's stream uses the shared memory
	// bandwidth, in bytes: a line to 1 MiB.
	CopyChunk int `yaml:"copy_chunk" unit:"B"`
	// StridedBandwidth is CoreBandwidth for loops over pieces that lie apart, such
	// as the elements of an MPI vector: prefetchers follow them less. A byte takes
	// at most 1 ms. Absent: CoreBandwidth.
	StridedBandwidth sim.Rate `yaml:"strided_bandwidth,omitempty"`
	// Cache is the size of a cache that all cores of the node share: a line to 1
	// GiB. It holds the lines that cores used last, and copies, packing and
	// reductions of lines that it holds take CacheBandwidth instead of memory.
	// Absent or 0: there is none, and every copy takes memory.
	Cache sim.Size `yaml:"cache,omitempty"`
	// CacheBandwidth is the rate at which one core reads and writes lines that the
	// cache holds. A byte takes at most 1 ms. It is required with Cache, and
	// refused without.
	CacheBandwidth sim.Rate `yaml:"cache_bandwidth,omitempty"`
	// CacheDeposits is where writes of devices go: DepositsMemory or
	// DepositsCache. Either takes the bus as long. Absent: DepositsMemory. It is
	// refused without Cache.
	CacheDeposits string `yaml:"cache_deposits,omitempty"`
}

// Values of Spec.CacheDeposits.
const (
	DepositsMemory = "memory" // the cache gives up the lines
	DepositsCache  = "cache"  // it holds them from then on (Intel's DDIO)
)

// maxCache is the largest Spec.Cache.
const maxCache = 1 << 30

// Values of Spec.Compute.
const (
	ComputeOverlap = "overlap" // memory works while the core does
	ComputeSum     = "sum"     // the core waits for memory, as an in-order core does
)

// Validate returns every violation, each with the field's name in a profile.
func (s *Spec) Validate() error {
	var wrong fields.Errors
	fields.Between(&wrong, "cores", s.Cores, 1, maxCores)
	fields.Between(&wrong, "poll", s.Poll, 0, maxTime)
	fields.Between(&wrong, "poll_cached", s.PollCached, 0, maxTime)
	fields.Between(&wrong, "message", s.Message, 0, maxTime)
	fields.Between(&wrong, "match", s.Match, 0, maxTime)
	fields.Between(&wrong, "memory_latency", s.MemoryLatency, 1, maxTime)
	wrong.Add("memory_bandwidth", s.MemoryBandwidth.Check())
	fields.Between(&wrong, "line_bytes", s.LineBytes, 1, maxLine)
	wrong.Add("core_bandwidth", s.CoreBandwidth.Check())
	if !s.CoresBandwidth.IsZero() {
		wrong.Add("cores_bandwidth", s.CoresBandwidth.Check())
	}
	share(&wrong, "cores_penalty", s.CoresPenalty)
	if s.Compute != "" {
		wrong.OneOf("compute", s.Compute, ComputeOverlap, ComputeSum)
	}
	share(&wrong, "jitter", s.Jitter)
	s.Library.validate(&wrong)
	fields.Between(&wrong, "copy_chunk", s.CopyChunk, max(1, s.LineBytes), maxChunk)
	wrong.Add("strided_bandwidth", s.StridedBandwidth.Check())
	s.validateCache(&wrong)
	return wrong.Join()
}

// validateCache adds the violations of the fields of the cache.
func (s *Spec) validateCache(wrong *fields.Errors) {
	wrong.Add("cache_bandwidth", s.CacheBandwidth.Check())
	if s.CacheDeposits != "" {
		wrong.OneOf("cache_deposits", s.CacheDeposits, DepositsMemory, DepositsCache)
	}
	switch {
	case s.Cache != 0:
		fields.Between(wrong, "cache", s.Cache, sim.Size(max(1, s.LineBytes)), maxCache)
		if s.CacheBandwidth.IsZero() {
			wrong.Add("cache_bandwidth", errors.New("is 0, expected a rate, because there is a cache"))
		}
	case !s.CacheBandwidth.IsZero() || s.CacheDeposits != "":
		wrong.Add("cache", errors.New("is 0, but cache_bandwidth or cache_deposits is given: they have no effect"))
	}
}

// share checks that a field is from 0 to 1.
func share(wrong *fields.Errors, field string, x float64) {
	if !(x >= 0 && x <= 1) { // NaN, too
		wrong.Add(field, fmt.Errorf("%v, expected 0 to 1", x))
	}
}

// CoresRate returns the rate of memory that all cores together have.
func (s *Spec) CoresRate() sim.Rate {
	if s.CoresBandwidth.IsZero() {
		return s.MemoryBandwidth
	}
	return s.CoresBandwidth
}

// LookCached returns the time of a look at data that the interface has written
// into the core's cache, or into memory if it cannot.
func (s *Spec) LookCached() sim.Time { return cmp.Or(s.PollCached, s.Poll) }

// StreamTime returns the least time in which one core reads and writes n bytes
// sequentially: whole lines at CoreBandwidth.
func (s *Spec) StreamTime(n int64) sim.Time { return s.linesTime(n, s.CoreBandwidth) }

// linesTime is the time for n bytes in whole lines at a rate.
func (s *Spec) linesTime(n int64, rate sim.Rate) sim.Time {
	line := int64(s.LineBytes)
	return rate.Time((n + line - 1) / line * line)
}
