package raid5

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/klauspost/reedsolomon"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/handlers/internal/blocktest"
	_ "github.com/spinsim/spinsim/internal/rapidtest" // fewer checks
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// storm is clients that write and read what they like at the same time, some of it the same bytes.
type storm struct {
	blocktest.Storm
	o      Options
	device string
	set    []string
	parity int // servers
	failed []int
}

func drawStorm(rt *rapid.T) *storm {
	s := &storm{}
	s.o.Data = rapid.IntRange(1, 6).Draw(rt, "data servers")
	s.o.Unit = 8 * rapid.Int64Range(64, 1200).Draw(rt, "words of a unit")
	s.o.Rows = rapid.Int64Range(1, 40).Draw(rt, "rows")
	s.o.Mode = rapid.SampledFrom([]Mode{Handlers, Handlers, Handlers, Hosts, Triggered}).Draw(rt, "by")
	s.o.Cores = rapid.IntRange(1, 3).Draw(rt, "cores")
	s.device = rapid.SampledFrom([]string{"spin-int", "spin-dis"}).Draw(rt, "device")
	s.Clients = rapid.IntRange(1, 4).Draw(rt, "clients")
	s.Rounds = rapid.IntRange(1, 8).Draw(rt, "rounds")
	s.parity = 1
	if s.o.Mode != Triggered {
		s.parity = rapid.IntRange(1, 3).Draw(rt, "parity servers")
	}
	if rapid.Bool().Draw(rt, "servers have failed") {
		s.failed = rapid.SliceOfNDistinct(rapid.IntRange(0, s.o.Data+s.parity-1), 1, s.parity, rapid.ID).Draw(rt, "failed")
		s.o.Lost = s.failed
	}
	if rapid.Bool().Draw(rt, "faults") {
		s.set = append(s.set, "transport.kind=reliable", "transport.timeout=20us", "fabric.faults={loss: 0.02, corrupt: 0.01, duplicate: 0.02, delay: 0.05, max_delay: 5us}")
	}
	s.Seed = rapid.Uint64().Draw(rt, "seed")
	return s
}

func (s *storm) run(t require.TestingT, cleanup func(func())) {
	start := s.Start(s.o.Bytes())
	s.o.Fill = func(offset int64, b []byte) { copy(b, start[offset:]) }
	s.o.Servers = servers(s.Clients, s.o.Data+max(s.parity, 1))
	c, a := cluster(t, cleanup, s.device, s.Clients, s.o, runtime.Config{Seed: s.Seed, Limits: sim.Limits{Events: 20_000_000}}, s.set...)
	for rank := range s.Clients {
		require.NoError(t, c.Spawn(rank, "client", func(p *runtime.Proc) error { return s.client(p, a, rank) }))
	}
	require.NoError(t, c.Run(context.Background()))
	list, failures := c.Failures()
	require.Zero(t, failures, "%v", list)
	got := s.contents(t, a)
	if len(s.failed) == 0 {
		require.NoError(t, a.Check())
	}
	s.Check(t, got)
}

// contents is what the array has; what servers had that have failed the others
// say, by the library reedsolomon, and all that they have is of one code.
func (s *storm) contents(t require.TestingT, a *Array) []byte {
	all := a.Contents(0, s.o.Bytes())
	oracle, err := reedsolomon.New(s.o.Data, s.parity, reedsolomon.WithJerasureMatrix(), reedsolomon.WithMaxGoroutines(1))
	require.NoError(t, err)
	for at := int64(0); at < s.o.ServerBytes(); at += Chunk {
		shards := make([][]byte, s.o.Data+s.parity)
		for i := range shards {
			if !slices.Contains(s.failed, i) {
				shards[i] = a.Peek(i, at)
			}
		}
		require.NoError(t, oracle.Reconstruct(shards))
		same, err := oracle.Verify(shards)
		require.NoError(t, err)
		require.True(t, same, "parity of bytes %d and up", at)
		for _, failed := range s.failed {
			if failed >= s.o.Data {
				continue
			}
			for j, b := range shards[failed] {
				all[s.o.Byte(failed, at+int64(j))] = b
			}
		}
	}
	return all
}

func (s *storm) client(p *runtime.Proc, a *Array, rank int) error {
	client, err := a.Open(p, rank)
	if err != nil {
		return err
	}
	for _, failed := range s.failed {
		if err := client.Fail(failed); err != nil {
			return err
		}
	}
	return s.Client(p, client, rank, 8, 3000, 40_000)
}

// Clients write at the same time, over each other, on networks with faults,
// with all servers or without as many as there are parity servers. When all is
// quiet parity is the code of the data, and each byte comes from the last
// write, or from one that overlapped it in time.
func TestStorm(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawStorm(rt)
		s.run(rt, rt.Cleanup)
	})
}

// All clients write the same stripe at once: locks are needed, also where a
// data server has failed, of which clients compute what it would have.
func TestClientsFightForAStripe(t *testing.T) {
	for _, device := range []string{"spin-int", "spin-dis"} {
		for by := range byNames {
			for _, failed := range [][]int{nil, {0}, {1}, {2}, {3}, {0, 3}, {1, 2}} {
				s := &storm{Storm: blocktest.Storm{Clients: 4, Rounds: 12, Seed: 3}, device: device, parity: max(len(failed), 1), failed: failed}
				if s.parity > 1 && by == Triggered {
					continue
				}
				s.o = Options{Layout: Layout{Data: 3, Unit: 4096, Rows: 1}, Mode: by}
				s.run(t, t.Cleanup)
			}
		}
	}
}

// A server that stops answering in the middle of a write: the client hears of
// nothing for a while, is told which one it is, and writes again without it.
// Nothing is lost, and when a new server in its place has been rebuilt all is
// as it was.
func TestServerFailsInTheMiddle(t *testing.T) {
	times := map[sim.Time]int{} // that a client has heard of nothing
	for by, name := range byNames {
		for failed := range 4 {
			for _, from := range []sim.Time{0, 3 * sim.Microsecond, 9 * sim.Microsecond, 25 * sim.Microsecond} {
				o := Options{Layout: Layout{Data: 3, Unit: 4096, Rows: 20}, Mode: by, Timeout: 5 * sim.Millisecond}
				down := fmt.Sprintf("fabric.faults={down: [{node: %d, from: %dns, to: 4ms}]}", 1+failed, from/sim.Nanosecond)
				c, a := cluster(t, t.Cleanup, "spin-int", 1, o, runtime.Config{Seed: 1}, "transport.kind=reliable", "transport.timeout=10us", "transport.retries=3", down)
				silent := 0
				require.NoError(t, c.Spawn(0, "client", func(p *runtime.Proc) error {
					client, err := a.Open(p, 0)
					if err != nil {
						return err
					}
					x := &exerciser{t: t, p: p, client: client, want: make([]byte, o.Bytes()), rng: rand.New(rand.NewPCG(1, 2))}
					all := p.Alloc(int(o.Bytes()))
					for i, b := 0, all.Write(); i < len(b); i++ {
						b[i] = byte(x.rng.Uint32())
						x.want[i] = b[i]
					}
					until := func(access func() error) {
						for err := access(); err != nil; err = access() {
							require.True(t, errors.Is(err, ErrSilent) || errors.Is(err, ErrMemory), "%v", err)
							silent++
							require.NoError(t, client.Fail(failed))
						}
					}
					until(func() error { return client.Write(0, all) })
					back := p.Alloc(len(x.want))
					until(func() error { return client.Read(0, back) })
					require.Equal(t, x.want, back.Read())
					if client.Failed() != nil {
						// until the node is back, with memory that is old
						p.SleepUntil(max(p.Now(), 5*sim.Millisecond))
						return errors.Join(client.Rebuild(), func() error { client.Restored(); x.whole(); x.accesses(3); return nil }())
					}
					return nil
				}))
				require.NoError(t, c.Run(context.Background()), "%s %d %d", name, failed, from)
				require.NoError(t, a.Check())
				times[from] += silent
			}
		}
	}
	require.Equal(t, 12, times[0], "each of them, at whichever server")
}

// An array without a server for parity, which is none without the last server.
func TestWithoutParity(t *testing.T) {
	for by := range byNames {
		o := Options{Layout: Layout{Data: 2, Unit: 512, Rows: 9}, Mode: by, Servers: []int{1, 2}}
		c, a := cluster(t, t.Cleanup, "spin-int", 1, o, runtime.Config{Seed: 1})
		require.NoError(t, c.Spawn(0, "client", func(p *runtime.Proc) error {
			client, err := a.Open(p, 0)
			if err != nil {
				return err
			}
			x := &exerciser{t: t, p: p, client: client, want: make([]byte, o.Bytes()), rng: rand.New(rand.NewPCG(1, 2))}
			x.accesses(5)
			require.ErrorIs(t, client.Fail(1), ErrFailed)
			return nil
		}))
		require.NoError(t, c.Run(context.Background()))
	}
}

// What makes no sense is refused, with what was expected.
func TestErrors(t *testing.T) {
	good := Options{Layout: Layout{Data: 2, Unit: 512, Rows: 9}, Servers: []int{1, 2, 3}, Clients: 1}
	for expected, spoil := range map[string]func(o *Options){
		"0 data servers, expected 1 to 31":                                   func(o *Options) { o.Data = 0 },
		"stripe unit of 100 B, expected a multiple of 8":                     func(o *Options) { o.Unit = 100 },
		"stripe unit of 1001 B":                                              func(o *Options) { o.Unit = 1001 },
		"-1 units for each server":                                           func(o *Options) { o.Rows = -1 },
		"9223372036854775807 units":                                          func(o *Options) { o.Rows = 1<<63 - 1 },
		"1 servers for 2 data servers, expected 2 to 10: up to 8 for parity": func(o *Options) { o.Servers = []int{0} },
		"11 servers for 2 data servers":                                      func(o *Options) { o.Servers = make([]int, 11) },
		"33 servers, expected at most 32":                                    func(o *Options) { o.Data, o.Servers = 31, make([]int, 33) },
		"2 parity servers and triggered operations, expected one":            func(o *Options) { o.Mode, o.Servers = Triggered, []int{0, 1, 2, 3} },
		"server 1 is on node 9 of 4":                                         func(o *Options) { o.Servers = []int{1, 9, 3} },
		"two servers on node 1":                                              func(o *Options) { o.Servers = []int{1, 2, 1} },
		"0 clients, expected 1 to 512":                                       func(o *Options) { o.Clients = 0 },
		"9 cores of each server, expected 1 to 8":                            func(o *Options) { o.Mode, o.Cores = Hosts, 9 },
		"served by 7": func(o *Options) { o.Mode = 7 },
	} {
		o := good
		spoil(&o)
		c, _ := cluster(t, t.Cleanup, "spin-int", 1, good, runtime.Config{})
		_, err := New(c, o)
		require.ErrorContains(t, err, expected)
	}
	c, a := cluster(t, t.Cleanup, "spin-int", 1, good, runtime.Config{})
	require.NoError(t, c.Spawn(0, "client", func(p *runtime.Proc) error {
		client, err := a.Open(p, 0)
		if err != nil {
			return err
		}
		for _, number := range []int{-1, 1} {
			_, err = a.Open(p, number)
			require.ErrorContains(t, err, "expected 0 to 0")
		}
		some := p.Alloc(100)
		for _, at := range []int64{-1, good.Bytes() - 99, good.Bytes() + 1, 1<<63 - 1} {
			require.ErrorIs(t, client.Write(at, some), ErrRange)
			require.ErrorIs(t, client.Read(at, some), ErrRange)
		}
		for _, at := range []int64{0, good.Bytes()} {
			require.NoError(t, client.Write(at, runtime.View{}))
			require.NoError(t, client.Read(at, runtime.View{}))
		}
		require.ErrorContains(t, client.Fail(3), "no server 3, expected 0 to 2")
		require.ErrorContains(t, client.Rebuild(), "no server has failed")
		p.Sleep(1)
		_, err = a.Open(p, 0)
		require.ErrorContains(t, err, "has waited already")
		require.NoError(t, client.Fail(1))
		require.NoError(t, client.Fail(1))
		require.ErrorIs(t, client.Fail(2), ErrFailed)
		require.Equal(t, []int{1}, client.Failed())
		return nil
	}))
	require.NoError(t, c.Run(context.Background()))
}
