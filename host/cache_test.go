package host

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

func cachedSpec(size, deposits string) *Spec {
	s := &Spec{
		Cores: 1, MemoryLatency: 51 * sim.Nanosecond, LineBytes: 64, CoreBandwidth: sim.NewRate(100, 1), CopyChunk: 4096, Poll: 1, Match: 1,
		MemoryBandwidth: sim.NewRate(10, 1), CacheBandwidth: sim.NewRate(20, 1), CacheDeposits: deposits,
	}
	if err := s.Cache.UnmarshalText([]byte(size)); err != nil {
		panic(err)
	}
	return s
}

// A cache holds what it would if each line had an entry of its own, as long as
// groups of 64 lines fit: what was used is there, what a device wrote is there
// or not as the profile has it, and there is never more than fits.
func TestCacheHoldsTheLinesUsedLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		deposits := rapid.SampledFrom([]string{"", DepositsMemory, DepositsCache}).Draw(t, "deposits")
		c := NewCache(cachedSpec("64KiB", deposits))
		spaces := []*AddressSpace{{}, {}}
		type line struct {
			space int
			n     uint64
		}
		held := map[line]bool{}
		for range rapid.IntRange(1, 40).Draw(t, "accesses") {
			// 2 spaces of 16 KiB are half of the cache: nothing is evicted
			space := rapid.IntRange(0, 1).Draw(t, "space")
			addr := rapid.Uint64Range(0, 16<<10-1).Draw(t, "address")
			n := rapid.Uint64Range(1, 16<<10-addr).Draw(t, "length")
			device := rapid.Bool().Draw(t, "device")
			lines, hits := int64(0), int64(0)
			for l := addr / 64; l <= (addr+n-1)/64; l++ {
				lines++
				if held[line{space, l}] {
					hits++
				}
				held[line{space, l}] = !device || deposits == DepositsCache
			}
			if device {
				c.Deposit(spaces[space], addr, n)
				continue
			}
			gotLines, got := c.Use(spaces[space], addr, n)
			require.Equal(t, lines, gotLines)
			require.Equal(t, hits, got)
		}
	})
}

// What was used longest ago goes first, and a loop over more than the cache
// finds nothing.
func TestCacheEvictsWhatWasUsedLongestAgo(t *testing.T) {
	c, a := NewCache(cachedSpec("16KiB", "")), &AddressSpace{}
	use := func(page uint64) int64 {
		_, held := c.Use(a, page*4096, 4096)
		return held
	}
	for page := range uint64(4) {
		require.Zero(t, use(page))
	}
	require.Equal(t, int64(64), use(0))
	require.Zero(t, use(4), "page 1 makes room")
	require.Equal(t, int64(64), use(0))
	require.Zero(t, use(1))
	for range 3 {
		_, held := c.Use(a, 1<<20, 20<<10)
		require.Zero(t, held)
	}
	require.LessOrEqual(t, c.lines, c.room)
	require.LessOrEqual(t, len(c.groups), 5)
}

// A cache of less than a group holds at most its size.
func TestCacheOfOneLine(t *testing.T) {
	c, a := NewCache(cachedSpec("64B", "")), &AddressSpace{}
	for range 3 {
		_, held := c.Use(a, 0, 4096)
		require.Zero(t, held)
		require.LessOrEqual(t, c.lines, c.room)
	}
	c.Use(a, 0, 64)
	_, held := c.Use(a, 0, 64)
	require.Equal(t, int64(1), held)
}

// Held lines cost the cache's rate and do not take the memory. The others cost
// what they did: here 100 ps/B against 20 ps/B.
func TestMoveTakesHeldLinesFromTheCache(t *testing.T) {
	spec, a := cachedSpec("1MiB", ""), &AddressSpace{}
	for _, strided := range []bool{false, true} {
		spec.StridedBandwidth = sim.Rate{}
		if strided {
			spec.StridedBandwidth = sim.NewRate(300, 1)
		}
		c := NewCache(spec)
		c.Use(a, 0, 8192)
		var s Stream
		s.Use(c, a, 0, 8192)
		s.Use(c, a, 1<<16, 4096)
		rate := sim.Time(100)
		if strided {
			s.Strided()
			rate = 300
		}
		m, memory := newMachine(1, CPUSpec{}), Server{Rate: spec.MemoryBandwidth}
		end := sim.Time(0)
		m.thread(0, func(t *Thread) { t.Move(s, &memory, spec, "copy"); end = t.Now() })
		require.NoError(t, m.eng.Run())
		m.eng.Close()
		require.Equal(t, 8192*20+4096*rate, end)
		require.Equal(t, int64(4096), memory.Bytes())
	}
}

// Fields that would have no effect are refused, and so is a cache without a
// rate.
func TestCacheFields(t *testing.T) {
	for message, change := range map[string]func(s *Spec){
		"":                                       func(*Spec) {},
		"cache_bandwidth: is 0, expected a rate": func(s *Spec) { s.CacheBandwidth = sim.Rate{} },
		"cache: is 0, but cache_bandwidth":       func(s *Spec) { s.Cache = 0 },
		"cache: 32 B":                            func(s *Spec) { s.Cache = 32 },
		"cache_deposits":                         func(s *Spec) { s.CacheDeposits = "disk" },
		"strided_bandwidth":                      func(s *Spec) { s.StridedBandwidth = sim.NewRate(2e9, 1) },
	} {
		s := cachedSpec("1MiB", "")
		change(s)
		if err := s.Validate(); message == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, message)
		}
	}
}

// Nothing is allocated once the entries are there.
func TestCacheAllocatesNothing(t *testing.T) {
	c, a := NewCache(cachedSpec("64KiB", DepositsCache)), &AddressSpace{}
	step := func() {
		for i := range uint64(32) {
			c.Use(a, i*4096, 4096)
			c.Deposit(a, i*8192, 100)
		}
	}
	step()
	require.Zero(t, testing.AllocsPerRun(10, step))
}
