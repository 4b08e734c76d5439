package osu_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/spinsim/spinsim/internal/guard/guardtest"
	"github.com/spinsim/spinsim/internal/osu"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// TestMain guards the memory of some simulated processes. It finds a program
// that accesses this memory without a touch.
func TestMain(m *testing.M) { os.Exit(guardtest.Run(m, guardtest.Few)) }

// world makes a world of this many ranks, four on a node.
func world(t *testing.T, device string, o mpi.Options, ranks int) *mpi.World {
	p, err := profile.Load(device)
	require.NoError(t, err)
	o.Ranks, o.PerNode = ranks, 4
	if o.Places != nil {
		o.PerNode = 0
	}
	c, err := runtime.NewCluster(runtime.Config{Profile: p, Nodes: max(o.Nodes(ranks), ranks)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	w, err := mpi.New(c, o)
	require.NoError(t, err)
	return w
}

// Every benchmark runs on every transport, with sizes above and below the eager
// limit, and compares the received data.
func TestAllRun(t *testing.T) {
	for _, on := range []struct {
		device string
		o      mpi.Options
	}{
		{"exanest", mpi.DefaultExaNetOptions()},
		{"spin-int", mpi.DefaultOptions(mpi.Host)},
		{"spin-dis", mpi.DefaultOptions(mpi.Offload)},
	} {
		for _, b := range osu.All() {
			for _, ranks := range []int{2, 6, 9} {
				for _, n := range []int{0, 1, 4, 36, 20000} {
					if b.Check(n, ranks) != nil {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/%d/%d", on.device, b.Name, ranks, n), func(t *testing.T) {
						row, err := osu.Run(context.Background(), world(t, on.device, on.o, ranks), b, osu.Options{Bytes: n, Iterations: 2, Warmup: 1, Window: 3, Seed: 7})
						require.NoError(t, err)
						require.Equal(t, [2]int{n, 2}, [2]int{row.Bytes, row.Iterations})
						switch {
						case b.Unit == osu.Latency && b.Kind == osu.Collective:
							require.Positive(t, row.Least)
							require.LessOrEqual(t, row.Least, row.Latency)
							require.LessOrEqual(t, row.Latency, row.Most)
						case b.Unit == osu.Latency:
							require.Positive(t, row.Latency)
						default:
							require.Positive(t, row.Bandwidth)
							if b.Unit == osu.Rate {
								require.InEpsilon(t, row.Bandwidth*1e6/float64(n), row.MessageRate, 1e-9)
							}
						}
					})
				}
			}
		}
	}
}

// run runs a benchmark between neighbours of a board.
func run(t *testing.T, name string, o osu.Options) osu.Row {
	b, err := osu.Find(name)
	require.NoError(t, err)
	options := mpi.DefaultExaNetOptions()
	options.Places = []int{0, 1}
	row, err := osu.Run(context.Background(), world(t, "exanest", options, 2), b, o)
	require.NoError(t, err)
	return row
}

// A message of 0 B takes TR-488's 1.293 µs, to which host.message is fitted.
// One way is half of a round trip, because both ways are alike. A window of one
// message is one message and its answer: its bandwidth is its bytes in the time
// of both.
func TestTimes(t *testing.T) {
	zero := run(t, "latency", osu.Options{Iterations: 4, Warmup: 2}).Latency
	require.InDelta(t, 1293, zero.Nanoseconds(), 0.01)
	answer := run(t, "latency", osu.Options{Bytes: 4, Iterations: 4, Warmup: 2}).Latency
	data := run(t, "latency", osu.Options{Bytes: 32, Iterations: 4, Warmup: 2}).Latency
	bandwidth := run(t, "bw", osu.Options{Bytes: 32, Iterations: 4, Warmup: 2, Window: 1}).Bandwidth
	require.InEpsilon(t, 32/(data+answer).Seconds()/1e6, bandwidth, 0.02)

	options := mpi.DefaultExaNetOptions()
	options.Places = []int{0, 1}
	w := world(t, "exanest", options, 2)
	once := map[osu.OneWayBy]sim.Time{}
	for rank := range 2 {
		require.NoError(t, w.Spawn(rank, func(r *mpi.Rank) error {
			for _, by := range osu.OneWays() {
				took, err := osu.OneWay(r.World(), osu.Options{Bytes: 32, Iterations: 4, Warmup: 2}, by)
				if err != nil {
					return err
				}
				if rank == 0 {
					once[by] = took
				}
			}
			_, err := osu.OneWay(r.World(), osu.Options{}, "nothing")
			require.ErrorContains(t, err, `one way by "nothing", expected one of [calls arrival half]`)
			return nil
		}))
	}
	require.NoError(t, w.Run(context.Background()))
	require.InEpsilon(t, float64(data), float64(once[osu.ByArrival]), 0.05)
	require.Equal(t, data, once[osu.ByRoundTrip])
	// the sender does not wait for the receiver's work, nor it for the wire
	require.Less(t, once[osu.ByCalls], once[osu.ByArrival]*2/3)
}

// A window of large messages fills a link of 16 Gb/s, less the cells' headers:
// 256 of 288 bytes. Both directions at once carry twice as much.
func TestBandwidthOfALink(t *testing.T) {
	o := osu.Options{Bytes: 1 << 20, Iterations: 1, Warmup: 1, Window: 4}
	require.InEpsilon(t, 2000*256./288, run(t, "bw", o).Bandwidth, 0.01)
	require.InEpsilon(t, 2*2000*256./288, run(t, "bibw", o).Bandwidth, 0.02)
}

func TestSizes(t *testing.T) {
	of := func(name string, least, most int) []int {
		b, err := osu.Find(name)
		require.NoError(t, err)
		return b.Sizes(least, most)
	}
	require.Equal(t, []int{0, 1, 2, 4, 8}, of("osu_latency", 0, 8))
	require.Equal(t, []int{3, 6, 12}, of("latency", 3, 23))
	require.Equal(t, []int{1, 2, 4}, of("bw", 0, 4))
	require.Equal(t, []int{4, 8, 16}, of("allreduce", 1, 31))
	require.Equal(t, []int{0}, of("barrier", 1, 1<<20))
	require.Nil(t, of("bcast", 9, 8))
	_, err := osu.Find("osu_bcst")
	require.ErrorContains(t, err, `no benchmark "osu_bcst", expected one of latency, bw`)
	alltoall, err := osu.Find("alltoall")
	require.NoError(t, err)
	require.Equal(t, 1<<20, alltoall.DefaultMost(4))
	require.Equal(t, 1<<10, alltoall.DefaultMost(512)) // 3 x 512 x 512 x 1 KiB are 768 MiB
}

// The output equals the originals', byte by byte: widths 10, 18 (configure.ac)
// and 12, two digits.
func TestOutput(t *testing.T) {
	row := &osu.Row{Bytes: 4096, Iterations: 30, Latency: 8135 * sim.Nanosecond, Least: 8 * sim.Microsecond, Most: 1234567 * sim.Nanosecond, Bandwidth: 803.75, MessageRate: 196228.03}
	for _, c := range []struct {
		name string
		l    osu.Layout
		want string
	}{
		{"latency", osu.Layout{Style: osu.Version5}, "# OSU MPI Latency Test v5.6.1\n# Size          Latency (us)\n4096                    8.13\n"},
		{"latency", osu.Layout{Style: osu.Version7}, "\n# OSU MPI Latency Test v7.4\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n4096                    8.13\n"},
		{"bw", osu.Layout{Style: osu.Version5}, "# OSU MPI Bandwidth Test v5.6.1\n# Size      Bandwidth (MB/s)\n4096                  803.75\n"},
		{"bibw", osu.Layout{Style: osu.Version7}, "\n# OSU MPI Bi-Directional Bandwidth Test v7.4\n# Datatype: MPI_CHAR.\n# Size      Bandwidth (MB/s)\n4096                  803.75\n"},
		{"bcast", osu.Layout{Style: osu.Version5}, "\n# OSU MPI Broadcast Latency Test v5.6.1\n# Size       Avg Latency(us)\n4096                    8.13\n"},
		{
			"allreduce", osu.Layout{Style: osu.Version7, Full: true}, "\n# OSU MPI Allreduce Latency Test v7.4\n# Datatype: MPI_FLOAT.\n" +
				"# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n" +
				"4096                    8.13              8.00           1234.57          30\n",
		},
		{"barrier", osu.Layout{Style: osu.Version5}, "\n# OSU MPI Barrier Latency Test v5.6.1\n# Avg Latency(us)\n             8.13\n"},
		{
			"mbw_mr", osu.Layout{Style: osu.Version5, Pairs: 2, Window: 64}, "# OSU MPI Multiple Bandwidth / Message Rate Test v5.6.1\n# [ pairs: 2 ] [ window size: 64 ]\n" +
				"# Size                  MB/s        Messages/s\n4096                  803.75         196228.03\n",
		},
		{"multi_lat", osu.Layout{Style: osu.Version5}, "# OSU MPI Multi Latency Test v5.6.1\n# Size          Latency (us)\n4096                    8.13\n"},
	} {
		b, err := osu.Find(c.name)
		require.NoError(t, err)
		var out strings.Builder
		require.NoError(t, b.WriteHeader(&out, c.l))
		require.NoError(t, b.WriteRow(&out, c.l, row))
		require.Equal(t, c.want, out.String())
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		name       string
		n, ranks   int
		want       string
		iterations int
	}{
		{"latency", 1, 3, "osu_latency: 3 ranks, expected 2", 1},
		{"mbw_mr", 1, 3, "3 ranks, expected an even number", 1},
		{"bcast", 0, 2, "0 B, expected at least 1", 1},
		{"allreduce", 6, 2, "6 B, expected a multiple of 4", 1},
		{"barrier", 6, 2, "6 B, expected 0", 1},
		{"latency", 6, 2, "-1 iterations behind 0", -1},
	} {
		b, err := osu.Find(c.name)
		require.NoError(t, err)
		_, err = osu.Run(context.Background(), world(t, "spin-int", mpi.DefaultOptions(mpi.Host), c.ranks), b, osu.Options{Bytes: c.n, Iterations: c.iterations})
		require.ErrorContains(t, err, c.want)
	}
}
