package exanest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
)

// ledgerExanet are the rows of TR-488 that exanet answers. Those of MPI repeat
// rows of osu, which measures the same.
func ledgerExanet() []experiment.LedgerRow {
	return []experiment.LedgerRow{
		{ID: "tr488-6.1.1-13", Of: "mode=mailbox size=64", Column: experiment.LatencyColumn, How: "64 B; 10 messages in place of 1,000"},
		{ID: "tr488-6.1.1-31", Of: "mode=mpi size=0", Column: experiment.LatencyColumn},
		{ID: "tr488-6.1.1-36", Of: "mode=mpi path=intra-fpga size=0", Column: experiment.LatencyColumn},
		{ID: "tr488-6.1.1-27", Of: "mode=mpi size=64", Column: experiment.LatencyColumn},
		{
			ID: "tr488-6.1.1-29", Of: "mode=mpi size=4MiB", How: "4 MiB / latency",
			Ours: func(m *experiment.Measured) []float64 {
				return []float64{8 * (4 << 20) / m.At(experiment.LatencyColumn, "size=4MiB") / 1e3}
			},
		},
		{
			ID: "tr488-8-06", Of: "mode=mailbox,mpi size=0,64", How: "MPI of 0 B less packetizer and mailbox of 64 B",
			Ours: func(m *experiment.Measured) []float64 {
				return []float64{1e3 * (m.At(experiment.LatencyColumn, "mode=mpi size=0") - m.At(experiment.LatencyColumn, "mode=mailbox size=64"))}
			},
		},
		{
			ID: "tr488-4.5.2-02", Of: "mode=mpi firmware=profile,1GHz,2.5GHz size=64", How: "MPI of 64 B takes less than half as long with firmware that takes no time, extrapolated from HPUs of 1 and 2.5 GHz",
			Holds: func(m *experiment.Measured) bool {
				slow, fast := m.At(experiment.LatencyColumn, "firmware=1GHz"), m.At(experiment.LatencyColumn, "firmware=2.5GHz")
				return 2*(fast-(slow-fast)/1.5) < m.At(experiment.LatencyColumn, "firmware=profile")
			},
		},
		{
			ID: "tr488-4.4-06", Of: "mode=mailbox size=64 rounds=1000 fabric.faults.loss=1e-2",
			How: "with one cell in a hundred lost all messages arrive, and half a round trip takes at least 0.5 µs more than the 0.47 µs without: half of the time-outs of 100 µs that lost cells alone would cost",
			Holds: func(m *experiment.Measured) bool {
				return m.At(experiment.LatencyColumn, "size=64") > 0.97
			},
		},
	}
}

// ledgerOSU are the rows of TR-488 that osu answers.
func ledgerOSU() []experiment.LedgerRow {
	const (
		bandwidth = "benchmark=bw path=inter-mezz:1,0,0 "
		zero      = "path=intra-fpga,intra-mezz:1,inter-mezz:1,0,0 size=0"
	)
	latency := func(m *experiment.Measured, at string) float64 { return m.At(experiment.LatencyColumn, at) }
	// link is the time of a hop between boards and its routers.
	link := func(m *experiment.Measured, path string) float64 {
		return latency(m, "path="+path) - latency(m, "path=intra-fpga")
	}
	eager := doubling(1, 32)
	return append(
		ledgerPaths(),
		experiment.LedgerRow{ID: "tr488-6.1.1-07", Of: "path=intra-qfdb size=0", Column: experiment.LatencyColumn},
		experiment.LedgerRow{ID: "tr488-6.1.1-11", Of: "path=intra-fpga size=0", Column: experiment.LatencyColumn},
		experiment.LedgerRow{ID: "tr488-6.1.1-15", Of: "path=intra-qfdb size=64", Column: experiment.LatencyColumn},
		experiment.LedgerRow{ID: "tr488-6.1.1-28", Of: "path=intra-qfdb size=4MiB", Column: experiment.LatencyColumn},
		experiment.LedgerRow{ID: "tr488-6.1.2-06", Of: bandwidth + "size=4MiB", Column: "of_link"},
		experiment.LedgerRow{
			ID: "tr488-6.1.2-07", Of: bandwidth + "size=1MiB fabric.mtu=4KiB fabric.buffer=16KiB", How: "messages of 1 MiB use more than 90% of the link with cells of 4 KiB (buffers of 16 KiB)",
			Holds: func(m *experiment.Measured) bool { return m.At("of_link", "size=1MiB") > 0.9 },
		},
		experiment.LedgerRow{
			ID: "tr488-6.1.1-08", Of: "path=intra-qfdb " + listed("size", eager), How: "the most of 1, 2, 4, 8, 16, and 32 B",
			Ours: func(m *experiment.Measured) []float64 {
				return []float64{slices.Max(along(m, experiment.LatencyColumn, "", "size", eager))}
			},
		},
		experiment.LedgerRow{
			ID: "tr488-6.1.1-10", Of: "path=intra-qfdb size=1,8", How: "8 B take less than 1% more than 1 B",
			Holds: func(m *experiment.Measured) bool { return latency(m, "size=8") < 1.01*latency(m, "size=1") },
		},
		experiment.LedgerRow{
			ID: "tr488-6.1.1-19", Of: zero, How: "inter-mezz:1,0,0 less intra-fpga, both of 0 B, as the report has 120 ns for a link",
			Ours: func(m *experiment.Measured) []float64 { return []float64{1e3 * link(m, "inter-mezz:1,0,0")} },
		},
		experiment.LedgerRow{
			ID: "tr488-6.1.1-22", Of: zero, How: "intra-mezz:1 and inter-mezz:1,0,0, each less intra-fpga, differ by less than 5%, 0 B",
			Holds: func(m *experiment.Measured) bool {
				return within(0.05, link(m, "inter-mezz:1,0,0"), link(m, "intra-mezz:1"))
			},
		},
		experiment.LedgerRow{
			ID: "tr488-6.1.1-30", Of: "path=intra-qfdb benchmark=latency,bw size=4MiB", How: "4 MiB / latency is within 5% of the bandwidth of bw",
			Holds: func(m *experiment.Measured) bool {
				return within(0.05, (4<<20)/latency(m, "benchmark=latency"), m.At("bandwidth", "benchmark=bw"))
			},
		},
	)
}

// ledgerPaths are the rows about all paths of Table 1.
func ledgerPaths() []experiment.LedgerRow {
	paths, linked := "path="+strings.Join(table1, ",")+" ", "path="+strings.Join(linkPaths, ",")+" "
	knee := doubling(1, 4<<10)
	return append(ledgerBothWays(paths), []experiment.LedgerRow{
		{
			ID: "tr488-6.1.1-16", Of: paths + listed("size", knee), How: "on every path of Table 1 the largest step between sizes that double, 1 B to 4 KiB, is from 32 to 64 B",
			Holds: func(m *experiment.Measured) bool {
				return !slices.ContainsFunc(table1, func(path string) bool {
					return jump(knee, along(m, experiment.LatencyColumn, "path="+path, "size", knee)) != 32
				})
			},
		},
		{
			ID: "tr488-6.1.1-37", Of: paths + "size=0", How: "each path takes longer than the one before",
			Holds: func(m *experiment.Measured) bool {
				return slices.IsSortedFunc(table1, func(a, b string) int {
					if m.At(experiment.LatencyColumn, "path="+a) < m.At(experiment.LatencyColumn, "path="+b) {
						return -1
					}
					return 1
				})
			},
		},
		{
			ID: "tr488-6.1.2-01", Of: "benchmark=bw " + linked + listed("size", briefSizes), How: "less than half of the slowest link is used on every path of Table 1, 1 B to 1 KiB",
			Holds: func(m *experiment.Measured) bool {
				return !slices.ContainsFunc(linkPaths, func(path string) bool {
					return slices.Max(along(m, "of_link", "path="+path, "size", briefSizes)) >= 0.5
				})
			},
		},
	}...)
}

// briefSizes are messages that TR-488 may call small.
var briefSizes = []int{1, 8, 64, 256, 1 << 10}

// ledgerBothWays are the rows about bibw on all paths.
func ledgerBothWays(paths string) []experiment.LedgerRow {
	sizes := []int{1, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10}
	// below is by what bibw is less than twice bw.
	below := func(m *experiment.Measured, path string, size int) float64 {
		at := fmt.Sprintf("path=%s size=%d ", path, size)
		return 1 - m.At("bandwidth", at+"benchmark=bibw")/m.At("bandwidth", at+"benchmark=bw")/2
	}
	return []experiment.LedgerRow{
		{
			ID: "tr488-6.1.2-10", Of: "benchmark=bw,bibw " + paths + listed("size", briefSizes), How: "the most of 1 - bibw / (2 bw) on the paths of Table 1, 1 B to 1 KiB",
			Ours: func(m *experiment.Measured) []float64 {
				most := 0.0
				for _, path := range table1 {
					for _, size := range briefSizes {
						most = max(most, below(m, path, size))
					}
				}
				return []float64{100 * most}
			},
		},
		{
			ID: "tr488-6.1.2-12", Of: "benchmark=bw,bibw " + paths + listed("size", sizes), How: "at each size 1 - bibw / (2 bw) of the paths of Table 1 is within 10 points, 1 B to 256 KiB",
			Holds: func(m *experiment.Measured) bool {
				return !slices.ContainsFunc(sizes, func(size int) bool {
					var all []float64
					for _, path := range table1 {
						all = append(all, below(m, path, size))
					}
					return slices.Max(all)-slices.Min(all) > 0.1
				})
			},
		},
	}
}
