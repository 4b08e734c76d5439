package pinning_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/sim"
)

// wire carries requests of an initiator to one peer: 5 us per round trip.
type wire struct {
	from   int
	export *pinning.Export
	moves  []pinning.Move
}

func (c *wire) Move(t *host.Thread, _ int, m pinning.Move) ([]uint64, error) {
	c.moves = append(c.moves, m)
	t.Sleep(t.Now() + 5*us)
	return c.export.Serve(t, c.from, m)
}

func at(a uint64, first, n int) pinning.Region {
	return pinning.Region{Addr: a + uint64(first*page), Length: uint64(n * page)}
}

func grants(regions ...pinning.Region) (list []pinning.Grant) {
	for _, r := range regions {
		list = append(list, pinning.Grant{Region: r, At: r.Addr})
	}
	return list
}

// afar makes a strategy for memory of peer 7.
func afar(t *testing.T, kind string, c *wire, each int) pinning.Strategy {
	t.Helper()
	s, err := pinning.New(nil, nil, pinning.Options{Kind: kind, Courier: c, Peer: 7, Each: each})
	require.NoError(t, err)
	return s
}

// 512 MB in buckets of four pages on 16 nodes give 2,184 firehoses to each node
// (the example in the source of GASNet, which uses Firehose).
func TestFirehosesEach(t *testing.T) {
	require.Equal(t, 2184, pinning.FirehosesEach(512<<20, 4*page, 16))
}

// Two initiators have two firehoses each. Memory they reach needs no message.
// The firehose released first is moved. One message moves all. When one
// initiator releases a bucket that another still has, it stays pinned.
func TestHoses(t *testing.T) {
	program(t, pinning.Options{Kind: pinning.FirehoseKind}, func(w *world) {
		a := w.mmap(10)
		e := pinning.NewExport(w.s, 2)
		one, two := &wire{from: 1, export: e}, &wire{from: 2, export: e}
		h, other := afar(t, pinning.FirehoseKind, one, 2), afar(t, pinning.FirehoseKind, two, 2)
		use := func(h pinning.Strategy, r pinning.Region) {
			l, err := h.Acquire(w.th, r, pinning.FromDevice)
			require.NoError(t, err)
			require.NoError(t, h.Release(w.th, l))
		}
		use(h, at(a, 0, 2))
		use(h, at(a, 0, 1))
		use(other, at(a, 0, 1))
		require.EqualValues(t, 2*page, w.s.Stats().Pinned)
		// replaces page 1, which was used before page 0
		use(h, pinning.Region{Addr: a + 5*page + 10, Length: 1})
		require.Equal(t, grants(at(a, 1, 1)), one.moves[1].Drop)
		require.EqualValues(t, 2*page, w.s.Stats().Pinned)
		use(h, at(a, 6, 2))
		require.Equal(t, pinning.Move{Drop: grants(at(a, 0, 1), at(a, 5, 1)), Want: []pinning.Region{at(a, 6, 1), at(a, 7, 1)}, Direction: pinning.Both}, one.moves[2])
		require.EqualValues(t, 3*page, w.s.Stats().Pinned, "the other has page 0")
		require.Equal(t, pinning.Stats{Leases: 4, Hits: 1, Moves: 3, Reused: 3}, h.Stats())

		l, err := h.Acquire(w.th, at(a, 6, 1), pinning.FromDevice)
		require.NoError(t, err)
		require.ErrorIs(t, h.Close(w.th), pinning.ErrLeased)
		_, err = h.Acquire(w.th, at(a, 0, 2), pinning.FromDevice)
		require.ErrorIs(t, err, pinning.ErrBound)
		require.NoError(t, h.Release(w.th, l))
		serve := func(from int, m pinning.Move) error { _, err := e.Serve(w.th, from, m); return err }
		require.ErrorIs(t, serve(1, pinning.Move{Want: []pinning.Region{at(a, 1, 1)}}), pinning.ErrBound)
		// the peer has no such page: the firehose released for it is gone
		_, err = h.Acquire(w.th, at(a, 40, 1), pinning.FromDevice)
		require.ErrorIs(t, err, host.ErrNoMapping)
		require.NoError(t, h.Close(w.th))
		require.NoError(t, h.Close(w.th), "there is nothing to give back")
		require.ErrorContains(t, serve(1, pinning.Move{Drop: grants(at(a, 6, 1))}), "was not asked for")
		require.EqualValues(t, page, w.s.Stats().Pinned, "the other's")
		require.NoError(t, other.Close(w.th))
		require.Zero(t, w.s.Stats().Leased)
	})
}

// A rendezvous sends a message before and after each operation. With
// fine-grained pinning the peer pins and unpins each time, with a cache it pins
// once.
func TestRendezvous(t *testing.T) {
	for kind, pins := range map[string]int64{pinning.FineKind: 3, pinning.CacheKind: 1} {
		program(t, pinning.Options{Kind: kind, Bound: 10 * page}, func(w *world) {
			a := w.mmap(10)
			c := &wire{export: pinning.NewExport(w.s, 0)}
			v := afar(t, pinning.RendezvousKind, c, 0)
			for range 3 {
				l, err := v.Acquire(w.th, at(a, 2, 1), pinning.FromDevice)
				require.NoError(t, err)
				require.EqualValues(t, page, w.s.Stats().Pinned)
				require.NoError(t, v.Release(w.th, l))
			}
			require.Equal(t, pins, w.s.Stats().Pins)
			require.Equal(t, pinning.Stats{Leases: 3, Moves: 6}, v.Stats())
			_, err := v.Acquire(w.th, at(a, 9, 2), pinning.FromDevice)
			require.ErrorIs(t, err, host.ErrNoMapping)
		})
	}
}

// TestHosesStorm makes three initiators with two threads each access random
// memory. The peer's pinned memory never exceeds all firehoses plus the bound
// of its victims. A leased page is pinned. When all are released, only victims
// are left.
func TestHosesStorm(t *testing.T) {
	hits, moves := int64(0), int64(0)
	for seed := range uint64(*runs / 3) {
		r := rand.New(rand.NewPCG(seed, 3))
		each, victims := 6+r.IntN(6), r.IntN(10)
		program(t, pinning.Options{Kind: pinning.FirehoseKind, Victims: uint64(victims * page)}, func(w *world) {
			a, left := w.mmap(64), 0
			e := pinning.NewExport(w.s, each)
			var all []pinning.Strategy
			for i := range 3 {
				h := afar(t, pinning.FirehoseKind, &wire{from: i, export: e}, each)
				all = append(all, h)
				for range 2 {
					left++
					w.Go(i, "initiator", func(th *host.Thread) error {
						defer func() { left--; w.th.Wake() }()
						for range 60 {
							first := r.IntN(62)
							l, err := h.Acquire(th, at(a, first, 1+r.IntN(3)), pinning.FromDevice)
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
			for _, h := range all {
				require.NoError(t, h.Close(w.th))
			}
			require.Zero(t, w.s.Stats().Leased)
			require.LessOrEqual(t, w.s.Stats().Pinned, uint64(victims*page))
		})
	}
	require.NotZero(t, hits)
	require.NotZero(t, moves)
}

// A peer's bounce buffer holds the bytes until the lease ends. The initiator
// gets their address and writes there. Another lease of the same region has
// another address.
func TestBounceOfAPeer(t *testing.T) {
	program(t, pinning.Options{Kind: pinning.BounceKind, Buffer: 4 * page}, func(w *world) {
		a := w.mmap(1)
		touch(t, w, a)
		v := afar(t, pinning.RendezvousKind, &wire{export: pinning.NewExport(w.s, 0)}, 0)
		var leases [2]*pinning.Lease
		for i := range leases {
			var err error
			leases[i], err = v.Acquire(w.th, pinning.Region{Addr: a + 5, Length: 10}, pinning.FromDevice)
			require.NoError(t, err)
			require.NotEqual(t, a+5, leases[i].Addr)
			b, ok := w.p.Space().Bytes(leases[i].Addr, 10)
			require.True(t, ok)
			copy(b, []string{"first", "other"}[i])
		}
		require.NotEqual(t, leases[0].Addr, leases[1].Addr)
		for i, l := range leases {
			require.NoError(t, v.Release(w.th, l))
			b, _ := w.p.Space().Bytes(a+5, 5)
			require.Equal(t, []string{"first", "other"}[i], string(b))
		}
		require.EqualValues(t, 20, w.s.Stats().CopiedBytes, "what a device writes is not copied before")
	})
}
