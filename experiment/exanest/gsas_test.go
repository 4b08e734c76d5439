package exanest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// shares measures a point of gsas.
func shares(t *testing.T, values experiment.Values, overrides ...string) *experiment.Result {
	t.Helper()
	d, err := profile.Load("exanest-qfdb", overrides...)
	require.NoError(t, err)
	p, err := gsas.At(d, values)
	require.NoError(t, err)
	r, err := gsas.Measure(context.Background(), p)
	require.NoError(t, err, p)
	return r
}

// A longer path costs a round trip over its links and routers. RDMA costs the
// firmware. A home that everybody asks at once serves one request after the
// other.
func TestGSAS(t *testing.T) {
	took := func(op, path string, size int) sim.Time {
		return shares(t, experiment.Values{"op": op, "path": path, "size": size}).Time(experiment.LatencyColumn)
	}
	const hop, router, firmware = 120, 145, 3 * sim.Microsecond
	for _, op := range []string{gsasRead, gsasWrite, gsasAdd, gsasCompare} {
		a, b, d := took(op, "intra-qfdb", 8), took(op, "b", 8), took(op, "d", 8)
		require.InDelta(t, a.Seconds()*1e9+2*2*router, b.Seconds()*1e9, 60, op)
		require.InDelta(t, b.Seconds()*1e9+2*2*hop, d.Seconds()*1e9, 60, op)
		require.Less(t, took(op, "intra-fpga", 8), a, op)
	}
	require.Greater(t, took(gsasRead, "intra-qfdb", 49), took(gsasRead, "intra-qfdb", 48)+firmware)
	at := func(processes int) *experiment.Result {
		return shares(t, experiment.Values{"op": gsasAdd, "path": "intra-qfdb", "size": 8, "processes": processes})
	}
	one, four, twelve := at(1).Values["rate"].(float64), at(4).Values["rate"].(float64), at(12).Values["rate"].(float64)
	require.Greater(t, four, 2*one)
	require.InEpsilon(t, four, twelve, 0.1, "the home is busy")
}

func TestGSASPoints(t *testing.T) {
	d, err := profile.Load("spin-int")
	require.NoError(t, err)
	_, err = gsas.At(d, experiment.Values{"op": gsasRead, "size": 8})
	require.ErrorContains(t, err, "profile spin-int: hpu.dma_write: initiated, expected landed")
	shares(t, experiment.Values{"op": gsasBarrier, "path": "d", "size": 0, "processes": 7})
	shares(t, experiment.Values{"op": gsasCompare, "path": "c", "size": 8, "processes": 5})
}

// Where memory is sometimes absent or late, every access has its effect, on the
// prototype's boards and on another device.
func TestGSASOnFaultyMemory(t *testing.T) {
	faults, late := 0, 0
	for _, op := range []string{gsasRead, gsasWrite, gsasAdd} {
		for _, chances := range hosttest.Kinds { //lint:maporder each by itself
			for _, size := range []int{8, 600} {
				if op == gsasAdd && size > 8 {
					continue
				}
				for name, overrides := range map[string][]string{"exanest-qfdb": {"os.kind=none", "smmu.kind=none"}, "spin-int": {"hpu.dma_write=landed"}} { //lint:maporder likewise
					d, err := profile.Load(name, overrides...)
					require.NoError(t, err)
					p, err := gsas.At(d, experiment.Values{"op": op, "path": "intra-qfdb", "size": size})
					require.NoError(t, err)
					f := hosttest.Nodes{Chances: chances}
					p.Translator = f.Make
					_, err = gsas.Measure(context.Background(), p)
					require.NoError(t, err, "%s, %+v", p, chances)
					faults, late = faults+f.Faults, late+f.Delayed
				}
			}
		}
	}
	require.Greater(t, faults, 300)
	require.Greater(t, late, 300)
}
