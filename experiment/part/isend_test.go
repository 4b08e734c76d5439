package part

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/sim"
)

// Without touching, MPI_Isend takes the same time for every size: the entry
// that exposes the data and the announcement are two operations of
// nic.overhead. Touching takes one line of memory for each page.
func TestIsend(t *testing.T) {
	device, err := profile.Load("exanest-qfdb")
	require.NoError(t, err)
	sizes := map[int]bool{}
	measure := func(mode string, sample int) (latency sim.Time, bytes int) {
		p, err := isend.At(device, experiment.Values{"mode": mode, "sample": sample})
		require.NoError(t, err)
		r, err := isend.Measure(context.Background(), p)
		require.NoError(t, err)
		return r.Time(experiment.LatencyColumn), r.Values["bytes"].(int)
	}
	const short = 4 // 60 MB
	for sample := 1; sample <= short; sample++ {
		latency, n := measure(isendNever, sample)
		require.Equal(t, 2*device.NIC.Overhead, latency)
		require.True(t, n >= isendLeast && n <= isendMost)
		sizes[n] = true
	}
	latency, n := measure(isendTouch, short)
	require.True(t, sizes[n], "the same for both modes")
	require.Equal(t, sim.Time((n+4095)/4096)*device.Host.MemoryLatency, latency-2*device.NIC.Overhead)
	require.Len(t, sizes, short, "a size for each sample")
}
