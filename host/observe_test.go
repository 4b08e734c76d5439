package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/sim"
)

// An observer sees what a program would read, wherever it is stored: untouched
// pages, pages on storage, pages shared with another process since fork, and
// pages of a file. Observing brings no page in.
func TestAnObserverSeesWhatProgramsWouldRead(t *testing.T) {
	see := func(t *testing.T, p *host.Process, addr uint64) byte {
		b, ok := p.Space().Observe(addr, page)
		require.True(t, ok)
		for _, v := range b[1:] {
			require.Zero(t, v)
		}
		return b[0]
	}
	stored(t, func(w *world) {
		a := w.mmap(600 * page)
		require.Zero(t, see(t, w.p, a+599*page), "never touched")
		w.fill(a, 600, 0)
		w.th.Sleep(w.th.Now() + 10*sim.Millisecond) // kswapd is done
		before, resident := w.Kernel.Stats(), w.p.Resident()
		require.Positive(t, before.SwappedOut)
		for i := range 600 {
			require.Equal(t, byte(i), see(t, w.p, a+uint64(i)*page), "page %d", i)
		}
		c, err := w.p.Fork(w.th, "child")
		require.NoError(t, err)
		for i := range 600 {
			require.Equal(t, byte(i), see(t, c, a+uint64(i)*page), "page %d of the child", i)
		}
		f, content, err := w.Kernel.Create("data", 2*page)
		require.NoError(t, err)
		content[page] = 77
		for _, shared := range []bool{true, false} {
			m, err := w.p.MapFile(w.th, f, 0, 2*page, shared)
			require.NoError(t, err)
			require.Zero(t, see(t, w.p, m))
			require.Equal(t, byte(77), see(t, w.p, m+page))
		}
		s := w.Kernel.Stats()
		require.Equal(t, before.SwappedIn, s.SwappedIn)
		require.Equal(t, resident, w.p.Resident())
		_, ok := w.p.Space().Observe(a+600*page, page)
		require.False(t, ok)
		require.NoError(t, c.Exit(w.th))
	}, nil, "memory=2MiB", "watermark_min=128KiB", "watermark_low=256KiB", "watermark_high=512KiB")
}
