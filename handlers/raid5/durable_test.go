package raid5

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/reedsolomon"
	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/internal/blocktest"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

const device = "storage={kind: nvme, read_latency: 80us, write_latency: 20us, bandwidth: 1.5GB/s, queue_depth: 2, completion: 2us}"

// parityStored is an error if parity on the devices is not that of the data there.
func parityStored(a *Array, o Options) error {
	shards := make([][]byte, max(len(o.Servers), o.Data+1))
	for i := range shards {
		shards[i] = a.Stored(i)
	}
	oracle, err := reedsolomon.New(o.Data, len(shards)-o.Data, reedsolomon.WithJerasureMatrix(), reedsolomon.WithMaxGoroutines(1))
	if err != nil {
		return err
	}
	if same, err := oracle.Verify(shards); err != nil || !same {
		return errors.Join(err, errors.New("parity on the devices is not that of the data"))
	}
	return nil
}

// When a durable write has ended the devices of data and parity servers have
// it, also with a failed server, and a rebuilt one has all. It takes as long as
// the same write of memory and a command of the slowest device, and one that is
// not durable as long as without a device.
func TestDurable(t *testing.T) {
	for by, name := range byNames {
		for failed := -1; failed < 4; failed++ {
			for _, cores := range []int{1, 2} {
				o := Options{Layout: Layout{Data: 3, Unit: 5000, Rows: 61}, Mode: by, Cores: cores, Durable: true}
				c, a := cluster(t, t.Cleanup, "spin-int", 1, o, runtime.Config{Seed: 1}, device)
				require.NoError(t, c.Spawn(0, "client", func(p *runtime.Proc) error {
					client, err := a.Open(p, 0)
					if err != nil {
						return err
					}
					if failed >= 0 {
						require.NoError(t, client.Fail(failed))
					}
					want := make([]byte, o.Bytes())
					rng := rand.New(rand.NewPCG(1, 9))
					for range 12 {
						n := 1 + rng.IntN(40_000)
						at := rng.IntN(len(want) - n)
						v := p.Alloc(n)
						for i, b := 0, v.Write(); i < n; i++ {
							b[i] = byte(rng.Uint32())
						}
						copy(want[at:], v.Read())
						begun := p.Now()
						if err := client.Write(int64(at), v); err != nil {
							return err
						}
						require.Greater(t, p.Now()-begun, 22*sim.Microsecond)
						if failed < 0 {
							require.NoError(t, parityStored(a, o))
							require.Equal(t, want, a.StoredContents(0, o.Bytes()))
						}
					}
					if failed < 0 {
						return nil
					}
					a.Lose(failed)
					clear(a.Stored(failed))
					require.NoError(t, client.Rebuild())
					client.Restored()
					require.NoError(t, parityStored(a, o))
					require.Equal(t, want, a.StoredContents(0, o.Bytes()))
					return nil
				}))
				require.NoError(t, c.Run(context.Background()), "%s, failed %d", name, failed)
				require.Positive(t, c.Node(1).Storage().Stats().Writes)
			}
		}
	}
}

// What a durable write takes longer than one of memory is a message to the
// devices' programs and one back, their looks, and the device's command.
func TestDurableTakesADeviceLonger(t *testing.T) {
	took := func(durable bool, set ...string) (latency sim.Time) {
		o := Options{Layout: Layout{Data: 2, Unit: 4096, Rows: 1}, Durable: durable}
		c, a := cluster(t, t.Cleanup, "spin-int", 1, o, runtime.Config{Seed: 1}, set...)
		require.NoError(t, c.Spawn(0, "client", func(p *runtime.Proc) error {
			client, err := a.Open(p, 0)
			if err != nil {
				return err
			}
			begun := p.Now()
			err = client.Write(0, p.Alloc(3000))
			latency = p.Now() - begun
			return err
		}))
		require.NoError(t, c.Run(context.Background()))
		return latency
	}
	plain := took(false)
	require.Equal(t, plain, took(false, device))
	// latency, 3000 B, completion
	command := 20*sim.Microsecond + 2*sim.Microsecond + 2*sim.Microsecond
	more := took(true, device) - plain - command
	require.Greater(t, more, 600*sim.Nanosecond)
	require.Less(t, more, 1500*sim.Nanosecond)
}

// Power is lost at any moment: of every byte, the devices have what a write
// left that had ended, or one that was under way. When parity has been computed
// anew from them every server may fail, and all of that is read.
func TestPowerLoss(t *testing.T) {
	kept := 0
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 5))
		s := &storm{Storm: blocktest.Storm{Clients: 1 + rng.IntN(3), Rounds: 6, Seed: seed}, device: "spin-int", set: []string{device}}
		s.o = Options{
			Layout: Layout{Data: 1 + rng.IntN(4), Unit: 8 * (64 + rng.Int64N(700)), Rows: 1 + rng.Int64N(12)}, Durable: true, Cores: 1 + rng.IntN(2),
			Mode: []Mode{Handlers, Handlers, Hosts, Triggered}[rng.IntN(4)],
		}
		s.o.Servers = servers(s.Clients, s.o.Data+1)
		if seed%2 == 1 && s.o.Mode != Triggered {
			s.o.Servers = servers(s.Clients, s.o.Data+2)
		}
		start := s.Start(s.o.Bytes())
		s.o.Fill = func(offset int64, b []byte) { copy(b, start[offset:]) }
		c, a := cluster(t, t.Cleanup, s.device, s.Clients, s.o, runtime.Config{
			Seed: seed, Limits: sim.Limits{Until: sim.Time(1+rng.IntN(400)) * sim.Microsecond},
		}, s.set...)
		for rank := range s.Clients {
			require.NoError(t, c.Spawn(rank, "client", func(p *runtime.Proc) error { return s.client(p, a, rank) }))
		}
		if err := c.Run(context.Background()); err != nil {
			require.ErrorAs(t, err, new(*sim.LimitError))
		}
		left := a.StoredContents(0, s.o.Bytes())
		s.Check(t, left)
		kept += s.Ended()
		restart(t, s.o, left)
	}
	require.Greater(t, kept, 100, "writes that had ended")
}

// restart begins anew with what devices of data servers have.
func restart(t *testing.T, o Options, left []byte) {
	o.Fill = func(offset int64, b []byte) { copy(b, left[offset:]) }
	parity := len(o.Servers) - o.Data
	o.Servers = servers(1, o.Data+parity)
	o.Lost = nil
	for i := range parity {
		o.Lost = append(o.Lost, o.Data+i)
	}
	c, a := cluster(t, t.Cleanup, "spin-int", 1, o, runtime.Config{Seed: 1}, device)
	require.NoError(t, c.Spawn(0, "client", func(p *runtime.Proc) error {
		client, err := a.Open(p, 0)
		if err != nil {
			return err
		}
		for _, lost := range o.Lost {
			require.NoError(t, client.Fail(lost))
		}
		require.NoError(t, client.Rebuild())
		client.Restored()
		require.NoError(t, parityStored(a, o))
		all := p.Alloc(len(left))
		for failed := range o.Data {
			require.NoError(t, client.Fail(failed))
			if parity > 1 {
				require.NoError(t, client.Fail((failed+1)%(o.Data+parity)))
			}
			require.NoError(t, client.Read(0, all))
			require.Equal(t, left, all.Read())
			client.Restored()
		}
		return nil
	}))
	require.NoError(t, c.Run(context.Background()))
}

// A node without a storage device keeps nothing.
func TestDurableNeedsADevice(t *testing.T) {
	o := Options{Layout: Layout{Data: 1, Unit: 512, Rows: 1}, Servers: []int{1, 2}}
	c, _ := cluster(t, t.Cleanup, "spin-int", 1, o, runtime.Config{})
	o.Clients, o.Durable, o.PT = 1, true, 4
	_, err := New(c, o)
	require.ErrorContains(t, err, "node 1 has no storage device (storage.kind), which durable writes need")
}
