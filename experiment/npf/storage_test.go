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

// diminished measures a point of npf-storage with 1/256 of the published sizes:
// a disk of 16 MiB, 4 MiB of buffers, and blocks of 128 KiB.
func diminished(t *testing.T, memory sim.Size, v experiment.Values) *experiment.Result {
	t.Helper()
	p, err := profile.Load("ib-npf", "os.watermark_min=256KiB", "os.watermark_low=320KiB", "os.watermark_high=384KiB")
	require.NoError(t, err)
	all := experiment.Values{"disk": 16 << 20, "pool": 4 << 20, "memory": int(memory), "requests": 160, "depth": 2, "size": 128 << 10}
	for k, x := range v { //lint:maporder a map is made of a map
		all[k] = x
	}
	at, err := npfStorage.At(p, all)
	require.NoError(t, err)
	r, err := npfStorage.Measure(context.Background(), at)
	require.NoError(t, err)
	return r
}

// The shape of NPF'17's figure, with all sizes divided by 256. Pinned memory is
// missing in the cache. So a target that pins a quarter of the disk's size
// needs as much more memory to hold the whole disk. With less memory, pinning
// nothing is faster, because it misses less. With memory for both there is no
// difference. Pinning 4 of 4 MiB fails.
func TestNPFStorageHasItsShape(t *testing.T) {
	none, static := experiment.Values{"strategy": pinning.NoneKind}, experiment.Values{"strategy": pinning.StaticKind}
	const disk = 16 << 20
	for _, memory := range []sim.Size{16 << 20, 20 << 20, 24 << 20} {
		a, b := diminished(t, memory, static), diminished(t, memory, none)
		for _, r := range []*experiment.Result{a, b} {
			room := float64(int64(memory)-r.Values["resident"].(int64)-320<<10) / disk
			require.InDelta(t, min(1, room), r.Float("hit_rate"), 0.05, "%v", memory)
		}
		require.EqualValues(t, 4<<20, a.Values["pinned"])
		require.EqualValues(t, 0, b.Values["pinned"])
		if memory == 16<<20 {
			require.Greater(t, b.Float("bandwidth"), 2*a.Float("bandwidth"))
		}
		if memory == 24<<20 {
			require.InEpsilon(t, a.Float("bandwidth"), b.Float("bandwidth"), 0.15, "but for a page fault of each buffer that is used")
			require.EqualValues(t, disk, b.Values["cached"])
		}
	}
	require.Equal(t, "fails", diminished(t, 4<<20, static).Values["state"])
	require.Equal(t, "runs", diminished(t, 4<<20, none).Values["state"])
	require.InDelta(t, 0.73-0.25, diminished(t, 16<<20, experiment.Values{"strategy": pinning.StaticKind, "other": 4 << 20}).Float("hit_rate"), 0.07, "others have a quarter of the memory")
}

// A miss takes the disk's time. With a cache of a seventh of the disk, almost
// all of 160 reads of 128 KiB miss. Each miss takes 10 ms and the time of 128
// KiB at 150 MB/s.
func TestNPFStorageTakesTheDisk(t *testing.T) {
	r := diminished(t, 4<<20, experiment.Values{"strategy": pinning.StaticKind, "pool": 1 << 20})
	miss := float64(10*sim.Millisecond) + 128<<10/150e6*float64(sim.Second)
	require.InEpsilon(t, miss*(1-r.Float("hit_rate")), float64(r.Time(experiment.LatencyColumn)), 0.06)
}

// Each initiator adds its requests' buffers to the target's memory. The part of
// a buffer that a block of 64 KiB does not use is absent. Pinned buffers are
// always present as a whole.
func TestNPFStorageInitiators(t *testing.T) {
	at := func(strategy string, initiators, size int) float64 {
		r := diminished(t, 32<<20, experiment.Values{"strategy": strategy, "initiators": initiators, "size": size, "requests": 30})
		return float64(r.Values["resident"].(int64))
	}
	small, large := at(pinning.NoneKind, 1, 64<<10), at(pinning.NoneKind, 1, 512<<10)
	require.InDelta(t, 2*448<<10, large-small, 450<<10)
	require.InEpsilon(t, 4*large, at(pinning.NoneKind, 4, 512<<10), 0.4)
	for _, n := range []int{1, 4} {
		require.InEpsilon(t, 4<<20, at(pinning.StaticKind, n, 64<<10), 0.1)
	}
}

// A pool with less than a block for each initiator is refused before anything
// runs.
func TestBlocksFitTheirBuffers(t *testing.T) {
	p, err := profile.Load("ib-npf")
	require.NoError(t, err)
	_, err = npfStorage.At(p, experiment.Values{"pool": 512 << 10, "initiators": 3, "disk": 2 << 20})
	require.ErrorContains(t, err, "--size: 512 KiB, expected at most 168 KiB, the buffer of a request: --pool is 512 KiB for 3 initiators")
}
