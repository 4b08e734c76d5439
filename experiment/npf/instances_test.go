package npf

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// onNPF measures a point of an experiment on a profile with overrides.
func onNPF(t *testing.T, e *experiment.Experiment, v experiment.Values, set ...string) *experiment.Result {
	p, err := profile.Load("eth-npf", set...)
	require.NoError(t, err)
	at, err := e.At(p, v)
	require.NoError(t, err)
	r, err := e.Measure(context.Background(), at)
	require.NoError(t, err, "%v", v)
	return r
}

// smallHost is a testbed of a thirtieth of the size. Its device faults are
// resolved faster, so warm-ups are short.
var smallHost = []string{"os.memory=128MiB", "os.gup_fault=10us", "os.watermark_min=256KiB", "os.watermark_low=512KiB", "os.watermark_high=1MiB"}

func smallInstances(mode string, n int, more experiment.Values) experiment.Values {
	v := experiment.Values{"mode": mode, "instances": n, "vm": 45_000_000, "working-set": 8_000_000, "warm": 3 * sim.Millisecond, "time": sim.Millisecond}
	for name, value := range more {
		v[name] = value
	}
	return v
}

// The published shape of NPF'17: servers with unpinned memory are as fast as
// pinned servers, and still run where pinning is impossible.
func TestInstancesHaveThePublishedShape(t *testing.T) {
	at := func(mode string, n int) *experiment.Result {
		return onNPF(t, instances, smallInstances(mode, n, nil), smallHost...)
	}
	one, four, pinned := at(fleetNPF, 1), at(fleetNPF, 4), at(fleetPinned, 1)
	require.InEpsilon(t, pinned.Float("throughput"), one.Float("throughput"), 0.03)
	require.Greater(t, four.Float("throughput"), 3*one.Float("throughput"))
	require.InEpsilon(t, 4000/four.Float("throughput"), four.Float("per_operation"), 1e-9, "four servers at once")
	require.Zero(t, pinned.Values["absent"])
	for _, r := range []*experiment.Result{one, four} {
		require.Equal(t, 1.0, r.Float("hits"), "what is stored is there")
		require.Zero(t, r.Values["major"])
		require.Positive(t, r.Values["absent"])
	}
	require.Greater(t, pinned.Values["resident"], 3*one.Values["resident"].(int))
	require.Nil(t, at(fleetPinned, 3).Values["throughput"], "three virtual machines of 45 MB in 128 MiB")
	tight := onNPF(t, instances, smallInstances(fleetPinned, 2, experiment.Values{"vm": 67_000_000}), smallHost...)
	require.Nil(t, tight.Values["throughput"], "two of 67 MB would fit, but for what the kernel has of it")
}

// The time of an operation's instructions is the reciprocal of the throughput
// of a server that never waits. It adds up.
func TestInstancesOperation(t *testing.T) {
	with := func(d sim.Time) float64 {
		// us
		return 1000 / onNPF(t, instances, smallInstances(fleetPinned, 1, experiment.Values{"operation": d, "time": 4 * sim.Millisecond}), smallHost...).Float("throughput")
	}
	require.InDelta(t, 2.5, with(2500*sim.Nanosecond)-with(0), 0.15)
}

// The server stops storing its initial items when the command must end, and the
// run is reported as incomplete.
func TestInstancesEndWhileTheyStore(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	p, err := profile.Load("eth-npf", smallHost...)
	require.NoError(t, err)
	point, err := instances.At(p, smallInstances(fleetNPF, 1, nil))
	require.NoError(t, err)
	stored := &asked{Context: ctx, most: 50, cancel: cancel}
	_, err = instances.Measure(stored, point)
	require.Error(t, err)
	require.Less(t, stored.count, 1000, "of 6,700 objects")
}

// asked is a context that ends after a number of calls of Err.
type asked struct {
	context.Context
	most, count int
	cancel      func()
}

func (a *asked) Err() error {
	if a.count++; a.count > a.most {
		a.cancel()
	}
	return a.Context.Err()
}

// Initial items without room in memory are on storage at the beginning. The
// servers serve them more slowly. Without room there, the run ends with an
// error.
func TestInstancesStoreTooMuch(t *testing.T) {
	values := smallInstances(fleetNPF, 5, experiment.Values{"working-set": 30_000_000, "time": 5 * sim.Millisecond})
	r := onNPF(t, instances, values, append([]string{"storage.read_latency=10us", "storage.write_latency=10us", "storage.bandwidth=10GB/s"}, smallHost...)...)
	require.Positive(t, r.Values["major"])
	require.Equal(t, 1.0, r.Float("hits"))
	p, err := profile.Load("eth-npf", append([]string{"storage.swap=8MiB"}, smallHost...)...)
	require.NoError(t, err)
	point, err := instances.At(p, values)
	require.NoError(t, err)
	_, err = instances.Measure(context.Background(), point)
	require.ErrorIs(t, err, host.ErrNoMemory)
	require.ErrorContains(t, err, "what the servers store in the beginning has no room in the memory of node 0 (os.memory) and its swap (storage.swap)")
}
