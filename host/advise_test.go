package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/sim"
)

// Discard costs as much as munmap, 6 us and 0.8 us per page, and leaves
// addresses that read as zeros. A pinned frame keeps its owner. Discard returns
// when no device uses the pages, and no new page appears at these addresses
// before.
func TestDiscard(t *testing.T) {
	program(t, func(w *world) {
		a := w.mmap(4 * page)
		w.fill(a, 3, 70)
		var pin host.Pin
		require.NoError(t, w.p.GetUserPages(w.th, a+page, 1, true, &pin))
		w.took(2*us + 9*us + 6*us)
		free := w.Kernel.Stats().FreePages
		require.NoError(t, w.p.Discard(w.th, a, 4*page))
		w.took(6*us + 3*800*ns)
		require.Equal(t, free+2, w.Kernel.Stats().FreePages, "all but the pinned one")
		require.Zero(t, w.p.Resident())
		require.False(t, w.walk(a, false))
		for i := range uint64(4) {
			require.Zero(t, w.first(w.p, a+i*page))
		}
		pin.Put(w.th)
		require.Equal(t, free+3, w.Kernel.Stats().FreePages)

		w.fill(a, 1, 9)
		f := &flights{w: w, until: w.th.Now() + sim.Millisecond}
		w.p.Tables().Register(f)
		require.NoError(t, w.p.Discard(w.th, a, page))
		require.Equal(t, f.until, w.th.Now(), "a device may still write what was there")
		w.p.Tables().Unregister(f)
		require.NoError(t, w.Kernel.Audit())
	})
}

// Shared memory is unchanged, and so are pages shared with others after fork. A
// private mapping of a file gets the content of the file.
func TestDiscardLeavesWhatIsOthers(t *testing.T) {
	stored(t, func(w *world) {
		f, content, err := w.Kernel.Create("file", page)
		require.NoError(t, err)
		content[0] = 33
		private, err := w.p.MapFile(w.th, f, 0, page, false)
		require.NoError(t, err)
		shared, err := w.p.MapShared(w.th, page)
		require.NoError(t, err)
		own := w.mmap(page)
		for _, addr := range []uint64{private, shared, own} {
			w.fill(addr, 1, 8)
		}
		c, err := w.p.Fork(w.th, "child")
		require.NoError(t, err)
		for addr, want := range map[uint64]byte{private: 33, shared: 8, own: 0} { //lint:maporder each by itself
			require.NoError(t, w.p.Discard(w.th, addr, page))
			require.Equal(t, want, w.first(w.p, addr))
			require.Equal(t, byte(8), w.first(c, addr))
		}
		require.NoError(t, c.Exit(w.th))
		c.Space().Release()
	}, nil)
}

// PageOut writes pages to storage, and they are read back. Pages that are
// pinned, locked, or shared with others stay.
func TestPageOut(t *testing.T) {
	k := stored(t, func(w *world) {
		a, b, c := w.mmap(40*page), w.mmap(2*page), w.mmap(page)
		w.fill(c, 1, 60)
		child, err := w.p.Fork(w.th, "child")
		require.NoError(t, err)
		w.fill(a, 40, 10)
		w.fill(b, 2, 50)
		var pin host.Pin
		require.NoError(t, w.p.GetUserPages(w.th, b, 1, true, &pin))
		require.NoError(t, w.p.Lock(w.th, b+page, page))
		for _, at := range [][2]uint64{{a, 40}, {b, 2}, {c, 1}} {
			require.NoError(t, w.p.PageOut(w.th, at[0], at[1]*page))
		}
		require.Equal(t, 3, w.p.Resident())
		for i := range uint64(40) {
			require.False(t, w.walk(a+i*page, false))
			require.Equal(t, byte(10+i), w.first(w.p, a+i*page))
		}
		pin.Put(w.th)
		require.NoError(t, child.Exit(w.th))
		child.Space().Release()
		require.NoError(t, w.Kernel.Audit())
	}, []string{"swap=1MiB"})
	require.Equal(t, []int64{40, 40}, []int64{k.Stats().SwappedOut, k.Stats().Major})
}

func TestAdviseErrors(t *testing.T) {
	program(t, func(w *world) {
		a := w.mmap(2 * page)
		w.fill(a, 2, 1)
		require.NoError(t, w.p.Lock(w.th, a+page, page))
		require.ErrorContains(t, w.p.Discard(w.th, a+1, page), "madvise of")
		require.ErrorIs(t, w.p.Discard(w.th, a, 2*page), host.ErrLocked)
		require.Equal(t, byte(1), w.first(w.p, a), "nothing is partly done")
		require.ErrorIs(t, w.p.Discard(w.th, a, 3*page), host.ErrNoMapping)
		require.ErrorIs(t, w.p.Discard(w.th, 1<<39, page), host.ErrRange)
		require.ErrorIs(t, w.p.PageOut(w.th, 1<<39, page), host.ErrRange)
		require.NoError(t, w.p.Discard(w.th, a, 0))
		require.NoError(t, w.p.PageOut(w.th, a+7*page, page), "what is not there needs no room")
	})
}
