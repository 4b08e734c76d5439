package npf

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/pinning"
	"github.com/spinsim/spinsim/sim"
)

// One program with all seven strategies: the cost of each in a write of a page,
// compared with a write to ready memory, by hand from the values of ib-npf. If
// the memory was used before, and there is room for all:
//
//	static, firehose, none   nothing
//	cache, rendezvous        two requests and two answers: four messages, each about as long as the write
//	fine                     besides, the other process and this one pin a page (gup_call 10 us, gup_present 0.05 us) and unpin it (invalidate 0.5 us, acknowledge 1.5 us)
//	bounce                   likewise, with a copy at each end
//
// The first time, every strategy that pins pays for it once at each end, and
// page faults cost at least the pause of an RNR NACK.
func TestNPFPinning(t *testing.T) {
	const us = sim.Microsecond
	at := func(strategy, pass string, bound, size int) *experiment.Result {
		return overIB(t, npfPinning, experiment.Values{"strategy": strategy, "pass": pass, "bound": bound, "messages": 4, "size": size})
	}
	later := map[string]sim.Time{}
	for _, strategy := range pinning.Kinds() {
		later[strategy] = at(strategy, imbLater, 1<<30, 4096).Time(experiment.LatencyColumn)
	}
	ready := later[pinning.StaticKind]
	require.Equal(t, ready, later[pinning.FirehoseKind])
	require.Equal(t, ready, later[pinning.NoneKind])
	require.Equal(t, later[pinning.CacheKind], later[pinning.RendezvousKind])
	asking := later[pinning.RendezvousKind] - ready
	require.InDelta(t, float64(4*ready), float64(asking), float64(2*ready))
	pins := 2 * (10*us + 50*sim.Nanosecond + 2*us)
	require.InDelta(t, float64(pins), float64(later[pinning.FineKind]-ready-asking), float64(us))
	require.Greater(t, later[pinning.BounceKind], ready+asking)

	for _, strategy := range pinning.Kinds() {
		r := at(strategy, imbFirst, 1<<30, 4096)
		first := r.Time(experiment.LatencyColumn)
		require.Equal(t, strategy == pinning.NoneKind, r.Values["faults"].(int) > 0, strategy)
		if strategy == pinning.NoneKind {
			require.Greater(t, first, 240*us)
			continue
		}
		require.Less(t, first, 50*us, strategy)
		require.GreaterOrEqual(t, r.Values["pinned"].(int), 8, "%s: all that is used, at both ends", strategy)
	}

	small, large := at(pinning.CacheKind, imbLater, 128<<10, 64<<10), at(pinning.RendezvousKind, imbLater, 128<<10, 64<<10)
	require.Greater(t, small.Time(experiment.LatencyColumn), large.Time(experiment.LatencyColumn), "a cache that has not room")
	require.Greater(t, small.Values["pinned"].(int), 3*large.Values["pinned"].(int)/2)
	require.LessOrEqual(t, small.Values["most_pinned"].(int), 2*(128<<10))
	require.InDelta(t, 0, at(pinning.FirehoseKind, imbLater, 1<<30, 4096).Float("asked"), 1, "for memory that nobody has reached before only")
}

// If a message exceeds a strategy's bound, its row and a caveat say so. The
// other strategies run.
func TestNPFPinningHasNoRoom(t *testing.T) {
	var results []*experiment.Result
	for _, strategy := range pinning.Kinds() {
		v := experiment.Values{"strategy": strategy, "bound": 64 << 10, "messages": 1, "size": 56<<10 + 1}
		bounded := strategy == pinning.CacheKind || strategy == pinning.FirehoseKind
		r := overIB(t, npfPinning, v)
		require.Equal(t, map[bool]string{true: "no room", false: "runs"}[bounded], r.Values["state"], strategy)
		require.Equal(t, bounded, r.Values[experiment.LatencyColumn] == nil, strategy)
		results = append(results, r)
		v["size"] = 56 << 10
		require.Equal(t, "runs", overIB(t, npfPinning, v).Values["state"], strategy)
	}
	require.Equal(t, []string{
		"cache, 57345 B: a message, and the pages in which it begins and ends, take 65537 B, for which --bound 64 KiB has no room.",
		"firehose, 57345 B: a message, and the pages in which it begins and ends, take 65537 B, for which --bound 64 KiB has no room.",
	}, npfPinning.Caveats(results))
}
