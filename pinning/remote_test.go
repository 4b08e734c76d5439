package pinning_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/pinning"
	"github.com/spinsim/spinsim/sim"
)

// wire carries requests of an initiator to one peer: 5 us there and back.
type wire struct {
	from   int
	export *pinning.Export
	moves  []pinning.Move
}

func (c *wire) Move(t *host.Thread, _ int, m pinning.Move) error {
	c.moves = append(c.moves, m)
	t.Sleep(t.Now() + 5*us)
	return c.export.Serve(t, c.from, m)
}

func at(a uint64, first, n int) pinning.Region {
	return pinning.Region{Addr: a + uint64(first*page), Length: uint64(n * page)}
}

// 512 MB of buckets of four pages on 16 nodes are 2,184 firehoses to each (the example in GASNet's source, where Firehose is in use).
func TestFirehosesEach(t *testing.T) {
	require.Equal(t, 2184, pinning.FirehosesEach(512<<20, 4*page, 16))
}

// Two initiators with two firehoses each: what they reach needs no word; the bucket that was given back first is moved; one message moves all; and a bucket that another still has is
// not unpinned when one lets go of it.
func TestHoses(t *testing.T) {
	program(t, pinning.Options{Kind: pinning.FirehoseKind}, func(w *world) {
		a := w.mmap(10)
		e := pinning.NewExport(w.s, 2)
		one, two := &wire{from: 1, export: e}, &wire{from: 2, export: e}
		h, err := pinning.NewHoses(one, page, 2)
		require.NoError(t, err)
		other, err := pinning.NewHoses(two, page, 2)
		require.NoError(t, err)
		use := func(h *pinning.Hoses, r pinning.Region) {
			l, err := h.Acquire(w.th, 7, r)
			require.NoError(t, err)
			require.NoError(t, h.Release(w.th, l))
		}
		use(h, at(a, 0, 2))
		use(h, at(a, 0, 1))
		use(other, at(a, 0, 1))
		require.EqualValues(t, 2*page, w.s.Stats().Pinned)
		use(h, pinning.Region{Addr: a + 5*page + 10, Length: 1}) // in the place of page 1, which was used before page 0
		require.Equal(t, []pinning.Region{at(a, 1, 1)}, one.moves[1].Drop)
		require.EqualValues(t, 2*page, w.s.Stats().Pinned)
		use(h, at(a, 6, 2))
		require.Equal(t, pinning.Move{Drop: []pinning.Region{at(a, 0, 1), at(a, 5, 1)}, Want: []pinning.Region{at(a, 6, 1), at(a, 7, 1)}}, one.moves[2])
		require.EqualValues(t, 3*page, w.s.Stats().Pinned, "the other has page 0")
		require.Equal(t, pinning.RemoteStats{Leases: 4, Hits: 1, Moves: 3, Reused: 3}, h.Stats())

		l, err := h.Acquire(w.th, 7, at(a, 6, 1))
		require.NoError(t, err)
		_, err = h.Acquire(w.th, 7, at(a, 0, 2))
		require.ErrorIs(t, err, pinning.ErrBound)
		require.NoError(t, h.Release(w.th, l))
		require.ErrorIs(t, e.Serve(w.th, 1, pinning.Move{Want: []pinning.Region{at(a, 1, 1)}}), pinning.ErrBound)
		_, err = h.Acquire(w.th, 7, at(a, 40, 1)) // the peer has no such page: what was let go for it is gone
		require.ErrorIs(t, err, host.ErrNoMapping)
		require.NoError(t, e.Serve(w.th, 1, pinning.Move{Drop: []pinning.Region{at(a, 6, 1)}}))
		require.ErrorContains(t, e.Serve(w.th, 1, pinning.Move{Drop: []pinning.Region{at(a, 6, 1)}}), "was not asked for")
		require.NoError(t, e.Serve(w.th, 2, pinning.Move{Drop: []pinning.Region{at(a, 0, 1)}}))
	})
}

// A rendezvous asks before each operation and tells behind it. With fine-grained pinning the peer pins and unpins each time, with a cache it pins once.
func TestRendezvous(t *testing.T) {
	for kind, pins := range map[string]int64{pinning.FineKind: 3, pinning.CacheKind: 1} {
		program(t, pinning.Options{Kind: kind, Bound: 10 * page}, func(w *world) {
			a := w.mmap(10)
			c := &wire{export: pinning.NewExport(w.s, 0)}
			v := pinning.NewRendezvous(c)
			for range 3 {
				l, err := v.Acquire(w.th, 7, at(a, 2, 1))
				require.NoError(t, err)
				require.EqualValues(t, page, w.s.Stats().Pinned)
				require.NoError(t, v.Release(w.th, l))
			}
			require.Equal(t, pins, w.s.Stats().Pins)
			require.Equal(t, pinning.RemoteStats{Leases: 3, Moves: 6}, v.Stats())
			_, err := v.Acquire(w.th, 7, at(a, 9, 2))
			require.ErrorIs(t, err, host.ErrNoMapping)
		})
	}
}

// TestHosesStorm has three initiators with two threads each reach random memory: the peer never has more than they may have together and the bound of its victims pinned, a page that is leased is pinned,
// and when all have let go, only victims are left.
func TestHosesStorm(t *testing.T) {
	hits, moves := int64(0), int64(0)
	for seed := range uint64(*runs / 3) {
		r := rand.New(rand.NewPCG(seed, 3))
		each, victims := 6+r.IntN(6), r.IntN(10)
		program(t, pinning.Options{Kind: pinning.FirehoseKind, Victims: uint64(victims * page)}, func(w *world) {
			a, left := w.mmap(64), 0
			e := pinning.NewExport(w.s, each)
			for i := range 3 {
				h, err := pinning.NewHoses(&wire{from: i, export: e}, page, each)
				require.NoError(t, err)
				for range 2 {
					left++
					w.Go(i, "initiator", func(th *host.Thread) error {
						defer func() { left--; w.th.Wake() }()
						for range 60 {
							first := r.IntN(62)
							l, err := h.Acquire(th, 7, at(a, first, 1+r.IntN(3)))
							require.NoError(t, err)
							th.Sleep(th.Now() + sim.Time(r.IntN(9))*us)
							require.True(t, w.p.Present(a+uint64(first*page), true))
							require.LessOrEqual(t, w.s.Stats().Pinned, uint64((3*each+victims)*page))
							require.NoError(t, h.Release(th, l))
						}
						return nil
					})
				}
				defer func() { hits += h.Stats().Hits; moves += h.Stats().Moves }()
			}
			for left > 0 {
				w.th.Wait("the initiators")
			}
			for i := range 3 { // an initiator that ends lets go of all
				for b := range 64 {
					_ = e.Serve(w.th, i, pinning.Move{Drop: []pinning.Region{at(a, b, 1)}})
				}
			}
			require.LessOrEqual(t, w.s.Stats().Pinned, uint64(victims*page))
		})
	}
	require.NotZero(t, hits)
	require.NotZero(t, moves)
}
