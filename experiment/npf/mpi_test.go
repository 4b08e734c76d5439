package npf

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// overIB measures a point of an experiment on ib-npf.
func overIB(t *testing.T, e *experiment.Experiment, values experiment.Values) *experiment.Result {
	d, err := profile.Load("ib-npf", "smmu.stale=poison")
	require.NoError(t, err)
	p, err := e.At(d, values)
	require.NoError(t, err)
	r, err := e.Measure(context.Background(), p)
	require.NoError(t, err)
	return r
}

// NPF'17 §6: with page faults MPI is as fast as with a pin-down cache. Copying
// loses more with larger messages. The first use of memory costs the faults.
func TestNPFIMB(t *testing.T) {
	at := func(benchmark, strategy, pass string, size int) *experiment.Result {
		return overIB(t, npfIMB, experiment.Values{"benchmark": benchmark, "strategy": strategy, "pass": pass, "size": size, "ranks": 3, "iterations": 2})
	}
	last := 0.0
	for _, size := range []int{4 << 10, 32 << 10, 256 << 10} {
		copying, cache, none := at(imbSendrecv, pinning.BounceKind, imbLater, size), at(imbSendrecv, pinning.CacheKind, imbLater, size), at(imbSendrecv, pinning.NoneKind, imbLater, size)
		require.Zero(t, copying.Values["faults"])
		require.Zero(t, cache.Values["faults"])
		require.InEpsilon(t, cache.Time(experiment.LatencyColumn).Seconds(), none.Time(experiment.LatencyColumn).Seconds(), 0.05, "%d B", size)
		if size <= 12<<10 {
			require.Equal(t, cache.Time(experiment.LatencyColumn), copying.Time(experiment.LatencyColumn), "eager")
			require.Equal(t, cache.Time(experiment.LatencyColumn), none.Time(experiment.LatencyColumn))
			require.Zero(t, cache.Values["pinned"])
			continue
		}
		require.Positive(t, cache.Values["pinned"])
		require.Positive(t, none.Values["faults"])
		loss := (copying.Time(experiment.LatencyColumn) - cache.Time(experiment.LatencyColumn)).Seconds()
		require.Greater(t, loss, 2*last, "%d B", size)
		last = loss
	}
	for _, benchmark := range []string{imbBcast, imbAlltoall, imbAllreduce} {
		require.Greater(t, at(benchmark, pinning.BounceKind, imbLater, 64<<10).Time(experiment.LatencyColumn), at(benchmark, pinning.NoneKind, imbLater, 64<<10).Time(experiment.LatencyColumn), benchmark)
	}
	first, later := at(imbSendrecv, pinning.NoneKind, imbFirst, 64<<10), at(imbSendrecv, pinning.NoneKind, imbLater, 64<<10)
	require.Greater(t, first.Time(experiment.LatencyColumn), later.Time(experiment.LatencyColumn)+200*sim.Microsecond, "220 us at least for each message")
	require.Equal(t, first.Values["faults"], later.Values["faults"], "the second pass has none")
}

// A cache without room for all messages pins them again in each pass.
func TestNPFIMBBound(t *testing.T) {
	at := func(bound int) *experiment.Result {
		return overIB(t, npfIMB, experiment.Values{"benchmark": imbSendrecv, "strategy": pinning.CacheKind, "pass": imbLater, "size": 256 << 10, "ranks": 2, "iterations": 4, "bound": bound})
	}
	small, large := at(1<<20), at(1<<30)
	require.GreaterOrEqual(t, 2*large.Values["pinned"].(int), small.Values["pinned"].(int))
	require.Greater(t, small.Values["pinned"].(int), large.Values["pinned"].(int)*3/2)
	require.Greater(t, small.Time(experiment.LatencyColumn), large.Time(experiment.LatencyColumn))
}

// b_eff with copies is about half. With faults it is as with a cache.
func TestNPFBeff(t *testing.T) {
	at := func(strategy string) float64 {
		return overIB(t, npfBeff, experiment.Values{"strategy": strategy, "ranks": 3, "sent": 128 << 10, "repetitions": 2, "loop": sim.Time(0)}).Float("b_eff")
	}
	copying, cache, none := at(pinning.BounceKind), at(pinning.CacheKind), at(pinning.NoneKind)
	require.InEpsilon(t, cache, none, 0.1)
	require.InDelta(t, 0.5, copying/cache, 0.15)
}

// In allreduce the share of copying does not grow with the message: the sum
// moves the numbers through memory, too. NPF'17 §6 sees little difference there.
// Ours is a third to a half, because each copy goes to memory: the host's model
// of copies has no cache.
func TestNPFIMBAllreduce(t *testing.T) {
	loss := func(size int) float64 {
		at := func(strategy string) float64 {
			return overIB(t, npfIMB, experiment.Values{"benchmark": imbAllreduce, "strategy": strategy, "pass": imbLater, "size": size, "ranks": 4, "iterations": 2}).Time(experiment.LatencyColumn).Seconds()
		}
		return at(pinning.BounceKind)/at(pinning.CacheKind) - 1
	}
	short, long := loss(64<<10), loss(512<<10)
	require.Positive(t, short)
	require.Less(t, long, 1.1*short)
}

// b_eff's memory in the simulator includes the buffers for copies of eager
// messages: 32 for each pair of ranks that exchange messages, at both ends.
func TestBeffMemory(t *testing.T) {
	memory := func(eager int) int64 {
		d, err := profile.Load("ib-npf")
		require.NoError(t, err)
		p, err := npfBeff.At(d, experiment.Values{"ranks": 2, "eager": eager, "sent": 64 << 10})
		require.NoError(t, err)
		return npfBeff.Memory(p)
	}
	require.EqualValues(t, 2*2*32*(12<<10), memory(12<<10)-memory(0))
	require.EqualValues(t, 2*2*32*(64<<10), memory(1<<20)-memory(0), "no message is longer than --sent")
}
