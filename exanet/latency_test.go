package exanet_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/exanet"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// cluster runs programs on the nodes of a profile.
type cluster struct {
	t *testing.T
	*runtime.Cluster
	system *exanet.System
}

func newCluster(t *testing.T, nodes int, cfg func(*runtime.Config), set ...string) *cluster {
	t.Helper()
	// no address translation
	p, err := profile.Load("exanest-qfdb", append([]string{"os.kind=none", "smmu.kind=none"}, set...)...)
	require.NoError(t, err)
	c := runtime.Config{Profile: p, Nodes: nodes}
	if cfg != nil {
		cfg(&c)
	}
	made, err := runtime.NewCluster(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, made.Close()) })
	s, err := exanet.Load(made)
	require.NoError(t, err)
	return &cluster{t, made, s}
}

// spawn starts a program in a protection domain.
func (c *cluster) spawn(rank int, pdid exanet.PDID, f func(p *runtime.Proc) error) {
	require.NoError(c.t, c.Spawn(rank, fmt.Sprintf("p%d", c.Processes(rank)), func(p *runtime.Proc) error {
		if err := c.system.Admit(p, pdid); err != nil {
			return err
		}
		return f(p)
	}))
}

func (c *cluster) run() {
	require.NoError(c.t, c.Run(context.Background()))
	failures, n := c.Failures()
	require.Zero(c.t, n, "%v", failures)
}

// The latency of a message is the sum of its parts: posted stores, two cycles
// for the switch, two to find the channel, the link as for any cell, two cycles
// to find the mailbox, one for the mailbox, the write of an entry, and a look
// into the cache. For 64 B the sum is the 470 ns of TR-488: host.poll_cached
// was fitted to that.
func TestLatencyIsTheSumOfItsParts(t *testing.T) {
	const (
		axi    = 19.2 / 8 // bytes per nanosecond
		link   = 16.0 / 8
		cycle  = 20.0 / 3
		memory = 60.0
	)
	for n := range exanet.MaxPayload + 1 {
		words := float64(max(16, (n+15)/16*16))
		stores := 120 + 2*cycle + 2*cycle
		crossing := (words+32)/link + 2*6.667 + 106.667 + 4*cycle
		enqueue := 2*cycle + cycle + (16+words)/axi + memory
		// the switch with its two wires, at the rate of paths inside
		// the MPSoC
		local := stores + (words+32)/axi + 2*6.667 + 2*cycle + enqueue + 15.333
		require.InDelta(t, stores+crossing+enqueue+15.333, oneWay(t, n, 1).Seconds()*1e9, 0.02, "%d bytes", n)
		require.InDelta(t, local, oneWay(t, n, 0).Seconds()*1e9, 0.02, "%d bytes in an MPSoC", n)
	}
	require.InDelta(t, 470, oneWay(t, 64, 1).Seconds()*1e9, 0.1)
}

// oneWay returns the time from Launch to the end of Receive. The receiver is
// another process of node 0, or a process of node 1.
func oneWay(t *testing.T, n, node int) sim.Time {
	c := newCluster(t, node+1, nil)
	var to exanet.Address
	var took sim.Time
	const begin = sim.Microsecond
	c.spawn(0, 1, func(p *runtime.Proc) error {
		page, err := c.system.Open(p, exanet.Options{})
		if err != nil {
			return err
		}
		p.SleepUntil(begin)
		return page.Launch(0, to, make([]byte, n))
	})
	c.spawn(node, 1, func(p *runtime.Proc) error {
		page, err := c.system.Open(p, exanet.Options{})
		if err != nil {
			return err
		}
		to = page.Address()
		m, err := page.Receive(nil)
		took = p.Now() - begin
		require.Equal(t, exanet.Message{Bytes: n}, m)
		return err
	})
	c.run()
	return took
}
