package raid5

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

var byNames = map[Mode]string{Handlers: "handlers", Hosts: "hosts", Triggered: "triggered"}

// cluster has so many clients on nodes from 0 on, and behind them a node for
// each server: with one for parity, if the options name none.
func cluster(t require.TestingT, cleanup func(func()), device string, clients int, o Options, cfg runtime.Config, set ...string) (*runtime.Cluster, *Array) {
	p, err := profile.Load(device, set...)
	require.NoError(t, err)
	if o.Servers == nil {
		o.Servers = servers(clients, o.Data+1)
	}
	cfg.Profile, cfg.Nodes = p, max(clients+o.Data+1, slices.Max(o.Servers)+1)
	c, err := runtime.NewCluster(cfg)
	require.NoError(t, err)
	cleanup(func() { require.NoError(t, c.Close()) })
	o.Clients = clients
	a, err := New(c, o)
	require.NoError(t, err)
	return c, a
}

// servers are so many nodes behind the clients'.
func servers(clients, n int) (nodes []int) {
	for i := range n {
		nodes = append(nodes, clients+i)
	}
	return nodes
}

// All modes, numbers of data servers, cores and stripe units: data written
// anywhere can be read, and parity agrees with it.
func TestWriteAndRead(t *testing.T) {
	for by, name := range byNames {
		for _, shape := range []struct {
			data, cores int
			unit, rows  int64
			parity      int
		}{{4, 1, 4096, 40, 1}, {1, 1, 512, 3, 1}, {3, 2, 4104, 33, 1}, {7, 3, 65536, 5, 1}, {2, 4, 100_000, 3, 1}, {3, 2, 4104, 33, 2}, {2, 1, 65536, 30, 8}} {
			if shape.parity > 1 && by == Triggered {
				continue
			}
			o := Options{Layout: Layout{Data: shape.data, Unit: shape.unit, Rows: shape.rows}, Mode: by, Cores: shape.cores, Servers: servers(1, shape.data+shape.parity)}
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
					all := p.Alloc(len(x.want))
					copy(all.Write(), x.want)
					return client.Write(0, all)
				}))
				require.NoError(t, c.Run(context.Background()))
				_, failures := c.Failures()
				require.Zero(t, failures)
				require.NoError(t, a.Check())
			})
		}
	}
}

// Whichever server fails: what it had is read and written all the same, by all
// who serve; a new one in its place is rebuilt, byte by byte.
func TestFailedServer(t *testing.T) {
	for by, name := range byNames {
		for _, data := range []int{1, 2, 5} {
			for failed := range data + 1 {
				t.Run(fmt.Sprint(name, data, failed), func(t *testing.T) {
					o := Options{Layout: Layout{Data: data, Unit: 1000, Rows: 101}, Mode: by, Cores: 1 + data%2}
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

// Whichever servers fail, as many as there are for parity or fewer: what they
// had is read and written all the same, by all who serve; new ones in their
// place are rebuilt, byte by byte. Each set of them, and one after the other.
func TestFailedServers(t *testing.T) {
	for _, by := range []Mode{Handlers, Hosts} {
		for _, shape := range []struct{ data, parity, cores int }{{3, 2, 2}, {1, 2, 1}, {2, 3, 1}} {
			n := shape.data + shape.parity
			o := Options{Layout: Layout{Data: shape.data, Unit: 1000, Rows: 41}, Mode: by, Cores: shape.cores, Servers: servers(1, n)}
			for failed := uint32(1); failed < 1<<n; failed++ {
				if bits.OnesCount32(failed) <= shape.parity {
					failTogether(t, o, failed)
				}
			}
		}
	}
}

func failTogether(t *testing.T, o Options, failed uint32) {
	c, a := cluster(t, t.Cleanup, "spin-int", 1, o, runtime.Config{Seed: 1})
	name := fmt.Sprintf("%s %d+%d %b", byNames[o.Mode], o.Data, len(o.Servers)-o.Data, failed)
	require.NoError(t, c.Spawn(0, "client", func(p *runtime.Proc) error {
		client, err := a.Open(p, 0)
		if err != nil {
			return err
		}
		x := &exerciser{t: t, p: p, client: client, want: make([]byte, o.Bytes()), rng: rand.New(rand.NewPCG(1, uint64(failed)))}
		x.accesses(3)
		require.NoError(t, a.Check(), name)
		for i := range o.Servers {
			if failed>>i&1 != 0 {
				require.NoError(t, client.Fail(i))
				a.Lose(i)
				x.accesses(2)
			}
		}
		x.whole()
		if err := client.Rebuild(); err != nil {
			return err
		}
		client.Restored()
		require.NoError(t, a.Check(), name)
		x.accesses(1)
		x.whole()
		return nil
	}))
	require.NoError(t, c.Run(context.Background()), name)
	_, failures := c.Failures()
	require.Zero(t, failures)
	require.NoError(t, a.Check(), name)
	for i := range o.Servers {
		require.Equal(t, o.Mode == Handlers && failed>>i&1 != 0, a.Counts(i).Filled > 0, "%s: server %d", name, i)
	}
}

// exerciser writes and reads by one client, and keeps a copy of the array.
type exerciser struct {
	t      require.TestingT
	p      *runtime.Proc
	client *Client
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
