package memcached_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/npf/memcached"
	"github.com/spinsim/spinsim/internal/npf/memcached/memaslap"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

const paged = "../../../docs/profiles/spin-int-os.yaml"

// Several connections with several operations under way read the values that
// they have stored. If there is room for everything, every stored value is
// found.
func TestServer(t *testing.T) {
	b := bench{profile: paged, config: memcached.Config{Limit: 32 << 20}, ops: 2000}
	for i := range 4 {
		b.loads = append(b.loads, memaslap.Config{Window: 300, Preset: true, Overwrite: float64(i) / 3, Outstanding: 1 + 5*i, Seed: 1})
	}
	b.run(t)
	for _, c := range b.clients {
		require.Zero(t, c.Stats.Wrong)
		require.Zero(t, c.Stats.Misses)
		require.GreaterOrEqual(t, c.Stats.Ops(), b.ops)
		require.InDelta(t, 300+170, c.Stats.Sets, 60, "the window, and a tenth of the rest")
	}
	s := b.server.Store.Stats
	require.Equal(t, b.clients[0].Stats.Sets+b.clients[1].Stats.Sets+b.clients[2].Stats.Sets+b.clients[3].Stats.Sets, s.Sets)
	require.Zero(t, s.Evictions)
}

// With a window of 4 MiB and 2 MiB for items, some reads miss. The others
// return the right values.
func TestEviction(t *testing.T) {
	b := bench{profile: paged, config: memcached.Config{Limit: 2 << 20}, ops: 12_000, loads: []memaslap.Config{{Window: 3600, Preset: true, Overwrite: 1, Outstanding: 8, Seed: 1}}}
	b.run(t)
	c := b.clients[0].Stats
	require.Zero(t, c.Wrong)
	require.Zero(t, c.NotStored)
	require.Positive(t, b.server.Store.Stats.Evictions)
	// 1,770 chunks of 1,184 bytes for 3,600 objects that are drawn uniformly:
	// about half of the reads hit
	require.InDelta(t, 0.49, float64(c.Hits)/float64(c.Gets), 0.1)
}

// The time of a read is the time of the lines that it touches, from the profile
// alone.
func TestTimeOfARead(t *testing.T) {
	var spec host.Spec
	took := func(ops int64) sim.Time {
		b := bench{profile: paged, ops: ops, fill: true, loads: []memaslap.Config{{Window: 1, OnlyGets: true}}, set: []string{"os.context_switch=0ns"}}
		c := b.run(t)
		spec = c.Profile().Host
		return b.took
	}
	got := took(3) - took(2)
	// its bucket; header, number and key: 48 + 8 + 64 + 1 bytes at the
	// beginning of a slab, two lines; the count of readers in the header;
	// number, key, value and line's end behind the header: bytes 48 to 1,147,
	// lines 0 to 17
	want := 4*spec.MemoryLatency + spec.StreamTime(64) + spec.StreamTime(17*64)
	require.Equal(t, want, got)
}

// The server and another process together need more memory than there is, so
// part of it is in storage. The server takes longer, loses nothing, and counts
// major faults.
func TestOvercommit(t *testing.T) {
	run := func(memory string) (*bench, host.KernelStats) {
		b := &bench{
			profile: paged, config: memcached.Config{Limit: 24 << 20}, ops: 1500, fill: true,
			set:   []string{"os.memory=" + memory, "os.watermark_min=256KiB", "os.watermark_low=512KiB", "os.watermark_high=1MiB"},
			loads: []memaslap.Config{{Window: 9000, Overwrite: 1, Seed: 3}},
			begin: func(p *runtime.Proc, _ *memcached.Server) {
				other := p.Alloc(16 << 20)
				for at := 0; at < other.Len(); at += host.PageBytes {
					other.Slice(at, at+1).Write()
				}
			},
		}
		c := b.run(t)
		require.NoError(t, c.Node(0).Kernel().Audit())
		require.Zero(t, b.clients[0].Stats.Wrong)
		require.Zero(t, b.clients[0].Stats.Misses)
		return b, c.Node(0).Kernel().Stats()
	}
	roomy, stats := run("64MiB")
	require.Zero(t, stats.Major)
	tight, stats := run("20MiB")
	require.Positive(t, stats.Major)
	require.Positive(t, stats.SwappedOut)
	require.Greater(t, tight.took, 2*roomy.took)
}
