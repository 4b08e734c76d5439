package nodes_test

import (
	"context"
	gort "runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/goal/nodes"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
)

// carriers are a device and options for each way that messages take.
var carriers = []struct {
	device string
	o      mpi.Options
}{
	{"spin-int", mpi.DefaultOptions(mpi.Host)},
	{"spin-int", mpi.DefaultOptions(mpi.Offload)},
	{"exanest", mpi.DefaultOptions(mpi.Host)},
	{"exanest", mpi.DefaultExaNetOptions()},
	{"ib-npf", mpi.DefaultInfiniBandOptions()},
}

// Messages without bytes take the times of messages with them, event by event,
// cold and warm. Cold memory is never faster.
func TestEmptyMessagesTakeTheSameTimes(t *testing.T) {
	slower := 0
	for _, c := range carriers {
		device, err := profile.Load(c.device)
		require.NoError(t, err)
		for _, pattern := range []string{"halo2d", "bcast-binomial", "alltoall-linear"} {
			for _, size := range []uint64{16, 3000, 70000} {
				s, err := goal.Generate(pattern, goal.GenParams{Ranks: 4, Size: size, Iterations: 2, CalcNS: 700, Ways: 2, Segment: 17000, Seed: 1})
				require.NoError(t, err)
				var warm nodes.Result
				for _, cold := range []bool{false, true} {
					cfg := nodes.Config{Config: runtime.Config{Profile: device}, MPI: c.o, Cold: cold}
					with, err := nodes.Run(context.Background(), s, cfg)
					require.NoError(t, err, "%s, %s of %d B", c.device, pattern, size)
					cfg.Empty = true
					without, err := nodes.Run(context.Background(), s, cfg)
					require.NoError(t, err, "%s, %s of %d B", c.device, pattern, size)
					require.Equal(t, with, without, "%s %s, %s of %d B, cold %v", c.device, c.o.Transport, pattern, size, cold)
					if !cold {
						warm = *with
						continue
					}
					require.GreaterOrEqual(t, with.Max, warm.Max)
					if with.Max > warm.Max {
						slower++
					}
				}
			}
		}
	}
	require.Positive(t, slower)
}

// A schedule of gigabytes takes no memory for them.
func TestGigabytes(t *testing.T) {
	s, err := goal.Generate("halo2d", goal.GenParams{Ranks: 4, Size: 256 << 20, Iterations: 1, Ways: 2, Segment: 1 << 20, Seed: 1})
	require.NoError(t, err)
	require.Greater(t, goal.Stat(s).Bytes, uint64(1<<30))
	cfg := config(t, mpi.Host)
	cfg.Empty = true
	var before, after gort.MemStats
	gort.ReadMemStats(&before)
	_, err = nodes.Run(context.Background(), s, cfg)
	require.NoError(t, err)
	gort.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<20))
}
