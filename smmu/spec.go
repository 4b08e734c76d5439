package smmu

import (
	"fmt"
	"math/bits"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/sim"
)

// Bounds of a Spec: those of the architecture, or far beyond any device, and
// such that no sum of times overflows.
const (
	maxTime        = sim.Second
	maxBanks       = 128     // SMMUv2
	maxL1          = 1 << 12 // entries
	maxL2          = 1 << 20
	maxWays        = 16
	maxWalks       = 256
	maxOutstanding = 1 << 16
	maxWalkBytes   = 4096
	maxPrefetch    = 7 // the descriptors behind one in 64 bytes
)

// Spec describes the SMMU of a node. It is the smmu section of a profile, where
// each value's source stands; there are no defaults. Sources are PART'22 (P),
// Psistakis'19 (T) and, where they are silent, the choices that docs/memory.md
// names.
type Spec struct {
	// Kind is None, as is an empty text, or MMU500. With None devices reach
	// memory without translation; the other fields may then be 0.
	Kind string `yaml:"kind"`
	// Banks is the number of context banks: of processes whose memory devices
	// can reach at a time, 1 to 128. T: 16.
	Banks int `yaml:"banks"`
	// AddressBits is how many bits a virtual address has: 39, three levels of
	// tables, or 48, four. Beyond them an access faults.
	AddressBits int `yaml:"address_bits"`
	// L1Entries is the entries of the fully associative first TLB, a power of
	// two from 1 to 4096. P: up to 128.
	L1Entries int `yaml:"l1_entries"`
	// L1Latency is the time of a look-up in it, at most 1 s. With 0 a hit
	// answers at once: its clocks are part of the bus's latency.
	L1Latency sim.Time `yaml:"l1_latency"`
	// L2Entries is the entries of the second TLB, a power of two from L2Ways to 2^20. P: up to 2048.
	L2Entries int `yaml:"l2_entries"`
	// L2Ways is its associativity, a power of two from 1 to 16. P: 4.
	L2Ways int `yaml:"l2_ways"`
	// L2Latency is the time of a look-up in it, from the first TLB and back, at most 1 s.
	L2Latency sim.Time `yaml:"l2_latency"`
	// WalkCache is the entries of the cache of pointers to level 3 tables, 0,
	// or a power of two from WalkCacheWays to 2^20.
	WalkCache int `yaml:"walk_cache"`
	// WalkCacheWays is its associativity, a power of two from 1 to 16.
	WalkCacheWays int `yaml:"walk_cache_ways"`
	// Prefetch is how many of the descriptors behind that of a page go into the
	// second TLB with it, as far as the same 64 bytes have them: 0 to 7.
	Prefetch int `yaml:"prefetch"`
	// Walks is how many walks of tables there may be at a time, 1 to 256. P: 16; T: 8 or 16.
	Walks int `yaml:"walks"`
	// WalksFull says what a miss does when there are as many: Block or Queue.
	WalksFull string `yaml:"walks_full"`
	// WalkBytes is what a walk takes from memory for one descriptor, 8 to 4096 bytes.
	WalkBytes int `yaml:"walk_bytes" unit:"B"`
	// WalkStep is the walker's own time for each level, beside that of memory, at most 1 s.
	WalkStep sim.Time `yaml:"walk_step"`
	// Channels is 2: reads and writes wait each for their own (T), or 1: together (P).
	Channels int `yaml:"channels"`
	// Outstanding is how many transactions of a channel may wait for their
	// translation or be stalled, 1 to 65,536; with as many a channel takes no
	// more. P, T: 256.
	Outstanding int `yaml:"outstanding"`
	// OnFault is what a bank does with a transaction that faults, Terminate or
	// Stall, until its driver says something else: SCTLR.CFCFG.
	OnFault string `yaml:"on_fault"`
	// HitUnderFault says that a bank goes on with other transactions after a
	// fault, until its driver says something else: SCTLR.HUPCF. P: true.
	HitUnderFault bool `yaml:"hit_under_fault"`
	// StallLimit is how many faulting transactions a bank stalls before it
	// processes no more, 1 to 65,536. T: implementation defined.
	StallLimit int `yaml:"stall_limit"`
	// Stale is what becomes of a translation that is in a TLB or the walk cache
	// and no longer that of the tables: Ignore (it is used, as by the device)
	// or Poison (the access ends with Stale and the Watcher is told).
	Stale string `yaml:"stale"`
}

// Values of Spec.Kind.
const (
	None   = "none"
	MMU500 = "mmu-500"
)

// Values of Spec.WalksFull.
const (
	Block = "block" // its channel takes no more until there is a walk for it (T)
	Queue = "queue" // it waits by itself
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

// power notes a value that is no power of two from least to most; 0 is one if it is least.
func power(wrong *fields.Errors, field string, v, least, most int) {
	if v < least || v > most || bits.OnesCount(uint(v)) > 1 {
		wrong.Add(field, fmt.Errorf("%d, expected a power of two from %d to %d", v, least, most))
	}
}

// WalkTime is how long a translation takes that is in no TLB, from the question
// to the answer, at zero load: reads descriptors are read from a memory that
// answers after memory. Without a walk cache, or if it has not what is asked
// for, reads is the number of Levels, less those below a block; else it is 1.
func (s *Spec) WalkTime(reads int, memory sim.Time) sim.Time {
	return s.L1Latency + s.L2Latency + sim.Time(reads)*(memory+s.WalkStep)
}

// Levels is how many levels of tables a walk reads for a page of 4 KiB.
func (s *Spec) Levels() int { return lastLevel - s.top() + 1 }

// top is the level at which a walk begins.
func (s *Spec) top() int {
	if s.AddressBits <= bits39 {
		return 1
	}
	return 0
}
