package spin17

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

func copied(t *testing.T, device string, v experiment.Values, set ...string) *experiment.Result {
	p, err := profile.Load(device, set...)
	require.NoError(t, err)
	at, err := replication.At(p, v)
	require.NoError(t, err)
	r, err := replication.Measure(context.Background(), at)
	require.NoError(t, err, "%s %v", device, v)
	return r
}

// A write of one packet, step by step, with handlers whose instructions take no
// time. It is read once. It crosses as many networks as there are copies along
// a ring, and the logarithm of that down a tree. An empty message comes back.
// No core of a server takes part.
func TestReplicateIsTheSumOfItsParts(t *testing.T) {
	for _, device := range []string{"spin-int", "spin-dis"} {
		p, err := profile.Load(device)
		require.NoError(t, err)
		way := 2*p.Fabric.Wire + p.Fabric.Switch + p.NIC.MatchHeader // of an empty message
		for _, c := range []struct {
			shape        string
			copies, hops int
		}{{shapeRing, 1, 1}, {shapeRing, 5, 5}, {shapeTree, 3, 2}} {
			r := copied(t, device, experiment.Values{"mode": experiment.ModeSpin, "shape": c.shape, "copies": c.copies, "size": 4096}, "hpu.charge=nothing")
			read := 2*p.DMA.Latency + p.DMA.Bandwidth.Time(4096)
			last := sim.Time(0)
			if c.shape == shapeTree {
				last = p.Fabric.Rate.Time(4096) // two copies go out one after the other
				last += p.Host.Poll             // and the client looks twice, at the second one last
			}
			expected := p.NIC.Overhead + read + sim.Time(c.hops)*(p.Fabric.Rate.Time(4096)+way) + way + p.DMA.Latency + p.Host.Poll
			require.InDelta(t, float64(expected+last), float64(r.Time(experiment.LatencyColumn)), float64(p.Host.Poll), "%s %v", device, c)
			if c.shape == shapeRing {
				require.Equal(t, expected, r.Time(experiment.LatencyColumn), "%s %v", device, c)
			}
			require.Zero(t, r.Time("server_cpu"))
			require.EqualValues(t, (1+c.copies)*4096, r.Values["host_memory"], "read at the client, written at each server")
		}
	}
}

// Along a ring, large writes are as fast as one copy, with any number of
// copies. Down a tree they are half as fast, since it sends each byte twice. If
// the client sends to all, fewer copies are faster. Small writes are fastest
// down a tree.
func TestReplicateHasItsShape(t *testing.T) {
	for _, device := range []string{"spin-int", "spin-dis"} {
		at := func(mode, shape string, copies, size int) float64 {
			return float64(copied(t, device, experiment.Values{"mode": mode, "shape": shape, "copies": copies, "size": size}).Time(experiment.LatencyColumn))
		}
		one := at(experiment.ModeSpin, shapeRing, 1, 1<<20)
		require.InEpsilon(t, one, at(experiment.ModeSpin, shapeRing, 8, 1<<20), 0.15, device)
		require.InEpsilon(t, 2*one, at(experiment.ModeSpin, shapeTree, 8, 1<<20), 0.1, device)
		require.InEpsilon(t, 8*one, at(modeClient, shapeRing, 8, 1<<20), 0.1, device)
		require.Greater(t, at(experiment.ModeHost, shapeRing, 8, 1<<20), 1.5*one, device)
		require.Less(t, at(experiment.ModeSpin, shapeTree, 16, 64), 0.6*at(experiment.ModeSpin, shapeRing, 16, 64))
		for _, shape := range []string{shapeRing, shapeTree} {
			require.Greater(t, at(experiment.ModeHost, shape, 4, 4096), 1.5*at(experiment.ModeSpin, shape, 4, 4096), "%s %s", device, shape)
		}
	}
}

// A capability is checked once for each message. The check takes its own time
// and delays nothing else. The capability is 40 B more on the wire, in the
// message or in one before it.
func TestReplicateGuarded(t *testing.T) {
	for _, device := range []string{"spin-int", "spin-dis"} {
		for _, size := range []int{64, 4096, 1 << 20} {
			v := experiment.Values{"mode": experiment.ModeSpin, "copies": 4, "size": size}
			free := copied(t, device, v)
			v["guarded"] = true
			guarded := copied(t, device, v)
			more := guarded.Time(experiment.LatencyColumn) - free.Time(experiment.LatencyColumn)
			require.Greater(t, more, 80*sim.Nanosecond, "%s %d", device, size)
			require.Less(t, more, 500*sim.Nanosecond, "%s %d", device, size)
			require.Less(t, guarded.Values["handler_cycles"].(int64), free.Values["handler_cycles"].(int64)+12*600)
		}
		p, err := profile.Load(device)
		require.NoError(t, err)
		_, err = replication.At(p, experiment.Values{"mode": experiment.ModeHost, "guarded": true})
		require.Error(t, err)
	}
}

// On a network that loses packets the transport repeats them. Nothing else
// changes.
func TestReplicateOnANetworkWithFaults(t *testing.T) {
	for _, mode := range []string{modeClient, experiment.ModeHost, experiment.ModeSpin} {
		r := copied(t, "spin-int", experiment.Values{"mode": mode, "copies": 4, "size": 300_000}, "transport.kind=reliable", "fabric.faults={loss: 0.02, duplicate: 0.02, delay: 0.1, max_delay: 5us}")
		require.Positive(t, r.Values["retransmitted"])
	}
}

// The answer names the fastest of all measured modes, including the client,
// each with its better shape, for the fewest and the most bytes. There is no
// answer for one mode alone.
func TestReplicateAnswers(t *testing.T) {
	var results []*experiment.Result
	add := func(mode, shape string, size int) sim.Time {
		r := copied(t, "spin-int", experiment.Values{"mode": mode, "shape": shape, "copies": 7, "size": size})
		results = append(results, r)
		return r.Time(experiment.LatencyColumn)
	}
	handlers := add(experiment.ModeSpin, shapeRing, 100)
	require.Empty(t, replicateAnswer(results))
	tree := add(experiment.ModeSpin, shapeTree, 100)
	hosts := add(experiment.ModeHost, shapeTree, 100)
	client := add(modeClient, shapeRing, 100)
	require.Less(t, client, tree)
	require.Less(t, tree, handlers)
	require.Equal(t, []string{fmt.Sprintf("spin-int, 7 copies, 100 B: client is the fastest, %s; spin down a tree takes %s (%.2f times as long), host down a tree takes %s (%.2f times as long).",
		experiment.ShortTime(client), experiment.ShortTime(tree), float64(tree)/float64(client), experiment.ShortTime(hosts), float64(hosts)/float64(client))}, replicateAnswer(results))
	large := add(experiment.ModeSpin, shapeRing, 1<<20)
	require.Less(t, large, add(modeClient, shapeRing, 1<<20))
	lines := replicateAnswer(results)
	require.Len(t, lines, 2)
	require.Contains(t, lines[1], "spin-int, 7 copies, 1 MiB: spin is the fastest, "+experiment.ShortTime(large)+"; client takes ")
}
