package part

import (
	"math"
	"strings"

	"github.com/spinsim/spinsim/experiment"
)

// Points of Psistakis'19: a write within a process.
const (
	thesisSizes    = " nodes=1 size=16,64,256,1KiB,4KiB,16KiB,32KiB,64KiB"
	thesisAPage    = "policy=touch-a-page by=touch"
	thesisPolicies = "policy=touch-a-page,touch-ahead by=touch,get_user_pages"
)

// similarUpTo is a row of the size up to which Touch-Ahead and Touch-A-Page are
// similar.
func similarUpTo(id, side string) experiment.LedgerRow {
	return experiment.LedgerRow{
		ID: id, Of: thesisPolicies + " side=" + side + thesisSizes, How: "largest of the sizes up to which Touch-Ahead and Touch-A-Page are " + alikeHow + "; 0: none",
		Ours: one(func(m *experiment.Measured) float64 {
			return upTo(m, func(is string) bool {
				return alike(latency(m, "policy=touch-a-page %s", is), latency(m, "policy=touch-ahead %s", is))
			})
		}),
	}
}

// everyPolicy reports whether f holds for both policies at each size.
func everyPolicy(m *experiment.Measured, f func(is string) bool) bool {
	return always(m, "size", func(size string) bool {
		return f("policy=touch-a-page "+size) && f("policy=touch-ahead "+size)
	})
}

// ledgerThesis are rows that are of no side.
func ledgerThesis() []experiment.LedgerRow {
	return []experiment.LedgerRow{
		{ID: "t19-4-50", Of: "policy=transfer nodes=1 size=16", Column: experiment.LatencyColumn},
		{
			ID: "t19-4-53", Of: "policy=transfer,touch,pin" + thesisSizes, How: "a transfer takes longer with touching or mlock of absent pages before it, 16 B to 64 KiB",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "size", func(is string) bool {
					return latency(m, "policy=transfer %s", is) < min(latency(m, "policy=touch %s", is), latency(m, "policy=pin %s", is))
				})
			},
		},
		{
			ID: "t19-4-01", Of: "policy=touch,pin,touch-a-page,touch-ahead by=get_user_pages,touch" + thesisSizes, How: "Touch-A-Page and Touch-Ahead take at least as long as a transfer with touching or mlock before it, whose time counts, 16 B to 64 KiB",
			Holds: func(m *experiment.Measured) bool {
				return everyPolicy(m, func(is string) bool {
					_, size, _ := strings.Cut(is, " ")
					before := max(latency(m, "policy=touch by=get_user_pages %s", size), latency(m, "policy=pin by=get_user_pages %s", size))
					return latency(m, "%s", is) >= before
				})
			},
		},
		{
			ID: "t19-4-92", Of: "policy=transfer,touch,touch-a-page by=get_user_pages,touch nodes=1 size=4KiB", How: "touching an absent page of 4 KiB adds less than a fifth of what Touch-A-Page adds",
			Holds: func(m *experiment.Measured) bool {
				base := latency(m, "policy=transfer by=get_user_pages")
				return 5*(latency(m, "policy=touch by=get_user_pages")-base) < latency(m, "policy=touch-a-page")-base
			},
		},
	}
}

// ledgerHost are rows of what cores do.
func ledgerHost() []experiment.LedgerRow {
	return []experiment.LedgerRow{
		{
			ID: "t19-3.2.1-06", Of: thesisPolicies + " nodes=1 frequency=99% runs=200 size=16KiB,64KiB", How: "in 200 writes, each to memory that is removed after it, the process is asked to touch pages that it does not have any more, and with get_user_pages no such page is asked for, 16 and 64 KiB",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "size", func(is string) bool {
					return m.At("refused", "policy=touch-a-page "+is) > 0 && m.At("refused", "policy=touch-ahead "+is) == 0
				})
			},
		},
		{
			ID: "t19-4-86", Of: thesisPolicies + " side=destination,source nodes=1 size=8", How: "interrupts of the SMMU, the most of both policies, source or destination absent",
			Ours: one(func(m *experiment.Measured) (most float64) {
				for _, side := range eachOf(m, "side") {
					most = max(most, m.At("faults", "policy=touch-a-page "+side), m.At("faults", "policy=touch-ahead "+side))
				}
				return most
			}),
		},
		{
			ID: "t19-4-89", Of: thesisPolicies + " side=destination,source,both" + thesisSizes, How: "interrupts and tasklets take more time with Touch-Ahead than with Touch-A-Page, each side, 16 B to 64 KiB",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "size", func(size string) bool {
					return always(m, "side", func(side string) bool {
						at := side + " " + size
						return m.At(driverColumn, "policy=touch-ahead "+at) > m.At(driverColumn, "policy=touch-a-page "+at)
					})
				})
			},
		},
		{
			ID: "t19-3.2.1-02", Of: thesisPolicies + " nodes=1 size=4KiB,16KiB,64KiB", How: "context switches take less time with get_user_pages than with touching, 4 to 64 KiB",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "size", func(is string) bool {
					return m.At("context_switch", "policy=touch-ahead "+is) < m.At("context_switch", "policy=touch-a-page "+is)
				})
			},
		},
	}
}

// ledgerDestination are rows of absent pages at the destination.
func ledgerDestination() []experiment.LedgerRow {
	return []experiment.LedgerRow{
		similarUpTo("t19-4-61", SideDestination),
		{
			ID: "t19-4-04", Of: thesisPolicies + " nodes=1,2 size=16,64,256,1KiB,4KiB,16KiB,32KiB,64KiB", How: "a write to the next node takes " + alikeHow + " of one within the node, both policies, 16 B to 64 KiB",
			Holds: func(m *experiment.Measured) bool {
				return everyPolicy(m, func(is string) bool { return alike(latency(m, "nodes=1 %s", is), latency(m, "nodes=2 %s", is)) })
			},
		},
		{
			ID: "t19-4-57", Of: thesisPolicies + " os.interrupt_core=0,1" + thesisSizes, How: "a write takes " + alikeHow + " of the time if the SMMU interrupts core 1 in place of core 0, both policies, 16 B to 64 KiB",
			Holds: func(m *experiment.Measured) bool {
				return everyPolicy(m, func(is string) bool {
					return alike(latency(m, "os.interrupt_core=0 %s", is), latency(m, "os.interrupt_core=1 %s", is))
				})
			},
		},
		{
			ID: "t19-4-65", Of: thesisAPage + " nodes=1" + ledgerKnees, How: "largest size to 4 MiB up to which tasklets read no more entries of the FIFO than pages are absent",
			Ours: one(func(m *experiment.Measured) float64 {
				return upTo(m, func(is string) bool { return m.At("entries", is) <= m.At("absent", is) })
			}),
		},
		{
			ID: "t19-4-67", Of: thesisPolicies + " nodes=1 size=16KiB,32KiB,64KiB", How: "latency of Touch-A-Page divided by that of Touch-Ahead is less at 32 and 64 KiB than at 16 KiB",
			Holds: func(m *experiment.Measured) bool {
				gain := func(size string) float64 {
					return latency(m, "policy=touch-a-page size=%s", size) / latency(m, "policy=touch-ahead size=%s", size)
				}
				return max(gain("32KiB"), gain("64KiB")) < gain("16KiB")
			},
		},
	}
}

// ledgerSource are rows of absent pages at the source.
func ledgerSource() []experiment.LedgerRow {
	const of = thesisPolicies + " side=source"
	return []experiment.LedgerRow{
		similarUpTo("t19-4-71", SideSource),
		{
			ID: "t19-4-69", Of: of + " timeout=1ms,2.5ms,25ms" + thesisSizes, How: "time-out with the least product of latencies, both policies, 16 B to 64 KiB",
			Ours: one(func(m *experiment.Measured) float64 {
				return bestTimeout(m, "policy=touch-a-page", "policy=touch-ahead") / 1000
			}),
		},
		{
			ID: "t19-4-70", Of: of + thesisSizes, How: "the shortest latency, both policies, 16 B to 64 KiB",
			Ours: one(func(m *experiment.Measured) float64 {
				least := math.Inf(1)
				for _, is := range eachOf(m, "size") {
					least = min(least, latency(m, "policy=touch-a-page %s", is), latency(m, "policy=touch-ahead %s", is))
				}
				return least / 1000
			}),
		},
		{
			ID: "t19-4-75", Of: of + " nodes=1 size=16KiB,32KiB,64KiB", How: "time-outs of Touch-A-Page for each of Touch-Ahead, of 16, 32 and 64 KiB the number furthest from the published one",
			Ours: one(func(m *experiment.Measured) float64 {
				var list []float64
				for _, is := range eachOf(m, "size") {
					list = append(list, m.At("timeouts", "policy=touch-a-page "+is)/m.At("timeouts", "policy=touch-ahead "+is))
				}
				return furthest(list, 4, 4)
			}),
		},
		{
			ID: "t19-4-84", Of: thesisAPage + " side=source nodes=1 size=4KiB,16KiB,32KiB,64KiB", How: "time-outs for each absent page, of 4 to 64 KiB the number furthest from the published one",
			Ours: one(func(m *experiment.Measured) float64 {
				var list []float64
				for _, is := range eachOf(m, "size") {
					list = append(list, m.At("timeouts", is)/m.At("absent", is))
				}
				return furthest(list, 1, 1)
			}),
		},
		{
			ID: "t19-3.2.1-10", Of: of + thesisSizes, How: "time-outs and no requests, both policies, 16 B to 64 KiB",
			Holds: func(m *experiment.Measured) bool {
				return everyPolicy(m, func(is string) bool { return m.At("timeouts", is) > 0 && m.At("requests", is) == 0 })
			},
		},
		{
			ID: "t19-3.2.1-22", Of: of + " hupcf=true,false nodes=1 size=64KiB", How: "with HUPCF off the SMMU terminates accesses to pages that are present, and requests are sent for blocks of the touched destination; with HUPCF on neither; both policies, 64 KiB",
			Holds: func(m *experiment.Measured) bool {
				return everyPolicy(m, func(is string) bool {
					off, on := is+" hupcf=false", is+" hupcf=true"
					return m.At("terminated", off) > 0 && m.At("requests", off) > 0 && m.At("terminated", on) == 0 && m.At("requests", on) == 0
				})
			},
		},
	}
}

// ledgerBoth are rows of absent pages on both sides.
func ledgerBoth() []experiment.LedgerRow {
	return []experiment.LedgerRow{
		similarUpTo("t19-4-76", sideBoth),
		{
			ID: "t19-4-77", Of: thesisPolicies + " side=both nodes=1 size=16,64,256,1KiB,4KiB", How: "more than half of the latency is idle, both policies, 16 B to 4 KiB",
			Holds: func(m *experiment.Measured) bool {
				return everyPolicy(m, func(is string) bool { return m.At("idle", is) > latency(m, "%s", is)/2 })
			},
		},
		{
			ID: "t19-4-80", Of: thesisPolicies + " side=both nodes=1 size=16KiB", How: "latency of Touch-A-Page divided by that of Touch-Ahead",
			Ours: one(func(m *experiment.Measured) float64 {
				return latency(m, "policy=touch-a-page") / latency(m, "policy=touch-ahead")
			}),
		},
		{
			ID: "t19-4-81", Of: thesisAPage + " side=both nodes=1 size=16KiB", How: "absent pages of the source divided by time-outs",
			Ours: one(func(m *experiment.Measured) float64 { return m.At("absent", "") / 2 / m.At("timeouts", "") }),
		},
		{
			ID: "t19-4-82", Of: thesisPolicies + " side=source,both nodes=1 size=16KiB,32KiB,64KiB", How: "with both sides absent a transfer takes at least a tenth less time than with the source, both policies, 16 to 64 KiB",
			Holds: func(m *experiment.Measured) bool {
				return everyPolicy(m, func(is string) bool {
					return alikeWithin*latency(m, "side=both %s", is) < latency(m, "side=source %s", is)
				})
			},
		},
	}
}
