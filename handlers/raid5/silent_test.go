package raid5

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// One server more fails than the array bears. Whoever accesses it is told, as
// often as it tries, until it has no slots left; nobody waits for ever, nor for
// rows that a client had for itself which has given up.
func TestTwoServersFail(t *testing.T) {
	for by, name := range byNames {
		// parity servers are the last
		for _, shape := range []struct{ second, parity int }{{1, 1}, {3, 1}, {1, 2}, {3, 2}} {
			if shape.parity > 1 && by == Triggered {
				continue
			}
			second := shape.second
			o := Options{Layout: Layout{Data: 3, Unit: 4096, Rows: 20}, Mode: by, Timeout: 50 * sim.Microsecond, Servers: servers(2, 3+shape.parity)}
			down := fmt.Sprintf("fabric.faults={down: [{node: 2, from: 0s, to: 1s}, {node: %d, from: 0s, to: 1s}]}", 2+second)
			c, a := cluster(t, t.Cleanup, "spin-int", 2, o, runtime.Config{Seed: 1, Limits: sim.Limits{Events: 1_000_000}}, down)
			tries := func(p *runtime.Proc) error {
				client, err := a.Open(p, p.Rank())
				if err != nil {
					return err
				}
				for _, failed := range []int{0, 2}[:shape.parity] {
					if err := client.Fail(failed); err != nil {
						return err
					}
				}
				p.Sleep(sim.Time(p.Rank()) * 200 * sim.Microsecond)
				all := p.Alloc(int(o.Bytes()))
				for i := range 6 {
					require.ErrorIs(t, client.Write(0, all), ErrSilent, name)
					err := client.Read(0, all)
					require.ErrorIs(t, err, ErrSilent, name)
					if i > 2 {
						require.ErrorContains(t, err, "too often for this client")
					}
				}
				require.ErrorIs(t, client.Rebuild(), ErrSilent)
				return nil
			}
			for rank := range 2 {
				require.NoError(t, c.Spawn(rank, "client", tries))
			}
			require.NoError(t, c.Run(context.Background()), "%s, server %d", name, second)
		}
	}
}

// Memory of another process has addresses that mean something else in the
// client's: it is refused before anything is sent.
func TestMemoryOfAnother(t *testing.T) {
	o := Options{Layout: Layout{Data: 2, Unit: 512, Rows: 9}}
	c, a := cluster(t, t.Cleanup, "spin-int", 2, o, runtime.Config{Seed: 1})
	var others runtime.View
	require.NoError(t, c.Spawn(0, "other", func(p *runtime.Proc) error { others = p.Alloc(100); return nil }))
	require.NoError(t, c.Spawn(1, "client", func(p *runtime.Proc) error {
		client, err := a.Open(p, 0)
		if err != nil {
			return err
		}
		p.Sleep(sim.Microsecond)
		require.ErrorContains(t, client.Write(0, others), "another process's")
		require.ErrorContains(t, client.Read(0, others), "another process's")
		return client.Write(0, p.Alloc(100))
	}))
	require.NoError(t, c.Run(context.Background()))
}

// A client is gone that had rows for itself, since a server had failed. Another
// one that needs them is told, at once or when it has waited; rebuilding frees
// them.
func TestClientIsGone(t *testing.T) {
	for _, parity := range []int{1, 2} {
		for _, by := range []Mode{Handlers, Hosts} {
			o := Options{Layout: Layout{Data: 2, Unit: 512, Rows: 9}, Mode: by, Timeout: 50 * sim.Microsecond, Servers: servers(2, 2+parity)}
			c, a := cluster(t, t.Cleanup, "spin-int", 2, o, runtime.Config{Seed: 1})
			require.NoError(t, c.Spawn(0, "gone", func(p *runtime.Proc) error {
				client, err := a.Open(p, 0)
				if err != nil {
					return err
				}
				return errors.Join(client.Fail(1), client.Hold())
			}))
			require.NoError(t, c.Spawn(1, "client", func(p *runtime.Proc) error {
				client, err := a.Open(p, 1)
				if err != nil {
					return err
				}
				p.Sleep(10 * sim.Microsecond)
				require.NoError(t, client.Fail(1))
				some := p.Alloc(3000)
				for range 9 { // it may try as often as it likes
					begun := p.Now()
					err = client.Write(0, some)
					require.ErrorIs(t, err, ErrHeld)
					require.ErrorContains(t, err, "client 0")
					require.Greater(t, p.Now()-begun, o.Timeout)
				}
				require.ErrorIs(t, client.Read(0, some), ErrHeld)
				if err := client.Rebuild(); err != nil {
					return err
				}
				client.Restored()
				require.NoError(t, client.Fail(1))
				return errors.Join(client.Write(0, some), client.Read(0, some))
			}))
			require.NoError(t, c.Run(context.Background()))
		}
	}
}
