package npf

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// The parts of the time to give up the memory of a message. madvise takes
// unmap_call, and unmap_page for each page. The driver takes invalidate for a
// range of any length. The interface is idle and acknowledges as soon as it
// can. The parts add up. An invalidation is cheaper than a fault (NPF'17 §4).
func TestInvalidation(t *testing.T) {
	for _, c := range []struct {
		size, pages int
		set         []string
		tell, ack   sim.Time
	}{
		{4 << 10, 1, nil, 500 * sim.Nanosecond, 1500 * sim.Nanosecond},
		{64 << 10, 16, []string{"os.invalidate=5us"}, 5 * sim.Microsecond, 1500 * sim.Nanosecond},
		{1 << 20, 256, []string{"os.invalidate=0us", "os.acknowledge=3us"}, 0, 3 * sim.Microsecond},
		{1 << 20, 256, []string{"os.acknowledge=0us"}, 500 * sim.Nanosecond, 0},
	} {
		d, err := profile.Load("ib-npf", c.set...)
		require.NoError(t, err)
		p, err := npfLatency.At(d, experiment.Values{"mode": npfBatched, "noise": "none", "size": c.size})
		require.NoError(t, err)
		r, err := npfLatency.Measure(context.Background(), p)
		require.NoError(t, err)
		require.Equal(t, 1500*sim.Nanosecond+sim.Time(c.pages)*100*sim.Nanosecond, r.Time("unmapped"))
		require.Equal(t, c.tell, r.Time("told"))
		require.Equal(t, c.ack, r.Time("acknowledged"))
		require.Equal(t, r.Time("invalidated"), r.Time("told")+r.Time("acknowledged"))
		require.Equal(t, r.Time("given_up"), r.Time("unmapped")+r.Time("invalidated"))
		require.Less(t, r.Time("invalidated"), r.Time("average"))
		require.Equal(t, r.Time("average"), r.Time("firmware")+r.Time("handler")+r.Time("addresses")+r.Time("tables")+r.Time("resume"))
	}
}
