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

func measured(t *testing.T, e *experiment.Experiment, device string, values experiment.Values, overrides ...string) *experiment.Result {
	d, err := profile.Load(device, overrides...)
	require.NoError(t, err)
	p, err := e.At(d, values)
	require.NoError(t, err)
	r, err := e.Measure(context.Background(), p)
	require.NoError(t, err)
	return r
}

// latency equals the ping-pong of experiment exanet, to the picosecond, on both
// networks.
func TestOSULatencyIsThePingPong(t *testing.T) {
	for path, letter := range map[string]string{"intra-fpga": "intra-fpga", "intra-qfdb": "intra-qfdb", "intra-mezz:1": "b", "intra-mezz:2": "c", "intra-mezz:3": "d"} {
		for _, size := range []int{0, 32, 64, 5000} {
			ours := measured(t, OSU, "exanest", experiment.Values{"path": path, "size": size, "iterations": 10, "warmup": 2}).Time(experiment.LatencyColumn)
			r := measured(t, exanet, "exanest", experiment.Values{"mode": exanetMPI, "path": letter, "size": size, "rounds": 10})
			require.Equal(t, r.Time(experiment.LatencyColumn), ours, "%s, %d B", path, size)
		}
	}
}

// A link of 10 Gb/s carries 64.3% payload, as in TR-488; fabric.exanest.control
// is set for it. With half a megabyte, unlike with 4 MB, the ends of a window
// cost bandwidth.
func TestOSUBandwidthOfALink(t *testing.T) {
	for _, benchmark := range []string{"bw", "bibw"} {
		r := measured(t, OSU, "exanest", experiment.Values{"benchmark": benchmark, "path": "intra-mezz:1", "size": 512 << 10, "window": 8})
		require.InDelta(t, 0.643, r.Float("of_link"), 0.01, benchmark)
	}
}

// The steps of the model: 512 ranks take two within MPSoCs, two within boards
// and five between boards (TR-488). With one rank on each MPSoC there is no
// step within one. With 4 ranks on an MPSoC the longest time is near the model
// if a step lasts until its message has arrived.
func TestBroadcastModel(t *testing.T) {
	d, err := profile.Load("exanest")
	require.NoError(t, err)
	p, err := OSURanks.At(d, experiment.Values{"size": 1})
	require.NoError(t, err)
	ctx := context.Background()
	class := map[string]sim.Time{}
	for _, path := range []string{"intra-fpga", "intra-qfdb", "intra-mezz:1"} {
		class[path], err = oneWay(ctx, p, path)
		require.NoError(t, err)
	}
	for _, c := range []struct {
		ranks, perNode int
		steps          [3]sim.Time
	}{
		{4, 4, [3]sim.Time{2, 0, 0}},
		{16, 4, [3]sim.Time{2, 2, 0}},
		{512, 4, [3]sim.Time{2, 2, 5}},
		{128, 1, [3]sim.Time{0, 2, 5}},
		{5, 4, [3]sim.Time{2, 1, 0}},
	} {
		model, err := bcastModel(ctx, p, c.ranks, c.perNode)
		require.NoError(t, err)
		require.Equal(t, c.steps[0]*class["intra-fpga"]+c.steps[1]*class["intra-qfdb"]+c.steps[2]*class["intra-mezz:1"], model)
	}
	r := measured(t, OSURanks, "exanest", experiment.Values{"ranks": 4, "size": 1, "one-way": "arrival"})
	require.InDelta(t, 0, r.Float("vs_model"), 0.1)
	require.InDelta(t, 1.93, r.Time(experiment.LatencyColumn).Microseconds(), 0.25)
}

// Where memory is sometimes absent or late, all data arrives, but later.
func TestOSUOnFaultyMemory(t *testing.T) {
	faults, late := 0, 0
	for _, c := range []struct {
		e      *experiment.Experiment
		device string
		values experiment.Values
	}{
		{OSU, "exanest", experiment.Values{"benchmark": "bibw", "size": 600, "window": 4, "iterations": 4}},
		{OSU, "spin-int", experiment.Values{"path": "0-1", "transport": overOffload, "size": 600, "iterations": 4}},
		{OSURanks, "exanest", experiment.Values{"ranks": 8, "size": 600, "iterations": 4}},
		{OSURanks, "exanest", experiment.Values{"benchmark": "alltoall", "ranks": 6, "size": 600, "iterations": 3}},
		{OSURanks, "spin-dis", experiment.Values{"benchmark": "allreduce", "transport": overPortals, "ranks": 8, "size": 600, "iterations": 3}},
	} {
		for _, chances := range hosttest.Kinds { //lint:maporder each by itself
			overrides := []string{"os.kind=none", "smmu.kind=none"}
			if c.device != "exanest" {
				overrides = nil
			}
			d, err := profile.Load(c.device, overrides...)
			require.NoError(t, err)
			p, err := c.e.At(d, c.values)
			require.NoError(t, err)
			f := hosttest.Nodes{Chances: chances}
			p.Translator = f.Make
			_, err = c.e.Measure(context.Background(), p)
			require.NoError(t, err, "%s, %+v", p, chances)
			faults, late = faults+f.Faults, late+f.Delayed
		}
	}
	require.Greater(t, faults, 100)
	require.Greater(t, late, 100)
}

// A list keeps the numbers of a path together. Two dots continue a list.
func TestListsOfPathsAndRanks(t *testing.T) {
	paths, err := OSU.Axis("path").Parse("intra-mezz:2,inter-mezz:3,1,2,0-5,inter-mezz:1,0,0")
	require.NoError(t, err)
	require.Equal(t, []any{"intra-mezz:2", "inter-mezz:3,1,2", "0-5", "inter-mezz:1,0,0"}, paths)
	ranks, err := OSURanks.Axis("ranks").Parse("4..32")
	require.NoError(t, err)
	require.Equal(t, []any{4, 8, 16, 32}, ranks)
	_, err = OSURanks.Axis("ranks").Parse("4..")
	require.Error(t, err)
}

// A link with a buffer for one cell waits for each credit: half of the
// bandwidth between boards is lost. Three cells are enough for one direction.
// Where paths cross, as in alltoall, more room helps.
func TestCredits(t *testing.T) {
	bandwidth := func(buffer int) float64 {
		d, err := profile.Load("exanest")
		require.NoError(t, err)
		p, err := credits.At(d, experiment.Values{"benchmark": "mbw_mr", "ranks": 8, "size": 64 << 10, "window": 2, "buffer": buffer})
		require.NoError(t, err)
		require.Equal(t, int64(buffer), p.Profile.Fabric.Buffer[0], "the axis sets the profile's field")
		r, err := credits.Measure(context.Background(), p)
		require.NoError(t, err)
		return r.Float("bandwidth")
	}
	one, three, many := bandwidth(512), bandwidth(1<<10), bandwidth(16<<10)
	require.Less(t, one, 0.6*three)
	require.InEpsilon(t, three, many, 0.02)

	alltoall := func(buffer int) sim.Time {
		return measured(t, credits, "exanest", experiment.Values{"benchmark": "alltoall", "ranks": 16, "size": 32 << 10, "buffer": buffer}).Time(experiment.LatencyColumn)
	}
	require.Less(t, alltoall(16<<10), alltoall(1<<10))
}

// The first broadcast of a large message takes as long as the second. So with
// many ranks there is no warm-up by default.
func TestBroadcastNeedsNoWarmup(t *testing.T) {
	at := func(warmup int) float64 {
		return measured(t, OSURanks, "exanest", experiment.Values{"ranks": 64, "size": 64 << 10, "warmup": warmup}).Time(experiment.LatencyColumn).Seconds()
	}
	require.InEpsilon(t, at(1), at(0), 0.006)
}

// Systems of the report's boards that were never built: one rank on each of 256
// MPSoCs takes one step more between boards than on the prototype's 128.
func TestTorusOfOtherSizes(t *testing.T) {
	values := func(ranks int) experiment.Values {
		return experiment.Values{"ranks": ranks, "ranks-per-node": 1, "size": 4, "iterations": 1, "warmup": 0, "one-way": "arrival"}
	}
	large := measured(t, OSURanks, "exanest", values(256), "fabric.dims=[8, 4, 2]")
	small, err := bcastModel(context.Background(), large.Point, 128, 1)
	require.NoError(t, err)
	step, err := oneWay(context.Background(), large.Point, "intra-mezz:1")
	require.NoError(t, err)
	require.Equal(t, step, large.Time("model")-small)
	require.InDelta(t, 1, float64(large.Time("most"))/float64(large.Time("model")), 0.35)

	d, err := profile.Load("exanest")
	require.NoError(t, err)
	_, err = OSURanks.At(d, values(256))
	require.ErrorContains(t, err, "--ranks: 256, 1 on a node, expected at most 128 on the 128 MPSoCs of 4x4x2 (--topology)")
}

// Without a barrier a broadcast waits only for its data, not for ranks that left
// the barrier later. Only collectives have one.
func TestBroadcastWithoutBarrier(t *testing.T) {
	at := func(barrier bool) sim.Time {
		return measured(t, OSURanks, "exanest", experiment.Values{"ranks": 4, "size": 1, "barrier": barrier}).Time(experiment.LatencyColumn)
	}
	require.Less(t, at(false), at(true))
	d, err := profile.Load("exanest")
	require.NoError(t, err)
	_, err = OSURanks.At(d, experiment.Values{"benchmark": "mbw_mr", "ranks": 4, "size": 8, "barrier": false})
	require.ErrorContains(t, err, "mbw_mr has none after its calls")
}

// The jump is the size before the largest step, as a ratio.
func TestJump(t *testing.T) {
	require.InDelta(t, 32, jump(doubling(16, 128), []float64{1, 1.1, 5, 9}), 0)
	require.Zero(t, jump(doubling(16, 16), []float64{1}))
	require.Equal(t, "size=4,8,16", listed("size", doubling(4, 16)))
}
