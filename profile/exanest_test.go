package profile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/sim"
)

// The network of exanest-qfdb is the prototype's: what a way takes without load follows from the figures of TR-488 and P.
func TestExanestQFDBHasTheHopsOfTheReport(t *testing.T) {
	const ns = sim.Nanosecond
	near := func(want, got sim.Time, what string) {
		require.InDelta(t, float64(want), float64(got), float64(ns)/100, "%s: want %v, got %v", what, want, got)
	}
	network := func(set ...string) fabric.Fabric {
		p, err := Load("exanest-qfdb", set...)
		require.NoError(t, err)
		f, err := fabric.New(sim.New(1), p.Fabric, 16)
		require.NoError(t, err)
		return f
	}
	cell := func(bytes, gigabits float64) sim.Time { return sim.Time((bytes + 32) * 8 / gigabits * float64(ns)) }
	// From interface to switch and back it is a cycle each, and two cycles in the switch.
	inside := (2*6.667 + 13.333)
	f := network()
	for _, bytes := range []int32{0, 16, 256} {
		board := func(hop float64) sim.Time { return sim.Time((inside+hop)*float64(ns)) + cell(float64(bytes), 16) }
		near(board(120), f.Latency(0, 1, bytes), "a link in a QFDB adds 120 ns (TR-488)")
		near(board(120), f.Latency(2, 3, bytes), "all pairs have one")
		near(board(150), network("fabric.switch_wire=136.667ns").Latency(0, 1, bytes), "150 ns (P)")
		near(sim.Time((inside+120)*float64(ns))+cell(float64(bytes), 17), network("fabric.switch_rate=17Gb/s").Latency(0, 1, bytes), "17 Gb/s (P)")
		// N hops of 10 Gb/s: each adds a link, less the switch behind it, and N + 1 routers of 145 ns; at the end the switch of F1.
		out := func(hops float64) sim.Time {
			return sim.Time((inside+hops*106.667+(hops+1)*145+13.333)*float64(ns)) + cell(float64(bytes), 10)
		}
		near(out(1), f.Latency(0, 4, bytes), "to the next QFDB")
		near(out(2), f.Latency(0, 8, bytes), "to the one opposite")
		near(out(1), f.Latency(0, 12, bytes), "the ring is closed")
		near(out(1)+240*ns, f.Latency(1, 6, bytes), "by the network MPSoCs")
	}
	p, err := Load("exanest-qfdb")
	require.NoError(t, err)
	_, err = fabric.New(sim.New(1), p.Fabric, 17)
	require.ErrorContains(t, err, "16")
}
