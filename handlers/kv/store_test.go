package kv

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/spin"
)

// shop is a cluster with a server on node 0.
type shop struct {
	t      testing.TB
	c      *runtime.Cluster
	o      Options
	server *Server
}

func open(t testing.TB, device string, nodes int, seed uint64, o Options, set ...string) *shop {
	p, err := profile.Load(device, set...)
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: nodes, Seed: seed})
	require.NoError(t, err)
	s := &shop{t: t, c: c, o: o}
	library, err := Load(c)
	require.NoError(t, err)
	require.NoError(t, c.SpawnService(0, "server", func(p *runtime.Proc) (err error) {
		if s.server, err = library.Open(p, o); err != nil {
			return err
		}
		return s.server.Serve()
	}))
	return s
}

// client spawns one.
func (s *shop) client(rank int, f func(p *runtime.Proc, c *Client) error) {
	require.NoError(s.t, s.c.Spawn(rank, "client", func(p *runtime.Proc) error {
		c, err := Dial(p, []Address{{}}, s.o)
		if err != nil {
			return err
		}
		return f(p, c)
	}))
}

// run runs to the end, of which nothing is lost.
func (s *shop) run() {
	require.NoError(s.t, s.c.Run(s.t.Context()))
	failures, n := s.c.Failures()
	require.Zero(s.t, n, "%v", failures)
}

func (s *shop) close() { require.NoError(s.t, s.c.Close()) }

// both runs a test with handlers and with the host, on both devices.
func both(t *testing.T, f func(t *testing.T, device string, mode Mode)) {
	for _, device := range []string{"spin-int", "spin-dis"} {
		for _, mode := range []Mode{Handlers, Host, OneSided} {
			t.Run(fmt.Sprint(device, " ", mode), func(t *testing.T) { f(t, device, mode) })
		}
	}
}

func fill(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
	return b
}

// Keys and values of every length up to the longest: at the edges of the user
// header, of a packet, and of what a block holds.
func TestLengths(t *testing.T) {
	both(t, func(t *testing.T, device string, mode Mode) {
		o := Options{Mode: mode, Memory: 64 << 20, MaxValue: 256 << 10}
		s := open(t, device, 2, 1, o)
		defer s.close()
		lengths := []int{0, 1, 7, 8, 9, 207, 208, 209, 256, 4047, 4048, 4049, 4096, 8192, 65535}
		s.client(1, func(_ *runtime.Proc, c *Client) error {
			for i, k := range lengths {
				for j, v := range append(lengths, 256<<10) {
					key, value := fill(k, 1), fill(v, i+j)
					if k > 0 {
						key[k-1] = byte(j)
					}
					version, err := c.Put(key, value)
					require.NoError(t, err, "%d %d", k, v)
					got, now, err := c.Get(key)
					require.NoError(t, err, "%d %d", k, v)
					require.Equal(t, version, now)
					require.True(t, bytes.Equal(value, got), "%d %d", k, v)
					_, err = c.Swap(key, version+1, nil)
					require.Equal(t, &ChangedError{Version: version}, err)
					next, err := c.Swap(key, version, value[:v/2])
					require.NoError(t, err)
					require.Greater(t, next, version)
					got, _, err = c.Get(key)
					require.NoError(t, err)
					require.True(t, bytes.Equal(value[:v/2], got), "%d %d", k, v)
					if j%2 == 0 {
						was, err := c.Delete(key)
						require.NoError(t, err)
						require.Equal(t, next, was)
						_, _, err = c.Get(key)
						require.ErrorIs(t, err, ErrNotFound)
						_, err = c.Delete(key)
						require.ErrorIs(t, err, ErrNotFound)
						_, err = c.Swap(key, next, value)
						require.Equal(t, &ChangedError{}, err)
						_, err = c.Swap(key, 0, value)
						require.NoError(t, err)
					}
				}
			}
			_, err := c.Put(fill(65536, 0), nil)
			require.ErrorContains(t, err, "a key of 65536 B, expected at most 65535")
			_, err = c.Put(nil, fill(256<<10+1, 0))
			require.ErrorContains(t, err, "a value of 262145 B, expected at most 262144")
			return nil
		})
		s.run()
	})
}

// All keys in one bucket that does not grow: handlers give up after a few
// steps, and the host finds what is there.
func TestOneBucket(t *testing.T) {
	s := open(t, "spin-int", 2, 1, Options{Stripes: 1, Buckets: 1, Load: 1 << 16, Steps: 3})
	defer s.close()
	const keys = 40
	s.client(1, func(_ *runtime.Proc, c *Client) error {
		for i := range keys {
			_, err := c.Put(fmt.Append(nil, i), fmt.Append(nil, i))
			require.NoError(t, err)
		}
		for i := range keys {
			value, _, err := c.Get(fmt.Append(nil, i))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(i), string(value))
		}
		for i := range keys {
			_, err := c.Delete(fmt.Append(nil, i))
			require.NoError(t, err)
		}
		_, _, err := c.Get([]byte("0"))
		require.ErrorIs(t, err, ErrNotFound)
		return nil
	})
	s.run()
	counts := s.server.Counts()
	require.Greater(t, counts.Far, uint64(keys))
	require.Equal(t, counts.Handed, s.server.Stats().Requests)
	require.Zero(t, s.server.Stats().Grown)
}

// A table grows while it is filled, and everything stays where it can be found;
// handlers then need few steps.
func TestGrowth(t *testing.T) {
	both(t, func(t *testing.T, device string, mode Mode) {
		s := open(t, device, 2, 1, Options{Mode: mode, Stripes: 4, Buckets: 1})
		defer s.close()
		const keys = 2000
		s.client(1, func(p *runtime.Proc, c *Client) error {
			for i := range keys {
				if _, err := c.Put(fmt.Append(nil, i), fill(i%50, i)); err != nil {
					return err
				}
			}
			for i := range keys {
				value, _, err := c.Get(fmt.Append(nil, i))
				require.NoError(t, err)
				require.Equal(t, fill(i%50, i), value)
			}
			return nil
		})
		s.run()
		require.Greater(t, s.server.Stats().Grown, uint64(4*8)) // from 1 to 512 buckets
		if mode == Handlers {
			counts := s.server.Counts()
			require.Less(t, counts.Handed, uint64(keys/10))
			require.NotZero(t, counts.Grown)
			// the host sees by itself that a stripe which it has is too full
			require.LessOrEqual(t, counts.Grown, s.server.Stats().Grown)
		}
	})
}

// When the memory is used up clients are told so, nothing that is there is
// lost, and what is deleted makes room again.
func TestFull(t *testing.T) {
	both(t, func(t *testing.T, device string, mode Mode) {
		s := open(t, device, 2, 1, Options{Mode: mode, Memory: 256 << 10, Stripes: 4, Buckets: 4, Depth: 8})
		defer s.close()
		s.client(1, func(p *runtime.Proc, c *Client) error {
			n := 0
			for ; ; n++ {
				_, err := c.Put(fmt.Append(nil, n), fill(900, n))
				if errors.Is(err, ErrFull) {
					break
				}
				require.NoError(t, err)
				require.Less(t, n, 256)
			}
			require.Greater(t, n, 100)
			_, err := c.Put([]byte("another"), fill(900, n))
			require.ErrorIs(t, err, ErrFull)
			for i := range n {
				value, _, err := c.Get(fmt.Append(nil, i))
				require.NoError(t, err)
				require.Equal(t, fill(900, i), value)
			}
			for i := range n / 2 {
				_, err := c.Delete(fmt.Append(nil, i))
				require.NoError(t, err)
			}
			// one block may belong to a request that is refused
			for i := range n/2 - 1 {
				_, err := c.Put(fmt.Append(nil, "new", i), fill(900, i))
				require.NoError(t, err, "%d of %d", i, n/2)
			}
			return nil
		})
		s.run()
	})
}

// A client that goes away without waiting for its answer, and one that sends
// what is no request, are no harm to others.
func TestStrangers(t *testing.T) {
	both(t, func(t *testing.T, device string, mode Mode) {
		s := open(t, device, 3, 1, Options{Mode: mode})
		defer s.close()
		require.NoError(t, s.c.Spawn(2, "stranger", func(p *runtime.Proc) error {
			memory := p.Alloc(2 << 20)
			md, err := p.NI().Objects().MDBind(&portals.MD{Start: memory.Addr(), Length: uint64(memory.Len())})
			require.NoError(t, err)
			send := func(r Request, n int) {
				memory.CopyFrom(spin.EncodeState(&r))
				require.NoError(t, p.NI().Put(portals.Put{MD: md, Length: uint64(n), Target: portals.PhysID(0, 0), PT: 40, MatchBits: 0x6b76}))
				p.Sleep(20 * sim.Microsecond)
			}
			answer := Request{PT: 200, Bits: 1} // to an entry that there is not
			send(answer, 0)
			send(answer, 17)
			send(answer, RequestSize)
			for op := range uint32(9) {
				r := answer
				r.Op, r.Key, r.Value, r.Expect, r.Room = op, 10, 90, ^uint64(0), ^uint64(0)
				send(r, RequestSize+100)
				send(r, RequestSize+99)
				r.Value = ^uint32(0)
				send(r, RequestSize+100)
				r.Key, r.Value = 1<<16, 0
				send(r, RequestSize+1<<16)
				r.Key = 200
				send(r, RequestSize+1000)
				r.Value = 2<<20 - RequestSize - r.Key // all there, and more than any block has room for
				send(r, 2<<20)
			}
			return nil
		}))
		s.client(1, func(p *runtime.Proc, c *Client) error {
			for i := range 100 {
				_, err := c.Put(fmt.Append(nil, i), fill(i*10, i))
				require.NoError(t, err)
				value, _, err := c.Get(fmt.Append(nil, i))
				require.NoError(t, err)
				require.Equal(t, fill(i*10, i), value)
				p.Sleep(10 * sim.Microsecond)
			}
			return nil
		})
		require.NoError(t, s.c.Run(t.Context()))
		errs, n := s.c.HandlerErrors()
		require.Zero(t, n, "%v", errs)
	})
}

// A value of several packets comes from one item, whoever replaces it meanwhile
// and whatever its block is used for then.
func TestLongValuesAreWhole(t *testing.T) {
	both(t, func(t *testing.T, device string, mode Mode) {
		s := open(t, device, 7, 1, Options{Mode: mode})
		defer s.close()
		const rounds = 15
		for i := range 3 {
			s.client(1+i, func(_ *runtime.Proc, c *Client) error {
				for n := range rounds {
					if _, err := c.Put([]byte("key"), bytes.Repeat([]byte{byte(i*rounds + n)}, 60_000)); err != nil {
						return err
					}
				}
				return nil
			})
			s.client(4+i, func(p *runtime.Proc, c *Client) error {
				for n := range 2 * rounds {
					p.Sleep(sim.Time((31*n+7*i)%40) * 50 * sim.Nanosecond) // at all times of a write
					value, _, err := c.Get([]byte("key"))
					if errors.Is(err, ErrNotFound) {
						continue
					}
					if err != nil {
						return err
					}
					require.Len(t, value, 60_000)
					require.Equal(t, 60_000, bytes.Count(value, value[:1]), "bytes of one item")
				}
				return nil
			})
		}
		s.run()
	})
}

// A key that is there all the time is found, while the items before it in its
// bucket come and go, and their blocks become items of another bucket.
func TestKeysAreFoundBehindOthers(t *testing.T) {
	both(t, func(t *testing.T, device string, mode Mode) {
		s := open(t, device, 7, 1, Options{Mode: mode, Stripes: 1, Buckets: 2, Load: 100})
		defer s.close()
		for i := range 6 {
			s.client(1+i, func(p *runtime.Proc, c *Client) error {
				if i == 0 {
					if _, err := c.Put([]byte("stays"), []byte("here")); err != nil {
						return err
					}
				}
				p.Sleep(20 * sim.Microsecond)
				for n := range 80 {
					key := fmt.Append(nil, "comes and goes ", i, n%3)
					var err error
					switch {
					case i < 3:
						var value []byte
						if value, _, err = c.Get([]byte("stays")); err == nil {
							require.Equal(t, "here", string(value))
						}
					case n%6 < 3:
						_, err = c.Put(key, []byte("there"))
					default:
						_, err = c.Delete(key)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
		s.run()
	})
}

// What cannot be is said by name.
func TestOptions(t *testing.T) {
	for o, expected := range map[Options]string{
		{Memory: 100}:                        "Memory 100, expected 65536 to 4294967296",
		{Stripes: 3}:                         "Stripes 3, expected a power of 2",
		{Buckets: 1 << 18}:                   "Buckets 262144, expected 1 to 131072",
		{Mode: 9}:                            "mode 9, expected spin, host or rdma",
		{Memory: 64 << 10, Buckets: 1 << 10}: "Memory of 65536 B is too small for 256 stripes of 1024 buckets",
		{MaxValue: 1 << 20}:                  "MaxValue 1048576, expected 0 to",
		{Steps: -1, Load: -1}:                "Load -1, expected 1 to 65536",
		{MaxKey: 65536}:                      "MaxKey 65536, expected 0 to 65535",
	} {
		p, err := profile.Load("spin-int")
		require.NoError(t, err)
		c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 1})
		require.NoError(t, err)
		library, err := Load(c)
		require.NoError(t, err)
		require.NoError(t, c.Spawn(0, "server", func(p *runtime.Proc) error {
			_, err := library.Open(p, o)
			require.ErrorContains(t, err, expected)
			_, err = Dial(p, nil, Options{})
			require.ErrorContains(t, err, "no servers")
			return nil
		}))
		require.NoError(t, c.Run(t.Context()))
		require.NoError(t, c.Close())
	}
	// A device whose packets or user headers are too small for requests.
	for set, expected := range map[string]string{"fabric.mtu=256": "packets of 256 B (fabric.mtu), expected at least 512", "limits.max_user_hdr_size=64": "user headers of 64 B"} {
		p, err := profile.Load("spin-int", set)
		require.NoError(t, err)
		c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 1})
		require.NoError(t, err)
		library, err := Load(c)
		require.NoError(t, err)
		require.NoError(t, c.Spawn(0, "server", func(p *runtime.Proc) error {
			_, err := library.Open(p, Options{})
			require.ErrorContains(t, err, expected)
			return nil
		}))
		require.NoError(t, c.Run(t.Context()))
		require.NoError(t, c.Close())
	}
}
