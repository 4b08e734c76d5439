package exanest

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/experiment"
)

// reductions returns the latencies of a mode.
func reductions(m *experiment.Measured, mode string, ranks int, sizes []int) []float64 {
	return along(m, experiment.LatencyColumn, fmt.Sprintf("mode=%s ranks=%d", mode, ranks), "size", sizes)
}

// drops returns the shares of the time of processes that the accelerator saves.
func drops(m *experiment.Measured, ranks int, sizes []int) []float64 {
	host, list := reductions(m, "host", ranks, sizes), reductions(m, "accelerator", ranks, sizes)
	for i := range list {
		list[i] = 1 - list[i]/host[i]
	}
	return list
}

// doubled returns by what the accelerator's latency grows when the size doubles.
func doubled(m *experiment.Measured, ranks, sizes []int) float64 {
	var steps []float64
	for _, n := range ranks {
		list := reductions(m, "accelerator", n, sizes)
		for i := range len(list) - 1 {
			steps = append(steps, list[i+1]/list[i])
		}
	}
	return mean(steps)
}

// noBenefit is the most that a benefit may be where a figure shows none, as for
// the rows of PART'22: a share of the latency.
const noBenefit = 0.1

// ledgerAllreduce are the rows of TR-488 that allreduce answers.
func ledgerAllreduce() []experiment.LedgerRow {
	ranks, sizes, beyond := []int{16, 32, 64, 128}, doubling(4, 4<<10), doubling(1<<10, 16<<10)
	// all reports whether something holds for every number of ranks.
	all := func(holds func(ranks int) bool) bool {
		return !slices.ContainsFunc(ranks, func(n int) bool { return !holds(n) })
	}
	const both = "mode=host,accelerator "
	every := both + listed("ranks", ranks) + " " + listed("size", sizes)
	return []experiment.LedgerRow{
		{ID: "tr488-6.1.5-07", Of: "mode=accelerator ranks=16 size=256", Column: experiment.LatencyColumn},
		{
			ID: "tr488-6.1.5-04", Of: both + listed("ranks", ranks) + " " + listed("size", beyond), How: "the largest size, of sizes that double to 16 KiB, at which the accelerator is faster than processes by more than a tenth with any of 16, 32, 64 and 128 ranks",
			Ours: func(m *experiment.Measured) []float64 {
				most := 0
				for _, n := range ranks {
					for i, drop := range drops(m, n, beyond) {
						if drop > noBenefit {
							most = max(most, beyond[i])
						}
					}
				}
				return []float64{float64(most)}
			},
		},
		{
			ID: "tr488-6.1.5-05", Of: every, How: "the accelerator is faster than processes with 16, 32, 64 and 128 ranks, at sizes that double from 4 B to 4 KiB",
			Holds: func(m *experiment.Measured) bool {
				return all(func(ranks int) bool { return slices.Min(drops(m, ranks, sizes)) > 0 })
			},
		},
		{
			ID: "tr488-6.1.5-06", Of: every, How: "with 16, 32, 64 and 128 ranks the mean of 1 - accelerator / processes is more for 64 B to 4 KiB than for 4 to 32 B",
			Holds: func(m *experiment.Measured) bool {
				return all(func(ranks int) bool {
					list := drops(m, ranks, sizes)
					return mean(list[4:]) > mean(list[:4])
				})
			},
		},
		{
			ID: "tr488-6.1.5-10", Of: "mode=accelerator " + listed("ranks", ranks) + " " + listed("size", sizes[6:]), How: "the mean of latency / latency of half the size: 512 B to 4 KiB, 16, 32, 64 and 128 ranks",
			Ours: func(m *experiment.Measured) []float64 { return []float64{doubled(m, ranks, sizes[6:])} },
		},
		{
			ID: "tr488-6.1.5-15", Of: both + "ranks=16,128 size=256", How: "from 16 to 128 ranks the accelerator's latency grows by a smaller factor than that of processes, 256 B",
			Holds: func(m *experiment.Measured) bool {
				size := []int{256}
				grows := func(mode string) float64 { return reductions(m, mode, 128, size)[0] / reductions(m, mode, 16, size)[0] }
				return grows("accelerator") < grows("host")
			},
		},
	}
}
