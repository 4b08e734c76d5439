package backupring

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// The IOprovider has a frame, and looks for a descriptor; it finds none and
// asks to be told of one. Whenever the IOuser posts it, also while that message
// is on its way, the frame gets there.
func TestTailsAreTold(t *testing.T) {
	waits := map[int64]int{}
	for at := 11500 * sim.Nanosecond; at < 12300*sim.Nanosecond; at += 20 * sim.Nanosecond {
		n := network{
			users: []user{{RingOptions: RingOptions{Size: 1, BitmapSize: 4}}}, slots: 4, senders: 1, frames: 1, longest: 64,
			set: []string{"dma.latency=1ns"}, // a look at a register takes less than a message
		}
		n.users[0].instead = func(p *runtime.Proc, r *Ring) error {
			p.Sleep(at)
			if err := r.Post(1); err != nil {
				return err
			}
			_, err := r.Receive()
			return err
		}
		n.run(t)
		waits[n.provider.Stats().Waits]++
		require.EqualValues(t, 1, n.provider.Stats().Resolved, "posted at %v", at)
		require.Zero(t, n.state.Rings[0].HeadOffset())
	}
	require.Greater(t, waits[0], 5, "posted before the look")
	require.Greater(t, waits[1], 5, "and after it")
}

// Of two frames that come at once the second finds no descriptor before the
// first finds its page absent, and is in the backup ring before it: the
// IOprovider deals with the first one first, without which the IOuser posts no
// descriptor for the second.
func TestTheOldestFaultComesFirst(t *testing.T) {
	n := network{users: []user{{RingOptions: RingOptions{Size: 1, BitmapSize: 4}}}, slots: 4, senders: 1, frames: 2, longest: 64, set: []string{"dma.latency=2us"}}
	n.run(t)
	require.Equal(t, [][2]int{{1, 0}, {1, 1}}, n.users[0].got)
	require.Equal(t, []uint64{1, 1, 2}, []uint64{n.users[0].stats.Absent, n.users[0].stats.NoBuffer, n.users[0].stats.Backed})
}

// Two nodes have an IOprovider each, and as many rings as there may be; one
// more is refused. Frames for rings that there are not, and such that are not
// sent, are nobody's.
func TestAllRings(t *testing.T) {
	prof, err := profile.Load(profileName, "hpu.dma_write=landed")
	require.NoError(t, err)
	c, err := runtime.NewCluster(runtime.Config{Profile: prof, Nodes: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	lib, err := Load(c)
	require.NoError(t, err)
	var providers [2]*Provider
	var got [2][MaxRings]int
	for node := range providers {
		providers[node], err = lib.Serve(node, Options{Slots: MaxRings + node})
		require.NoError(t, err)
		for i := range MaxRings + 1 {
			require.NoError(t, c.SpawnService(node, fmt.Sprintf("IOuser %d", i), func(p *runtime.Proc) error {
				r, err := providers[node].Open(p, RingOptions{Size: 1, BitmapSize: 1})
				if i == MaxRings {
					require.EqualError(t, err, fmt.Sprintf("backupring: node %d has 16 rings, and can have no more", node))
					return nil
				}
				require.NoError(t, err)
				require.NoError(t, r.Post(1))
				f, err := r.Receive()
				if err == nil {
					got[node][i] = f.Memory.Len()
				}
				return err
			}))
		}
		require.NoError(t, c.Spawn(node, "sender", func(p *runtime.Proc) error {
			port, err := lib.Connect(p, p.Alloc(100))
			require.NoError(t, err)
			p.Sleep(100 * sim.Microsecond)
			for i := range MaxRings + 2 {
				require.NoError(t, port.Send(0, 20+i, 1-node, i))
				p.Sleep(20 * sim.Microsecond)
			}
			require.NoError(t, port.Send(0, 8, 1-node, -1))
			require.Error(t, port.Send(-1, 8, 1-node, 0))
			require.Error(t, port.Send(93, 8, 1-node, 0))
			require.Error(t, port.Send(0, 0, 1-node, 0))
			require.EqualValues(t, MaxRings+3, port.Sent())
			p.Sleep(sim.Millisecond)
			left, _, err := port.Left()
			require.EqualValues(t, MaxRings+3, left, "whoever waits for all that was sent does not wait for ever")
			return err
		}))
	}
	require.NoError(t, c.Run(context.Background()))
	_, failed := c.Failures()
	require.Zero(t, failed)
	for node, v := range providers {
		s := v.State()
		require.EqualValues(t, 3, s.Stray)
		require.Equal(t, s.Slots, s.Free)
		for i, n := range got[node] {
			require.Equal(t, 20+i, n)
		}
	}
}
