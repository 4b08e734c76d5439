package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// With a cache of 20 ps/B, a second copy of the same memory takes that, and so
// do a reduction and a loop over pieces of it. A cache that is too small gives
// nothing, and neither does none.
func TestCopiesOfWarmMemory(t *testing.T) {
	const n = 64 << 10
	times := func(set ...string) (list []sim.Time) {
		p, err := profile.Load("spin-int", set...)
		require.NoError(t, err)
		c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 1})
		require.NoError(t, err)
		defer func() { require.NoError(t, c.Close()) }()
		require.NoError(t, c.Spawn(0, "copy", func(p *runtime.Proc) error {
			a, b := p.Alloc(n), p.Alloc(n)
			timed := func(f func()) {
				start := p.Now()
				f()
				list = append(list, p.Now()-start)
			}
			timed(func() { p.Copy(b, a) })
			timed(func() { p.Copy(b, a) })
			timed(func() { runtime.Pass(p, b, a, b) })
			timed(func() {
				g := runtime.NewGather(p, a)
				for at := 0; at < n; at += 128 {
					g.Piece(b.Slice(at, at+32))
					g.Piece(b.Slice(at+32, at+64)) // of the same line
				}
				g.Run(n / 2)
			})
			return nil
		}))
		require.NoError(t, c.Run(t.Context()))
		return list
	}
	none := times()
	require.Equal(t, none[0], none[1])
	const cache = "host.cache_bandwidth=20ps/B"
	warm := times("host.cache=1MiB", cache)
	require.Equal(t, []sim.Time{none[0], 20 * 2 * n, 20 * 3 * n, 20 * (n + n/2)}, warm)
	require.Equal(t, none, times("host.cache=32KiB", cache))
	strided := times("host.strided_bandwidth=100ps/B")
	require.Equal(t, none[:3], strided[:3])
	require.Equal(t, sim.Time(100*(n+n/2)), strided[3])
}
