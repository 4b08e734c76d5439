package pinning_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/sim"
)

const (
	page = host.PageBytes
	us   = sim.Microsecond
)

// world is a node with a program that has one mapping.
type world struct {
	*hosttest.Node
	t    *testing.T
	p    *host.Process
	th   *host.Thread
	s    pinning.Strategy
	last sim.Time
}

// costs make every call and page visible: 6 us get_user_pages and 3 us per
// absent page (P). The others are made up and use separate digits.
var costs = []string{
	"gup_present=1us", "put_page=2us", "device_map_call=100us", "device_map_page=10us", "device_unmap_call=1ms", "device_unmap_page=20us", "invalidate=10ms",
}

// program runs a program with a strategy. In the end the strategy must have
// unpinned everything.
func program(t *testing.T, o pinning.Options, f func(w *world), overrides ...string) {
	t.Helper()
	spec, err := hosttest.Spec(overrides...)
	require.NoError(t, err)
	w := &world{Node: hosttest.NewNode(spec), t: t}
	storage, err := hosttest.Storage()
	require.NoError(t, err)
	w.Kernel.Attach("storage", storage)
	w.p = w.Kernel.NewProcess("program")
	if o.Kind == pinning.BounceKind {
		o.Copy = w.copy
	}
	w.Go(0, "program", func(th *host.Thread) error {
		w.th = th
		if w.s, err = pinning.New(th, w.p, o); err != nil {
			return err
		}
		w.last = th.Now()
		f(w)
		return w.s.Close(th)
	})
	require.NoError(t, w.Engine.Run())
	require.NoError(t, w.Kernel.Audit())
	require.Zero(t, w.Kernel.Stats().PinsHeld)
	require.Zero(t, w.s.Stats().Pinned)
	require.Equal(t, w.s.Stats().Pins, w.s.Stats().Unpins)
	w.Engine.Close()
	w.p.Space().Release()
}

// copy charges 1 ns per byte.
func (w *world) copy(t *host.Thread, to, from, n uint64) error {
	t.Run(sim.Time(n)*sim.Nanosecond, "copy")
	s := w.p.Space()
	b, ok := s.Bytes(from, n)
	if !ok {
		return errors.New("no bytes")
	}
	return s.Store(t, to, b)
}

func (w *world) mmap(pages int) uint64 {
	w.t.Helper()
	addr, err := w.p.Map(w.th, pages*page)
	require.NoError(w.t, err)
	w.last = w.th.Now()
	return addr
}

// acquire leases a region and checks the time.
func (w *world) acquire(addr, n uint64, d pinning.Direction, want sim.Time) *pinning.Lease {
	w.t.Helper()
	l, err := w.s.Acquire(w.th, pinning.Region{Addr: addr, Length: n}, d)
	require.NoError(w.t, err)
	w.took(want)
	return l
}

func (w *world) release(l *pinning.Lease, want sim.Time) {
	w.t.Helper()
	require.NoError(w.t, w.s.Release(w.th, l))
	w.took(want)
}

func (w *world) took(want sim.Time) {
	w.t.Helper()
	require.Equal(w.t, want, w.th.Now()-w.last)
	w.last = w.th.Now()
}

const ms = sim.Millisecond

// Fine-grained pinning pays for every access: 6 us, 3 us or 1 us per page, and
// for the device 100 us and 10 us per page. After the access it pays 1 ms and
// 20 us per page, 10 ms for the range and 2 us per page. Bytes 10 to 4,106 are
// on two pages.
func TestFine(t *testing.T) {
	program(t, pinning.Options{Kind: pinning.FineKind}, func(w *world) {
		a := w.mmap(4)
		l := w.acquire(a+10, page, pinning.FromDevice, 6*us+2*3*us+100*us+2*10*us)
		require.Equal(t, a+10, l.Addr)
		require.True(t, w.p.Present(a, true))
		require.EqualValues(t, 2, w.Kernel.Stats().PinsHeld)
		w.release(l, ms+2*20*us+10*ms+2*2*us)
		require.Zero(t, w.Kernel.Stats().PinsHeld)
		l = w.acquire(a+10, page, pinning.ToDevice, 6*us+2*us+100*us+2*10*us)
		require.ErrorIs(t, w.s.Close(w.th), pinning.ErrLeased)
		w.release(l, ms+2*20*us+10*ms+2*2*us)
		require.Equal(t, pinning.Stats{Leases: 2, PinCalls: 2, Pins: 4, Unpins: 4, MostPinned: 2 * page}, w.s.Stats())
	}, costs...)
}

// Static pinning pins a mapping at its first use. Later uses cost nothing.
func TestStatic(t *testing.T) {
	program(t, pinning.Options{Kind: pinning.StaticKind}, func(w *world) {
		a := w.mmap(600)
		l := w.acquire(a+5*page, 1, pinning.ToDevice, 6*us+600*3*us+100*us+600*10*us)
		m := w.acquire(a+590*page, 10*page, pinning.Both, 0)
		w.release(l, 0)
		w.release(m, 0)
		require.EqualValues(t, 600*page, w.s.Stats().Pinned)
		require.EqualValues(t, 1, w.s.Stats().Hits)
	}, costs...)
}

// A cache of four pages: a cached page costs nothing. A fifth page replaces the
// one that was released first. Adjacent missing pages are one call, adjacent
// unpinned pages one range.
func TestCache(t *testing.T) {
	program(t, pinning.Options{Kind: pinning.CacheKind, Bound: 4 * page}, func(w *world) {
		a := w.mmap(10)
		one := w.acquire(a, 2*page, pinning.FromDevice, 6*us+2*3*us+100*us+2*10*us)
		two := w.acquire(a+page, 2*page, pinning.FromDevice, 6*us+3*us+100*us+10*us)
		w.release(two, 0)
		w.release(one, 0) // released in the order 2, 0, 1: page 1 had two leases
		w.release(w.acquire(a+2*page, page, pinning.Both, 0), 0)
		// that is four: 0, 1, 2, 6
		w.release(w.acquire(a+6*page, page, pinning.Both, 6*us+3*us+100*us+10*us), 0)
		w.release(w.acquire(a+8*page, 2*page, pinning.Both, ms+2*20*us+10*ms+2*2*us+6*us+2*3*us+100*us+2*10*us), 0)
		w.release(w.acquire(a+2*page, page, pinning.Both, 0), 0)
		require.EqualValues(t, 4*page, w.s.Stats().MostPinned)
		require.EqualValues(t, 2, w.s.Stats().Evicted)
		_, err := w.s.Acquire(w.th, pinning.Region{Addr: a, Length: 5 * page}, pinning.Both)
		require.ErrorIs(t, err, pinning.ErrBound)
		require.Zero(t, w.s.Stats().Leased)
	}, costs...)
}

// Leased memory is not unpinned to make room, and the error names it. A thread
// waits for room that others are about to free.
func TestCacheOfLeases(t *testing.T) {
	program(t, pinning.Options{Kind: pinning.CacheKind, Bound: 2 * page}, func(w *world) {
		a := w.mmap(4)
		l := w.acquire(a, 2*page, pinning.Both, 6*us+2*3*us)
		_, err := w.s.Acquire(w.th, pinning.Region{Addr: a + 3*page, Length: 1}, pinning.Both)
		require.ErrorContains(t, err, "more memory than may be pinned: 4096 bytes of 8192, of which 8192 are leased")
		w.release(l, 0)
	}, "gup_present=0us")
}

// A page pinned for reading, because it was not writable, is pinned again for a
// device that writes.
func TestPermission(t *testing.T) {
	program(t, pinning.Options{Kind: pinning.CacheKind, Bound: 8 * page}, func(w *world) {
		a := w.mmap(1)
		touch(t, w, a)
		require.NoError(t, w.p.Protect(w.th, a, page, host.ProtRead))
		l, err := w.s.Acquire(w.th, pinning.Region{Addr: a, Length: 9}, pinning.ToDevice)
		require.NoError(t, err)
		_, err = w.s.Acquire(w.th, pinning.Region{Addr: a, Length: 9}, pinning.FromDevice)
		require.ErrorIs(t, err, host.ErrPermission)
		require.NoError(t, w.p.Protect(w.th, a, page, host.ProtWrite))
		m, err := w.s.Acquire(w.th, pinning.Region{Addr: a, Length: 9}, pinning.FromDevice)
		require.NoError(t, err)
		require.True(t, w.p.Present(a, true))
		require.NoError(t, w.s.Release(w.th, l))
		require.NoError(t, w.s.Release(w.th, m))
	})
}

func touch(t *testing.T, w *world, addr uint64) {
	t.Helper()
	s := w.p.Space()
	for absent := s.Touch(addr, 1, true); absent.Count > 0; absent = s.Touch(addr, 1, true) {
		require.NoError(t, s.Fault(w.th, absent, true))
	}
}

// Unmapped memory leaves the cache: munmap waits for that, and frees the
// memory. Leased memory leaves at the end of its lease.
func TestUnmap(t *testing.T) {
	program(t, pinning.Options{Kind: pinning.CacheKind, Bound: 8 * page}, func(w *world) {
		a, free := w.mmap(4), w.Kernel.Stats().FreePages
		b := w.mmap(1)
		w.release(w.acquire(a, 4*page, pinning.Both, 6*us+4*3*us), 0)
		l := w.acquire(b, page, pinning.Both, 6*us+3*us)
		require.NoError(t, w.p.Unmap(w.th, a, 4*page))
		require.EqualValues(t, page, w.s.Stats().Pinned)
		require.EqualValues(t, 4, w.s.Stats().Invalidated)
		require.NoError(t, w.p.Unmap(w.th, b, page))
		require.EqualValues(t, page, w.s.Stats().Pinned)
		require.Equal(t, free-1, w.Kernel.Stats().FreePages)
		require.NoError(t, w.s.Release(w.th, l))
		require.Zero(t, w.s.Stats().Pinned)
		require.Equal(t, free, w.Kernel.Stats().FreePages)
		_, err := w.s.Acquire(w.th, pinning.Region{Addr: a, Length: 1}, pinning.Both)
		require.ErrorIs(t, err, host.ErrNoMapping)
	}, "put_page=0us")
}

// If pages are removed while they are being pinned, all pages of the lease are
// pinned again. Here the first of three is discarded while the third is brought
// in (Process.Discard, as by another thread).
func TestRace(t *testing.T) {
	program(t, pinning.Options{Kind: pinning.CacheKind, Bound: 8 * page}, func(w *world) {
		a := w.mmap(3)
		w.Go(1, "other", func(th *host.Thread) error {
			th.Sleep(th.Now() + 8*us)
			return w.p.Discard(th, a, page)
		})
		l, err := w.s.Acquire(w.th, pinning.Region{Addr: a, Length: 3 * page}, pinning.Both)
		require.NoError(t, err)
		require.True(t, w.p.Present(a, true))
		require.EqualValues(t, 2, w.s.Stats().PinCalls)
		require.NoError(t, w.s.Release(w.th, l))
	}, "unmap_call=0us", "context_switch=0us")
}

// Firehose pins buckets, here of four pages; the last one has two of the ten.
// It keeps a bounded number of unleased bytes pinned: the bucket released first
// goes first.
func TestFirehose(t *testing.T) {
	program(t, pinning.Options{Kind: pinning.FirehoseKind, Bucket: 4 * page, Victims: 6 * page}, func(w *world) {
		a := w.mmap(3000) // at least 2 MiB: it begins on a bucket
		require.Zero(t, a%(4*page))
		one := w.acquire(a+page, 1, pinning.Both, 6*us+4*3*us+100*us+4*10*us)
		w.release(w.acquire(a+3*page, 2*page, pinning.Both, 6*us+4*3*us+100*us+4*10*us), 0)
		require.EqualValues(t, 8*page, w.s.Stats().Pinned)
		// the bucket of page 4
		w.release(w.acquire(a+2998*page, page, pinning.Both, 6*us+4*3*us+100*us+4*10*us), ms+4*20*us+10*ms+4*2*us)
		// the bucket of page 2996
		w.release(one, ms+4*20*us+10*ms+4*2*us)
		w.release(w.acquire(a, 1, pinning.Both, 0), 0)
	}, append(costs, "huge_pages=never")...)
}

// Bounce buffers copy before a device reads, and after a device writes, 1 ns
// per byte. Room is in whole pages. A thread without room waits.
func TestBounce(t *testing.T) {
	program(t, pinning.Options{Kind: pinning.BounceKind, Buffer: 4 * page}, func(w *world) {
		a := w.mmap(8)
		touch(t, w, a)
		touch(t, w, a+page)
		s := w.p.Space()
		require.NoError(t, s.Store(w.th, a+100, []byte("hello")))
		w.last = w.th.Now()
		l := w.acquire(a+100, 5000, pinning.ToDevice, 5*us)
		b, ok := s.Bytes(l.Addr, 5)
		require.True(t, ok)
		require.Equal(t, "hello", string(b))
		m := w.acquire(a+5*page, 2*page, pinning.FromDevice, 0)
		require.Equal(t, pageOf(l.Addr)+2*page, m.Addr)
		var third *pinning.Lease
		var came sim.Time
		w.Go(1, "other", func(th *host.Thread) (err error) {
			third, err = w.s.Acquire(th, pinning.Region{Addr: a, Length: 1}, pinning.FromDevice)
			came = th.Now()
			return err
		})
		w.th.Sleep(w.th.Now() + 50*us)
		require.Nil(t, third)
		w.last = w.th.Now()
		w.release(l, 0)
		gone := w.th.Now()
		b, _ = s.Bytes(m.Addr, 3)
		copy(b, "bye")
		require.NoError(t, w.s.Release(w.th, m))
		b, _ = s.Bytes(a+5*page, 3)
		require.Equal(t, "bye", string(b))
		require.Equal(t, gone+us, came, "a context switch")
		require.NoError(t, w.s.Release(w.th, third))
		_, err := w.s.Acquire(w.th, pinning.Region{Addr: a + 1, Length: 4 * page}, pinning.ToDevice)
		require.ErrorIs(t, err, pinning.ErrBound)
		require.EqualValues(t, 5000+2*page+1, w.s.Stats().CopiedBytes)
	})
}

func pageOf(addr uint64) uint64 { return addr &^ (page - 1) }

// Without pinning nothing is pinned, and no page is brought in.
func TestNone(t *testing.T) {
	program(t, pinning.Options{Kind: pinning.NoneKind}, func(w *world) {
		a := w.mmap(1)
		w.release(w.acquire(a, page, pinning.Both, 0), 0)
		require.False(t, w.p.Present(a, false))
	})
}

// When memory is short the cache first gives up its unleased pages; only then
// is it an error.
func TestShort(t *testing.T) {
	program(t, pinning.Options{Kind: pinning.CacheKind, Bound: 8 << 20}, func(w *world) {
		a := w.mmap(1000)
		for at := range uint64(10) {
			l, err := w.s.Acquire(w.th, pinning.Region{Addr: a + at*100*page, Length: 100 * page}, pinning.Both)
			require.NoError(t, err)
			require.NoError(t, w.s.Release(w.th, l))
		}
		require.NotZero(t, w.s.Stats().Evicted)
		require.NotZero(t, w.Kernel.Stats().SwappedOut)
		_, err := w.s.Acquire(w.th, pinning.Region{Addr: a, Length: 1000 * page}, pinning.Both)
		require.ErrorIs(t, err, host.ErrNoMemory)
		require.Zero(t, w.s.Stats().Leased)
	}, "memory=2MiB", "watermark_min=256KiB", "watermark_low=256KiB", "watermark_high=256KiB")
}

// Errors name the wrong field.
func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o    pinning.Options
		want string
	}{
		{pinning.Options{Kind: "most"}, `pinning: kind "most", expected one of static, fine, cache, firehose, rendezvous, bounce, none`},
		{pinning.Options{Kind: pinning.CacheKind, Bucket: 5}, "pinning: bound is 0, expected a multiple of 4096 from 4096\npinning: bucket is 5, expected a multiple of 4096 from 0"},
		{pinning.Options{Kind: pinning.FirehoseKind, Victims: 1}, "pinning: victims is 1, expected a multiple of 4096 from 0"},
		{pinning.Options{Kind: pinning.RendezvousKind}, "pinning: a rendezvous needs a courier: it is for memory of a peer"},
		{pinning.Options{Kind: pinning.FirehoseKind, Courier: &wire{}}, "pinning: 0 firehoses to a peer, expected at least 1"},
		{pinning.Options{Kind: pinning.BounceKind}, "pinning: buffer is 0, expected a multiple of 4096 from 4096\npinning: a bounce buffer needs copy"},
	} {
		_, err := pinning.New(nil, nil, c.o)
		require.EqualError(t, err, c.want)
	}
}
