package experiment

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/pinning"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// overIB measures a point of an experiment on ib-npf.
func overIB(t *testing.T, e *Experiment, values Values) *Result {
	d, err := profile.Load("ib-npf", "smmu.stale=poison")
	require.NoError(t, err)
	p, err := e.At(d, values)
	require.NoError(t, err)
	r, err := e.Measure(context.Background(), p)
	require.NoError(t, err)
	return r
}

// NPF'17 §6: with page faults MPI is as fast as with a pin-down cache, and copying loses more the larger messages are; the first use of memory is what faults cost.
func TestNPFIMB(t *testing.T) {
	at := func(benchmark, strategy, pass string, size int) *Result {
		return overIB(t, npfIMB, Values{"benchmark": benchmark, "strategy": strategy, "pass": pass, "size": size, "ranks": 3, "iterations": 2})
	}
	last := 0.0
	for _, size := range []int{4 << 10, 32 << 10, 256 << 10} {
		copying, cache, none := at(imbSendrecv, pinning.BounceKind, imbLater, size), at(imbSendrecv, pinning.CacheKind, imbLater, size), at(imbSendrecv, pinning.NoneKind, imbLater, size)
		require.Zero(t, copying.Values["faults"])
		require.Zero(t, cache.Values["faults"])
		require.InEpsilon(t, cache.Time(latencyColumn).Seconds(), none.Time(latencyColumn).Seconds(), 0.05, "%d B", size)
		if size <= 12<<10 {
			require.Equal(t, cache.Time(latencyColumn), copying.Time(latencyColumn), "eager")
			require.Equal(t, cache.Time(latencyColumn), none.Time(latencyColumn))
			require.Zero(t, cache.Values["pinned"])
			continue
		}
		require.Positive(t, cache.Values["pinned"])
		require.Positive(t, none.Values["faults"])
		loss := (copying.Time(latencyColumn) - cache.Time(latencyColumn)).Seconds()
		require.Greater(t, loss, 2*last, "%d B", size)
		last = loss
	}
	for _, benchmark := range []string{imbBcast, imbAlltoall} {
		require.Greater(t, at(benchmark, pinning.BounceKind, imbLater, 64<<10).Time(latencyColumn), at(benchmark, pinning.NoneKind, imbLater, 64<<10).Time(latencyColumn), benchmark)
	}
	first, later := at(imbSendrecv, pinning.NoneKind, imbFirst, 64<<10), at(imbSendrecv, pinning.NoneKind, imbLater, 64<<10)
	require.Greater(t, first.Time(latencyColumn), later.Time(latencyColumn)+200*sim.Microsecond, "220 us at least for each message")
	require.Equal(t, first.Values["faults"], later.Values["faults"], "the second pass has none")
}

// A cache that has not room for the messages pins all of them again in each pass.
func TestNPFIMBBound(t *testing.T) {
	at := func(bound int) *Result {
		return overIB(t, npfIMB, Values{"benchmark": imbSendrecv, "strategy": pinning.CacheKind, "pass": imbLater, "size": 256 << 10, "ranks": 2, "iterations": 4, "bound": bound})
	}
	small, large := at(1<<20), at(1<<30)
	require.GreaterOrEqual(t, 2*large.Values["pinned"].(int), small.Values["pinned"].(int))
	require.Greater(t, small.Values["pinned"].(int), large.Values["pinned"].(int)*3/2)
	require.Greater(t, small.Time(latencyColumn), large.Time(latencyColumn))
}

// b_eff by copies is about half, by faults as by a cache.
func TestNPFBeff(t *testing.T) {
	at := func(strategy string) float64 {
		return overIB(t, npfBeff, Values{"strategy": strategy, "ranks": 3, "sent": 128 << 10, "repetitions": 2, "loop": sim.Time(0)}).Float("b_eff")
	}
	copying, cache, none := at(pinning.BounceKind), at(pinning.CacheKind), at(pinning.NoneKind)
	require.InEpsilon(t, cache, none, 0.1)
	require.InDelta(t, 0.5, copying/cache, 0.15)
}
