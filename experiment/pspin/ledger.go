package pspin

import (
	"fmt"
	"math"
	"slices"

	"github.com/spinsim/spinsim/experiment"
)

// ledgerLoops are the rows on loops.
func ledgerLoops() (rows []experiment.LedgerRow) {
	for id, loop := range map[int]string{
		1: "copy", 2: "sum8", 3: "sum64", 4: "xor32", 5: "hash", 6: "crc", 7: "chase", 8: "histogram", 9: "filter",
		10: "multiply", 12: "divide_small", 14: "sum_l2", 16: "leaf",
	} {
		rows = append(rows, experiment.LedgerRow{ID: fmt.Sprintf("pspin-rtl-%02d", id), Of: loopAxis + "=" + loop, How: "cycles of a round by the cost table", Ours: column("cycles")})
	}
	return rows
}

// ledgerHandlers are the rows on handlers.
func ledgerHandlers() []experiment.LedgerRow {
	return slices.Concat(ledgerRTL(), ledgerFollowups(), ledgerDPA())
}

// ledgerRTL are the rows of the RTL.
func ledgerRTL() []experiment.LedgerRow {
	at := func(example, size string) string { return handlerAxis + "=" + example + " size=" + size }
	row := func(id, of, how string, ours func(m *experiment.Measured) []float64) experiment.LedgerRow {
		return experiment.LedgerRow{ID: "pspin-rtl-" + id, Of: of, How: how, Ours: ours}
	}
	cycles := func(id, example, size string) experiment.LedgerRow {
		return row(id, at(example, size), "the cycles of a warm run", column("warm"))
	}
	rate := func(id, example, size string) experiment.LedgerRow {
		return row(id, at(example, size), "the rate of 64 packets", column("rate"))
	}
	latency := func(id, size string) experiment.LedgerRow {
		return row(id, at("empty", size), "the latency of the second packet", nanoseconds(experiment.LatencyColumn))
	}
	return []experiment.LedgerRow{
		cycles("20", "empty", "64"), cycles("21", "ping_pong", "1KiB"), cycles("22", "copy_to_host", "1KiB"), cycles("23", "filtering", "512"), cycles("24", "aggregate", "512"),
		line("30", at("empty", lineSizes), "request", 4),
		line("31", at("empty", lineSizes), "start", 16),
		row("32", at("empty", "64"), "the latency without the time to the start and hpu.feedback", startToEnd),
		row("33", at("empty", "64"), "hpu.feedback", func(m *experiment.Measured) []float64 {
			return []float64{feedback(m.Results[0])}
		}),
		latency("34", "64"), latency("36", "1KiB"),
		line("37", at("copy_to_host", lineSizes), "end", 16),
		rate("40", "empty", "64"), rate("41", "empty", "1KiB"),
		row("42", at("ping_pong", "512,1KiB"), "the mean of the rates of 64 packets", mean("rate")),
		rate("43", "copy_to_host", "64"), rate("45", "copy_to_host", "1KiB"), rate("46", "aggregate", "512"),
	}
}

// ledgerFollowups are the rows of PsPIN's abstract and of its documentation,
// whose handlers are compiled for Xpulp.
func ledgerFollowups() []experiment.LedgerRow {
	// a packet every 20 ns: packet-delay of gdriver_args.ggo
	const documented = handlerAxis + "=ping_pong size=1KiB packets=32 fabric.gap=20ns"
	return []experiment.LedgerRow{
		{
			ID: "pspin-abstract-01", Of: handlerAxis + "=empty,ping_pong,copy_to_host,filtering size=512,1KiB", How: "the least rate of four handlers, packets of 512 and 1,024 B, which arrive at 512 Gb/s",
			Ours: func(m *experiment.Measured) []float64 {
				least := math.Inf(1)
				for _, r := range m.Results {
					least = min(least, m.Of(r, "rate"))
				}
				return []float64{least}
			},
		},
		{ID: "pspin-abstract-02", Of: handlerAxis + "=empty size=64", How: "the latency of the second packet", Ours: nanoseconds(experiment.LatencyColumn)},
		{ID: "pspin-docs-02", Of: documented, How: "the rate of 32 packets, 20 ns apart, as the example sends them", Ours: column("rate")},
		{ID: "pspin-docs-03", Of: documented, How: "the bits of a packet by the rate of 32", Ours: func(m *experiment.Measured) []float64 {
			return []float64{8 * 1024 / m.Of(m.Results[0], "rate")}
		}},
		{ID: "pspin-docs-04", Of: documented, How: "the mean time of 32 packets", Ours: nanoseconds("mean")},
		{ID: "pspin-docs-08", Of: documented, How: "the cycles of the first run, by 1 GHz", Ours: column("cold")},
	}
}

// column is a column at the only point.
func column(name string) func(m *experiment.Measured) []float64 {
	return func(m *experiment.Measured) []float64 { return []float64{m.Of(m.Results[0], name)} }
}

// nanoseconds is a time at the only point.
func nanoseconds(name string) func(m *experiment.Measured) []float64 {
	return func(m *experiment.Measured) []float64 { return []float64{1e3 * m.Of(m.Results[0], name)} }
}

// mean is the mean of a column over the points.
func mean(name string) func(m *experiment.Measured) []float64 {
	return func(m *experiment.Measured) []float64 {
		sum := 0.0
		for _, r := range m.Results {
			sum += m.Of(r, name)
		}
		return []float64{sum / float64(len(m.Results))}
	}
}

// lineSizes are the sizes of packets of rows that are lines over the size.
const lineSizes = "64,512,1KiB"

// line is the row of a time that is a line over the size: base cycles, and one
// for each 64 bytes. It holds if every size is within a tenth.
func line(id, of, name string, base float64) experiment.LedgerRow {
	return experiment.LedgerRow{
		ID: "pspin-rtl-" + id, Of: of, How: "within a tenth of it at 64, 512 and 1,024 B: the column " + name,
		Holds: func(m *experiment.Measured) bool {
			near := true
			for _, r := range m.Results {
				want := base + float64(r.Point.Int("size"))/64
				near = near && math.Abs(1e3*m.Of(r, name)-want) <= want/10
			}
			return near
		},
	}
}

// startToEnd is the time from a handler's start to its end.
func startToEnd(m *experiment.Measured) []float64 {
	r := m.Results[0]
	return []float64{1e3*(m.Of(r, experiment.LatencyColumn)-m.Of(r, "start")) - feedback(r)}
}

// feedback is the device's time behind an HPU's end, ns.
func feedback(r *experiment.Result) float64 {
	h := &r.Point.Profile.HPU
	return h.Feedback.Time(h.Clock).Nanoseconds()
}

// ledgerTenants is the row on what tenants cost those whose handlers compute, all
// for as long.
func ledgerTenants() []experiment.LedgerRow {
	return []experiment.LedgerRow{{
		ID: "osmosis-summary-03", Of: "arbiter=fifo,wlbvt spread=1 rounds=20,200,2000",
		How: "packets in 500 µs with fifo by those with wlbvt, less 1: the farthest from 0 of 20, 200 and 2,000 rounds",
		Ours: func(m *experiment.Measured) []float64 {
			far := 0.0
			for _, r := range m.Results {
				if cost := 100 * (m.Beside(r, "packets", "arbiter=fifo")/m.Of(r, "packets") - 1); math.Abs(cost) > math.Abs(far) {
					far = cost
				}
			}
			return []float64{far}
		},
	}}
}
