package driver_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/raid5/driver"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

var byNames = map[driver.By]string{driver.Handlers: "handlers", driver.Hosts: "hosts", driver.Triggered: "triggered"}

// cluster has so many clients on nodes from 0 on, and behind them a node for each server.
func cluster(t require.TestingT, cleanup func(func()), device string, clients int, o driver.Options, cfg runtime.Config, set ...string) (*runtime.Cluster, *driver.Array) {
	p, err := profile.Load(device, set...)
	require.NoError(t, err)
	cfg.Profile, cfg.Nodes = p, clients+o.Data+1
	c, err := runtime.NewCluster(cfg)
	require.NoError(t, err)
	cleanup(func() { require.NoError(t, c.Close()) })
	if o.Servers == nil {
		for i := range o.Data + 1 {
			o.Servers = append(o.Servers, clients+i)
		}
	}
	o.Clients = clients
	a, err := driver.New(c, o)
	require.NoError(t, err)
	return c, a
}

// Whoever serves, with whatever number of data servers, core and stripe unit: what was written anywhere is read, and parity is that of it.
func TestWriteAndRead(t *testing.T) {
	for by, name := range byNames {
		for _, shape := range []struct {
			data, cores int
			unit, rows  int64
		}{{4, 1, 4096, 40}, {1, 1, 512, 3}, {3, 2, 4104, 33}, {7, 3, 65536, 5}, {2, 4, 100_000, 3}} {
			o := driver.Options{Layout: driver.Layout{Data: shape.data, Unit: shape.unit, Rows: shape.rows}, By: by, Cores: shape.cores}
			t.Run(fmt.Sprint(name, shape), func(t *testing.T) {
				c, a := cluster(t, t.Cleanup, "spin-int", 1, o, runtime.Config{Seed: 1})
				require.NoError(t, c.Spawn(0, "client", func(p *runtime.Proc) error {
					client, err := a.Open(p, 0)
					if err != nil {
						return err
					}
					x := &exerciser{t: t, p: p, client: client, want: make([]byte, o.Bytes()), rng: rand.New(rand.NewPCG(1, 2))}
					x.accesses(20)
					x.whole()
					return nil
				}))
				require.NoError(t, c.Run(context.Background()))
				_, failures := c.Failures()
				require.Zero(t, failures)
				require.NoError(t, a.Check())
			})
		}
	}
}

// Whichever server fails: what it had is read and written all the same, by all who serve; a new one in its place is rebuilt, byte by byte.
func TestFailedServer(t *testing.T) {
	for by, name := range byNames {
		for _, data := range []int{1, 2, 5} {
			for failed := range data + 1 {
				t.Run(fmt.Sprint(name, data, failed), func(t *testing.T) {
					o := driver.Options{Layout: driver.Layout{Data: data, Unit: 1000, Rows: 101}, By: by, Cores: 1 + data%2}
					c, a := cluster(t, t.Cleanup, "spin-int", 1, o, runtime.Config{Seed: 1})
					require.NoError(t, c.Spawn(0, "client", func(p *runtime.Proc) error {
						client, err := a.Open(p, 0)
						if err != nil {
							return err
						}
						x := &exerciser{t: t, p: p, client: client, want: make([]byte, o.Bytes()), rng: rand.New(rand.NewPCG(1, uint64(failed)))}
						x.accesses(5)
						x.whole()
						require.NoError(t, client.Fail(failed))
						a.Lose(failed)
						x.whole()
						for n := range 9 { // the last bytes of all servers
							x.read(len(x.want)-data*1000-n, n)
							x.read(len(x.want)-n, n)
						}
						x.accesses(9)
						x.whole()
						require.NoError(t, client.Rebuild())
						client.Restored()
						x.whole()
						x.accesses(5)
						return nil
					}))
					require.NoError(t, c.Run(context.Background()))
					_, failures := c.Failures()
					require.Zero(t, failures)
					require.NoError(t, a.Check())
				})
			}
		}
	}
}

// exerciser writes and reads by one client, and knows what the array has.
type exerciser struct {
	t      require.TestingT
	p      *runtime.Proc
	client *driver.Client
	want   []byte
	rng    *rand.Rand
}

func (x *exerciser) accesses(n int) {
	for range n {
		length := x.rng.IntN(min(len(x.want), []int{3, 5000, 150_000}[x.rng.IntN(3)]) + 1)
		at := x.rng.IntN(len(x.want) - length + 1)
		v := x.p.Alloc(length)
		b := v.Write()
		for i := range b {
			b[i] = byte(x.rng.Uint32())
		}
		copy(x.want[at:], b)
		require.NoError(x.t, x.client.Write(int64(at), v))
		from := max(at-10, 0)
		x.read(from, min(length+20, len(x.want)-from))
	}
}

func (x *exerciser) whole() { x.read(0, len(x.want)) }

func (x *exerciser) read(at, n int) {
	v := x.p.Alloc(n)
	require.NoError(x.t, x.client.Read(int64(at), v))
	got := v.Read()
	for i := range got {
		if got[i] != x.want[at+i] {
			require.Equal(x.t, x.want[at+i], got[i], "byte %d of %d", at+i, len(x.want))
		}
	}
}
