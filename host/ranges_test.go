package host_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/host"
)

// Calls with any range: a range beyond the address space, also by overflow of
// 2^64, gives one clear error, takes no time and changes nothing. Other ranges
// do not give this error.
func TestRangesBeyondTheAddressSpace(t *testing.T) {
	program(t, func(w *world) {
		const top = uint64(1) << 39
		a := w.mmap(4 * page)
		w.fill(a, 4, 10)
		w.last = w.th.Now()
		calls := map[string]func(addr, n uint64) error{
			"get_user_pages": func(addr, n uint64) error {
				var pin host.Pin
				defer pin.Put(w.th)
				return w.p.GetUserPages(w.th, addr, n, true, &pin)
			},
			"mlock":         func(addr, n uint64) error { return w.p.Lock(w.th, addr, n) },
			"munlock":       func(addr, n uint64) error { return w.p.Unlock(w.th, addr, n) },
			"migrate_pages": func(addr, n uint64) error { return w.p.Migrate(w.th, addr, n) },
			"mprotect":      func(addr, n uint64) error { return w.p.Protect(w.th, addr&^(page-1), n, host.ProtRead) },
			"munmap":        func(addr, n uint64) error { return w.p.Unmap(w.th, addr&^(page-1), n) },
			"madvise":       func(addr, n uint64) error { return w.p.DontFork(w.th, addr, n) },
		}
		beyond := func(what string, addr, n uint64) {
			w.last = w.th.Now()
			err := calls[what](addr, n)
			require.ErrorIs(t, err, host.ErrRange, "%s of %d at %#x", what, n, addr)
			require.ErrorContains(t, err, what)
			w.took(0)
		}
		for what := range calls { //lint:maporder each by itself
			beyond(what, math.MaxUint64-11, 100+page)
			beyond(what, a, math.MaxUint64)
			beyond(what, a, top-a+1)
			beyond(what, top+page, 0)
		}
		rapid.Check(t, func(t *rapid.T) {
			what := rapid.SampledFrom([]string{"get_user_pages", "mlock", "munlock", "migrate_pages", "mprotect", "munmap", "madvise"}).Draw(t, "call")
			addr := rapid.OneOf(rapid.Uint64Range(top-3*page, top+page), rapid.Uint64Range(math.MaxUint64-3*page, math.MaxUint64)).Draw(t, "address") &^ (page - 1)
			n := rapid.OneOf(rapid.Uint64Range(0, 5*page), rapid.Uint64Range(math.MaxUint64-5*page, math.MaxUint64)).Draw(t, "bytes")
			if addr > top || n > top-addr {
				beyond(what, addr, n)
				return
			}
			require.NotErrorIs(t, calls[what](addr, n), host.ErrRange)
		})
		require.Equal(t, 4, w.p.Resident())
		require.True(t, w.walk(a, true))
		for _, prot := range []host.Prot{2, 4, 99} {
			require.ErrorContains(t, w.p.Protect(w.th, a, page, prot), "expected ProtNone, ProtRead or ProtWrite")
		}
		for _, n := range []int{0, -1, math.MinInt} {
			_, err := w.p.Map(w.th, n)
			require.ErrorContains(t, err, "expected at least 1")
			_, err = w.p.MapShared(w.th, n)
			require.ErrorContains(t, err, "expected at least 1")
		}
		require.ErrorIs(t, w.p.Populate(w.th, top-page, page, true), host.ErrNoMapping)
		require.ErrorIs(t, w.p.Populate(w.th, math.MaxUint64-11, 100, true), host.ErrRange)
		require.NoError(t, w.Kernel.Audit())
	})
}

// Calls of an ended process return an error: it gets neither memory nor
// children.
func TestGone(t *testing.T) {
	program(t, func(w *world) {
		p := w.Kernel.NewProcess("short")
		a, err := p.Map(w.th, page)
		require.NoError(t, err)
		require.NoError(t, p.Space().Store(w.th, a+5, []byte{1, 2}), "an absent page comes")
		require.ErrorIs(t, p.Space().Store(w.th, a+page, []byte{1}), host.ErrNoMapping)
		b, _ := p.Space().Bytes(a+5, 2)
		require.Equal(t, []byte{1, 2}, b)
		require.NoError(t, p.Protect(w.th, a, page, host.ProtRead))
		require.ErrorIs(t, p.Space().Store(w.th, a, []byte{1}), host.ErrPermission)
		require.False(t, p.Gone())
		require.NoError(t, p.Exit(w.th))
		require.True(t, p.Gone())
		_, err = p.Map(w.th, page)
		require.ErrorIs(t, err, host.ErrGone)
		_, err = p.MapShared(w.th, page)
		require.ErrorIs(t, err, host.ErrGone)
		_, err = p.Fork(w.th, "child")
		require.ErrorIs(t, err, host.ErrGone)
		require.ErrorIs(t, p.Space().Store(w.th, a, []byte{1}), host.ErrNoMapping)
		var pin host.Pin
		require.ErrorIs(t, p.GetUserPages(w.th, a, 1, true, &pin), host.ErrNoMapping)
		require.NoError(t, p.Exit(w.th), "again")
		require.NoError(t, w.Kernel.Audit())
		p.Space().Release()
	})
}
