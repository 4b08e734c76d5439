package driver_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/handlers/backupring/driver"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// What a ring takes of frames that come faster than it does is one after the other: each has the lock of its registers for about 200 ns, so that more processors do not help it, and more rings do. Little's law, which
// takes handlers for independent, does not see that.
func TestARingTakesOneFrameAtATime(t *testing.T) {
	const frames = 2000
	each := func(rings, cores int) sim.Time {
		n := network{
			slots: 512, senders: 16, frames: frames / 16, longest: 1500,
			set: []string{"fabric.rate=400Gb/s", fmt.Sprintf("hpu.cores=%d", cores), "nic.overhead=20ns", "nic.packet_buffer=64MiB", "dma.bandwidth=2000Gb/s"},
		}
		last := sim.Time(0)
		for range rings {
			u := user{RingOptions: driver.RingOptions{Size: frames, BitmapSize: frames, Buffer: 1500, Pinned: true}}
			u.instead = func(p *runtime.Proc, r *driver.Ring) error {
				if err := r.Post(frames); err != nil {
					return err
				}
				p.Sleep(10 * sim.Microsecond)
				start := p.Now()
				for seen := uint64(0); p.Now() < sim.Millisecond; p.Sleep(100 * sim.Nanosecond) {
					if s := r.Stats(); s.Stored > seen {
						seen, last = s.Stored, max(last, p.Now()-start)
					}
				}
				return nil
			}
			n.users = append(n.users, u)
		}
		n.run(t)
		stored := uint64(0)
		for i := range n.users {
			stored += n.users[i].stats.Stored
		}
		require.EqualValues(t, frames, stored)
		t.Logf("%d rings, %d HPUs: a frame each %v", rings, cores, last/frames)
		return last / frames
	}
	few := each(1, 4)
	require.Greater(t, few, 150*sim.Nanosecond)
	require.GreaterOrEqual(t, each(1, 32), few)
	require.Less(t, each(4, 32), few/2)
}
