package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/smmu"
)

const (
	page = host.PageBytes
	us   = sim.Microsecond
	ns   = sim.Nanosecond
)

// world is a node with a program.
type world struct {
	*hosttest.Node
	t    *testing.T
	p    *host.Process
	th   *host.Thread
	last sim.Time
	disk *host.Storage
}

// program runs a program on a node with some changed fields of the system, and
// audits the kernel afterwards.
func program(t *testing.T, f func(w *world), overrides ...string) *host.Kernel {
	t.Helper()
	spec, err := hosttest.Spec(overrides...)
	require.NoError(t, err)
	w := &world{Node: hosttest.NewNode(spec), t: t}
	w.p = w.Kernel.NewProcess("program")
	w.Go(0, "program", func(th *host.Thread) error { w.th = th; f(w); return nil })
	require.NoError(t, w.Engine.Run())
	require.NoError(t, w.Kernel.Audit())
	w.Engine.Close()
	w.p.Space().Release()
	return w.Kernel
}

// took checks the time since the last check.
func (w *world) took(want sim.Time) {
	w.t.Helper()
	now := w.th.Now()
	require.Equal(w.t, want, now-w.last)
	w.last = now
}

// touch reads or writes as a program does.
func (w *world) touch(addr, n uint64, write bool) {
	w.t.Helper()
	s := w.p.Space()
	for absent := s.Touch(addr, n, write); absent.Count > 0; absent = s.Touch(addr, n, write) {
		require.NoError(w.t, s.Fault(w.th, absent, write))
	}
}

func (w *world) mmap(n int) uint64 {
	w.t.Helper()
	addr, err := w.p.Map(w.th, n)
	require.NoError(w.t, err)
	return addr
}

// walk reports whether a device can use the page.
func (w *world) walk(addr uint64, write bool) bool {
	_, ok := hosttest.Walk(w.p.Tables(), w.Kernel.Spec().AddressBits, addr, write)
	return ok
}

// The first touch of a page is 3 us for a write. For a read it is 2 us, and
// then 4 us for the write, which copies the page of zeros. A present page costs
// nothing.
func TestFirstTouch(t *testing.T) {
	k := program(t, func(w *world) {
		a := w.mmap(5*page + 17)
		w.took(2 * us)
		require.False(t, w.walk(a, false))
		w.touch(a+100, 1, true)
		w.took(3 * us)
		require.True(t, w.walk(a, true))
		w.touch(a+page-1, 2, true)
		w.took(3 * us)
		w.touch(a+2*page, 2*page, false)
		w.took(4 * us)
		require.True(t, w.walk(a+3*page, false))
		require.False(t, w.walk(a+3*page, true))
		w.touch(a+2*page, page, true)
		w.took(4 * us)
		w.touch(a, 3*page, true)
		w.took(0)
		w.touch(a+5*page, 17, false)
		w.took(2 * us)
		require.Equal(t, 3, w.p.Resident())
	})
	s := k.Stats()
	require.Equal(t, []int64{2, 3, 1, 6}, []int64{s.Absent, s.Zero, s.Copies, s.Minor})
	require.Equal(t, 16<<30/page-1-3, s.FreePages)
}

// The calibrated costs reproduce T's measurements for one buffer: mmap 2 us;
// munmap 6 + 0.8 a page; mlock 3 + 3 a page; munlock 1.2 + 0.8 a page; touching
// 3 a page.
func TestCalibration(t *testing.T) {
	for _, c := range []struct {
		pages                    int
		unmap, pin, unpin, touch sim.Time // measured, us
	}{
		{1, 7, 6, 2, 3},
		{4, 10, 15, 5, 10},
		{8, 12, 27, 8, 19},
		{16, 19, 49, 14, 40},
	} {
		program(t, func(w *world) {
			n := sim.Time(c.pages)
			near := func(measured, want sim.Time) {
				t.Helper()
				w.took(want)
				require.InDelta(t, float64(want), float64(measured*us), 0.27*float64(want), "%d pages", c.pages)
			}
			a := w.mmap(c.pages * page)
			w.took(2 * us)
			require.NoError(t, w.p.Lock(w.th, a, uint64(c.pages*page)))
			near(c.pin, 3*us+3*us*n)
			require.NoError(t, w.p.Unlock(w.th, a, uint64(c.pages*page)))
			near(c.unpin, 1200*ns+800*ns*n)
			require.NoError(t, w.p.Unmap(w.th, a, uint64(c.pages*page)))
			near(c.unmap, 6*us+800*ns*n)
			a = w.mmap(c.pages * page)
			w.took(2 * us)
			w.touch(a, uint64(c.pages*page), true)
			near(c.touch, 3*us*n)
		})
	}
}

// get_user_pages is 6 us plus 3 us for each absent page. Each page is usable as
// soon as it is present.
func TestGetUserPages(t *testing.T) {
	program(t, func(w *world) {
		a := w.mmap(4 * page)
		w.touch(a+page, 1, true)
		w.took(5 * us)
		start := w.th.Now()
		seen := map[sim.Time][]bool{}
		for _, at := range []sim.Time{9*us - 1, 9*us + 1, 12*us - 1, 12*us + 1, 15*us - 1, 15*us + 1} {
			w.At(start+at, func() {
				seen[at] = []bool{w.walk(a, true), w.walk(a+page, true), w.walk(a+2*page, true), w.walk(a+3*page, true)}
			})
		}
		var pin host.Pin
		require.NoError(t, w.p.GetUserPages(w.th, a, 4*page, true, &pin))
		w.took(6*us + 3*3*us)
		require.Equal(t, 4, pin.Pages())
		frame, ok := hosttest.Walk(w.p.Tables(), 39, a+2*page, true)
		require.True(t, ok)
		require.Equal(t, frame, pin.Frame(2))
		w.th.Sleep(w.th.Now() + us)
		require.Equal(t, map[sim.Time][]bool{
			9*us - 1: {false, true, false, false}, 9*us + 1: {true, true, false, false}, 12*us - 1: {true, true, false, false},
			12*us + 1: {true, true, true, false}, 15*us - 1: {true, true, true, false}, 15*us + 1: {true, true, true, true},
		}, seen)
		// A pinned page that is unmapped stays in use until it is put.
		free := w.Kernel.Stats().FreePages
		require.NoError(t, w.p.Unmap(w.th, a, 4*page))
		require.Equal(t, free, w.Kernel.Stats().FreePages)
		pin.Put(w.th)
		require.Equal(t, free+4, w.Kernel.Stats().FreePages)
		pin.Put(w.th)
	})
}

// A device with its own tables is notified once in each call that has brought
// in a page, before the first page can be used.
func TestGetUserPagesTellsTheDevice(t *testing.T) {
	program(t, func(w *world) {
		a := w.mmap(4 * page)
		w.touch(a+page, 1, true)
		w.took(5 * us)
		w.At(w.th.Now()+206*us-1, func() { require.False(t, w.walk(a, true)) })
		var pin host.Pin
		require.NoError(t, w.p.GetUserPages(w.th, a, 4*page, true, &pin))
		w.took(6*us + 200*us + 3*3*us)
		pin.Put(w.th)
		require.NoError(t, w.p.GetUserPages(w.th, a, 4*page, true, &pin))
		w.took(6 * us)
		pin.Put(w.th)
	}, "gup_fault=200us")
}

// A page that the process cannot have is an error at the first such page: no
// mapping, no permission, no memory.
func TestUnresolvable(t *testing.T) {
	program(t, func(w *world) {
		a := w.mmap(2 * page)
		var pin host.Pin
		err := w.p.GetUserPages(w.th, a, 4*page, true, &pin)
		require.ErrorIs(t, err, host.ErrNoMapping)
		require.EqualError(t, err, "process program: write of 0x12000: no mapping")
		require.Equal(t, 2, pin.Pages())
		require.ErrorIs(t, w.p.Lock(w.th, a, 3*page), host.ErrNoMapping)
		require.ErrorContains(t, w.p.Unmap(w.th, a+5, page), "expected a multiple of 4096")
		_, err = w.p.Map(w.th, 1<<39)
		require.ErrorIs(t, err, host.ErrNoMemory)
	})
	program(t, func(w *world) {
		a := w.mmap(8 << 20)
		s := w.p.Space()
		err := s.Fault(w.th, s.Touch(a, 8<<20, true), true)
		require.ErrorIs(t, err, host.ErrNoMemory)
		require.Zero(t, s.Touch(a, 1, false))
	}, "memory=4MiB", "watermark_min=1MiB", "watermark_low=1MiB", "watermark_high=1MiB")
}

// flights is a set of devices whose accesses take time: they use a translation
// for a while.
type flights struct {
	w     *world
	until sim.Time
	told  [][2]uint64
}

func (f *flights) InvalidateRange(start, end uint64, _ bool) {
	f.told = append(f.told, [2]uint64{start, end})
}

func (f *flights) Sync(t *host.Thread) {
	f.w.At(max(f.until, t.Now()), func() { t.Wake() })
	for t.Now() < f.until {
		t.Spin("a device")
	}
}

// A page is freed when no device uses it any more. Devices are notified at the
// moment the tables change.
func TestNotifiers(t *testing.T) {
	program(t, func(w *world) {
		f := &flights{w: w}
		w.p.Tables().Register(f)
		a := w.mmap(3 * page)
		w.touch(a, 3*page, true)
		w.took(11 * us)
		require.Empty(t, f.told, "a page that comes where there was none is not told")
		f.until = w.th.Now() + 50*us
		free := w.Kernel.Stats().FreePages
		w.At(f.until-1, func() {
			require.False(t, w.walk(a+page, false))
			require.True(t, w.walk(a, false))
			require.Equal(t, free, w.Kernel.Stats().FreePages)
			_, ok := w.p.Space().Bytes(a+page, page)
			require.True(t, ok, "an access that was translated moves its bytes")
		})
		require.NoError(t, w.p.Unmap(w.th, a+page, page))
		w.took(50 * us)
		require.Equal(t, [][2]uint64{{a + page, a + 2*page}}, f.told)
		require.Equal(t, free+1, w.Kernel.Stats().FreePages)
		_, ok := w.p.Space().Bytes(a+page, 1)
		require.False(t, ok)
		_, ok = w.p.Space().Bytes(a, page+1)
		require.False(t, ok)
		_, ok = w.p.Space().Bytes(a+2*page, page)
		require.True(t, ok)
		w.p.Tables().Unregister(f)
		require.NoError(t, w.p.Unmap(w.th, a, 3*page))
		w.took(6*us + 2*800*ns)
		require.Len(t, f.told, 1)
	})
}

// Tables of three and four levels appear and disappear with their pages. A
// freed table leads nowhere.
func TestTables(t *testing.T) {
	for bits, tables := range map[string]int{"39": 3, "48": 4} {
		program(t, func(w *world) {
			require.Equal(t, 1, w.Kernel.Stats().TablePages)
			a := w.mmap(6 << 20)
			require.Zero(t, a%host.HugeBytes)
			w.touch(a+5<<20, 1, true)
			w.touch(a, 1, true)
			require.True(t, w.walk(a, true))
			require.False(t, w.walk(a+2<<20, false))
			require.Equal(t, tables+1, w.Kernel.Stats().TablePages)
			level := 4 - tables
			table := w.p.Tables().Root()
			for ; level < 3; level++ {
				table = w.p.Tables().Entry(table, level, a).Addr
			}
			require.Equal(t, smmu.Page, w.p.Tables().Entry(table, 3, a).Kind)
			require.NoError(t, w.p.Unmap(w.th, a, 6<<20))
			require.Equal(t, 1, w.Kernel.Stats().TablePages)
			require.True(t, w.p.Tables().Entry(table, 3, a).Write, "a freed table is not an empty one")
			require.NoError(t, w.p.Exit(w.th))
			require.Zero(t, w.Kernel.Stats().TablePages)
			require.Equal(t, 16<<30/page-1, w.Kernel.Stats().FreePages)
		}, "address_bits="+bits)
	}
}

// Untouched memory takes no memory of the simulator, and the hot paths allocate
// nothing.
func TestNothingForNothing(t *testing.T) {
	program(t, func(w *world) {
		a := w.mmap(8 << 20)
		w.touch(a, 4<<20, true)
		s := w.p.Space()
		require.Zero(t, testing.AllocsPerRun(10, func() { s.Touch(a, 4<<20, true); s.Bytes(a, 4<<20) }))
		require.Zero(t, testing.AllocsPerRun(10, func() { w.walk(a+5*page, true) }))
	}, "kind=linux")
}
