package ip_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/exanet/ip"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Datagrams of every size arrive whole and once. A datagram to nobody is
// counted where it ends.
func TestDatagrams(t *testing.T) {
	c := newCluster(t, 3, 1, ip.Options{Nodes: []int{0, 1}})
	sizes := []int{0, 1, 3, 4, 100, 4095, 8971, 8972}
	c.program(0, func(p *runtime.Proc, s *ip.Sockets) error {
		u, err := s.UDP(1000)
		require.NoError(t, err)
		_, err = s.UDP(1000)
		require.ErrorIs(t, err, ip.ErrPort)
		require.Equal(t, 8972, s.MaxDatagram(ip.AddrOf(1)))
		require.EqualError(t, u.Send(ip.AddrOf(1), 7, make([]byte, 8973)), "ip: datagram of 8973 bytes to 10.0.0.2, expected at most 8972")
		for _, n := range sizes {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(i * n)
			}
			require.NoError(t, u.Send(ip.AddrOf(1), 7, b))
		}
		require.NoError(t, u.Send(ip.AddrOf(1), 8, nil))              // nobody listens
		require.NoError(t, u.Send(ip.AddrOf(2), 7, nil))              // no service
		require.NoError(t, u.Send(inet.Addr{192, 168, 0, 1}, 7, nil)) // no route
		require.EqualValues(t, 1, u.Refused)
		d, err := receive(s, u)
		require.Equal(t, "thanks", string(d.Data))
		require.Equal(t, ip.AddrOf(1), d.From)
		return err
	})
	c.program(1, func(p *runtime.Proc, s *ip.Sockets) error {
		u, err := s.UDP(7)
		require.NoError(t, err)
		for _, n := range sizes {
			d, err := receive(s, u)
			require.NoError(t, err)
			require.Len(t, d.Data, n)
			for i := range d.Data {
				require.Equal(t, byte(i*n), d.Data[i])
			}
			require.EqualValues(t, 1000, d.Port)
		}
		return u.Send(ip.AddrOf(0), 1000, []byte("thanks"))
	})
	require.NoError(t, c.Spawn(2, "nobody", func(p *runtime.Proc) error {
		_, err := c.net.Open(p)
		require.EqualError(t, err, "ip: node 2 has no IP")
		return nil
	}))
	c.run()
	require.EqualValues(t, 1, c.net.Counts(0).Unreachable)
	require.EqualValues(t, len(sizes)+1, c.net.Counts(1).Received)
	require.Less(t, c.net.Counts(0).Batches, uint64(len(sizes)), "several packets in a transfer")
	require.Zero(t, c.net.Counts(2))
}

// receive waits for a datagram.
func receive(s *ip.Sockets, u *ip.UDP) (ip.Datagram, error) {
	for {
		if d, found := u.Receive(); found {
			return d, nil
		}
		if err := s.Wait(runtime.Forever); err != nil {
			return ip.Datagram{}, err
		}
	}
}

// A peer without heartbeats is dead: packets to it are dropped and counted.
// When it is heard again, traffic resumes, once and in order. This holds if it
// vanishes for one side or for both, and if its program notices or not.
func TestPeerDiesAndComesBack(t *testing.T) {
	for _, off := range [][]int{{0}, {1}, {0, 1}} {
		t.Run(fmt.Sprint(off), func(t *testing.T) {
			c := newCluster(t, 2, 1, ip.Options{})
			var numbers []uint32
			const every, datagrams = 100 * sim.Microsecond, 300
			c.program(0, func(p *runtime.Proc, s *ip.Sockets) error {
				u, err := s.UDP(7)
				if err != nil {
					return err
				}
				for i := range uint32(datagrams) {
					switch i {
					case 50:
						for _, node := range off {
							c.net.Unplug(node, true)
						}
					case 150:
						require.False(t, c.net.Up(0, 1))
						for _, node := range off {
							c.net.Unplug(node, false)
						}
					case 250:
						require.True(t, c.net.Up(0, 1))
					}
					if err := u.Send(ip.AddrOf(1), 7, binary.LittleEndian.AppendUint32(nil, i)); err != nil {
						return err
					}
					p.Sleep(every)
				}
				return nil
			})
			c.program(1, func(p *runtime.Proc, s *ip.Sockets) error {
				u, err := s.UDP(7)
				if err != nil {
					return err
				}
				for len(numbers) == 0 || numbers[len(numbers)-1] < datagrams-1 {
					d, err := receive(s, u)
					if err != nil {
						return err
					}
					numbers = append(numbers, binary.LittleEndian.Uint32(d.Data))
				}
				return nil
			})
			c.run()
			n := c.net.Counts(0)
			require.Equal(t, []uint64{1, 1}, []uint64{n.Deaths, c.net.Counts(1).Deaths}, "heartbeats go neither way")
			require.EqualValues(t, 2, n.Ups)
			require.Greater(t, n.Unreachable, uint64(30))
			require.EqualValues(t, datagrams, uint64(len(numbers))+n.Unreachable+n.Lost)
			for i := range numbers[1:] {
				require.Less(t, numbers[i], numbers[i+1])
			}
			require.Contains(t, numbers, uint32(40))
			require.Contains(t, numbers, uint32(260))
		})
	}
}

// TCP streams run between all nodes, through rings of a few packets, on
// networks that lose, damage, duplicate and delay cells. They arrive whole:
// RDMA and mailbox repair the faults, and TCP sees none.
func TestStreamsThroughSmallRings(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 5))
		nodes := 2 + rng.IntN(3)
		mtu := []int{576, 1500, 4000}[rng.IntN(3)]
		batch := mtu + 32 + rng.IntN(2000)
		spec, err := ip.Load(
			fmt.Sprintf("mtu=%dB", mtu), fmt.Sprintf("batch=%dB", batch), fmt.Sprintf("ring=%dB", (2*batch+15)/16*16+16*rng.IntN(100)), fmt.Sprintf("slots=%d", 1+rng.IntN(5)),
			fmt.Sprintf("batch_packets=%d", 1+rng.IntN(4)), "rto_least=50ms", "rto_initial=50ms", "dead_after=100ms")
		require.NoError(t, err)
		chance := []float64{0, 0.01, 0.05}[rng.IntN(3)]
		o := ip.Options{Spec: spec, Idle: ip.Idles()[rng.IntN(2)], Channels: rdma.Options{State: map[string]any{"timeout": 50000, "sequence": 16380}}}
		c := newCluster(t, nodes, seed, o,
			fmt.Sprintf("fabric.faults={loss: %g, corrupt: %g, duplicate: %g, delay: %g, max_delay: 20us}", chance, chance/2, chance, chance))
		const bytes = 40_000
		conns := make([][]*ip.Conn, nodes)
		for node := range nodes {
			c.program(node, func(p *runtime.Proc, s *ip.Sockets) error {
				if err := s.Listen(80); err != nil {
					return err
				}
				p.Sleep(sim.Microsecond)
				for other := range node {
					conn, err := s.Dial(ip.AddrOf(other), 80)
					if err != nil {
						return err
					}
					conns[node] = append(conns[node], conn)
				}
				return all(t, s, nodes-1, conns[node], bytes)
			})
		}
		c.run()
		for node := range nodes {
			n := c.net.Counts(node)
			require.Zero(t, n.Strange+n.Failed+n.Lost+n.Deaths+n.Unreachable, "seed %d: %+v", seed, n)
			for _, conn := range conns[node] {
				stats, _ := conn.Stats()
				require.Zero(t, stats.Timeouts+stats.Fast+stats.Reordered, "seed %d: %+v", seed, stats)
			}
		}
	}
}

// all sends bytes on all connections, also on accepted ones, and receives as
// many on each.
func all(t *testing.T, s *ip.Sockets, total int, conns []*ip.Conn, bytes int) error {
	sent, got, ended := make([]int, total), make([]int, total), make([]bool, total)
	buffer := make([]byte, 3000)
	for {
		for conn := s.Accept(); conn != nil; conn = s.Accept() {
			conns = append(conns, conn)
		}
		done := len(conns) == total
		for k, conn := range conns {
			for sent[k] < bytes && conn.Room() > 0 {
				b := buffer[:min(len(buffer), bytes-sent[k])]
				for i := range b {
					b[i] = byte((sent[k] + i) * 7 >> 2)
				}
				if sent[k] += conn.Write(b); sent[k] == bytes {
					conn.Close()
				}
			}
			for n, _ := conn.Readable(); n > 0; n, _ = conn.Readable() {
				n, ended[k] = conn.Read(buffer)
				for i := range n {
					require.Equal(t, byte((got[k]+i)*7>>2), buffer[i])
				}
				got[k] += n
			}
			_, ended[k] = conn.Readable()
			done = done && ended[k] && conn.Done()
		}
		if done {
			break
		}
		if err := s.Wait(runtime.Forever); err != nil {
			return err
		}
	}
	for k := range got {
		require.Equal(t, bytes, got[k])
	}
	return nil
}

func TestOptions(t *testing.T) {
	for want, o := range map[string]string{
		"ip: mtu: ":               "mtu=100B",
		"ip: ring: ":              "ring=100KiB",
		"want a multiple of 16":   "ring=1000001B",
		"ip: slots: ":             "slots=0",
		"ip: sleep_most: ":        "sleep_most=1us",
		"ip: management.mtu: ":    "management.mtu=9001B",
		"nonsense":                "nonsense=1",
		"ip: dead_after: ":        "dead_after=1us",
		"expected path=value":     "mtu",
		"ip: management.rate: ":   "management.rate=0Gb/s",
		"ip: rto_initial: ":       "rto_initial=1us",
		"ip: receive_buffer: ":    "receive_buffer=1KiB",
		"ip: batch_packets: ":     "batch_packets=0",
		"ip: queue: ":             "queue=0",
		"ip: delayed_ack: ":       "delayed_ack=0s",
		"ip: heartbeat: ":         "heartbeat=2s",
		"ip: spin: ":              "spin=0s",
		"ip: management.queue: ":  "management.queue=1KiB",
		"ip: management.header: ": "management.header=2000B",
	} {
		_, err := ip.Load(o)
		require.ErrorContains(t, err, want, o)
	}
	p, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: 2})
	require.NoError(t, err)
	defer c.Close() //nolint:errcheck // it has not run
	_, err = ip.New(c, ip.Options{Idle: "dozing"})
	require.EqualError(t, err, `ip: idle: "dozing", expected one of [polling sleeping]`)
	_, err = ip.New(c, ip.Options{Nodes: []int{2}})
	require.EqualError(t, err, "ip: service of node 2, expected each of 0 to 1 at most once")
	_, err = ip.New(c, ip.Options{Nodes: []int{1, 1}})
	require.ErrorContains(t, err, "service of node 1")
	_, err = ip.New(c, ip.Options{Spec: new(ip.Spec)})
	require.ErrorContains(t, err, "ip: management.wire: ")
	n, err := ip.New(c, ip.Options{Nodes: []int{1}})
	require.NoError(t, err)
	for _, node := range []int{-1, 0, 2} { // nodes without a service
		n.Stop(node)
		n.Unplug(node, true)
		require.False(t, n.Up(node, 1))
		require.False(t, n.Up(1, node))
		require.Zero(t, n.Counts(node))
	}
}
