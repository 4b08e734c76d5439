//go:build invariants

package nic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/sim"
)

// An event that refers to what a pool has taken back is found out, and so is
// what is given back twice.
func TestUseAfterReleaseIsFound(t *testing.T) {
	var c Core
	f, o, d, i := c.frame(100, 64), c.outgoing(), c.dma(), c.issue()
	in := c.inbound(f)
	for _, ref := range []any{f, o, d, i, in} {
		require.NotPanics(t, func() { live(ref) })
	}
	data := f.Data
	c.releaseInbound(in) // and its frame
	c.releaseOutgoing(o)
	c.releaseDMA(d)
	c.releaseIssue(i)
	require.Equal(t, byte(poison.Byte), data[99])
	n := new(NIC)
	for _, x := range []struct {
		late  sim.Event
		again func()
		name  string
	}{
		{sim.Event{Kind: kindLoopback, P: f}, func() { c.releaseFrame(f) }, "a frame"},
		{sim.Event{Kind: kindAgain, P: o}, func() { c.releaseOutgoing(o) }, "a message at its source"},
		{sim.Event{Kind: kindDMAIssue, P: d}, func() { c.releaseDMA(d) }, "a DMA operation"},
		{sim.Event{Kind: kindIssue, P: i}, func() { c.releaseIssue(i) }, "an operation of a handler"},
		{sim.Event{Kind: kindMatched, P: in}, func() { c.releaseInbound(in) }, "a message at its target"},
	} {
		require.PanicsWithValue(t, x.name+" is given back twice", x.again)
		require.PanicsWithValue(t, x.name+" is used after it was given back", func() { n.handle(&x.late) })
	}
	require.NotSame(t, f, c.frame(1, 64))
	require.Panics(t, func() { c.releaseBuffer(data) })
	require.Panics(t, func() { n.schedule.resumable(&run{}, 0) }, "no handler waits")
}
