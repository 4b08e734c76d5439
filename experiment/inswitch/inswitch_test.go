package inswitch

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

func measure(t *testing.T, device string, values experiment.Values, set ...string) *experiment.Result {
	p, err := profile.Load(device, set...)
	require.NoError(t, err)
	at, err := inSwitch.At(p, values)
	require.NoError(t, err)
	r, err := inSwitch.Measure(t.Context(), at)
	require.NoError(t, err)
	return r
}

// One switch with N ranks, n packets of G each on a link and U on the unit's.
// The last of N packets that come together is in the unit (N-1)U behind the
// first, and its sum leaves a latency later, once for each rank: the last copy
// (N-1)U behind the first. Both ways cross a link, the switch and the unit's
// link; the ranks' buses take a packet D each.
func TestTimeOfOneSwitch(t *testing.T) {
	p, err := profile.Load("inc")
	require.NoError(t, err)
	f := &p.Fabric
	long, short, bus := f.Serial(int(f.MTU)), f.Units.Rate.Time(int64(f.MTU+f.Header)), p.DMA.Bandwidth.Time(int64(f.MTU))
	for _, ranks := range []int{2, 5, 64} {
		for _, n := range []int{1, 3, 200} {
			way := f.Wire + f.Switch + f.Units.Wire
			want := p.NIC.Overhead + bus + sim.Time(n)*long - short + sim.Time(ranks)*short + way +
				p.Pools["unit"].Latency + sim.Time(ranks-1)*short + way + long + bus + p.Host.Poll
			r := measure(t, "inc", experiment.Values{"mode": bySwitch, "ranks": ranks, "size": n * int(f.MTU)})
			require.Equal(t, want, r.Time(experiment.LatencyColumn), "%d ranks, %d packets", ranks, n)
			require.EqualValues(t, n*int(f.MTU+f.Header), r.Values["rank_bytes"])
			require.Equal(t, []int64{1, 1}, []int64{r.Values["aggregators"].(int64), r.Values["height"].(int64)})
		}
	}
}

// Every number of the tables is within 10% of what was measured; TestMeasuredRows
// measures them again.
func TestTables(t *testing.T) {
	kept, rows := ledger.AllMeasured(), 0
	for _, row := range inSwitch.Ledger {
		r, ok := ledger.Find(row.ID)
		require.True(t, ok)
		require.NotNil(t, kept[row.ID], row.ID)
		off, err := r.Off(kept[row.ID].Ours)
		require.NoError(t, err)
		require.Less(t, off.Distance, 0.1, row.ID)
		rows++
	}
	for _, p := range ledger.Publications() {
		for i := range p.Rows {
			if r := &p.Rows[i]; strings.HasPrefix(r.ID, "inc-") && r.Kind == ledger.Result {
				rows--
			}
		}
	}
	require.Zero(t, rows, "the tables have rows that the experiment does not answer")
}

// All modes have the right result on other devices and networks, with sizes that
// are no multiples of packets or ranks, and with loss that a transport mends.
func TestModes(t *testing.T) {
	for _, device := range []string{"spin-dis", "spin-int", "exanest"} {
		for _, set := range [][]string{
			{"fabric.kind=crossbar"},
			{"fabric.kind=leaf-spine", "fabric.leaf_nodes=3", "fabric.spines=2", "fabric.faults={loss: 0.01}", "transport.kind=reliable", "transport.retries=100", "transport.timeout=20us"},
		} {
			for _, mode := range []string{byHost, byHostRing, byNIC, byNICTree, bySwitch} {
				set := append([]string{"fabric.radix=0", "fabric.units={at: all, rate: 1ps/B, wire: 1ns}", "os.kind=none", "smmu.kind=none"}, set...)
				measure(t, device, experiment.Values{"mode": mode, "ranks": 7, "size": 10004}, set...)
			}
		}
	}
}

// A switch that reduces at line rate is the faster the more ranks there are. On
// HPUs a block takes as long as the additions of all children, so few of them are
// slower than a ring of hosts.
func TestWhoIsFaster(t *testing.T) {
	time := func(mode string, ranks, size int, set ...string) sim.Time {
		return measure(t, "inc", experiment.Values{"mode": mode, "ranks": ranks, "size": size}, set...).Time(experiment.LatencyColumn)
	}
	const size = 64 << 10
	for _, ranks := range []int{2, 16} {
		for _, mode := range []string{byHost, byHostRing, byNIC, byNICTree} {
			require.Less(t, time(bySwitch, ranks, size), time(mode, ranks, size), mode)
		}
	}
	require.Greater(t, float64(time(byHost, 16, size))/float64(time(bySwitch, 16, size)), 2*float64(time(byHost, 2, size))/float64(time(bySwitch, 2, size)))
	hpus := func(cores string) sim.Time {
		return time(bySwitch, 16, size, "serve.reduction.payload=hpu", "hpu.cores="+cores)
	}
	require.Greater(t, hpus("4"), time(byHostRing, 16, size))
	require.Less(t, hpus("64"), time(byHostRing, 16, size))
}

func TestPoints(t *testing.T) {
	for want, values := range map[string]experiment.Values{
		"no switch has a unit (fabric.units)":    {"mode": bySwitch, "ranks": 2, "size": 8},
		"only trees have a window":               {"mode": byHost, "ranks": 2, "size": 8, "window": 3},
		"vectors of float32 take multiples of 4": {"mode": byHost, "ranks": 2, "size": 9},
	} {
		p, err := profile.Load("spin-dis")
		require.NoError(t, err)
		_, err = inSwitch.At(p, values)
		require.ErrorContains(t, err, want)
	}
}
