package ip_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/exanet/ip"
	"github.com/spinsim/spinsim/inet"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// cluster runs programs with sockets on the nodes of a profile.
type cluster struct {
	t *testing.T
	*runtime.Cluster
	net  *ip.Network
	left int // programs
}

func newCluster(t *testing.T, nodes int, seed uint64, o ip.Options, set ...string) *cluster {
	t.Helper()
	p, err := profile.Load("exanest-qfdb", append([]string{"os.kind=none", "smmu.kind=none"}, set...)...)
	require.NoError(t, err)
	made, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: nodes, Seed: seed})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, made.Close()) })
	n, err := ip.New(made, o)
	require.NoError(t, err)
	return &cluster{t: t, Cluster: made, net: n}
}

// program starts a program with sockets. When the last one ends, the services
// stop.
func (c *cluster) program(node int, f func(p *runtime.Proc, s *ip.Sockets) error) {
	c.left++
	require.NoError(c.t, c.Spawn(node, fmt.Sprintf("program %d", c.left), func(p *runtime.Proc) error {
		s, err := c.net.Open(p)
		if err != nil {
			return err
		}
		p.SleepUntil(2 * sim.Millisecond) // until the services have met
		err = f(p, s)
		if c.left--; c.left == 0 {
			for n := range c.Nodes() {
				c.net.Stop(n)
			}
		}
		return err
	}))
}

func (c *cluster) run() {
	c.t.Helper()
	require.NoError(c.t, c.Run(context.Background()))
	failures, n := c.Failures()
	require.Zero(c.t, n, "%v", failures)
}

// connected returns a connection between nodes 0 and 1. Node 1 waits for it.
func connected(t *testing.T, s *ip.Sockets, node int, to inet.Addr) (*ip.Conn, error) {
	if node == 0 {
		return s.Dial(to, 80)
	}
	require.NoError(t, s.Listen(80))
	for {
		if err := s.Wait(runtime.Forever); err != nil {
			return nil, err
		}
		if conn := s.Accept(); conn != nil {
			return conn, nil
		}
	}
}

// TCP streams arrive whole, over ExaNet and over Ethernet, in both directions
// at once.
func TestStream(t *testing.T) {
	const bytes = 300_000
	for name, addr := range map[string]func(int) inet.Addr{"exanet": ip.AddrOf, "ethernet": ip.ManagementAddrOf} {
		for _, idle := range ip.Idles() {
			t.Run(fmt.Sprintf("%s/%s", name, idle), func(t *testing.T) {
				c := newCluster(t, 2, 1, ip.Options{Idle: idle})
				for node := range 2 {
					c.program(node, func(p *runtime.Proc, s *ip.Sockets) error {
						conn, err := connected(t, s, node, addr(1))
						if err != nil {
							return err
						}
						return both(t, s, conn, node, bytes)
					})
				}
				c.run()
				for node := range 2 {
					n := c.net.Counts(node)
					t.Logf("%+v", n)
					require.Zero(t, n.Strange+n.Failed+n.Lost+n.Queued+n.Deaths)
					require.EqualValues(t, 1, n.Ups)
					require.Equal(t, name == "exanet", n.Batches > 0)
					require.Equal(t, idle == ip.Sleeping, n.Sleeps > 0)
				}
			})
		}
	}
}

// A service that is busy for long still hears its peers, and they hear it: it
// takes a limited amount of each kind of work at a time. Nothing is lost in the
// device's queue either. The queue is shorter than the connection's window, so
// the connection waits.
func TestBusyServices(t *testing.T) {
	spec, err := ip.Load("mtu=1500B", "queue=50", "dead_after=2500us")
	require.NoError(t, err)
	c := newCluster(t, 2, 1, ip.Options{Spec: spec})
	var stats inet.Stats
	for node := range 2 {
		c.program(node, func(p *runtime.Proc, s *ip.Sockets) error {
			conn, err := connected(t, s, node, ip.AddrOf(1))
			if err != nil {
				return err
			}
			err = both(t, s, conn, node, 2<<20)
			if node == 0 {
				stats, _ = conn.Stats()
			}
			return err
		})
	}
	c.run()
	for node := range 2 {
		n := c.net.Counts(node)
		require.Zero(t, n.Deaths+n.Lost+n.Unreachable+n.Queued+n.Strange, "%+v", n)
	}
	require.Zero(t, stats.Retransmitted+stats.Timeouts+stats.Reordered)
}

// both sends bytes and receives the same number.
func both(t *testing.T, s *ip.Sockets, conn *ip.Conn, side, bytes int) error {
	sent, got, ended := 0, 0, false
	buffer := make([]byte, 20_000)
	for !ended || !conn.Done() {
		for sent < bytes && conn.Room() > 0 {
			b := buffer[:min(len(buffer), bytes-sent)]
			for i := range b {
				b[i] = byte((sent + i) * (side + 3) >> 2)
			}
			if sent += conn.Write(b); sent == bytes {
				conn.Close()
			}
		}
		var n int
		for n, ended = conn.Read(buffer); n > 0; n, ended = conn.Read(buffer) {
			for i := range n {
				require.Equal(t, byte((got+i)*(4-side)>>2), buffer[i])
			}
			got += n
		}
		if ended && conn.Done() {
			break
		}
		if err := s.Wait(runtime.Forever); err != nil {
			return err
		}
	}
	require.Equal(t, bytes, got)
	return nil
}

// A port without a listener refuses a connection, over ExaNet and over
// Ethernet.
func TestRefused(t *testing.T) {
	for name, addr := range map[string]func(int) inet.Addr{"exanet": ip.AddrOf, "ethernet": ip.ManagementAddrOf} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 2, 1, ip.Options{})
			c.program(0, func(_ *runtime.Proc, s *ip.Sockets) error {
				conn, err := s.Dial(addr(1), 80)
				if err != nil {
					return err
				}
				if err := s.Wait(runtime.Forever); err != nil {
					return err
				}
				require.ErrorIs(t, conn.Err(), inet.ErrRefused)
				require.False(t, conn.Established())
				return nil
			})
			c.run()
		})
	}
}
