package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/sim"
)

// A touch of a program does not give a page to a device with its own tables
// (NPF'17 §4: "mapping is done lazily via NPFs"). The device has the pages
// brought in by get_user_pages or mlock, and prepared pages. Each call notifies
// the device once, whether its pages were absent or only missing from the
// device's tables.
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

// If a device has no entry of a page, invalidating the page costs nothing.
// Otherwise it costs the same as with the tables of the process, and the next
// page there is not in the device's tables.
func TestOwnTablesAreInvalidated(t *testing.T) {
	discard := func(tables string, device bool) (took sim.Time) {
		program(t, func(w *world) {
			w.p.Tables().Register(told{})
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

// told is a notifier that does nothing.
type told struct{}

func (told) InvalidateRange(_, _ uint64, _ bool) {}

func (told) Sync(*host.Thread) {}

// A huge page is one entry. If a part of it is brought in for a device, the
// device has all of it. When a part goes away, the device loses that part, at
// the cost of an invalidation, and keeps the other pages.
func TestOwnTablesOfHugePages(t *testing.T) {
	program(t, func(w *world) {
		w.p.Tables().Register(told{})
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

// Pages that went away before there was a notifier, or before the program
// began, leave no cost: a later invalidation of pages that the device does not
// have is free.
func TestOwnTablesOweNothing(t *testing.T) {
	program(t, func(w *world) {
		a := w.mmap(2 * page)
		var pin host.Pin
		require.NoError(t, w.p.GetUserPages(w.th, a, page, true, &pin))
		pin.Put(w.th)
		require.NoError(t, w.p.Discard(w.th, a, page))
		w.p.Tables().Register(told{})
		w.touch(a+page, page, true)
		w.last = w.th.Now()
		require.NoError(t, w.p.Discard(w.th, a+page, page))
		spec := w.Kernel.Spec()
		w.took(spec.UnmapCall + spec.UnmapPage)
	}, "device_tables=own", "invalidate=3us", "acknowledge=4us")
}
