package spin17

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// The four cases of sPIN'17 figure 5b: the NIC saves the copy of a small message
// and moves a large one while the core computes, if the receive is there. Else
// it saves neither.
func TestReceive(t *testing.T) {
	device, err := profile.Load("spin-int")
	require.NoError(t, err)
	measured := func(matching mpi.Matching, receive string, size int) *experiment.Result {
		p, err := receives.At(device, experiment.Values{"matching": string(matching), "receive": receive, "size": size})
		require.NoError(t, err)
		r, err := receives.Measure(context.Background(), p)
		require.NoError(t, err)
		return r
	}
	for _, size := range []int{4 << 10, 1 << 20} {
		host := measured(mpi.Host, receiveBefore, size)
		before, late := measured(mpi.Offload, receiveBefore, size), measured(mpi.Offload, receiveLate, size)
		require.Less(t, before.Time("waited"), 100*sim.Nanosecond)
		require.Zero(t, before.Values["copies"])
		require.EqualValues(t, 1, late.Values["copies"])
		require.InEpsilon(t, float64(host.Time("waited")), float64(late.Time("waited")), 0.05)
		require.Equal(t, size <= 16<<10, host.Values["copies"] == int64(1))
		require.GreaterOrEqual(t, before.Time(experiment.LatencyColumn), 100*sim.Microsecond)
	}
}

// Deposits that go into the cache make the copy of the host cheaper, those that
// go to memory do not. The NIC's own way is the same.
func TestReceiveFromTheCache(t *testing.T) {
	measured := func(matching mpi.Matching, set ...string) sim.Time {
		device, err := profile.Load("spin-int", set...)
		require.NoError(t, err)
		p, err := receives.At(device, experiment.Values{"matching": string(matching), "receive": receiveBefore, "size": 16 << 10, "compute": sim.Time(0)})
		require.NoError(t, err)
		r, err := receives.Measure(context.Background(), p)
		require.NoError(t, err)
		return r.Time("waited")
	}
	cache := []string{"host.cache=8MiB", "host.cache_bandwidth=75GiB/s"}
	deposits := append(cache[:2:2], "host.cache_deposits=cache")
	none := measured(mpi.Host)
	require.Equal(t, none, measured(mpi.Host, cache...))
	require.Less(t, measured(mpi.Host, deposits...), none*4/5)
	require.Equal(t, measured(mpi.Offload), measured(mpi.Offload, deposits...))
}
