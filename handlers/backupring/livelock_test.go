package backupring

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Receive livelock (Mogul and Ramakrishnan, TOCS 1997): for 2 ms frames for the
// backup ring come as fast as the kernel can take them. If each interrupts, its
// thread gets next to nothing of the core, and no page is brought in. With NAPI
// and interrupts that leave frames time to gather it does, and nothing more is
// lost. In the end programs have had all frames, in order.
func TestThreadsAreNotStarved(t *testing.T) {
	const lasts = 2 * sim.Millisecond
	during := func(set ...string) (resolved int64, n *network) {
		n = &network{
			users: []user{{RingOptions: RingOptions{Size: 256, BitmapSize: 4096, Buffer: host.PageBytes}}}, slots: 64, senders: 2, frames: 1500, longest: 1500, apart: 600 * sim.Nanosecond,
			set: append([]string{"os.gup_fault=10us", "os.interrupt=1us", "os.softirq=500ns", "host.core_bandwidth=10GB/s"}, set...),
		}
		n.watch = func(p *runtime.Proc) {
			p.Sleep(lasts)
			resolved = n.provider.Stats().Resolved
		}
		n.run(t)
		return resolved, n
	}
	starved, all := during()
	fair, polled := during("os.poll_budget=300", "os.poll_weight=64", "os.poll_rest=16us")
	t.Logf("resolved in the first %v: %d, with a budget %d; dropped %d and %d; %+v %+v", lasts, starved, fair, all.users[0].stats.Dropped, polled.users[0].stats.Dropped, all.provider.Stats(), polled.provider.Stats())
	require.Less(t, starved, int64(5))
	require.Greater(t, fair, int64(40))
	require.Zero(t, polled.users[0].stats.Dropped)
	require.Less(t, polled.provider.Stats().Interrupts, all.provider.Stats().Interrupts/5)
}
