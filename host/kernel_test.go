package host_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/sim"
)

// stored is program on a node with storage.
func stored(t *testing.T, f func(w *world), storage []string, overrides ...string) *host.Kernel {
	t.Helper()
	return program(t, func(w *world) {
		spec, err := hosttest.Storage(storage...)
		require.NoError(w.t, err)
		w.disk = w.Kernel.Attach("Node[0].Storage", spec)
		f(w)
	}, overrides...)
}

// byteOf returns the first byte of a page of a process, for reading or writing.
func (w *world) byteOf(p *host.Process, addr uint64, write bool) *byte {
	w.t.Helper()
	s := p.Space()
	for absent := s.Touch(addr, 1, write); absent.Count > 0; absent = s.Touch(addr, 1, write) {
		require.NoError(w.t, s.Fault(w.th, absent, write))
	}
	b, ok := s.Cores(addr, 1)
	require.True(w.t, ok)
	return &b[0]
}

// fill writes value, value+1, and so on to the first bytes of some pages.
func (w *world) fill(addr uint64, pages int, value byte) {
	w.t.Helper()
	for i := range uint64(pages) {
		*w.byteOf(w.p, addr+i*page, true) = value + byte(i)
	}
}

// first reads the first byte of a page.
func (w *world) first(p *host.Process, addr uint64) byte {
	w.t.Helper()
	return *w.byteOf(p, addr, false)
}

// Fork is 100 us and 0.5 us a page. Then pages are shared until they are
// written: 4 us for the process that copies, 1 us for the last owner. A pinned
// page is copied at once. Absent pages stay absent.
func TestFork(t *testing.T) {
	program(t, func(w *world) {
		a := w.mmap(8 * page)
		w.fill(a, 4, 10)
		var pin host.Pin
		require.NoError(t, w.p.GetUserPages(w.th, a+3*page, 1, true, &pin))
		w.took(2*us + 4*3*us + 6*us)
		free := w.Kernel.Stats().FreePages
		c, err := w.p.Fork(w.th, "child")
		require.NoError(t, err)
		w.took(100*us + 4*500*ns + 4*us)
		require.Equal(t, free-1, w.Kernel.Stats().FreePages, "only the pinned page was copied")
		require.Equal(t, []int{4, 4}, []int{w.p.Resident(), c.Resident()})
		require.False(t, w.walk(a, true), "devices write what is shared no more")
		require.True(t, w.walk(a+3*page, true), "but for what is pinned")
		for i := range uint64(4) {
			require.Equal(t, byte(10+i), w.first(c, a+i*page))
		}
		w.took(0)
		w.fill(a, 1, 77) // the parent copies, the child has the page for itself
		w.took(4 * us)
		require.Equal(t, byte(10), w.first(c, a))
		*w.byteOf(c, a, true) = 11
		w.took(1 * us)
		*w.byteOf(c, a+page, true) = 99 // the child copies
		w.took(4 * us)
		require.Equal(t, byte(11), w.first(w.p, a+page))
		require.Equal(t, byte(77), w.first(w.p, a))
		require.Zero(t, w.first(c, a+7*page))
		pin.Put(w.th)
		require.NoError(t, c.Exit(w.th))
		c.Space().Release()
		require.Equal(t, free, w.Kernel.Stats().FreePages)
	})
}

// A child of a child reads pages of both ancestors, whichever process ends
// first. All three share shared memory.
func TestForkOfFork(t *testing.T) {
	program(t, func(w *world) {
		a := w.mmap(page)
		shared, err := w.p.MapShared(w.th, 2*page)
		require.NoError(t, err)
		w.fill(a, 1, 5)
		w.fill(shared, 1, 6)
		f := &flights{w: w, until: w.th.Now() + sim.Millisecond}
		w.p.Tables().Register(f)
		c, err := w.p.Fork(w.th, "child")
		require.NoError(t, err)
		require.Equal(t, f.until, w.th.Now(), "a device may still write what is shared now")
		w.p.Tables().Unregister(f)
		g, err := c.Fork(w.th, "grandchild")
		require.NoError(t, err)
		w.fill(a, 1, 50)
		require.NoError(t, c.Exit(w.th))
		require.Equal(t, byte(5), w.first(g, a))
		require.Equal(t, byte(6), w.first(g, shared))
		w.fill(shared, 2, 60)
		require.Equal(t, byte(60), w.first(g, shared))
		require.Equal(t, byte(61), w.first(g, shared+page))
		require.NoError(t, g.Exit(w.th))
		c.Space().Release()
		g.Space().Release()
	})
}

// mprotect takes 2 us and 0.8 us a page. A forbidden access is an error for
// programs and a fault for devices, also in a part of a mapping. When it is
// allowed again the bytes are unchanged.
func TestProtect(t *testing.T) {
	program(t, func(w *world) {
		a := w.mmap(4 * page)
		w.fill(a, 4, 1)
		w.took(14 * us)
		require.NoError(t, w.p.Protect(w.th, a+page, 2*page, host.ProtRead))
		w.took(2*us + 2*800*ns)
		s := w.p.Space()
		require.Equal(t, host.Pages{First: a + page, Count: 2}, s.Touch(a, 4*page, true))
		require.ErrorIs(t, s.Fault(w.th, host.Pages{First: a + page, Count: 2}, true), host.ErrPermission)
		require.Zero(t, s.Touch(a, 4*page, false))
		require.Equal(t, []bool{true, false, false, true}, []bool{w.walk(a, true), w.walk(a+page, true), w.walk(a+2*page, true), w.walk(a+3*page, true)})
		require.NoError(t, w.p.Protect(w.th, a, page, host.ProtNone))
		require.False(t, w.walk(a, false))
		require.ErrorIs(t, s.Fault(w.th, s.Touch(a, 1, false), false), host.ErrPermission)
		require.NoError(t, w.p.Protect(w.th, a, 4*page, host.ProtWrite))
		w.took(2*us + 800*ns + 2*us + 4*800*ns)
		require.Equal(t, byte(1), w.first(w.p, a))
		w.touch(a, 4*page, true)
		w.took(3 * us) // three were made read-only: each is a fault that makes the page dirty
		require.ErrorIs(t, w.p.Protect(w.th, a, 5*page, host.ProtRead), host.ErrNoMapping)
		require.ErrorContains(t, w.p.Protect(w.th, a+1, page, host.ProtRead), "expected a multiple of 4096")
	})
}

// Memory has 512 pages, 32 of them the kernel's. The program writes 600: the
// rest goes to storage, and comes back unchanged. A major fault is 6 us, the
// device's 80 us and a page at 1.5 GB/s, the interrupt's 2 us, and the switch
// back to the thread.
func TestSwap(t *testing.T) {
	k := stored(t, func(w *world) {
		a := w.mmap(600 * page)
		w.fill(a, 600, 0)
		s := w.Kernel.Stats()
		require.Positive(t, s.SwappedOut)
		require.LessOrEqual(t, w.p.Resident(), 512)
		absent := -1
		for i := 0; i < 600 && absent < 0; i++ {
			if !w.walk(a+uint64(i)*page, false) {
				absent = i
			}
		}
		require.GreaterOrEqual(t, absent, 0)
		w.th.Sleep(w.th.Now() + 10*sim.Millisecond) // kswapd is done
		w.last = w.th.Now()
		require.Equal(t, byte(absent), w.first(w.p, a+uint64(absent)*page))
		w.took(6*us + 80*us + 2730667*sim.Picosecond + 2*us + 1*us)
		for i := range 600 {
			require.Equal(t, byte(i), w.first(w.p, a+uint64(i)*page), "page %d", i)
		}
	}, nil, "memory=2MiB", "watermark_min=128KiB", "watermark_low=256KiB", "watermark_high=512KiB")
	s := k.Stats()
	require.Positive(t, s.Major)
	require.GreaterOrEqual(t, s.SwappedIn, int64(88))
	require.Greater(t, s.Reclaimed, s.SwappedOut, "what came back and was only read is not written again")
}

// Without storage, or with a full one, lack of memory is an error that names
// the process and the amount, not an endless wait. Locked and pinned pages do
// not go to storage.
func TestOutOfMemory(t *testing.T) {
	small := []string{"memory=2MiB", "watermark_min=128KiB", "watermark_low=256KiB", "watermark_high=512KiB"}
	program(t, func(w *world) {
		a := w.mmap(600 * page)
		s := w.p.Space()
		err := s.Fault(w.th, s.Touch(a, 600*page, true), true)
		require.EqualError(t, err, "process program: out of memory: 128 KiB of 2 MiB free, 128 KiB kept for the kernel, the process has 1916 KiB, "+
			"of which 1916 KiB are being touched at once; 0 B of 0 B swap used")
		require.ErrorIs(t, err, host.ErrNoMemory)
	}, small...)
	stored(t, func(w *world) {
		a := w.mmap(600 * page)
		s := w.p.Space()
		err := s.Fault(w.th, s.Touch(a, 600*page, true), true)
		require.ErrorContains(t, err, "the process has 1916 KiB, of which 1916 KiB are being touched at once; 0 B of 8 GiB swap used")
		require.NoError(t, w.p.Unmap(w.th, a, 600*page))
		locked := w.mmap(400 * page)
		require.NoError(t, w.p.Lock(w.th, locked, 300*page))
		var pin host.Pin
		require.NoError(t, w.p.GetUserPages(w.th, locked+300*page, 100*page, true, &pin))
		defer pin.Put(w.th)
		a = w.mmap(400 * page)
		w.fill(a, 400, 0)
		for i := range uint64(400) {
			require.True(t, w.walk(locked+i*page, false), "page %d, locked or pinned, has gone", i)
		}
		for i := range 400 {
			require.Equal(t, byte(i), w.first(w.p, a+uint64(i)*page))
		}
	}, nil, small...)
	k := stored(t, func(w *world) {
		a := w.mmap(2000 * page)
		s := w.p.Space()
		for i := range uint64(2000) {
			if err := s.Fault(w.th, host.Pages{First: a + i*page, Count: 1}, true); err != nil {
				require.ErrorIs(t, err, host.ErrNoMemory)
				require.ErrorContains(t, err, "1 MiB of 1 MiB swap used")
				return
			}
			require.Zero(t, s.Touch(a+i*page, 1, true))
		}
		t.Error("2000 pages in 512 and 256")
	}, []string{"swap=1MiB"}, small...)
	require.Positive(t, k.Stats().SwapFull)
}

// The storage runs two commands at a time: each takes 80 us, and then its bytes
// in turn. A waiting command begins when one ends.
func TestStorageQueue(t *testing.T) {
	stored(t, func(w *world) {
		f, content, err := w.Kernel.Create("data", 5*page)
		require.NoError(t, err)
		for i := range 5 {
			content[i*page] = byte(20 + i)
		}
		a, err := w.p.MapFile(w.th, f, 0, 5*page, true)
		require.NoError(t, err)
		ends := make([]sim.Time, 5)
		start := w.th.Now()
		for i := range uint64(5) {
			w.Go(1+int(i%3), "reader", func(th *host.Thread) error {
				err := w.p.Space().Fault(th, host.Pages{First: a + i*page, Count: 1}, false)
				ends[i] = th.Now() - start
				require.Equal(t, byte(20+i), w.first(w.p, a+i*page))
				return err
			})
		}
		w.th.Sleep(w.th.Now() + sim.Millisecond)
		// 10 us for 4 KiB; no other costs
		require.Equal(t, []sim.Time{90 * us, 100 * us, 180 * us, 190 * us, 270 * us}, ends)
		st := w.disk.Stats()
		require.Equal(t, host.StorageStats{Reads: 5, BytesRead: 5 * page, MostActive: 2, MostWaiting: 3}, st)
	}, []string{"queue_depth=2", "bandwidth=409.6MB/s", "completion=0ns"}, "context_switch=0ns", "fault_major=0ns", "fault_map=0ns")
}

// A program writes the device directly. An extent is stored when its command
// has ended, not before: 20 us, and its bytes after those of earlier commands,
// two commands at a time.
func TestDisk(t *testing.T) {
	stored(t, func(w *world) {
		d := w.disk.Disk(5 * page)
		d.Content()[page] = 9
		memory := make([]byte, 5*page)
		start := w.th.Now()
		at := func(when sim.Time, extents int) {
			w.Go(1, "looker", func(th *host.Thread) error {
				th.Sleep(start + when)
				for i := range 3 {
					require.Equal(t, i < extents, d.Content()[2*i*page+1] == 7, "%v, %d", when, i)
				}
				return nil
			})
		}
		at(30*us-1, 0)
		at(30*us+1, 1)
		at(60*us+1, 3)
		for i := range memory {
			memory[i] = 7
		}
		d.Store(w.th, []host.Extent{{0, page}, {2 * page, page}, {4 * page, page}}, func(e host.Extent, into []byte) { copy(into, memory[e.At:]) })
		require.Equal(t, 60*us, w.th.Now()-start, "two beside each other: 30 and 40 us; the third: 30 + 20 + 10")
		require.Equal(t, []byte{7, 9, 7, 0, 7}, []byte{d.Content()[0], d.Content()[page], d.Content()[2*page], d.Content()[3*page], d.Content()[4*page]})
		require.Equal(t, host.StorageStats{Writes: 3, BytesWritten: 3 * page, MostActive: 2, MostWaiting: 1}, w.disk.Stats())
	}, []string{"queue_depth=2", "write_latency=20us", "bandwidth=409.6MB/s", "completion=0ns"}, "context_switch=0ns")
}

// Sync writes changed pages of a shared mapping to the file, once. A private
// mapping does not change the file.
func TestFiles(t *testing.T) {
	stored(t, func(w *world) {
		f, content, err := w.Kernel.Create("data", 2*page+10)
		require.NoError(t, err)
		content[0], content[2*page+9] = 1, 3
		shared, err := w.p.MapFile(w.th, f, 0, 2*page+10, true)
		require.NoError(t, err)
		private, err := w.p.MapFile(w.th, f, page, page+10, false)
		require.NoError(t, err)
		w.took(4 * us)
		require.Equal(t, byte(1), w.first(w.p, shared))
		w.took(6*us + 80*us + 2730667*sim.Picosecond + 2*us + us + 2*us)
		w.fill(shared, 1, 9)
		w.took(1 * us)
		w.touch(shared, 1, true)
		w.took(0)
		w.fill(private, 1, 7)
		w.took(6*us + 80*us + 2730667*sim.Picosecond + 2*us + us + 4*us)
		require.Equal(t, []byte{1, 0}, []byte{f.Disk()[0], f.Disk()[page]})
		require.NoError(t, f.Sync(w.th))
		w.took(5*us + us + 20*us + 2730667*sim.Picosecond + 2*us + us)
		require.Equal(t, []byte{9, 0, 3}, []byte{f.Disk()[0], f.Disk()[page], f.Disk()[2*page+9]})
		require.False(t, w.walk(shared, true), "a clean page is read-only for devices")
		require.NoError(t, f.Sync(w.th))
		w.took(5 * us)
		require.Equal(t, f.Disk(), f.Content())
		_, err = w.p.MapFile(w.th, f, 0, 4*page, true)
		require.ErrorContains(t, err, "mmap of 16384 bytes at 0 of file data, which has 8202")
	}, nil)
	program(t, func(w *world) {
		_, _, err := w.Kernel.Create("data", 1)
		require.EqualError(t, err, "file data: the node has no storage")
	})
}

// The first write to an untouched region of 2 MiB is one fault and one entry.
// Unmapping a part splits it into 512.
func TestHugePages(t *testing.T) {
	k := program(t, func(w *world) {
		a := w.mmap(5 << 20)
		w.touch(a+300*page, 1, true)
		w.took(2*us + 300*us)
		require.Equal(t, 512, w.p.Resident())
		tables := w.Kernel.Stats().TablePages
		frame, ok := hosttest.Walk(w.p.Tables(), 39, a+511*page, true)
		require.True(t, ok)
		base, _ := hosttest.Walk(w.p.Tables(), 39, a, true)
		require.Equal(t, base+511*page, frame)
		require.Zero(t, base%host.HugeBytes)
		w.touch(a, 2<<20, true)
		w.took(0)
		w.fill(a, 1, 3)
		require.NoError(t, w.p.Unmap(w.th, a+page, page))
		w.took(6*us + 800*ns + 20*us)
		require.Equal(t, tables+1, w.Kernel.Stats().TablePages)
		require.Equal(t, []bool{true, false, true}, []bool{w.walk(a, true), w.walk(a+page, false), w.walk(a+2*page, true)})
		require.Equal(t, byte(3), w.first(w.p, a))
		w.touch(a+4<<20, 1, true) // half a huge page: a small one
		w.took(3 * us)
	}, "huge_pages=always", "collapse_min=512")
	s := k.Stats()
	require.Equal(t, []int64{1, 1, 0}, []int64{s.Huge, s.Splits, s.Collapsed})
}

// khugepaged collapses 2 MiB with enough pages to one page, 1 ms later.
// Meanwhile the pages are not accessible, devices are notified, and the bytes
// stay the same. Pinned pages prevent it.
func TestCollapse(t *testing.T) {
	k := program(t, func(w *world) {
		f := &flights{w: w}
		w.p.Tables().Register(f)
		a := w.mmap(2 << 20)
		w.touch(a, 1, false) // so that the first write finds no empty region of 2 MiB
		w.fill(a, 4, 40)
		w.took(2*us + 2*us + 4*us + 3*3*us)
		require.Empty(t, f.told[1:])
		before, _ := hosttest.Walk(w.p.Tables(), 39, a, false)
		w.th.Sleep(w.th.Now() + sim.Millisecond + 5*us) // khugepaged is looking
		require.True(t, w.walk(a, false))
		f.until = w.th.Now() + 3*sim.Millisecond
		free := w.Kernel.Stats().FreePages
		w.At(f.until-1, func() {
			require.Equal(t, free-512, w.Kernel.Stats().FreePages, "pages are given away under a device")
		})
		w.th.Sleep(w.th.Now() + 10*us)
		require.False(t, w.walk(a, false))
		require.Equal(t, [2]uint64{a, a + 2<<20}, f.told[len(f.told)-1])
		w.last = w.th.Now()
		require.Equal(t, byte(41), w.first(w.p, a+page))
		require.Greater(t, w.th.Now(), f.until+sim.Millisecond, "it waits until no device has it and all is copied")
		require.Equal(t, 512, w.p.Resident())
		after, _ := hosttest.Walk(w.p.Tables(), 39, a, true)
		require.NotEqual(t, before, after)
		require.Zero(t, after%host.HugeBytes)
		for i := range uint64(4) {
			require.Equal(t, byte(40+i), w.first(w.p, a+i*page))
		}
		require.Zero(t, w.first(w.p, a+500*page))

		b := w.mmap(2 << 20)
		w.touch(b, 1, false)
		var pin host.Pin
		require.NoError(t, w.p.GetUserPages(w.th, b, 4*page, true, &pin))
		w.th.Sleep(w.th.Now() + 10*sim.Millisecond)
		pin.Put(w.th)
	}, "huge_pages=always", "collapse_min=4", "collapse_delay=1ms", "kernel_core=1")
	s := k.Stats()
	require.Equal(t, []int64{0, 1}, []int64{s.Huge, s.Collapsed})
}

// Migration moves pages to other frames, 3 us each. It keeps their bytes, and
// skips pinned pages.
func TestMigrate(t *testing.T) {
	k := program(t, func(w *world) {
		a := w.mmap(4 * page)
		w.fill(a, 3, 70)
		var pin host.Pin
		require.NoError(t, w.p.GetUserPages(w.th, a+page, 1, true, &pin))
		w.took(2*us + 9*us + 6*us)
		var before, after [3]uint64
		for i := range before {
			before[i], _ = hosttest.Walk(w.p.Tables(), 39, a+uint64(i)*page, true)
		}
		w.At(w.th.Now()+us, func() { require.False(t, w.walk(a, false)) })
		require.NoError(t, w.p.Migrate(w.th, a, 4*page))
		w.took(2 * 3 * us)
		for i := range after {
			after[i], _ = hosttest.Walk(w.p.Tables(), 39, a+uint64(i)*page, true)
			require.Equal(t, byte(70+i), w.first(w.p, a+uint64(i)*page))
			require.Equal(t, i == 1, before[i] == after[i])
		}
		pin.Put(w.th)
	})
	require.Equal(t, int64(2), k.Stats().Migrated)
}
