package raid5

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// A process that is no client sends nonsense to all entries of all servers:
// offsets, lengths, tickets and chains that there are not. Servers go on, and a
// client writes and reads afterwards.
func TestStrangers(t *testing.T) {
	kinds := []uint64{
		WriteBits, AloneBits, DeltaBits, ReadBits, DoneBits, FailedBits, FillBits, LockBits, GatherBits, FoldBits, CollectBits, BlendBits,
	}
	for i, by := range []Mode{Handlers, Hosts, Triggered, Handlers, Hosts} {
		o := Options{Layout: Layout{Data: 2, Unit: 512, Rows: 9}, Mode: by, Timeout: sim.Millisecond, Servers: servers(2, 3+i/3)}
		name := byNames[by]
		c, a := cluster(t, t.Cleanup, "spin-int", 2, o, runtime.Config{Seed: 1, Limits: sim.Limits{Events: 2_000_000}})
		require.NoError(t, c.Spawn(0, "stranger", func(p *runtime.Proc) error {
			memory := p.Alloc(100_000)
			md, err := p.NI().Objects().MDBind(&portals.MD{Start: memory.Addr(), Length: uint64(memory.Len())})
			if err != nil {
				return err
			}
			rng := rand.New(rand.NewPCG(1, 2))
			odd := func() uint64 {
				return []uint64{0, 1, 4096, 1 << 16, 1<<36 - 1, 1 << 40, 1<<64 - 1, rng.Uint64()}[rng.IntN(8)]
			}
			for range 300 {
				bits := kinds[rng.IntN(len(kinds))]
				if bits >= GatherBits || rng.IntN(3) == 0 {
					bits |= odd() << ChainShift
				}
				n := uint64([]int{0, 1, 16, 100, 5000, 70_000}[rng.IntN(6)])
				for i, b := 0, memory.Write(); i < 32; i++ {
					b[i] = byte(odd())
				}
				if err := p.NI().Put(portals.Put{MD: md, Length: n, Target: portals.PhysID(uint32(2+rng.IntN(len(o.Servers))), 0), MatchBits: bits, RemoteOffset: odd(), HdrData: odd()}); err != nil {
					return err
				}
				p.Sleep(sim.Microsecond)
			}
			return nil
		}))
		require.NoError(t, c.Spawn(1, "client", func(p *runtime.Proc) error {
			// whose slots the stranger does not name: nobody says yet who may
			// send what
			client, err := a.Open(p, 1)
			if err != nil {
				return err
			}
			p.Sleep(2 * sim.Millisecond) // when the stranger is done
			all := p.Alloc(int(o.Bytes()))
			for i, b := 0, all.Write(); i < len(b); i++ {
				b[i] = byte(i * 7)
			}
			back := p.Alloc(all.Len())
			if err := client.Write(0, all); err != nil {
				return err
			}
			if err := client.Read(0, back); err != nil {
				return err
			}
			require.Equal(t, all.Read(), back.Read(), name)
			return nil
		}))
		require.NoError(t, c.Run(context.Background()), name)
	}
}

// A process that is no parity server says that one has applied what a client
// writes: nobody believes it, and the client hears when its write has ended.
func TestForgedAnswers(t *testing.T) {
	for _, parity := range []int{1, 2} {
		o := Options{Layout: Layout{Data: 1, Unit: 512, Rows: 90}, Timeout: sim.Millisecond, Servers: servers(2, 1+parity)}
		c, a := cluster(t, t.Cleanup, "spin-int", 2, o, runtime.Config{Seed: 1})
		require.NoError(t, c.Spawn(0, "stranger", func(p *runtime.Proc) error {
			md, err := p.NI().Objects().MDBind(&portals.MD{})
			if err != nil {
				return err
			}
			// the client's first slot, and more packets than it sends
			ticket := uint64(NewTicket(1, 0, 0, 99))
			return p.NI().Put(portals.Put{MD: md, Target: portals.PhysID(2, 0), MatchBits: DoneBits, HdrData: ticket})
		}))
		require.NoError(t, c.Spawn(1, "client", func(p *runtime.Proc) error {
			client, err := a.Open(p, 0)
			if err != nil {
				return err
			}
			p.Sleep(10 * sim.Microsecond)
			return client.Write(0, p.Alloc(100)) // one packet: with another answer its count goes past one
		}))
		require.NoError(t, c.Run(context.Background()))
		require.Zero(t, a.Counts(0).Failed)
	}
}
