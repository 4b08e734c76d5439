package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/sim"
)

// A device with tables of its own has no page because a program has touched it
// (NPF'17 §4: "mapping is done lazily via NPFs"): it has what get_user_pages or
// mlock has brought, and what was prepared. It is told of a page once for each
// call, whether it was absent or only not in its tables.
func TestOwnTables(t *testing.T) {
	program(t, func(w *world) {
		prepared := w.p.Space().Alloc(page)
		require.NoError(t, w.p.Space().Prepare(prepared, page))
		require.True(t, w.walk(prepared, true))

		a := w.mmap(4 * page)
		w.touch(a, 2*page, true)
		require.False(t, w.walk(a, false), "touched, and not in its tables")
		require.False(t, w.p.Present(a, false))
		w.last = w.th.Now()
		var pin host.Pin
		require.NoError(t, w.p.GetUserPages(w.th, a, 3*page, true, &pin))
		spec := w.Kernel.Spec()
		w.took(spec.GupCall + spec.GupFault + 2*spec.GupPresent + spec.GupAbsent)
		for i := range uint64(4) {
			require.Equal(t, i < 3, w.walk(a+i*page, true), "page %d", i)
		}
		require.NoError(t, w.p.GetUserPages(w.th, a, 3*page, true, &pin))
		w.took(spec.GupCall + 3*spec.GupPresent)
		pin.Put(w.th)

		require.NoError(t, w.p.Lock(w.th, a+3*page, page))
		require.True(t, w.walk(a+3*page, true))
	}, "device_tables=own", "gup_fault=50us", "put_page=0ns")
}

// What a device has no entry of goes away without it: an invalidation costs
// nothing then. Else it costs what it costs with the tables of the process, and
// the page that comes next is not in the device's tables.
func TestOwnTablesAreInvalidated(t *testing.T) {
	discard := func(tables string, device bool) (took sim.Time) {
		program(t, func(w *world) {
			w.p.Register(told{})
			a := w.mmap(2 * page)
			w.touch(a, 2*page, true)
			if device {
				var pin host.Pin
				require.NoError(t, w.p.GetUserPages(w.th, a, page, true, &pin))
				pin.Put(w.th)
			}
			begin := w.th.Now()
			require.NoError(t, w.p.Discard(w.th, a, 2*page))
			took = w.th.Now() - begin
			w.touch(a, page, true)
			require.Equal(t, tables == host.ProcessTables, w.walk(a, true))
		}, "device_tables="+tables, "invalidate=3us", "acknowledge=4us")
		return took
	}
	require.Equal(t, discard(host.ProcessTables, false), discard(host.ProcessTables, true))
	require.Equal(t, discard(host.ProcessTables, true), discard(host.OwnTables, true))
	require.Equal(t, discard(host.OwnTables, true)-7*us, discard(host.OwnTables, false))
}

// told is a notifier that has nothing to do.
type told struct{}

func (told) InvalidateRange(_, _ uint64, _ bool) {}

func (told) Sync(*host.Thread) {}

// A huge page is one entry: a device that a part of it was brought for has all
// of it, and loses what goes away of it, which costs what an invalidation
// costs. The rest it keeps, a page each.
func TestOwnTablesOfHugePages(t *testing.T) {
	program(t, func(w *world) {
		w.p.Register(told{})
		a := w.mmap(host.HugeBytes)
		w.touch(a, 1, true)
		require.False(t, w.p.Present(a+9*page, true))
		var pin host.Pin
		require.NoError(t, w.p.GetUserPages(w.th, a+7*page, page, true, &pin))
		pin.Put(w.th)
		for _, i := range []uint64{0, 7, 9, 511} {
			require.True(t, w.walk(a+i*page, true))
			require.True(t, w.p.Present(a+i*page, true), "page %d", i)
		}
		w.last = w.th.Now()
		require.NoError(t, w.p.Discard(w.th, a+9*page, page))
		spec := w.Kernel.Spec()
		w.took(spec.UnmapCall + spec.UnmapPage + spec.SplitHuge + spec.Invalidate + spec.Acknowledge)
		for i := range uint64(512) {
			require.Equal(t, i != 9, w.walk(a+i*page, true), "page %d", i)
		}
	}, "device_tables=own", "huge_pages=always", "memory=256MiB", "gup_fault=50us", "put_page=0ns", "invalidate=3us", "acknowledge=4us")
}

// What went away before anybody was to be told, or before the program began, is
// nobody's debt: the next that a device has nothing of costs nothing.
func TestOwnTablesOweNothing(t *testing.T) {
	program(t, func(w *world) {
		a := w.mmap(2 * page)
		var pin host.Pin
		require.NoError(t, w.p.GetUserPages(w.th, a, page, true, &pin))
		pin.Put(w.th)
		require.NoError(t, w.p.Discard(w.th, a, page))
		w.p.Register(told{})
		w.touch(a+page, page, true)
		w.last = w.th.Now()
		require.NoError(t, w.p.Discard(w.th, a+page, page))
		spec := w.Kernel.Spec()
		w.took(spec.UnmapCall + spec.UnmapPage)
	}, "device_tables=own", "invalidate=3us", "acknowledge=4us")
}
