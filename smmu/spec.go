package smmu

import (
	"fmt"
	"math/bits"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/sim"
)

// Bounds of a Spec. They come from the architecture or are far beyond any
// device, and no sum of times overflows.
const (
	maxTime        = sim.Second
	maxBanks       = 128     // SMMUv2
	maxL1          = 1 << 12 // entries
	maxL2          = 1 << 20
	maxWays        = 16
	maxWalks       = 256
	maxOutstanding = 1 << 16
	maxWalkBytes   = 4096
	maxPrefetch    = 7 // the descriptors behind the first one in 64 bytes
)

// Spec describes the SMMU of a node. It is the smmu section of a profile, which
// gives the source of each value; there are no defaults. Sources are PART'22
// (P) and Psistakis'19 (T). Where they are silent, docs/memory.md names the
// choices.
type Spec struct {
	// Kind is MMU500, or None; an empty text is None. With None devices reach
	// memory without translation, and the other fields may be 0.
	Kind string `yaml:"kind"`
	// Banks is the number of context banks, 1 to 128: devices can reach the memory
	// of this number of processes at a time. T: 16.
	Banks int `yaml:"banks"`
	// AddressBits is the number of bits of a virtual address: 39 (three levels of
	// tables) or 48 (four). An access beyond them faults.
	AddressBits int `yaml:"address_bits"`
	// L1Entries is the number of entries of the fully associative first TLB, a
	// power of two from 1 to 4096. P: up to 128.
	L1Entries int `yaml:"l1_entries"`
	// L1Latency is the time of a look-up in it, at most 1 s. With 0 a hit answers
	// at once: its clocks are part of the bus's latency.
	L1Latency sim.Time `yaml:"l1_latency"`
	// L2Entries is the number of entries of the second TLB, a power of two from
	// L2Ways to 2^20. P: up to 2048.
	L2Entries int `yaml:"l2_entries"`
	// L2Ways is its associativity, a power of two from 1 to 16. P: 4.
	L2Ways int `yaml:"l2_ways"`
	// L2Latency is the time of a look-up in it, from the first TLB and back, at
	// most 1 s.
	L2Latency sim.Time `yaml:"l2_latency"`
	// WalkCache is the number of entries of the cache of pointers to level 3
	// tables: 0, or a power of two from WalkCacheWays to 2^20.
	WalkCache int `yaml:"walk_cache"`
	// WalkCacheWays is its associativity, a power of two from 1 to 16.
	WalkCacheWays int `yaml:"walk_cache_ways"`
	// Prefetch is how many descriptors behind a page's own go into the second TLB
	// with it, if they are in the same 64 bytes: 0 to 7.
	Prefetch int `yaml:"prefetch"`
	// Walks is how many walks of tables run at a time, 1 to 256. P: 16; T: 8 or
	// 16.
	Walks int `yaml:"walks"`
	// WalksFull is how a miss waits when all walks are in use: Block or Queue.
	WalksFull string `yaml:"walks_full"`
	// WalkBytes is how much a walk reads from memory for one descriptor, 8 to 4096
	// bytes.
	WalkBytes int `yaml:"walk_bytes" unit:"B"`
	// WalkStep is the walker's own time for each level, in addition to the
	// memory's, at most 1 s.
	WalkStep sim.Time `yaml:"walk_step"`
	// Channels is 2 if reads and writes wait in separate channels (T), 1 if they
	// wait together (P).
	Channels int `yaml:"channels"`
	// Outstanding is how many transactions of a channel may wait for their
	// translation or be stalled, 1 to 65,536. A channel that is full takes no
	// more. P, T: 256.
	Outstanding int `yaml:"outstanding"`
	// OnFault is what a bank does with a transaction that faults, Terminate or
	// Stall, until its driver changes it: SCTLR.CFCFG.
	OnFault string `yaml:"on_fault"`
	// HitUnderFault makes a bank go on with other transactions after a fault,
	// until its driver changes it: SCTLR.HUPCF. P: true.
	HitUnderFault bool `yaml:"hit_under_fault"`
	// StallLimit is how many faulting transactions a bank stalls before it
	// processes no more, 1 to 65,536. T: implementation defined.
	StallLimit int `yaml:"stall_limit"`
	// Stale is the treatment of a translation in a TLB or the walk cache that
	// differs from the tables. Ignore uses it, like the device. Poison ends the
	// access with Stale and calls the Watcher. Tables and their invalidation must
	// then change at one time, because the check compares with the tables.
	Stale string `yaml:"stale"`
}

// Values of Spec.Kind.
const (
	None   = "none"
	MMU500 = "mmu-500"
)

// Values of Spec.WalksFull.
const (
	Block = "block" // the channel takes no more until the miss has a walk (T)
	Queue = "queue" // only the miss waits
)

// Values of Spec.OnFault.
const (
	Terminate = "terminate"
	Stall     = "stall"
)

// Values of Spec.Stale.
const (
	Ignore = "ignore"
	Poison = "poison"
)

// On reports whether there is an SMMU.
func (s *Spec) On() bool { return s.Kind != "" && s.Kind != None }

// Validate returns every violation, each with the field's name in a profile.
func (s *Spec) Validate() error {
	var wrong fields.Errors
	if s.Kind != "" {
		wrong.OneOf("kind", s.Kind, None, MMU500)
	}
	on := s.On()
	least := func(v int) int { // without an SMMU a field may be absent
		if on {
			return v
		}
		return 0
	}
	one := least(1)
	fields.Between(&wrong, "banks", s.Banks, one, maxBanks)
	fields.Between(&wrong, "address_bits", s.AddressBits, least(bits39), bits48)
	if on && s.AddressBits > bits39 && s.AddressBits < bits48 {
		wrong.Add("address_bits", fmt.Errorf("%d, expected %d or %d", s.AddressBits, bits39, bits48))
	}
	power(&wrong, "l1_entries", s.L1Entries, one, maxL1)
	fields.Between(&wrong, "l1_latency", s.L1Latency, 0, maxTime)
	power(&wrong, "l2_ways", s.L2Ways, one, maxWays)
	power(&wrong, "l2_entries", s.L2Entries, least(max(1, min(s.L2Ways, maxWays))), maxL2)
	fields.Between(&wrong, "l2_latency", s.L2Latency, 0, maxTime)
	power(&wrong, "walk_cache_ways", s.WalkCacheWays, one, maxWays)
	if s.WalkCache != 0 {
		power(&wrong, "walk_cache", s.WalkCache, max(1, min(s.WalkCacheWays, maxWays)), maxL2)
	}
	fields.Between(&wrong, "prefetch", s.Prefetch, 0, maxPrefetch)
	fields.Between(&wrong, "walks", s.Walks, one, maxWalks)
	fields.Between(&wrong, "walk_bytes", s.WalkBytes, least(descriptor), maxWalkBytes)
	fields.Between(&wrong, "walk_step", s.WalkStep, 0, maxTime)
	fields.Between(&wrong, "channels", s.Channels, one, 2)
	fields.Between(&wrong, "outstanding", s.Outstanding, one, maxOutstanding)
	fields.Between(&wrong, "stall_limit", s.StallLimit, one, maxOutstanding)
	for _, f := range [...]struct {
		field, value string
		of           [2]string
	}{{"walks_full", s.WalksFull, [2]string{Block, Queue}}, {"on_fault", s.OnFault, [2]string{Terminate, Stall}}, {"stale", s.Stale, [2]string{Ignore, Poison}}} {
		if on || f.value != "" {
			wrong.OneOf(f.field, f.value, f.of[:]...)
		}
	}
	return wrong.Join()
}

// power notes a value that is no power of two from least to most; 0 is allowed
// if it is least.
func power(wrong *fields.Errors, field string, v, least, most int) {
	if v < least || v > most || bits.OnesCount(uint(v)) > 1 {
		wrong.Add(field, fmt.Errorf("%d, expected a power of two from %d to %d", v, least, most))
	}
}

// WalkTime is the time of a translation that is in no TLB, from request to
// answer, at zero load. The walk reads that many descriptors, and memory is the
// time of one read. Without a hit in the walk cache, reads is the number of
// Levels, less those below a block; with a hit it is 1.
func (s *Spec) WalkTime(reads int, memory sim.Time) sim.Time {
	return s.L1Latency + s.L2Latency + sim.Time(reads)*(memory+s.WalkStep)
}

// Levels is the number of levels that a walk reads for a page of 4 KiB.
func (s *Spec) Levels() int { return lastLevel - s.top() + 1 }

// top is the level at which a walk begins.
func (s *Spec) top() int {
	if s.AddressBits <= bits39 {
		return 1
	}
	return 0
}
