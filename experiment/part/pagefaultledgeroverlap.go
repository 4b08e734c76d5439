package part

import (
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/sim"
)

// ledgerAllTimeouts are the points of PART'22 §6.1.2.
const ledgerAllTimeouts = "policy=pia timeout=100us,500us,1ms,nto"

// ledgerOverlap are rows of page-in while data is sent.
func ledgerOverlap() []experiment.LedgerRow {
	return []experiment.LedgerRow{
		{
			ID: "part22-3.3-02", Of: ledgerAllTimeouts + " size=1MiB,4MiB", How: "PIA without a time-out takes longer than with that of 100 µs, 1 and 4 MiB, and than with those of 500 µs and 1 ms, 4 MiB",
			Holds: func(m *experiment.Measured) bool {
				slower := func(values string) bool {
					size := values[strings.Index(values, "size="):]
					return latency(m, "timeout=nto %s", size) > latency(m, "%s", values)
				}
				return slower("timeout=100us size=1MiB") && slower("timeout=100us size=4MiB") && slower("timeout=500us size=4MiB") && slower("timeout=1ms size=4MiB")
			},
		},
		{
			ID: "part22-6.1.2-03", Of: ledgerAllTimeouts + ledgerPowers, How: "largest of the sizes of Fig. 15, each four times the one before, up to which PIA with time-outs of 100 µs, 500 µs, 1 ms and without is " + alikeHow,
			Ours: one(func(m *experiment.Measured) float64 {
				return upTo(m, func(is string) bool {
					return always(m, "timeout", func(a string) bool {
						return always(m, "timeout", func(b string) bool { return alike(latency(m, "%s %s", a, is), latency(m, "%s %s", b, is)) })
					})
				})
			}),
		},
		{
			ID: "part22-6.1.2-04", Of: "policy=pia size=16,64,256,1KiB,4KiB,8KiB,16KiB", How: "the longest latency of PIA, 16 B to 16 KiB",
			Ours: one(func(m *experiment.Measured) (most float64) {
				for _, is := range eachOf(m, "size") {
					most = max(most, latency(m, "%s", is))
				}
				return most
			}),
		},
		{
			ID: "part22-6.1.2-05", Of: "policy=pia timeout=100us,500us,1ms" + ledgerPowers, How: "smallest of these sizes, 4 MiB at most, from which on PIA with 100 µs takes less time than with 500 µs and 1 ms",
			Ours: one(func(m *experiment.Measured) float64 {
				return fromOn(m, func(is string) bool {
					return latency(m, "timeout=100us %s", is) < min(latency(m, "timeout=500us %s", is), latency(m, "timeout=1ms %s", is))
				})
			}),
		},
		{
			ID: "part22-6.1.2-08", Of: "policy=pia timeout=nto" + ledgerPowers, How: "how many times longer PIA takes with a size four times as large, 4 KiB to 4 MiB, the step that is furthest from the published range",
			Ours: one(func(m *experiment.Measured) float64 {
				var steps []float64
				all := eachOf(m, "size")
				for i, is := range all[1:] {
					steps = append(steps, latency(m, "%s", is)/latency(m, "%s", all[i]))
				}
				return furthest(steps, 2, 3)
			}),
		},
		{
			ID: "part22-6.1.2-11", Of: "policy=pia timeout=100us,nto" + ledgerKnees, How: "smallest size in MiB from which on the speed-up of 100 µs over no time-out changes by less than 5 % with each doubling, to 4 MiB",
			Ours: one(saturates),
		},
	}
}

// saturates is the smallest size in MiB from which on the speed-up of 100 µs
// changes little with each doubling.
func saturates(m *experiment.Measured) float64 {
	gain := func(is string) float64 { return latency(m, "timeout=nto %s", is) / latency(m, "timeout=100us %s", is) }
	all := eachOf(m, "size")
	i := len(all) - 1
	for ; i > 0; i-- {
		if ratio := gain(all[i]) / gain(all[i-1]); ratio >= 1.05 || ratio <= 1/1.05 {
			break
		}
	}
	return kibibytes(m)[i] / 1024
}

// ledgerSmallTimeout are rows of which time-out is best.
func ledgerSmallTimeout() []experiment.LedgerRow {
	gain := func(m *experiment.Measured, over, values string) float64 {
		return latency(m, "timeout=%s %s", over, values) / latency(m, "timeout=100us %s", values)
	}
	return []experiment.LedgerRow{
		{
			ID: "part22-6.1.2-06", Of: "policy=pia timeout=100us,500us,1ms size=256KiB,1MiB,4MiB", How: "latencies of PIA with 500 µs and with 1 ms, divided by that with 100 µs, are larger at 1 and 4 MiB than at 256 KiB",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "timeout", func(is string) bool {
					over := strings.TrimPrefix(is, "timeout=")
					small := gain(m, over, "size=256KiB")
					return over == "100us" || gain(m, over, "size=1MiB") > small && gain(m, over, "size=4MiB") > small
				})
			},
		},
		{
			ID: "part22-6.1.2-15", Of: ledgerAllTimeouts + ledgerPowers, How: "time-out with the least product of PIA's latencies, 4 KiB to 4 MiB; 0: none",
			Ours: one(func(m *experiment.Measured) float64 { return bestTimeout(m, "policy=pia") }),
		},
		{
			ID: "part22-6.1.2-16", Of: "policy=pia timeout=100us,1ms frequency=20%,100% size=64KiB,1MiB,4MiB", How: "PIA's latency with 1 ms divided by that with 100 µs is larger at 1 and 4 MiB than at 64 KiB, f = 100 %, and larger with f = 100 % than 20 %, 1 and 4 MiB",
			Holds: func(m *experiment.Measured) bool {
				at := func(values string) float64 { return gain(m, "1ms", values) }
				small := at("frequency=100% size=64KiB")
				return always(m, "size", func(is string) bool {
					return is == "size=65536" || at("frequency=100% "+is) > max(small, at("frequency=20% "+is))
				})
			},
		},
	}
}

// bestTimeout is the time-out in µs with the least product of the policies'
// latencies. 0: none.
func bestTimeout(m *experiment.Measured, policies ...string) float64 {
	best, least := 0.0, 0.0
	for _, after := range eachOf(m, "timeout") {
		product := 1.0
		for _, is := range eachOf(m, "size") {
			for _, policy := range policies {
				product *= latency(m, "%s %s %s", policy, after, is)
			}
		}
		if least > 0 && product >= least {
			continue
		}
		t, err := sim.ParseTime(strings.TrimPrefix(after, "timeout="))
		best, least = t.Microseconds(), product
		if err != nil { // nto
			best = 0
		}
	}
	return best
}

// ledgerCounts are rows of applications that only a message of their mean
// length is needed for.
func ledgerCounts() []experiment.LedgerRow {
	const requests = 220 // of HPL, part22-6.2.3-07
	return []experiment.LedgerRow{
		{
			ID: "part22-6.2.2-09", Of: "policy=pia size=" + strconv.Itoa(appMean["lammps"]), How: "a message of LAMMPS' mean length into absent memory has more absent pages than interrupts, but less than twice as many",
			Holds: func(m *experiment.Measured) bool {
				pages, interrupts := m.At("absent", ""), m.At("faults", "")
				return pages > interrupts && pages < 2*interrupts
			},
		},
		{
			ID: "part22-6.2.3-05", Of: "policy=pia size=" + strconv.Itoa(appMean["hpl"]), How: "interrupts for each request of a message of HPL's mean length into absent memory, times HPL's 220 requests",
			Ours: one(func(m *experiment.Measured) float64 { return requests * m.At("faults", "") / m.At("requests", "") }),
		},
	}
}
