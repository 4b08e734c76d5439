package exanest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/hosttest"
	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// oneWayOf measures a point.
func oneWayOf(t *testing.T, device string, values experiment.Values, overrides ...string) sim.Time {
	d, err := profile.Load(device, overrides...)
	require.NoError(t, err)
	p, err := exanet.At(d, values)
	require.NoError(t, err)
	r, err := exanet.Measure(context.Background(), p)
	require.NoError(t, err, p)
	return r.Time(experiment.LatencyColumn)
}

// Ours is near the published numbers that stand beside it.
func TestExanetBesidePublished(t *testing.T) {
	near := map[string]float64{"tr488-6.1.1-13": 0.001, "tr488-6.1.1-31": 0.001, "tr488-6.1.1-36": 0.002, "tr488-6.1.1-27": 0.12, "tr488-6.1.1-29": 0.14}
	for _, row := range exanet.Ledger {
		most, tested := near[row.ID]
		if !tested || testing.Short() && row.ID == "tr488-6.1.1-29" {
			continue
		}
		delete(near, row.ID)
		published, ok := ledger.Find(row.ID)
		require.True(t, ok)
		s, err := row.Sweep(exanet)
		require.NoError(t, err)
		points, err := s.Points()
		require.NoError(t, err)
		results, err := s.Run(t.Context(), points, nil)
		require.NoError(t, err)
		ours, err := row.Numbers(exanet, results)
		require.NoError(t, err)
		require.InEpsilon(t, published.Published.Numbers[0].Best, ours.Numbers[0], most, row.ID)
	}
	require.True(t, len(near) == 0 || testing.Short(), "not in the ledger: %v", near)
}

// A longer path takes longer as in the report: links and routers (TR-488 Table
// 1), and the bytes once more where link rates differ.
func TestExanetPaths(t *testing.T) {
	for _, device := range []string{"exanest-qfdb", "exanest"} {
		at := func(path string) float64 {
			return oneWayOf(t, device, experiment.Values{"mode": exanetMPI, "path": path, "size": 0}).Seconds() * 1e9
		}
		a, b, c, d := at("intra-qfdb"), at("b"), at("c"), at("d")
		const link, router = 120, 145
		require.InDelta(t, a+2*router, b, 25, device)
		require.InDelta(t, b+link, c, 10, device)
		require.InDelta(t, c+link, d, 10, device)
		require.Less(t, at("intra-fpga"), a)
	}
}

// Touching the pages of buffers costs a line of memory for each. Options for
// absent pages need pages that can be absent.
func TestExanetModes(t *testing.T) {
	v := func(mode string) experiment.Values { return experiment.Values{"mode": mode, "size": 64 << 10} }
	plain := oneWayOf(t, "exanest-qfdb", v(exanetMPI))
	require.Equal(t, 2*16*100*sim.Nanosecond, oneWayOf(t, "exanest-qfdb", v(exanetTouch))-plain)
	require.Less(t, plain, oneWayOf(t, "exanest-qfdb", v(exanetProcess)))
	require.Less(t, oneWayOf(t, "exanest-qfdb", v(exanetPortals)), plain, "no firmware")
	require.InEpsilon(t, plain.Seconds(), oneWayOf(t, "exanest-qfdb", v(exanetPART)).Seconds(), 0.001, "without faults")
	d, err := profile.Load("spin-int")
	require.NoError(t, err)
	_, err = exanet.At(d, v(exanetMPI))
	require.ErrorContains(t, err, "profile spin-int: hpu.dma_write: initiated, expected landed")
	d, err = profile.Load("spin-int", "hpu.dma_write=landed")
	require.NoError(t, err)
	_, err = exanet.At(d, v(exanetPART))
	require.ErrorContains(t, err, "profile spin-int: no pages that could be absent")
}

// Where memory is sometimes absent or late, all data arrives, on the
// prototype's boards and on another device.
func TestExanetOnFaultyMemory(t *testing.T) {
	faults, late := 0, 0
	for _, mode := range []string{exanetMailbox, exanetMPI, exanetProcess, exanetTouch, exanetPortals} {
		for _, chances := range hosttest.Kinds { //lint:maporder each by itself
			// three cells: a block begins again where its source is absent
			for _, size := range []int{32, 600} {
				if mode == exanetMailbox && size > 64 {
					continue
				}
				for name, overrides := range map[string][]string{"exanest-qfdb": {"os.kind=none", "smmu.kind=none"}, "spin-int": {"hpu.dma_write=landed"}} { //lint:maporder likewise
					d, err := profile.Load(name, overrides...)
					require.NoError(t, err)
					p, err := exanet.At(d, experiment.Values{"mode": mode, "size": size})
					require.NoError(t, err)
					f := hosttest.Nodes{Chances: chances}
					p.Translator = f.Make
					_, err = exanet.Measure(context.Background(), p)
					require.NoError(t, err, "%s, %+v", p, chances)
					faults, late = faults+f.Faults, late+f.Delayed
				}
			}
		}
	}
	require.Greater(t, faults, 1000)
	require.Greater(t, late, 1000)
}

// The RDMA engine's firmware on other processors. A message waits for cycles of
// an HPU instead of the R5's invocations. The number of cycles is the same at
// every clock.
func TestFirmwareOnHPUs(t *testing.T) {
	us := func(mode, firmware string) float64 {
		return oneWayOf(t, "exanest-qfdb", experiment.Values{"mode": mode, "firmware": firmware, "size": 64, "rounds": 2}).Microseconds()
	}
	for _, mode := range []string{exanetMPI, exanetPART} {
		r5, slow, fast, fastest := us(mode, poolOfProfile), us(mode, "150MHz"), us(mode, "1GHz"), us(mode, "2.5GHz")
		cycles := (slow - fast) / (1/150.0 - 1/1000.0)
		require.Greater(t, cycles, 100.0, mode)
		require.InDelta(t, cycles*(1/1000.0-1/2500.0), fast-fastest, 0.02, mode)
		require.InDelta(t, r5-3, fast-cycles/1000, 0.05, mode) // one invocation of 3 us is on the way
		require.InDelta(t, slow, us(mode, "hpu"), 1e-9, mode)  // the profile's own HPUs have that clock
	}
	d, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	for mode, want := range map[string]string{exanetMailbox: "with mode mailbox no firmware runs", exanetPortals: "with mode mpi-portals no firmware runs"} {
		_, err := exanet.At(d, experiment.Values{"mode": mode, "firmware": "1GHz", "size": 64})
		require.ErrorContains(t, err, want)
	}
}
