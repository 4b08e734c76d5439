package part

import (
	"slices"

	"github.com/spinsim/spinsim/experiment"
)

// Sizes of rows. Knees are looked for among all powers of two.
const (
	ledgerSmall  = " size=16,64,256,1KiB,4KiB"
	ledgerPowers = " size=4KiB,16KiB,64KiB,256KiB,1MiB,4MiB"
	ledgerKnees  = " size=4KiB..4MiB*2"
)

// ledgerPagefault are the rows of PART'22 and Psistakis'19 that pagefault
// answers.
func ledgerPagefault() []experiment.LedgerRow {
	return slices.Concat(
		ledgerBasis(), ledgerPrepared(), ledgerPresent(), ledgerOnePage(), ledgerTimeouts(), ledgerPolicies(), ledgerHandling(), ledgerTouching(),
		ledgerChance(), ledgerFrequency(), ledgerBothPolicies(), ledgerOverlap(), ledgerSmallTimeout(), ledgerCounts(),
		ledgerThesis(), ledgerHost(), ledgerDestination(), ledgerSource(), ledgerBoth(),
	)
}

// ledgerBasis are rows of transfers without faults.
func ledgerBasis() []experiment.LedgerRow {
	return []experiment.LedgerRow{
		{ID: "part22-4.1-07", Of: "policy=transfer size=16", Column: experiment.LatencyColumn},
		{ID: "part22-4.2-09", Of: "policy=transfer size=16 pools.r5.invocation=0ns", Column: experiment.LatencyColumn},
		{
			ID: "part22-2-06", Of: "policy=pin,pia size=16,64,256,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB,4MiB", How: "all pages are absent, and PIA takes no longer than mlock and the transfer, 16 B to 4 MiB",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "size", func(is string) bool { return latency(m, "policy=pia %s", is) <= latency(m, "policy=pin %s", is) })
			},
		},
	}
}

// ledgerPrepared are rows of touching and pinning before a transfer.
func ledgerPrepared() []experiment.LedgerRow {
	more := func(policy string) func(m *experiment.Measured) []float64 {
		return one(func(m *experiment.Measured) float64 {
			return latency(m, "policy=%s", policy) - latency(m, "policy=transfer")
		})
	}
	return []experiment.LedgerRow{
		{ID: "part22-5.1-02", Of: "policy=pin size=16", Column: experiment.LatencyColumn},
		{ID: "part22-5.1-03", Of: "policy=transfer,pin size=16", How: "latency with mlock of absent pages less that of the transfer only", Ours: more(policyPin)},
		{ID: "part22-5.1-04", Of: "policy=pin-present size=4KiB", Column: "touch"},
		{ID: "part22-5.1-07", Of: "policy=transfer,touch size=16", How: "latency with touching of absent pages less that of the transfer only", Ours: more(policyTouch)},
		{
			ID: "part22-5.1-05", Of: "policy=pin,pin-present size=16,64,256,1KiB,4KiB,8KiB", How: "mlock of present pages takes longer than of absent ones, 16 B to 8 KiB",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "size", func(is string) bool {
					return latency(m, "policy=pin-present %s", is) > latency(m, "policy=pin %s", is)
				})
			},
		},
		{
			ID: "part22-5.1-08", Of: "policy=touch,pin" + ledgerPowers, How: "touching and mlock of absent pages differ less with 4 MiB than with 4 KiB, and there " + alikeHow,
			Holds: func(m *experiment.Measured) bool {
				ratio := func(size string) float64 {
					return latency(m, "policy=pin size=%s", size) / latency(m, "policy=touch size=%s", size)
				}
				return alike(ratio("4MiB"), 1) && max(ratio("4MiB"), 1/ratio("4MiB")) < max(ratio("4KiB"), 1/ratio("4KiB"))
			},
		},
		{
			ID: "part22-5.1-09", Of: "policy=transfer,touch-present size=64KiB", How: "what touching of present pages adds to the latency of 64 KiB, for each of 16 pages",
			Ours: one(func(m *experiment.Measured) float64 { return 1000 * more(policyTouchPresent)(m)[0] / 16 }),
		},
	}
}

// ledgerPresent are rows of touching and pinning pages that are present.
func ledgerPresent() []experiment.LedgerRow {
	touchesAlike := func(m *experiment.Measured) func(is string) bool {
		return func(is string) bool {
			return alike(latency(m, "policy=touch-present %s", is), latency(m, "policy=transfer %s", is))
		}
	}
	return []experiment.LedgerRow{
		{
			ID: "part22-5.1-10", Of: "policy=transfer,touch-present" + ledgerSmall, How: "the transfer with and without touching of present pages is " + alikeHow + ", 16 B to 4 KiB",
			Holds: func(m *experiment.Measured) bool { return always(m, "size", touchesAlike(m)) },
		},
		{
			ID: "part22-5.1-13", Of: "policy=transfer,touch,touch-present,pin,pin-present size=16,64,256,1KiB,4KiB,16KiB,256KiB,1MiB,4MiB", How: "mlock of present pages takes longer than at least three of the four others without faults (almost all), 16 B to 4 MiB, but for 64 KiB",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "size", func(is string) bool {
					faster := 0
					return always(m, "policy", func(other string) bool {
						if latency(m, "policy=pin-present %s", is) > latency(m, "%s %s", other, is) {
							faster++
						}
						return true
					}) && faster >= 3
				})
			},
		},
		{
			ID: "part22-5.1-15", Of: "policy=transfer,touch-present" + ledgerKnees, How: "largest size to 4 MiB up to which the transfer with and without touching of present pages is " + alikeHow,
			Ours: one(func(m *experiment.Measured) float64 { return upTo(m, touchesAlike(m)) }),
		},
		{
			ID: "part22-5.1-17", Of: "policy=touch-present size=1MiB,4MiB", How: "touching of present pages takes 20 to 1000 µs, 1 and 4 MiB",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "size", func(is string) bool { return m.At("touch", is) >= 20 && m.At("touch", is) <= 1000 })
			},
		},
	}
}

// ledgerOnePage are rows of the breakdown of 4 KiB.
func ledgerOnePage() []experiment.LedgerRow {
	const of = "policy=pio size=4KiB"
	sum := func(m *experiment.Measured, columns ...string) (us float64) {
		for _, c := range columns {
			us += m.At(c, "")
		}
		return us
	}
	return []experiment.LedgerRow{
		{ID: "part22-5.2-13", Of: of, Column: experiment.LatencyColumn},
		{ID: "part22-6.1.1-09", Of: of, Column: experiment.LatencyColumn},
		{ID: "part22-5.2-02", Of: of, Column: "interrupt"},
		{ID: "part22-5.2-05", Of: of, Column: "get_user_pages"},
		{ID: "part22-5.2-06", Of: of, Column: "netlink"},
		{ID: "part22-5.2-07", Of: of, Column: "tasklet"},
		{ID: "part22-5.2-08", Of: of, Column: "request"},
		{ID: "part22-5.2-01", Of: of, Column: "wire"},
		{ID: "part22-5.2-09", Of: of, Column: "retransmission"},
		{
			ID: "part22-5.2-03", Of: of, How: "get_user_pages, netlink and tasklet together",
			Ours: one(func(m *experiment.Measured) float64 { return sum(m, "get_user_pages", "netlink", "tasklet") }),
		},
		{
			ID: "part22-5.2-14", Of: of, How: "latency less wire, one interrupt, get_user_pages, netlink, tasklet, request and retransmission",
			Ours: one(func(m *experiment.Measured) float64 {
				first := m.At("interrupt", "") / m.At("faults", "")
				return latency(m, "") - first - sum(m, "wire", "get_user_pages", "netlink", "tasklet", "request", "retransmission")
			}),
		},
		{
			ID: "part22-1-03", Of: of, How: "interrupt, tasklet, get_user_pages, netlink, context switches and the thread's touching take more than half of the latency",
			Holds: func(m *experiment.Measured) bool {
				return sum(m, "interrupt", "tasklet", "get_user_pages", "netlink", "context_switch", "touch") > latency(m, "")/2
			},
		},
		{
			ID: "part22-5.2-20", Of: of, How: "get_user_pages takes longer than each other part of the latency",
			Holds: func(m *experiment.Measured) bool {
				return !slices.ContainsFunc(pagefaultPartNames(), func(c string) bool { return c != "get_user_pages" && m.At(c, "") >= m.At("get_user_pages", "") })
			},
		},
		{
			ID: "part22-6.1.1-17", Of: "policy=pio,pia size=4KiB", How: "latency of PIA less that of PIO",
			Ours: one(func(m *experiment.Measured) float64 { return latency(m, "policy=pia") - latency(m, "policy=pio") }),
		},
	}
}

// ledgerTimeouts are rows of the time-out alone, and of requests.
func ledgerTimeouts() []experiment.LedgerRow {
	return []experiment.LedgerRow{
		{
			ID: "part22-5.2-15", Of: "policy=transfer size=16", How: "100 µs divided by the latency of 16 B",
			Ours: one(func(m *experiment.Measured) float64 { return 100 / latency(m, "") }),
		},
		{
			ID: "part22-5.2-17", Of: "policy=timeout timeout=100us,1ms" + ledgerSmall, How: "more than half of the latency is idle, time-outs of 100 µs and 1 ms, 16 B to 4 KiB",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "size", func(is string) bool {
					return always(m, "timeout", func(after string) bool {
						return m.At("idle", is+" "+after) > latency(m, "%s %s", is, after)/2
					})
				})
			},
		},
		{
			ID: "part22-5.2-19", Of: "policy=pio,timeout timeout=100us" + ledgerSmall, How: "with the request a transfer takes less than half of the time with the time-out of 100 µs alone, 16 B to 4 KiB",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "size", func(is string) bool { return 2*latency(m, "policy=pio %s", is) < latency(m, "policy=timeout %s", is) })
			},
		},
	}
}

// ledgerPolicies compares policies where all pages are absent.
func ledgerPolicies() []experiment.LedgerRow {
	const of = "policy=pio,pi4,pia"
	return []experiment.LedgerRow{
		{
			ID: "part22-5.3-01", Of: "policy=pio,pi4" + ledgerPowers, How: "PI4 takes at most a tenth longer than PIO, 4 KiB to 4 MiB",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "size", func(is string) bool {
					return latency(m, "policy=pi4 %s", is) <= alikeWithin*latency(m, "policy=pio %s", is)
				})
			},
		},
		{
			ID: "part22-5.3-04", Of: of + ledgerKnees, How: "largest size up to which PIA is " + alikeHow + " of PIO and of PI4",
			Ours: one(func(m *experiment.Measured) float64 {
				return upTo(m, func(is string) bool {
					pia := latency(m, "policy=pia %s", is)
					return alike(pia, latency(m, "policy=pio %s", is)) && alike(pia, latency(m, "policy=pi4 %s", is))
				})
			}),
		},
		{
			ID: "part22-5.3-05", Of: of + " size=64KiB,256KiB,1MiB,4MiB", How: "PIA takes less than half of the time of PIO and of PI4, 64 KiB to 4 MiB",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "size", func(is string) bool {
					pia := latency(m, "policy=pia %s", is)
					return 2*pia < latency(m, "policy=pio %s", is) && 2*pia < latency(m, "policy=pi4 %s", is)
				})
			},
		},
		{
			ID: "part22-5.4-05", Of: of + ledgerPowers, How: "PIA takes less time than PIO and PI4, 64 KiB to 4 MiB, and at most a tenth more, 4 and 16 KiB",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "size", func(is string) bool {
					pia, others := latency(m, "policy=pia %s", is), min(latency(m, "policy=pio %s", is), latency(m, "policy=pi4 %s", is))
					return pia < others || (is == "size=4096" || is == "size=16384") && pia <= alikeWithin*others
				})
			},
		},
	}
}

// ledgerHandling are rows of what handles the faults of a transfer.
func ledgerHandling() []experiment.LedgerRow {
	share := func(m *experiment.Measured, is string) float64 {
		return (m.At("get_user_pages", is) + m.At("netlink", is) + m.At("tasklet", is)) / latency(m, "%s", is)
	}
	return []experiment.LedgerRow{
		{
			ID: "part22-5.3-02", Of: "policy=pio size=16KiB", How: "runs of the tasklet that found something to do, or times that the block was sent again, if that is more",
			Ours: one(func(m *experiment.Measured) float64 {
				return max(m.At("tasklets", "")-m.At("idle_runs", ""), m.At("resent", ""))
			}),
		},
		{
			ID: "part22-5.3-03", Of: "policy=pio,pi4 size=16KiB", How: "with PIO the block first begins earlier to be sent again",
			Holds: func(m *experiment.Measured) bool {
				return m.At("first_resent", "policy=pio") < m.At("first_resent", "policy=pi4")
			},
		},
		{
			ID: "part22-5.3-06", Of: "policy=pia size=64KiB,256KiB,1MiB,4MiB", How: "blocks that were sent again, the most of 64 KiB to 4 MiB",
			Ours: one(func(m *experiment.Measured) (most float64) {
				for _, is := range eachOf(m, "size") {
					most = max(most, m.At("resent", is))
				}
				return most
			}),
		},
		{
			ID: "part22-5.3-12", Of: "policy=pia size=1MiB,4MiB", How: "at least three interrupts for each run of the tasklet, 1 and 4 MiB",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "size", func(is string) bool { return m.At("faults", is) >= 3*m.At("tasklets", is) })
			},
		},
		{
			ID: "part22-5.3-15", Of: "policy=pia" + ledgerPowers, How: "the share of get_user_pages, netlink and tasklet in the latency grows with each size, 4 KiB to 4 MiB",
			Holds: func(m *experiment.Measured) bool {
				last := 0.0
				return always(m, "size", func(is string) bool {
					grows := share(m, is) > last
					last = share(m, is)
					return grows
				})
			},
		},
	}
}

// ledgerTouching compares PIA with touching absent pages before.
func ledgerTouching() []experiment.LedgerRow {
	const of = "policy=touch,pia" + ledgerKnees
	touchIsFaster := func(m *experiment.Measured) func(is string) bool {
		return func(is string) bool { return latency(m, "policy=touch %s", is) < latency(m, "policy=pia %s", is) }
	}
	return []experiment.LedgerRow{
		{
			ID: "part22-5.3-07", Of: of, How: "largest size in MiB up to which PIA takes longer than touching before",
			Ours: one(func(m *experiment.Measured) float64 { return upTo(m, touchIsFaster(m)) / 1024 }),
		},
		{
			ID: "part22-5.3-14", Of: of, How: "smallest size in MiB, 4 MiB at most, from which on PIA takes no longer than touching before",
			Ours: one(func(m *experiment.Measured) float64 {
				return fromOn(m, func(is string) bool { return !touchIsFaster(m)(is) }) / 1024
			}),
		},
		{
			ID: "part22-5.4-01", Of: of, How: "largest size up to which touching before takes less time than PIA",
			Ours: one(func(m *experiment.Measured) float64 { return upTo(m, touchIsFaster(m)) }),
		},
	}
}
