package npf

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	pagefault "github.com/spinsim/spinsim/experiment/part"
	"github.com/spinsim/spinsim/sim"
)

// The common parts of both sides of npf-versus-part, and the time of their
// faults, by hand from the values of ib-npf:
//
//	network  1 MiB are 256 packets of 4,096 B and a header of 26 B at 54.545 Gb/s: 604.6 ns each, 154.8 us together, for both; what else a write takes are its ways, some us
//	kernel   interrupt 1 us + softirq 0.5 us + get_user_pages 10 us + 0.13 us for a page + tables 10.27 us + a store 0.1 us = 22 us, for both
//	NPF      source: what it takes without a fault, the firmware's 198 us (what-if: none) and the kernel's, and the data again. Destination: t = 240 us of the RNR NACK, and at most all ways again
//	PART     destination: the kernel's, a request to send the block again, and the ways again. Source: nothing is sent, until a time-out of 1 ms
func TestVersusByHand(t *testing.T) {
	const us = sim.Microsecond
	at := func(mode, side, firmware string, size int) *experiment.Result {
		return overIB(t, npfVersus, experiment.Values{"mode": mode, "side": side, "firmware": firmware, "pause": 9, "size": size})
	}
	took := func(mode, side, firmware string, size int) sim.Time {
		return at(mode, side, firmware, size).Time(experiment.LatencyColumn)
	}
	const one, mega, link, kernel = 4 << 10, 1 << 20, 604600 * sim.Picosecond, 22 * us
	way := map[string]sim.Time{}
	for _, mode := range []string{versusNPF, versusPIO, versusPIA} {
		way[mode] = took(mode, pagefault.SideNone, "hpu", one)
		require.Less(t, way[mode], 8*us)
		require.InEpsilon(t, float64(255*link+way[mode]), float64(took(mode, pagefault.SideNone, "hpu", mega)), 0.01, mode)
	}
	require.InEpsilon(t, way[versusNPF].Seconds(), way[versusPIO].Seconds(), 0.03, "the same network and workload")
	between := func(mode, side, firmware string, least sim.Time) {
		got := took(mode, side, firmware, one)
		require.Greater(t, got, way[mode]+least, "%s, %s, %s", mode, side, firmware)
		require.Less(t, got, 2*way[mode]+least, "%s, %s, %s", mode, side, firmware)
	}
	between(versusNPF, pagefault.SideSource, "firmware", 198*us+kernel)
	between(versusNPF, pagefault.SideSource, "hpu", kernel)
	between(versusNPF, pagefault.SideDestination, "firmware", 240*us)
	between(versusNPF, pagefault.SideDestination, "hpu", 240*us)
	between(versusPIA, pagefault.SideDestination, "hpu", kernel)
	source := took(versusPIA, pagefault.SideSource, "hpu", one)
	require.Greater(t, source, sim.Millisecond)
	require.Less(t, source, sim.Millisecond+2*way[versusPIA])

	for _, mode := range []string{versusNPF, versusPIA} {
		r := at(mode, pagefault.SideNone, "hpu", mega)
		require.Zero(t, r.Values["reports"], mode)
		require.Zero(t, r.Values["again"], mode)
	}
	batch, pages := at(versusNPF, pagefault.SideDestination, "hpu", mega), at(versusOnePage, pagefault.SideDestination, "hpu", mega)
	require.Equal(t, 1, batch.Values["reports"], "the batch is the write")
	require.Equal(t, 256, pages.Values["reports"], "a page each")
	require.Less(t, batch.Values["again"], 64<<10, "what is under way in some us")
	require.Equal(t, one, at(versusNPF, pagefault.SideDestination, "hpu", one).Values["again"])
	require.Equal(t, one, at(versusPIA, pagefault.SideDestination, "hpu", one).Values["again"])
}
