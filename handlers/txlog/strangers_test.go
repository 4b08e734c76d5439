package txlog

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// nonsense sends it.
func nonsense(p *runtime.Proc, o *Options) error {
	memory := p.Alloc(8192)
	md, err := p.NI().Objects().MDBind(&portals.MD{Start: memory.Addr(), Length: uint64(memory.Len())})
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	odd := func() uint64 {
		return []uint64{0, 1, 2, 8, 4095, 4096, 1<<32 - 1, 1 << 40, 1<<63 + 1, 1<<64 - 1, rng.Uint64()}[rng.IntN(11)]
	}
	for i := range 400 {
		b := memory.Write()
		for at := 0; at < 400; at += 8 {
			le.PutUint64(b[at:], odd())
		}
		own := uint64(o.slot())
		at := []uint64{own, own, own, 0, own + 8, odd()}[rng.IntN(6)]
		n := uint64([]int{0, 7, 16, 24, 32, 100, 200, 399, 5000}[rng.IntN(9)])
		if i%4 == 0 {
			err = p.NI().Get(portals.Get{MD: md, Length: n, Target: portals.PhysID(0, 0), PT: 3 + uint32(rng.IntN(4)), MatchBits: Bits | odd()&TagBits, RemoteOffset: odd()})
		} else {
			err = p.NI().Put(portals.Put{MD: md, Length: n, Target: portals.PhysID(0, 0), PT: 3 + uint32(rng.IntN(4)), MatchBits: Bits | odd()&TagBits, RemoteOffset: at, HdrData: odd()})
		}
		if err != nil {
			return err
		}
		p.Sleep(sim.Microsecond)
	}
	return nil
}

// A process that has not joined sends nonsense to all entries of a home:
// requests that are too short, places, lengths and counts that there are not,
// reads beyond the region. The home goes on, and transactions of others commit
// with what they have written.
func TestStrangers(t *testing.T) {
	for _, byHost := range []bool{false, true} {
		p, err := profile.Load("spin-int")
		require.NoError(t, err)
		c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 3, Limits: sim.Limits{Events: 1_000_000}})
		require.NoError(t, err)
		library, err := Load(c)
		require.NoError(t, err)
		o := Options{PT: 3, Region: 4096, Commit: 128, ByHost: byHost}
		require.NoError(t, c.SpawnService(0, "home", func(p *runtime.Proc) error {
			s, err := library.Open(p, o)
			if err != nil {
				return err
			}
			return s.Serve()
		}))
		require.NoError(t, c.Spawn(1, "stranger", func(p *runtime.Proc) error { return nonsense(p, &o) }))
		require.NoError(t, c.Spawn(2, "client", func(p *runtime.Proc) error {
			c, err := Join(p, portals.PhysID(0, 0), o)
			require.NoError(t, err)
			p.Sleep(500 * sim.Microsecond)
			want := []byte("what others have written")
			tx := c.Begin()
			require.NoError(t, tx.Write(100, want))
			committed, err := tx.Commit()
			require.NoError(t, err)
			require.True(t, committed)
			got := make([]byte, len(want))
			tx = c.Begin()
			require.NoError(t, tx.Read(100, got))
			committed, err = tx.Commit()
			require.NoError(t, err)
			require.True(t, committed)
			require.Equal(t, want, got)
			return nil
		}))
		require.NoError(t, c.Run(context.Background()), "by host: %v", byHost)
		require.NoError(t, c.Close())
	}
}

// A node has one client: requests of two would lie at the same place. The
// second one is told so, and the first one goes on.
func TestSecondClientOfANode(t *testing.T) {
	for _, byHost := range []bool{false, true} {
		p, err := profile.Load("spin-int")
		require.NoError(t, err)
		c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 2, Limits: sim.Limits{Events: 1_000_000}})
		require.NoError(t, err)
		library, err := Load(c)
		require.NoError(t, err)
		o := Options{PT: 3, Region: 4096, Commit: 128, ByHost: byHost}
		require.NoError(t, c.SpawnService(0, "home", func(p *runtime.Proc) error {
			s, err := library.Open(p, o)
			if err != nil {
				return err
			}
			return s.Serve()
		}))
		write := func(p *runtime.Proc, at sim.Time) error {
			x, err := Join(p, portals.PhysID(0, 0), o)
			require.NoError(t, err)
			p.Sleep(at)
			for range 3 {
				tx := x.Begin()
				require.NoError(t, tx.Write(100, []byte("mine")))
				if _, err := tx.Commit(); err != nil {
					return err
				}
			}
			return nil
		}
		require.NoError(t, c.Spawn(1, "first", func(p *runtime.Proc) error { return write(p, sim.Microsecond) }))
		require.NoError(t, c.Spawn(1, "second", func(p *runtime.Proc) error {
			require.ErrorIs(t, write(p, 50*sim.Microsecond), ErrTaken)
			return nil
		}))
		require.NoError(t, c.Run(context.Background()), "by host: %v", byHost)
		require.NoError(t, c.Close())
	}
}
