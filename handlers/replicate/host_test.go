package replicate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/handlers/internal/blocktest"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var byNames = map[Mode]string{Handlers: "handlers", Hosts: "hosts", Client: "client"}

// cluster has so many clients on nodes from 0 on, and behind them a node for each server.
func cluster(t require.TestingT, cleanup func(func()), device string, clients, servers int, o Options, cfg runtime.Config, set ...string) (*runtime.Cluster, *Group) {
	p, err := profile.Load(device, set...)
	require.NoError(t, err)
	cfg.Profile, cfg.Nodes = p, clients+servers
	c, err := runtime.NewCluster(cfg)
	require.NoError(t, err)
	cleanup(func() { require.NoError(t, c.Close()) })
	for i := range servers {
		o.Servers = append(o.Servers, clients+i)
	}
	o.Clients = clients
	g, err := New(c, o)
	require.NoError(t, err)
	return c, g
}

// storm is clients that write and read what they like at the same time, some of it the same bytes.
type storm struct {
	blocktest.Storm
	o       Options
	device  string
	set     []string
	servers int
	failed  int // server; -1: none
}

func drawStorm(rt *rapid.T) *storm {
	s := &storm{failed: -1}
	s.servers = rapid.IntRange(1, 7).Draw(rt, "servers")
	s.o.Bytes = rapid.Int64Range(1, 60_000).Draw(rt, "bytes")
	s.o.Tree = rapid.Bool().Draw(rt, "tree")
	s.o.Mode = rapid.SampledFrom([]Mode{Handlers, Handlers, Handlers, Hosts}).Draw(rt, "by")
	s.device = rapid.SampledFrom([]string{"spin-int", "spin-dis"}).Draw(rt, "device")
	s.Clients = rapid.IntRange(1, 4).Draw(rt, "clients")
	s.Rounds = rapid.IntRange(1, 8).Draw(rt, "rounds")
	if rapid.IntRange(0, 3).Draw(rt, "small packets") == 0 {
		s.set = append(s.set, fmt.Sprintf("fabric.mtu=%d", 8*rapid.IntRange(64, 512).Draw(rt, "mtu")))
	}
	if s.o.Mode == Handlers && rapid.Bool().Draw(rt, "guarded") {
		s.o.Key = &Key{1, 2}
	}
	if s.servers > 1 && rapid.Bool().Draw(rt, "a server has failed") {
		s.failed = rapid.IntRange(0, s.servers-1).Draw(rt, "failed")
	}
	if rapid.Bool().Draw(rt, "faults") {
		s.set = append(s.set, "transport.kind=reliable", "transport.timeout=20us", "fabric.faults={loss: 0.02, corrupt: 0.01, duplicate: 0.02, delay: 0.05, max_delay: 5us}")
	}
	s.Seed = rapid.Uint64().Draw(rt, "seed")
	return s
}

func (s *storm) run(t require.TestingT, cleanup func(func())) {
	start := s.Start(s.o.Bytes)
	s.o.Fill = func(offset int64, b []byte) { copy(b, start[offset:]) }
	c, g := cluster(t, cleanup, s.device, s.Clients, s.servers, s.o, runtime.Config{Seed: s.Seed, Limits: sim.Limits{Events: 20_000_000}}, s.set...)
	for rank := range s.Clients {
		require.NoError(t, c.Spawn(rank, "client", func(p *runtime.Proc) error { return s.client(p, g, rank) }))
	}
	require.NoError(t, c.Run(context.Background()))
	list, failures := c.Failures()
	require.Zero(t, failures, "%v", list)
	var alive []int
	for i := range s.servers {
		if i != s.failed {
			alive = append(alive, i)
		}
	}
	require.NoError(t, g.Check(alive...))
	s.Check(t, g.Peek(alive[0]))
}

func (s *storm) client(p *runtime.Proc, g *Group, rank int) error {
	client, err := g.Open(p, rank)
	if err != nil {
		return err
	}
	if s.o.Key != nil {
		client.Use(Grant(s.o.Key, client.ID(), 0, s.o.Bytes, MayRead|MayWrite, 0))
	}
	if s.failed >= 0 {
		if err := client.Fail(s.failed); err != nil {
			return err
		}
	}
	return s.Client(p, client, rank, 8, 5000, 60_000)
}

// Clients write at the same time, over each other, along rings and trees, on
// networks with faults, with all servers or without one of them. When all is
// quiet all servers have the same bytes, and each comes from the last write, or
// from one that overlapped it in time.
func TestStorm(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawStorm(rt)
		s.run(rt, rt.Cleanup)
	})
}

// All clients write the same block at once: the order matters.
func TestClientsFightForABlock(t *testing.T) {
	for _, device := range []string{"spin-int", "spin-dis"} {
		for _, tree := range []bool{false, true} {
			for seed := range uint64(3) {
				s := &storm{Storm: blocktest.Storm{Clients: 4, Rounds: 20, Seed: seed}, device: device, servers: 5, failed: -1, set: []string{"nic.egress_packets=1", "hpu.contexts=4"}}
				s.o = Options{Bytes: 4096, Tree: tree}
				s.run(t, t.Cleanup)
			}
		}
	}
}

// Whoever sends the copies, along whatever: what was written anywhere is at
// every server, and is read; also when the range is large.
func TestWriteAndRead(t *testing.T) {
	for by, name := range byNames {
		for _, servers := range []int{1, 2, 5, 16} {
			for _, tree := range []bool{false, true} {
				const size = 1_100_001
				c, g := cluster(t, t.Cleanup, "spin-int", 1, servers, Options{Bytes: size, Tree: tree, Mode: by}, runtime.Config{Seed: 1})
				require.NoError(t, c.Spawn(0, "client", func(p *runtime.Proc) error {
					client, err := g.Open(p, 0)
					if err != nil {
						return err
					}
					want := make([]byte, size)
					rng := rand.New(rand.NewPCG(1, 2))
					for _, n := range []int{1, 5000, size} {
						at := rng.IntN(size - n + 1)
						v := p.Alloc(n)
						for i, b := 0, v.Write(); i < n; i += 1 + i/5000 {
							b[i] = byte(rng.Uint32())
						}
						copy(want[at:], v.Read())
						if err := client.Write(int64(at), v); err != nil {
							return err
						}
						for i := range servers {
							require.True(t, bytes.Equal(want, g.Peek(i)), "%s, server %d of %d, tree %v, %d B", name, i, servers, tree, n)
						}
						require.NoError(t, client.Read(int64(at), v))
						require.True(t, bytes.Equal(want[at:at+n], v.Read()))
					}
					return nil
				}))
				require.NoError(t, c.Run(context.Background()))
				_, failures := c.Failures()
				require.Zero(t, failures)
			}
		}
	}
}

// A server that stops answering in the middle of a write: the client hears of
// nothing for a while, is told which one it is, and writes again without it.
// When a new server in its place has been filled all is as it was.
func TestServerFailsInTheMiddle(t *testing.T) {
	silent := 0
	for by, name := range byNames {
		for _, tree := range []bool{false, true} {
			for failed := range 4 {
				for _, from := range []sim.Time{0, 3 * sim.Microsecond} {
					o := Options{Bytes: 100_000, Tree: tree, Mode: by, Timeout: 5 * sim.Millisecond}
					down := fmt.Sprintf("fabric.faults={down: [{node: %d, from: %dns, to: 4ms}]}", 1+failed, from/sim.Nanosecond)
					c, g := cluster(t, t.Cleanup, "spin-int", 1, 4, o, runtime.Config{Seed: 1}, "transport.kind=reliable", "transport.timeout=10us", "transport.retries=3", down)
					require.NoError(t, c.Spawn(0, "client", func(p *runtime.Proc) error {
						client, err := g.Open(p, 0)
						if err != nil {
							return err
						}
						all := p.Alloc(int(o.Bytes))
						rng := rand.New(rand.NewPCG(1, 2))
						for i, b := 0, all.Write(); i < len(b); i++ {
							b[i] = byte(rng.Uint32())
						}
						lost := false
						for err := client.Write(0, all); err != nil; err = client.Write(0, all) {
							require.True(t, errors.Is(err, ErrSilent) || errors.Is(err, ErrMemory), "%v", err)
							require.NoError(t, client.Fail(failed))
							lost = true
						}
						// until the node is back, with memory that is old
						p.SleepUntil(max(p.Now(), 20*sim.Millisecond))
						if lost {
							silent++
							g.Clear(failed)
							require.NoError(t, client.Copy(failed))
						}
						return client.Write(0, all)
					}))
					require.NoError(t, c.Run(context.Background()), "%s %v %d %d", name, tree, failed, from)
					require.NoError(t, g.Check(0, 1, 2, 3), "%s %v %d %d", name, tree, failed, from)
				}
			}
		}
	}
	require.GreaterOrEqual(t, silent, 24+6, "each at the beginning, and half of the others")
}

// What makes no sense is refused, with what was expected.
func TestErrors(t *testing.T) {
	good := Options{Bytes: 100, Servers: []int{1, 2}, Clients: 1}
	for expected, spoil := range map[string]func(o *Options){
		"0 servers, expected 1 to 16":  func(o *Options) { o.Servers = nil },
		"17 servers, expected 1 to 16": func(o *Options) { o.Servers = make([]int, 17) },
		"server 1 is on node 9 of 3":   func(o *Options) { o.Servers = []int{1, 9} },
		"two servers on node 1":        func(o *Options) { o.Servers = []int{1, 1} },
		"0 B, expected 1 to":           func(o *Options) { o.Bytes = 0 },
		"0 clients, expected 1 to 512": func(o *Options) { o.Clients = 0 },
		"a key without handlers":       func(o *Options) { o.Key, o.Mode = &Key{}, Hosts },
		"sent by 7, expected 0 to 2":   func(o *Options) { o.Mode = 7 },
	} {
		o := good
		spoil(&o)
		c, _ := cluster(t, t.Cleanup, "spin-int", 1, 2, Options{Bytes: 100}, runtime.Config{})
		_, err := New(c, o)
		require.ErrorContains(t, err, expected)
	}
	c, g := cluster(t, t.Cleanup, "spin-int", 1, 2, Options{Bytes: 100}, runtime.Config{})
	require.NoError(t, c.Spawn(0, "client", func(p *runtime.Proc) error {
		client, err := g.Open(p, 0)
		if err != nil {
			return err
		}
		for _, number := range []int{-1, 1} {
			_, err = g.Open(p, number)
			require.ErrorContains(t, err, "expected 0 to 0")
		}
		some := p.Alloc(50)
		for _, at := range []int64{-1, 51, 1<<63 - 1} {
			require.ErrorIs(t, client.Write(at, some), ErrRange)
			require.ErrorIs(t, client.Read(at, some), ErrRange)
		}
		require.NoError(t, client.Write(100, runtime.View{}))
		require.ErrorContains(t, client.Fail(2), "no server 2, expected 0 to 1")
		require.NoError(t, client.Fail(0))
		require.ErrorIs(t, client.Fail(1), ErrFailed)
		return nil
	}))
	require.NoError(t, c.Run(context.Background()))
}
