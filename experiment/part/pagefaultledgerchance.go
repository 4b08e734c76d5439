package part

import (
	"fmt"
	"math"

	"github.com/spinsim/spinsim/experiment"
)

// Points of PART'22 §6.1.1: pages that are absent by chance.
const (
	ledgerFrequencies = " frequency=1%,5%,20%,40%,60%,80%,100%"
	ledgerFaulting    = "policy=pio" + ledgerFrequencies + " size="
)

// ledgerChance are rows of when pages fault.
func ledgerChance() []experiment.LedgerRow {
	// least is the least frequency in percent at which pages are absent. 0:
	// they never are.
	least := func(m *experiment.Measured, size string) float64 {
		for i, is := range eachOf(m, "frequency") {
			if m.At("absent", size+" "+is) > 0 {
				return 100 * frequencies(m)[i]
			}
		}
		return 0
	}
	first := func(size string) func(m *experiment.Measured) []float64 {
		return one(func(m *experiment.Measured) float64 { return least(m, "size="+size) })
	}
	const how = "least of 1, 5, 20, 40, 60, 80 and 100 % at which pages are absent in the median run"
	return []experiment.LedgerRow{
		{ID: "part22-6.1.1-04", Of: ledgerFaulting + "4KiB", How: how, Ours: first("4KiB")},
		{ID: "part22-6.1.1-05", Of: ledgerFaulting + "16KiB", How: how, Ours: first("16KiB")},
		{ID: "part22-6.1.1-06", Of: ledgerFaulting + "64KiB", How: how, Ours: first("64KiB")},
		{
			ID: "part22-6.1.1-08", Of: ledgerFaulting + "1MiB,4MiB", How: how + ", of 1 and 4 MiB the larger",
			Ours: one(func(m *experiment.Measured) float64 { return max(least(m, "size=1MiB"), least(m, "size=4MiB")) }),
		},
		{
			ID: "part22-6.1.1-03", Of: ledgerFaulting + "4KiB,16KiB,64KiB,256KiB,1MiB,4MiB", How: "least pages times f at which the median run has a fault, f of 1 to 100 %, 4 KiB to 4 MiB",
			Ours: one(func(m *experiment.Measured) float64 {
				least := math.Inf(1)
				for _, r := range m.Results {
					if r.Values["faults"] != int64(0) {
						least = min(least, float64(r.Point.Int("size"))/pageBytes*r.Point.Float("frequency"))
					}
				}
				return least
			}),
		},
		{
			ID: "part22-6.1.1-24", Of: "policy=pio,pia frequency=0,1%,5%,20%,40%,60%,80%,100% size=4KiB", How: "largest f up to which the mean latencies of PIO and PIA are " + alikeHow + " of that at f = 0",
			Ours: one(func(m *experiment.Measured) (most float64) {
				for i, is := range eachOf(m, "frequency") {
					if !always(m, "policy", func(policy string) bool {
						return alike(m.At("latency_mean", policy+" "+is), m.At("latency_mean", policy+" frequency=0"))
					}) {
						break
					}
					most = 100 * frequencies(m)[i]
				}
				return most
			}),
		},
		{
			ID: "part22-6.1.1-25", Of: "policy=pia frequency=40%,80%,100% size=16KiB", How: "of the median runs with f of 40, 80 and 100 %, the time of get_user_pages grows by the same for each absent page, to a quarter",
			Holds: func(m *experiment.Measured) bool {
				each := func(from, to string) float64 {
					return (m.At("get_user_pages", to) - m.At("get_user_pages", from)) / (m.At("absent", to) - m.At("absent", from))
				}
				a, b := each("frequency=40%", "frequency=80%"), each("frequency=80%", "frequency=100%")
				return min(a, b) > 0 && max(a, b) <= 1.25*min(a, b)
			},
		},
	}
}

// frequencies are the values of eachOf(m, "frequency").
func frequencies(m *experiment.Measured) (list []float64) {
	for _, is := range eachOf(m, "frequency") {
		var f float64
		if _, err := fmt.Sscanf(is, "frequency=%g", &f); err == nil {
			list = append(list, f)
		}
	}
	return list
}

// mean is the mean latency of the runs in µs at the only point with the values.
func mean(m *experiment.Measured, format string, args ...any) float64 {
	return m.At("latency_mean", fmt.Sprintf(format, args...))
}

// ledgerFrequency are rows of how latencies grow with the frequency.
func ledgerFrequency() []experiment.LedgerRow {
	return []experiment.LedgerRow{
		{
			ID: "part22-6.1.1-11", Of: "policy=pio,transfer size=4MiB", How: "latency of PIO with all pages of 4 MiB absent, divided by that of the transfer only",
			Ours: one(func(m *experiment.Measured) float64 { return latency(m, "policy=pio") / latency(m, "policy=transfer") }),
		},
		{
			ID: "part22-6.1.1-13", Of: "policy=pio frequency=0,20%,40%,60%,80%,100% size=16KiB,64KiB,256KiB,1MiB,4MiB",
			How: "what faults add to the mean latency, divided by f, is that at f = 100 % to a quarter, f of 20 to 100 % with at least one page, 16 KiB to 4 MiB",
			Holds: func(m *experiment.Measured) bool {
				all := true
				for _, r := range m.Results {
					size, f := r.Point.Int("size"), r.Point.Float("frequency")
					if f == 0 || float64(size)/pageBytes*f < 1 {
						continue
					}
					more := func(f float64) float64 {
						return (mean(m, "size=%d frequency=%g", size, f) - mean(m, "size=%d frequency=0", size)) / f
					}
					all = all && more(f) <= 1.25*more(1) && more(1) <= 1.25*more(f)
				}
				return all
			},
		},
		{
			ID: "part22-6.1.1-14", Of: "policy=pia frequency=80%,100% size=1MiB,4MiB", How: "mean latencies of PIA at 80 and 100 % are " + alikeHow + ", 1 and 4 MiB",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "size", func(is string) bool {
					return alike(mean(m, "frequency=80%% %s", is), mean(m, "frequency=100%% %s", is))
				})
			},
		},
	}
}

// ledgerBothPolicies compares PIO and PIA where pages are absent by chance.
func ledgerBothPolicies() []experiment.LedgerRow {
	return []experiment.LedgerRow{
		{
			ID: "part22-6.1.1-15", Of: "policy=pio,pia frequency=60%,80%,100% size=1MiB,4MiB", How: "the mean latency of PIA is less than half of that of PIO, 60 to 100 %, 1 and 4 MiB",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "size", func(is string) bool {
					return always(m, "frequency", func(f string) bool { return 2*mean(m, "policy=pia %s %s", f, is) < mean(m, "policy=pio %s %s", f, is) })
				})
			},
		},
		{
			ID: "part22-6.1.1-16", Of: "policy=pio,pia frequency=1%,40%,100%" + ledgerPowers, How: "the mean latency of PIO is at most a quarter more than that of PIA, at 1 % with 4 KiB to 4 MiB, and at 1, 40 and 100 % with 4 and 16 KiB",
			Holds: func(m *experiment.Measured) bool {
				return always(m, "size", func(is string) bool {
					return always(m, "frequency", func(f string) bool {
						speaksOf := f == "frequency=0.01" || is == "size=4096" || is == "size=16384"
						return !speaksOf || mean(m, "policy=pio %s %s", f, is) <= 1.25*mean(m, "policy=pia %s %s", f, is)
					})
				})
			},
		},
		{
			ID: "part22-6.1.1-23", Of: "policy=transfer,pia size=64KiB,256KiB,1MiB,4MiB", How: "the latency of PIA divided by that of the transfer only falls with each size, 64 KiB to 4 MiB",
			Holds: func(m *experiment.Measured) bool {
				last := 0.0
				return always(m, "size", func(is string) bool {
					slower := latency(m, "policy=pia %s", is) / latency(m, "policy=transfer %s", is)
					falls := last == 0 || slower < last
					last = slower
					return falls
				})
			},
		},
	}
}
