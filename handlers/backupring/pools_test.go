package backupring

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Frames wait for their turn on processors of any kind, while one is stored
// alone (no or a short bitmap) or has the lock of the ring.
func TestFramesWaitOnAnyProcessor(t *testing.T) {
	for _, pool := range []string{
		"{kind: hardware, latency: 100ns, depth: 1}", "{kind: hardware, latency: 100ns, depth: 2}", "{kind: hardware, latency: 100ns, depth: 64}", "{kind: hardware, latency: 0ns, depth: 8}",
		"{kind: firmware, cores: 4, contexts: 1, invocation: 1us}", "{kind: firmware, cores: 2, contexts: 4, invocation: 1us}", "{kind: firmware, cores: 2, contexts: 4, invocation: 0us}",
	} {
		for _, bitmap := range []int{0, 1, 64} {
			t.Run(fmt.Sprint(pool, bitmap), func(t *testing.T) {
				n := network{
					users: []user{{RingOptions: RingOptions{Size: 64, BitmapSize: bitmap, Pinned: true}}}, slots: 64, senders: 2, frames: 32, longest: 1500,
					set: []string{"pools.ring=" + pool, "serve.backupring={payload: ring}"},
				}
				n.run(t)
				require.Len(t, n.users[0].got, 64)
				require.Equal(t, uint64(64), n.users[0].stats.Stored)
				t.Log(n.users[0].at)
			})
		}
	}
}

// On 64 processors with one context each a frame may have 63 before it, which
// go into memory one after the other where absent memory drops and the next
// frame has its descriptor: here with one bit of a bitmap, and not without one,
// since a pinned ring has nothing to lose. It waits for them; where memory is
// so slow that its handler would be killed for that (hpu.max_cycles) it is
// dropped before, and the frames behind it arrive as ever.
func TestFramesWaitForTheirTurn(t *testing.T) {
	for _, o := range []struct {
		bitmap          int
		latency, budget string
		late            bool
	}{{1, "50ns", "1000000", false}, {1, "250ns", "1000000", false}, {1, "250ns", "100000", true}, {1, "4us", "1000000", true}, {0, "250ns", "100000", false}, {0, "4us", "1000000", false}} {
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			n := network{
				users: []user{{RingOptions: RingOptions{Size: 256, BitmapSize: o.bitmap, Pinned: true}}}, slots: 64, senders: 4, frames: 40, longest: 1500,
				set: []string{"hpu.cores=64", "hpu.contexts=1", "hpu.max_cycles=" + o.budget, "dma.latency=" + o.latency},
			}
			n.run(t)
			u := &n.users[0]
			require.Equal(t, o.late, u.stats.Late > 0)
			require.Equal(t, u.stats.Late, u.stats.Dropped)
			require.Len(t, u.got, u.sent-int(u.stats.Late))
			require.Greater(t, len(u.got), 16)
			t.Logf("%d of %d, the last at %v", len(u.got), u.sent, u.at)
		})
	}
}
