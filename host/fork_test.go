package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/hosttest"
)

// Of four pages a child gets the first and the last, and fork pays for two. The
// parent writes to the other two as before, and its device keeps using their
// frames. The child has no memory there, and can map and unmap around the hole.
func TestDontFork(t *testing.T) {
	program(t, func(w *world) {
		a := w.mmap(4 * page)
		w.fill(a, 4, 10)
		require.NoError(t, w.p.DontFork(w.th, a+page+5, page)) // parts of two pages
		before := [2]uint64{}
		for i := range before {
			before[i], _ = hosttest.Walk(w.p.Tables(), 39, a+uint64(i+1)*page, true)
		}
		w.last = w.th.Now()
		c, err := w.p.Fork(w.th, "child")
		require.NoError(t, err)
		w.took(100*us + 2*500*ns)
		require.Equal(t, []int{4, 2}, []int{w.p.Resident(), c.Resident()})
		w.touch(a+page, 2*page, true)
		w.took(0)
		for i := range before {
			now, ok := hosttest.Walk(w.p.Tables(), 39, a+uint64(i+1)*page, true)
			require.True(t, ok)
			require.Equal(t, before[i], now)
		}
		require.False(t, w.walk(a, true), "the first is copy on write")
		for i, there := range []bool{true, false, false, true} {
			va := a + uint64(i)*page
			_, ok := c.Space().Bytes(va, 1)
			require.Equal(t, there, ok)
			_, _, ok = c.Mapping(va)
			require.Equal(t, there, ok)
			if there {
				require.Equal(t, byte(10+i), w.first(c, va))
				continue
			}
			var e *host.FaultError
			require.ErrorAs(t, c.Space().Fault(w.th, host.Pages{First: va, Count: 1}, false), &e)
			require.Equal(t, host.FaultError{Process: "child", Addr: va, Err: host.ErrNoMapping}, *e)
		}
		require.ErrorIs(t, c.DontFork(w.th, a, 4*page), host.ErrNoMapping)
		require.NoError(t, w.Kernel.Audit())
		require.NoError(t, c.Unmap(w.th, a, 4*page))
		require.NoError(t, c.Exit(w.th))
		c.Space().Release()
	})
}
