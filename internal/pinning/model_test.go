package pinning_test

import (
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/sim"
)

var runs = flag.Int("pinning.runs", 60, "random programs of each kind")

// entry is a bucket in the model of a cache.
type entry struct{ bucket, leases int }

// cacheModel is the simplest pin-down cache: a list in the order of the last
// releases.
type cacheModel struct {
	list          []entry
	most, idle    int // buckets
	hits, evicted int
}

// acquire returns false if a lease exceeds the bound.
func (m *cacheModel) acquire(first, last int) bool {
	hit := true
	for b := first; b <= last; {
		if i := m.find(b); i >= 0 {
			m.list[i].leases++
			b++
			continue
		}
		hit = false
		n := 1
		for b+n <= last && m.find(b+n) < 0 {
			n++
		}
		for len(m.list)+n > m.most {
			i := m.victim()
			if i < 0 || m.leased()+n > m.most {
				m.release(first, b-1)
				return false
			}
			m.list = slices.Delete(m.list, i, i+1)
			m.evicted++
		}
		for i := range n {
			m.list = append(m.list, entry{b + i, 1})
		}
		b += n
	}
	if hit {
		m.hits++
	}
	return true
}

func (m *cacheModel) find(b int) int {
	return slices.IndexFunc(m.list, func(e entry) bool { return e.bucket == b })
}

func (m *cacheModel) victim() int {
	return slices.IndexFunc(m.list, func(e entry) bool { return e.leases == 0 })
}

func (m *cacheModel) leased() (n int) {
	for _, e := range m.list {
		if e.leases > 0 {
			n++
		}
	}
	return n
}

func (m *cacheModel) release(first, last int) {
	for b := first; b <= last; b++ {
		i := m.find(b)
		e := m.list[i]
		e.leases--
		if m.list[i] = e; e.leases == 0 {
			m.list = append(slices.Delete(m.list, i, i+1), e)
		}
	}
	for m.idle >= 0 && len(m.list)-m.leased() > m.idle {
		i := m.victim()
		m.list = slices.Delete(m.list, i, i+1)
		m.evicted++
	}
}

// TestAgainstModel makes one program acquire and release at random, from a
// cache and from Firehose. Pinned bytes, hits and evictions must equal the
// model's after each step. Leases that do not fit test the bound. 4,000 steps
// of each run.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(*runs) {
		r := rand.New(rand.NewPCG(seed, 1))
		bucket := 1 << r.IntN(3)
		m := &cacheModel{most: 1 + r.IntN(40), idle: -1}
		o := pinning.Options{Kind: pinning.CacheKind, Bound: uint64(m.most * bucket * page), Bucket: uint64(bucket * page)}
		if seed%3 == 2 {
			m.idle = r.IntN(m.most)
			o.Kind, o.Victims = pinning.FirehoseKind, uint64(m.idle*bucket*page)
		}
		program(t, o, func(w *world) { agree(t, w, m, r, bucket) })
	}
}

func agree(t *testing.T, w *world, m *cacheModel, r *rand.Rand, bucket int) {
	t.Helper()
	a := w.mmap(64 * 512)
	type held struct {
		l           *pinning.Lease
		first, last int
	}
	var leases []held
	for step := range 300 {
		if len(leases) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(leases))
			h := leases[i]
			leases = slices.Delete(leases, i, i+1)
			require.NoError(t, w.s.Release(w.th, h.l))
			m.release(h.first, h.last)
		} else {
			h := held{first: r.IntN(60)}
			h.last = h.first + r.IntN(1+r.IntN(8))
			from := uint64(h.first*bucket*page + r.IntN(page))
			to := uint64((h.last+1)*bucket*page - r.IntN(page))
			if h.first == h.last && from >= to {
				from = to - 1
			}
			var err error
			h.l, err = w.s.Acquire(w.th, pinning.Region{Addr: a + from, Length: to - from}, pinning.Direction(r.IntN(3)))
			if m.acquire(h.first, h.last) {
				require.NoError(t, err)
				leases = append(leases, h)
			} else {
				require.ErrorIs(t, err, pinning.ErrBound)
			}
		}
		s := w.s.Stats()
		require.EqualValues(t, len(m.list)*bucket*page, s.Pinned, "step %d", step)
		require.EqualValues(t, m.hits, s.Hits, "step %d", step)
		require.EqualValues(t, m.evicted*bucket, s.Evicted, "step %d", step)
		require.EqualValues(t, len(m.list)*bucket, w.Kernel.Stats().PinsHeld)
		for _, h := range leases {
			require.True(t, w.p.Present(a+uint64(h.first*bucket*page), true))
		}
	}
	for _, h := range leases {
		require.NoError(t, w.s.Release(w.th, h.l))
	}
}

// storm is several programs on a node with too little memory for them.
type storm struct {
	*world
	r      *rand.Rand
	bound  uint64
	areas  []*area
	frames map[uint64]uint64 // of leased pages
	counts map[uint64]int    // leases per page
	leased int
}

// area is a mapping.
type area struct {
	addr  uint64
	users int // leases, or one for the thread that unmaps it
}

// TestStorm makes three threads lease, use and discard memory, of which there
// is too little, while a fourth touches more of it. Pinned memory never exceeds
// the bound. A leased page stays in its frame during reclaim. In the end
// nothing is pinned. Only areas without leases are unmapped.
func TestStorm(t *testing.T) {
	reclaimed, unmapped, short := int64(0), int64(0), 0
	kinds := []string{pinning.FineKind, pinning.CacheKind, pinning.FirehoseKind, pinning.CacheKind, pinning.BounceKind}
	for seed := range uint64(*runs) {
		r := rand.New(rand.NewPCG(seed, 2))
		s := &storm{r: r, bound: uint64(40+r.IntN(100)) * page, frames: map[uint64]uint64{}, counts: map[uint64]int{}}
		o := pinning.Options{Kind: kinds[seed%uint64(len(kinds))], Bound: s.bound, Victims: s.bound / 2 / page * page, Buffer: s.bound}
		program(t, o, func(w *world) {
			s.world = w
			short += s.run()
			k := w.Kernel.Stats()
			reclaimed += k.Reclaimed
			unmapped += w.s.Stats().Invalidated
		}, "memory=2MiB", "watermark_min=128KiB", "watermark_low=256KiB", "watermark_high=384KiB")
	}
	require.NotZero(t, reclaimed)
	require.NotZero(t, unmapped)
	require.Less(t, short, *runs*20, "runs that have no memory show nothing")
}

func (s *storm) run() (short int) {
	for range 12 {
		s.areas = append(s.areas, &area{addr: s.mmap(30)})
	}
	left := 4
	for i := range 3 {
		s.Go(i+1, "user", func(th *host.Thread) error {
			for range 120 {
				short += s.lease(th)
			}
			left--
			s.th.Wake()
			return nil
		})
	}
	big := s.mmap(600)
	s.Go(0, "others", func(th *host.Thread) error {
		for range 400 {
			s.touches(th, big+uint64(s.r.IntN(600))*page)
		}
		left--
		s.th.Wake()
		return nil
	})
	for left > 0 {
		s.th.Wait("the others")
	}
	require.Zero(s.t, s.leased)
	return short
}

func (s *storm) touches(th *host.Thread, addr uint64) {
	sp := s.p.Space()
	for absent := sp.Touch(addr, 1, true); absent.Count > 0; absent = sp.Touch(addr, 1, true) {
		if err := sp.Fault(th, absent, true); err != nil {
			require.ErrorIs(s.t, err, host.ErrNoMemory)
			return
		}
	}
}

// lease uses some memory for a while. It returns 1 if there was none.
func (s *storm) lease(th *host.Thread) int {
	i := s.r.IntN(len(s.areas))
	in := s.areas[i]
	if s.r.IntN(12) == 0 && in.users == 0 {
		s.replace(th, i)
		return 0
	}
	in.users++
	defer func() { in.users-- }()
	first := s.r.IntN(30)
	region := pinning.Region{Addr: in.addr + uint64(first*page), Length: uint64(1+s.r.IntN(min(8, 30-first))) * page}
	l, err := s.s.Acquire(th, region, pinning.Direction(s.r.IntN(3)))
	require.LessOrEqual(s.t, s.s.Stats().MostPinned, max(s.bound, uint64(3*8*page)))
	if err != nil {
		require.True(s.t, errors.Is(err, host.ErrNoMemory) || errors.Is(err, pinning.ErrBound), "%v", err)
		return 1
	}
	s.leased++
	at := pinning.Region{Addr: pageOf(l.Addr), Length: region.Length}
	s.note(at)
	for range s.r.IntN(4) {
		th.Sleep(th.Now() + sim.Time(s.r.IntN(100))*us)
		s.look(at)
		if s.r.IntN(4) == 0 {
			require.NoError(s.t, s.p.PageOut(th, at.Addr, at.Length)) // which skips it
			s.look(at)
		}
	}
	s.forget(at)
	require.NoError(s.t, s.s.Release(th, l))
	s.leased--
	return 0
}

// replace unmaps an unused area and maps another.
func (s *storm) replace(th *host.Thread, i int) {
	old := s.areas[i]
	s.areas = slices.Delete(s.areas, i, i+1)
	require.NoError(s.t, s.p.Unmap(th, old.addr, 30*page))
	addr, err := s.p.Map(th, 30*page)
	require.NoError(s.t, err)
	s.areas = append(s.areas, &area{addr: addr})
}

func (s *storm) frame(va uint64) uint64 {
	f, ok := hosttest.Walk(s.p.Tables(), s.Kernel.Spec().AddressBits, va, true)
	require.True(s.t, ok, "a leased page is there")
	return f
}

func (s *storm) note(r pinning.Region) {
	for va := r.Addr; va < r.Addr+r.Length; va += page {
		f := s.frame(va)
		if s.counts[va] > 0 {
			require.Equal(s.t, s.frames[va], f)
		}
		s.frames[va] = f
		s.counts[va]++
	}
}

func (s *storm) look(r pinning.Region) {
	for va := r.Addr; va < r.Addr+r.Length; va += page {
		require.Equal(s.t, s.frames[va], s.frame(va))
	}
}

func (s *storm) forget(r pinning.Region) {
	s.look(r)
	for va := r.Addr; va < r.Addr+r.Length; va += page {
		s.counts[va]--
	}
}
