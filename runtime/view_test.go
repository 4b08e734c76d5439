package runtime_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

const pageBytes = 4096

// demand is a page table whose pages are there for reading once they were read,
// and for writing once they were written.
type demand struct {
	readable, writable map[uint64]bool
	cost               sim.Time // of a page
	faults             []host.Pages
	evict              func(d *demand) // called at every fault, after it
}

func newDemand(cost sim.Time) *demand {
	return &demand{readable: map[uint64]bool{}, writable: map[uint64]bool{}, cost: cost}
}

func (d *demand) Touch(addr, n uint64, write bool) (absent host.Pages) {
	for page := addr &^ (pageBytes - 1); page < addr+n; page += pageBytes {
		if there := d.writable[page] || !write && d.readable[page]; !there {
			if absent.Count == 0 {
				absent.First = page
			}
			absent.Count++
		} else if absent.Count > 0 {
			break
		}
	}
	return absent
}

func (d *demand) Fault(t *host.Thread, p host.Pages, write bool) error {
	d.faults = append(d.faults, p)
	for i := range p.Count {
		d.readable[p.First+uint64(i)*pageBytes] = true
		if write {
			d.writable[p.First+uint64(i)*pageBytes] = true
		}
	}
	if d.evict != nil {
		d.evict(d)
	}
	if t != nil {
		t.Run(sim.Time(p.Count)*d.cost, "page fault")
	}
	return nil
}

// paged runs a program on a node whose processes have the page table.
func paged(t *testing.T, pages host.PageTable, program func(p *runtime.Proc) error) error {
	prof, err := profile.Load("spin-int")
	require.NoError(t, err)
	cfg := runtime.Config{Profile: prof, Nodes: 1, Engine: labEngine}
	if pages != nil {
		cfg.Pages = func(int) host.PageTable { return pages }
	}
	c, err := runtime.NewCluster(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.NoError(t, c.Spawn(0, "program", program))
	return c.Run(context.Background())
}

// A view that touches pages that are not there costs the time of a fault for
// each, once; without a page table nothing.
func TestFirstTouchTakesTime(t *testing.T) {
	const cost = 3 * sim.Microsecond
	d := newDemand(cost)
	require.NoError(t, paged(t, d, func(p *runtime.Proc) error {
		v := p.Alloc(5 * pageBytes)
		took := func(pages int, access func()) {
			t.Helper()
			before := p.Now()
			access()
			require.Equal(t, sim.Time(pages)*cost, p.Now()-before)
		}
		took(0, func() { p.Sleep(0) })
		took(0, func() { v.Slice(8, 8).Write() })
		took(1, func() { v.Slice(pageBytes-1, pageBytes).Read() })
		took(2, func() { v.Slice(pageBytes, 3*pageBytes).Write() })
		took(2, func() { v.Read() }) // pages 3 and 4
		took(0, func() { v.Read() })
		took(1, func() { v.Slice(pageBytes-1, pageBytes+1).Write() }) // page 0 was read only
		took(2, func() { v.Write() })                                 // so were 3 and 4
		took(0, func() { v.CopyFrom([]byte("abc")) })
		b := make([]byte, 2)
		require.Equal(t, 2, v.CopyTo(b))
		require.Equal(t, "ab", string(b))
		require.Equal(t, 3, v.Slice(0, 3).CopyFrom([]byte("defgh")))
		require.Equal(t, "def", string(v.Slice(0, 3).Snapshot()))
		require.Equal(t, v.Addr()+1, v.Slice(1, 2).Addr())
		return nil
	}))
	require.Len(t, d.faults, 5)
	require.NoError(t, paged(t, nil, func(p *runtime.Proc) error {
		v := p.Alloc(5 * pageBytes)
		p.Sleep(1)
		v.Write()
		v.Read()
		require.Equal(t, sim.Time(1), p.Now())
		return nil
	}))
}

// Memory that is set up before the program begins is there, and took no time.
// Later there is no way around a touch.
func TestRawIsForSettingUp(t *testing.T) {
	d := newDemand(sim.Microsecond)
	require.NoError(t, paged(t, d, func(p *runtime.Proc) error {
		v := p.Alloc(3 * pageBytes)
		copy(v.Slice(pageBytes, 2*pageBytes).Raw(), "ready")
		require.Zero(t, p.Now())
		require.Equal(t, []host.Pages{{First: v.Addr() + pageBytes, Count: 1}}, d.faults)
		p.Sleep(1)
		require.Equal(t, "ready", string(v.Slice(pageBytes, pageBytes+5).Read()))
		require.Equal(t, sim.Time(1), p.Now())
		require.PanicsWithValue(t, "runtime: Raw in the middle of process program of rank 0: memory is set up before it first waits", func() { v.Raw() })
		require.Empty(t, v.Slice(7, 7).Raw())
		return nil
	}))
	require.Empty(t, runtime.View{}.Write())
	require.Empty(t, runtime.View{}.Raw())
	require.Empty(t, runtime.View{}.Snapshot())
}

// Two views that are wanted together are there together, although the fault of
// one may take the other away.
func TestViewsTogether(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := newDemand(sim.Microsecond)
		d.evict = func(d *demand) {
			for _, pages := range []map[uint64]bool{d.readable, d.writable} {
				for i := range uint64(16) {
					if r.IntN(4) == 0 {
						delete(pages, (16+i)*pageBytes)
					}
				}
			}
		}
		require.NoError(t, paged(t, d, func(p *runtime.Proc) error {
			a, b := p.Alloc(2*pageBytes), p.Alloc(2*pageBytes)
			want := pattern(2*pageBytes, byte(seed))
			copy(b.Raw(), want)
			p.Sleep(1)
			dst, src := a.WriteFrom(b)
			require.Zero(t, d.Touch(a.Addr(), 2*pageBytes, true))
			require.Zero(t, d.Touch(b.Addr(), 2*pageBytes, false))
			copy(dst, src)
			p.Copy(b.Slice(pageBytes, 2*pageBytes), a)
			require.Equal(t, append(want[:pageBytes:pageBytes], want[:pageBytes]...), b.Snapshot())
			return nil
		}))
	}
}

// View returns the same view as Alloc for its address, and fails for memory that
// Alloc did not return.
func TestViewOfAnAddress(t *testing.T) {
	require.NoError(t, paged(t, nil, func(p *runtime.Proc) error {
		v := p.Alloc(100)
		p.Alloc(100)
		same, err := p.View(v.Addr()+10, 90)
		require.NoError(t, err)
		v.Slice(10, 12).CopyFrom([]byte("hi"))
		require.Equal(t, "hi", string(same.Slice(0, 2).Read()))
		require.Equal(t, p, same.Proc())
		for _, c := range []struct {
			addr uint64
			n    int
		}{{v.Addr(), 101}, {v.Addr(), -1}, {v.Addr() - 1, 1}, {v.Addr() + 100, 1}, {0, 1}} {
			_, err := p.View(c.addr, c.n)
			require.ErrorContains(t, err, "runtime: process program of rank 0 has no")
		}
		require.Panics(t, func() { v.Slice(0, 101) })
		require.Panics(t, func() { v.Slice(0, 10).Slice(0, 11) }, "a slice does not grow")
		return nil
	}))
}

// What a device writes a program sees, and the other way round.
func TestDevicesAndProgramsShareMemory(t *testing.T) {
	require.NoError(t, paged(t, newDemand(sim.Nanosecond), func(p *runtime.Proc) error {
		ni, from, to := p.NI(), p.Alloc(10_000), p.Alloc(10_000)
		eq, err := ni.Objects().EQAlloc(8)
		require.NoError(t, err)
		_, err = ni.Objects().PTAlloc(0, eq, 0)
		require.NoError(t, err)
		_, err = ni.MEAppend(0, &portals.ME{
			Start: to.Addr(), Length: 10_000, UID: portals.UIDAny, MatchID: portals.AnyID, Options: portals.OptMEOpPut | portals.OptMEEventLinkDisable,
		}, portals.PriorityList, 0)
		require.NoError(t, err)
		md, err := ni.Objects().MDBind(&portals.MD{Start: from.Addr(), Length: 10_000})
		require.NoError(t, err)
		for i := range byte(3) {
			from.CopyFrom(pattern(10_000, i))
			require.NoError(t, ni.Put(portals.Put{MD: md, Length: 10_000, Target: portals.PhysID(0, 0)}))
			_, err := ni.EQWait(eq)
			require.NoError(t, err)
			require.True(t, bytes.Equal(pattern(10_000, i), to.Read()))
		}
		return nil
	}))
}

// Memory that the process has given back, or that has gone with it, has no bytes.
func TestSnapshotOfNothing(t *testing.T) {
	prof, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 1})
	require.NoError(t, err)
	require.NoError(t, c.Spawn(0, "program", func(p *runtime.Proc) error {
		kept, given := p.Alloc(2*pageBytes), p.Alloc(2*pageBytes)
		kept.Write()[pageBytes] = 7
		require.NoError(t, p.OS().Unmap(p.Thread(), given.Addr(), pageBytes))
		require.Nil(t, given.Snapshot())
		require.Len(t, given.Slice(pageBytes, 2*pageBytes).Snapshot(), pageBytes)
		require.Equal(t, byte(7), kept.Snapshot()[pageBytes])
		require.NoError(t, p.OS().Exit(p.Thread()))
		require.Nil(t, kept.Snapshot())
		return nil
	}))
	require.NoError(t, c.Run(context.Background()))
	require.NoError(t, c.Close())
}

// Memory is gone when the cluster is closed, and who looks too late is told.
func TestSnapshotAfterClose(t *testing.T) {
	prof, err := profile.Load("spin-int")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 1, Engine: labEngine})
	require.NoError(t, err)
	var v runtime.View
	require.NoError(t, c.Spawn(0, "program", func(p *runtime.Proc) error {
		v = p.Alloc(3)
		v.CopyFrom([]byte("abc"))
		return nil
	}))
	require.NoError(t, c.Run(context.Background()))
	require.Equal(t, "abc", string(v.Snapshot()))
	require.NoError(t, c.Close())
	require.PanicsWithValue(t, "runtime: Snapshot of memory of process program of rank 0, whose cluster is closed", func() { v.Snapshot() })
}

// A view costs nothing to speak of.
func TestViewsAllocateNothing(t *testing.T) {
	require.NoError(t, paged(t, nil, func(p *runtime.Proc) error {
		v := p.Alloc(1 << 16)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			v.Slice(100, 200).Write()[0]++
			w, err := p.View(v.Addr()+8, 8)
			if err != nil || w.Read()[0] != 0 {
				t.Fatal("other bytes")
			}
		}))
		return nil
	}))
}

func BenchmarkView(b *testing.B) {
	prof, err := profile.Load("spin-int")
	require.NoError(b, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 1, Engine: labEngine})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, c.Close()) })
	require.NoError(b, c.Spawn(0, "program", func(p *runtime.Proc) error {
		v := p.Alloc(1 << 16)
		for b.Loop() {
			v.Write()[0]++
		}
		return nil
	}))
	require.NoError(b, c.Run(context.Background()))
}

// Memory begins where it is asked to, with pages and without.
func TestAllocAligned(t *testing.T) {
	for _, name := range []string{"spin-int", "exanest-qfdb"} {
		prof, err := profile.Load(name)
		require.NoError(t, err)
		c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 1})
		require.NoError(t, err)
		require.NoError(t, c.Spawn(0, "program", func(p *runtime.Proc) error {
			for _, align := range []int{1, 64, 4096, 16384, 1 << 20} {
				for _, n := range []int{0, 1, 5000, 70000} {
					v := p.AllocAligned(n, align)
					require.Zero(t, v.Addr()%uint64(align), "%d B at a multiple of %d", n, align)
					require.Equal(t, n, v.Len())
				}
			}
			require.Panics(t, func() { p.AllocAligned(1, 3) })
			return nil
		}))
		require.NoError(t, c.Run(t.Context()))
		require.NoError(t, c.Close())
	}
}
