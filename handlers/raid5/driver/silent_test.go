package driver_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/raid5/driver"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// A second server fails: more than the array bears. Whoever accesses it is told, as often as it tries, until it has no slots left; nobody waits for ever, nor for rows
// that a client had for itself which has given up.
func TestTwoServersFail(t *testing.T) {
	for by, name := range byNames {
		for _, second := range []int{1, 3} { // the parity server is the last
			o := driver.Options{Layout: driver.Layout{Data: 3, Unit: 4096, Rows: 20}, By: by, Timeout: 50 * sim.Microsecond}
			down := fmt.Sprintf("fabric.faults={down: [{node: 2, from: 0s, to: 1s}, {node: %d, from: 0s, to: 1s}]}", 2+second)
			c, a := cluster(t, t.Cleanup, "spin-int", 2, o, runtime.Config{Seed: 1, Limits: sim.Limits{Events: 1_000_000}}, down)
			tries := func(p *runtime.Proc) error {
				client, err := a.Open(p, p.Rank())
				if err != nil {
					return err
				}
				if err := client.Fail(0); err != nil {
					return err
				}
				p.Sleep(sim.Time(p.Rank()) * 200 * sim.Microsecond)
				all := p.Alloc(int(o.Bytes()))
				for i := range 6 {
					require.ErrorIs(t, client.Write(0, all), driver.ErrSilent, name)
					err := client.Read(0, all)
					require.ErrorIs(t, err, driver.ErrSilent, name)
					if i > 2 {
						require.ErrorContains(t, err, "too often for this client")
					}
				}
				require.ErrorIs(t, client.Rebuild(), driver.ErrSilent)
				return nil
			}
			for rank := range 2 {
				require.NoError(t, c.Spawn(rank, "client", tries))
			}
			require.NoError(t, c.Run(context.Background()), "%s, server %d", name, second)
		}
	}
}

// Memory of another process has addresses that mean something else in the client's: it is refused before anything is sent.
func TestMemoryOfAnother(t *testing.T) {
	o := driver.Options{Layout: driver.Layout{Data: 2, Unit: 512, Rows: 9}}
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
