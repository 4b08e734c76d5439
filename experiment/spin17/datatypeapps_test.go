package spin17

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	mpi "github.com/spinsim/spinsim/datatype"
	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/datatype"
	"github.com/spinsim/spinsim/internal/ddtbench"
	"github.com/spinsim/spinsim/profile"
)

// applied measures an application.
func applied(t *testing.T, device string, values experiment.Values, set ...string) *experiment.Result {
	p, err := profile.Load(device, set...)
	require.NoError(t, err)
	at, err := datatypeApps.At(p, values)
	require.NoError(t, err)
	r, err := datatypeApps.Measure(context.Background(), at)
	require.NoError(t, err)
	return r
}

// The loader's model predicts the time of handlers: within 12% for vector and
// for each strategy that looks places up or has checkpoints. It puts any two
// that are 3% apart in the right order, and its choice is at most 3% above the
// best. The model has the worst case of progressing, which is never better.
func TestCostModel(t *testing.T) {
	worst := 0.0
	for _, a := range ddtbench.All() {
		input := len(a.Inputs)
		kind, err := a.Inputs[input-1].Type(1)
		require.NoError(t, err)
		program, err := datatype.Compile(kind, 1, datatype.Options{Packet: 4096, Memory: 16 << 20})
		require.NoError(t, err)
		took := map[uint32]float64{}
		for _, mode := range []string{experiment.ModeSpin, modeSpinGeneral, modeSpinRead, modeSpinOn} {
			r := applied(t, "spin-int", experiment.Values{"app": a.Name, "mode": mode, "input": input})
			s, given := strategies[mode]
			if !given {
				s = program.State.Strategy
				require.Equal(t, datatype.StrategyNames[s], r.Values["strategy"])
				require.Equal(t, program.Why, r.Values["why"])
				require.EqualValues(t, len(program.Bytes()), r.Values["hpu_memory"], "%s: the model's memory is what is installed", a.Name)
			}
			took[s] = r.Float("cycles")
			if s != datatype.Progressing {
				deviation := r.Float("cycles_deviation")
				worst = max(worst, math.Abs(deviation))
				require.InDelta(t, 0, deviation, 0.12, "%s %s", a.Name, mode)
			}
		}
		best := math.Inf(1)
		for s, cycles := range took {
			best = min(best, cycles)
			for other, more := range took {
				if s != datatype.Progressing && other != datatype.Progressing && more > 1.03*cycles {
					require.Greater(t, program.Costs[other].Cycles, program.Costs[s].Cycles, "%s: %s, %s", a.Name, datatype.StrategyNames[s], datatype.StrategyNames[other])
				}
			}
		}
		require.LessOrEqual(t, took[program.State.Strategy], 1.03*best, a.Name)
	}
	t.Logf("largest deviation of the model %.1f%%", 100*worst)
}

// With too little memory the loader takes a strategy that fits, and gives the
// reason.
func TestCostModelHasRoom(t *testing.T) {
	v, err := mpi.Vector(1000, 1, 2, mpi.Int64)
	require.NoError(t, err)
	plane, err := mpi.Hvector(1000, 1, 1<<20, v)
	require.NoError(t, err)
	const packet, all = 4096, 1 << 20
	roomy, err := datatype.Compile(plane, 1, datatype.Options{Packet: packet, Memory: all})
	require.NoError(t, err)
	require.EqualValues(t, datatype.ReadOnly, roomy.State.Strategy)
	tight, err := datatype.Compile(plane, 1, datatype.Options{Packet: packet, Memory: int64(len(roomy.Bytes())) - 1})
	require.NoError(t, err)
	require.EqualValues(t, datatype.General, tight.State.Strategy)
	require.ErrorIs(t, tight.Costs[datatype.ReadOnly].Err, datatype.ErrLarge)
	require.Contains(t, tight.Why, "no read-only: 109")
	for s := range datatype.StrategyNames {
		asked := uint32(s)
		_, err := datatype.Compile(plane, 1, datatype.Options{Packet: packet, Memory: int64(len(tight.Bytes())), Strategy: &asked})
		switch s {
		case datatype.General:
			require.NoError(t, err)
		case datatype.Vector:
			require.ErrorContains(t, err, "strategy vector: the type is no blocks of one length at one distance")
		default:
			require.ErrorIs(t, err, datatype.ErrLarge)
		}
	}
}

// The caveats name each row below line rate, by how much, and Little's law.
// With messages that are long enough, the measurement equals Little's law.
func TestBehindLineRate(t *testing.T) {
	r := applied(t, "spin-int", experiment.Values{"app": "NAS_MG_x", "mode": experiment.ModeSpin, "input": 2})
	require.InEpsilon(t, r.Float("littles_law_share"), r.Float("line_share"), 0.05)
	require.InEpsilon(t, 4/r.Float("hpus_needed"), r.Float("littles_law_share"), 1e-9)
	fast := applied(t, "spin-int", experiment.Values{"app": "NAS_MG_z", "mode": experiment.ModeSpin})
	require.Greater(t, fast.Float("line_share"), experiment.LineRate)
	base := applied(t, "spin-int", experiment.Values{"app": "NAS_MG_z", "mode": experiment.ModeRDMA})
	lines := behindLineRate([]*experiment.Result{r, fast, base})
	require.Len(t, lines, 1)
	require.Regexp(t, `^spin-int, NAS_MG_x 2, spin: 1[01]\.\d% of the line rate; a handler takes 7\d\d\d cycles, so that 3\d\.\d HPUs would keep up, and 4 reach 1[01]\.\d% \(Little's law\)\.$`, lines[0])
	answer := applicationAnswer([]*experiment.Result{r, fast, base})
	require.Len(t, answer, 3)
	require.Contains(t, answer[2], "SC'19 says up to 10x of its applications (deviation -47%; predicted)")
	vector := func(block int) *experiment.Result {
		p, err := profile.Load("spin-int")
		require.NoError(t, err)
		at, err := datatypes.At(p, experiment.Values{"mode": experiment.ModeSpin, "size": 64 << 10, "block": block})
		require.NoError(t, err)
		r, err := datatypes.Measure(context.Background(), at)
		require.NoError(t, err)
		return r
	}
	lines = loaderAnswer([]*experiment.Result{vector(64), vector(16), base, vector(4096), vector(256)})
	require.Len(t, lines, 2)
	require.Regexp(t, `^spin-int, 65536 B in blocks of 16 B: vector: 3302 cycles a packet in 200 B of HPU memory; general: \d+ in 200 B; read-only: `, lines[0])
	require.Contains(t, lines[1], "spin-int, 65536 B in blocks of 4096 B: vector: 114")
	// With twice the HPUs the share doubles.
	eight := applied(t, "spin-int", experiment.Values{"app": "NAS_MG_x", "mode": experiment.ModeSpin, "input": 2}, "hpu.cores=8")
	require.InEpsilon(t, 2*r.Float("line_share"), eight.Float("line_share"), 0.1)
}

// Applications have as many inputs as the suite. An iovec never has more
// elements than the device allows.
func TestApplicationPoints(t *testing.T) {
	p, err := profile.Load("spin-int")
	require.NoError(t, err)
	for _, test := range []struct {
		values experiment.Values
		there  bool
	}{
		{experiment.Values{"app": "WRF_x_vec", "input": 3}, true},
		{experiment.Values{"app": "WRF_x_vec", "input": 4}, false},
		{experiment.Values{"app": "NAS_LU_y", "input": 7}, true},
		{experiment.Values{"app": "NAS_MG_z", "mode": modeIOVec}, true},
		{experiment.Values{"app": "NAS_MG_x", "mode": modeIOVec}, false},
		{experiment.Values{"app": "NAS_MG_x", "mode": modeSpinGeneral, "side": typeSource}, false},
	} {
		_, err := datatypeApps.At(p, test.values)
		require.Equal(t, test.there, err == nil, "%v: %v", test.values, err)
	}
	// A type that does not fit into HPU memory is refused before anything runs.
	small, err := profile.Load("spin-int", "hpu.max_hpu_memory=100000")
	require.NoError(t, err)
	for _, side := range []string{typeDestination, typeSource} {
		_, err = datatypeApps.At(small, experiment.Values{"app": "SPECFEM3D_cm", "mode": experiment.ModeSpin, "side": side})
		require.ErrorContains(t, err, "profile spin-int: hpu.max_hpu_memory: 100000 B: the type does not fit into HPU memory")
	}
	_, err = datatypes.At(small, experiment.Values{"mode": modeSpinRead, "size": 64 << 20, "block": 64})
	require.ErrorContains(t, err, "strategy read-only: the type does not fit into HPU memory")
}

// Handlers unpack elements at irregular places faster than a core. For each
// element the handlers read a table entry and post a DMA operation of 4 to 24
// B, but the core touches a cache line.
func TestHandlersUnpackTables(t *testing.T) {
	for app, least := range map[string]float64{"LAMMPS_full": 1.7, "SPECFEM3D_oc": 1.2, "SPECFEM3D_cm": 1.9} {
		core, handlers := applied(t, "spin-int", experiment.Values{"app": app, "mode": experiment.ModeRDMA}), applied(t, "spin-int", experiment.Values{"app": app, "mode": experiment.ModeSpin})
		require.Greater(t, handlers.Float("throughput"), least*core.Float("throughput"), app)
		require.Less(t, handlers.Time("host_cpu"), core.Time("host_cpu")/50, app)
	}
}
