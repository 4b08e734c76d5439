package exanest

import (
	"fmt"
	"math"
	"slices"

	"github.com/spinsim/spinsim/experiment"
)

// onPrototype are the numbers of ranks in TR-488's figures of broadcast: four on
// an MPSoC, from one MPSoC to all.
var onPrototype = doubling(4, 512)

// modelled returns the model of a broadcast divided by its latency, at several
// numbers of ranks. The latency is the mean of all ranks, as osu_bcast prints it.
func modelled(m *experiment.Measured, size int, ranks []int) []float64 {
	at := fmt.Sprintf("size=%d", size)
	model, latency := along(m, "model", at, "ranks", ranks), along(m, experiment.LatencyColumn, at, "ranks", ranks)
	for i := range model {
		model[i] /= latency[i]
	}
	return model
}

// off returns how far quotients are from 1.
func off(quotients []float64) []float64 {
	list := make([]float64, len(quotients))
	for i, q := range quotients {
		list[i] = math.Abs(q - 1)
	}
	return list
}

// ledgerRanks are the rows of TR-488 that osu-ranks answers.
func ledgerRanks() []experiment.LedgerRow {
	eager, both, startup := doubling(1, 32), doubling(1, 4<<10), doubling(64, 64<<10)
	return append(
		slices.Concat(ledgerModel(), ledgerSharing()),
		experiment.LedgerRow{ID: "tr488-6.1.3-05", Of: "ranks=4 size=1", Column: experiment.LatencyColumn},
		experiment.LedgerRow{ID: "tr488-6.1.4-10", Of: "ranks=4 barrier=false size=1", Column: experiment.LatencyColumn},
		experiment.LedgerRow{ID: "tr488-6.1.3-13", Of: fourReduce + "size=4", Column: experiment.LatencyColumn, How: "4 B: the report gives no size"},
		experiment.LedgerRow{ID: "tr488-6.1.4-08", Of: "ranks=2 size=1", Column: "model", How: "the only step of the model: from the send to the end of the receive that waits, 1 B within an MPSoC"},
		experiment.LedgerRow{
			ID: "tr488-6.1.3-04", Of: "ranks=16 " + listed("size", both), How: "the size before the largest step between sizes that double, 1 B to 4 KiB, 16 ranks",
			Ours: func(m *experiment.Measured) []float64 {
				return []float64{jump(both, along(m, experiment.LatencyColumn, "", "size", both))}
			},
		},
		experiment.LedgerRow{
			ID: "tr488-6.1.3-06", Of: "ranks=4 " + listed("size", eager), How: "the longest of 1, 2, 4, ..., 32 B takes less than 10% more than the shortest",
			Holds: func(m *experiment.Measured) bool {
				all := along(m, experiment.LatencyColumn, "", "size", eager)
				return slices.Max(all) < 1.1*slices.Min(all)
			},
		},
		experiment.LedgerRow{
			ID: "tr488-6.1.3-07", Of: "ranks=4 " + listed("size", startup), How: "the largest size, of sizes that double, at which 64 B take at least 4/5 as long, 4 ranks; 5.157 µs and 12.475 Gb/s of the report give 2 KB by this rule",
			Ours: func(m *experiment.Measured) []float64 {
				all := along(m, experiment.LatencyColumn, "", "size", startup)
				most := slices.IndexFunc(all, func(t float64) bool { return all[0] < 0.8*t })
				return []float64{float64(startup[max(most, 1)-1]) / 1024}
			},
		},
	)
}

// fourReduce is Allreduce of the ranks of a board.
const fourReduce = "benchmark=allreduce ranks=4 ranks-per-node=1 "

// ledgerSharing are the rows about Allreduce, and about several ranks on an MPSoC.
func ledgerSharing() []experiment.LedgerRow {
	vectors := doubling(4, 4<<10)
	return []experiment.LedgerRow{
		{
			ID: "tr488-6.1.3-15", Of: fourReduce + listed("size", vectors), How: "the size before the largest step between sizes that double, 4 B to 4 KiB",
			Ours: func(m *experiment.Measured) []float64 {
				return []float64{jump(vectors, along(m, experiment.LatencyColumn, "", "size", vectors))}
			},
		},
		{
			ID: "tr488-6.1.3-16", Of: "benchmark=bcast,allreduce ranks=4 ranks-per-node=1 size=4,8,16,32", How: "at 4, 8, 16 and 32 B Allreduce takes longer than broadcast, but less than twice as long",
			Holds: func(m *experiment.Measured) bool {
				sizes := doubling(4, 32)
				bcast, allreduce := along(m, experiment.LatencyColumn, "benchmark=bcast", "size", sizes), along(m, experiment.LatencyColumn, "benchmark=allreduce", "size", sizes)
				for i := range bcast {
					if allreduce[i] <= bcast[i] || allreduce[i] >= 2*bcast[i] {
						return false
					}
				}
				return true
			},
		},
		{
			ID: "tr488-6.1.4-15", Of: "benchmark=mbw_mr ranks=2,8 ranks-per-node=1,4 size=64,4KiB,256KiB", How: "four pairs between two MPSoCs carry less than 1.25 times as much as one pair, at 64 B, 4 KiB and 256 KiB",
			Holds: func(m *experiment.Measured) bool {
				sizes := []int{64, 4 << 10, 256 << 10}
				one, four := along(m, "bandwidth", "ranks=2 ranks-per-node=1", "size", sizes), along(m, "bandwidth", "ranks=8 ranks-per-node=4", "size", sizes)
				for i := range one {
					if four[i] >= 1.25*one[i] {
						return false
					}
				}
				return true
			},
		},
	}
}

// ledgerModel are the rows about the model of broadcast, equation (1). A quarter
// is how far a number may be from what it is called near to.
func ledgerModel() []experiment.LedgerRow {
	const quarter = 0.25
	eager, growth := []int{1, 4, 32}, []int{1, 4 << 10, 64 << 10}
	small := listed("ranks", onPrototype) + " " + listed("size", eager)
	return append(ledgerLargeModel(), []experiment.LedgerRow{
		{
			ID: "tr488-0-09", Of: listed("ranks", onPrototype) + " " + listed("size", growth), How: "from 4 ranks to each of 8, 16, ..., 512 the latency grows by the factor of the model within a quarter, at 1 B, 4 KiB and 64 KiB",
			Holds: func(m *experiment.Measured) bool {
				return !slices.ContainsFunc(growth, func(size int) bool {
					of := modelled(m, size, onPrototype)
					return slices.ContainsFunc(of, func(q float64) bool { return !within(quarter, q, of[0]) })
				})
			},
		},
		{
			ID: "tr488-6.1.4-06", Of: small, How: "the model is within a quarter of the latency, 4 to 512 ranks, at 1, 4 and 32 B",
			Holds: func(m *experiment.Measured) bool {
				return !slices.ContainsFunc(eager, func(size int) bool {
					return slices.Max(off(modelled(m, size, onPrototype))) >= quarter
				})
			},
		},
		{
			ID: "tr488-6.1.4-12", Of: small, How: "at 1, 4 and 32 B the mean distance of the model from the latency is less for 64 to 512 ranks than for 4 to 32",
			Holds: func(m *experiment.Measured) bool {
				return !slices.ContainsFunc(eager, func(size int) bool {
					all := off(modelled(m, size, onPrototype))
					return mean(all[4:]) >= mean(all[:4])
				})
			},
		},
	}...)
}

// ledgerLargeModel are those rows that are of messages by RDMA alone.
func ledgerLargeModel() []experiment.LedgerRow {
	many, some, large := onPrototype[2:], []int{4, 16, 64, 128, 512}, []int{64 << 10, 256 << 10}
	return []experiment.LedgerRow{
		{
			ID: "tr488-6.1.4-16", Of: listed("ranks", many) + " size=4KiB", How: "the most of |model / latency - 1|",
			Ours: func(m *experiment.Measured) []float64 {
				return []float64{100 * slices.Max(off(modelled(m, 4<<10, many)))}
			},
		},
		{
			ID: "tr488-6.1.4-18", Of: "ranks=4 size=4MiB", How: "1 - model / latency",
			Ours: func(m *experiment.Measured) []float64 {
				return []float64{100 * (1 - modelled(m, 4<<20, []int{4})[0])}
			},
		},
		{
			ID: "tr488-6.1.4-19", Of: "ranks=4,16 size=4KiB,64KiB,4MiB", How: "with 4 and 16 ranks 1 - model / latency is more at 64 KiB than at 4 KiB, and still more at 4 MiB",
			Holds: func(m *experiment.Measured) bool {
				ranks := []int{4, 16}
				a, b, c := modelled(m, 4<<10, ranks), modelled(m, 64<<10, ranks), modelled(m, 4<<20, ranks)
				return a[0] > b[0] && b[0] > c[0] && a[1] > b[1] && b[1] > c[1]
			},
		},
		{
			ID: "tr488-6.1.4-20", Of: listed("ranks", some) + " " + listed("size", large), How: "the median of |model / latency - 1|: 4, 16, 64, 128 and 512 ranks, 64 and 256 KiB",
			Ours: func(m *experiment.Measured) []float64 {
				all := slices.Concat(off(modelled(m, large[0], some)), off(modelled(m, large[1], some)))
				slices.Sort(all)
				return []float64{100 * mean(all[len(all)/2-1:len(all)/2+1])}
			},
		},
	}
}
