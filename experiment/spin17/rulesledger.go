package spin17

import (
	"slices"

	"github.com/spinsim/spinsim/experiment"
	handler "github.com/spinsim/spinsim/handlers/rules"
)

// ledgerRules are the rows of sPIN'17 §2, §3.2, §7, B and C that rules answers.
func ledgerRules() []experiment.LedgerRow {
	return slices.Concat(ledgerOrder(), ledgerLimits(), ledgerActions())
}

// ledgerOrder are the rows on how many handlers run, and in which order.
func ledgerOrder() []experiment.LedgerRow {
	const several = bothNICs + "action=deposit messages=4 size=256KiB"
	per := func(column string) func(m *experiment.Measured) []float64 {
		return func(m *experiment.Measured) []float64 {
			r := m.Results[0]
			return []float64{m.Of(r, column) / float64(r.Point.Int("messages"))}
		}
	}
	return []experiment.LedgerRow{
		{
			ID: "spin17-2-08", Of: several, How: "no payload handler begins before the header handler of its message has ended, and no completion handler before all payload handlers, 4 messages of 256 KiB",
			Holds: everywhere(func(at func(string) float64, _ *experiment.Point) bool {
				return at("disorder") == 0 && at("payloads") == 4*64 && at("completions") == 4
			}),
		},
		{ID: "spin17-3.2-04", Of: "profile=spin-int action=deposit messages=4 size=256KiB", How: "header handlers by messages", Ours: per("headers")},
		{ID: "spin17-3.2-07", Of: "profile=spin-int action=deposit messages=4 size=256KiB", How: "completion handlers that ended before the host saw the event, by messages", Ours: per("before_event")},
		{
			ID: "spin17-3.2-05", Of: bothNICs + "action=deposit,add messages=1 size=256KiB", How: "no more payload handlers than num_hpus tells them, hpu.cores times hpu.contexts, have begun and not ended, those that wait for DMA included",
			Holds: everywhere(func(at func(string) float64, p *experiment.Point) bool {
				return at("active") <= float64(p.Profile.HPU.Cores*p.Profile.HPU.Contexts)
			}),
		},
		{
			ID: "spin17-3.2-06", Of: bothNICs + "action=deposit,device,host,add messages=1 size=256KiB", How: "each handler ends on the HPU on which it began, also if it waits for DMA",
			Holds: everywhere(func(at func(string) float64, _ *experiment.Point) bool {
				return at("moved") == 0 && at("payloads") == 64
			}),
		},
	}
}

// ledgerLimits are the rows on handlers that are too slow, too many, or ask for
// too much, and on what the header handler decides.
func ledgerLimits() []experiment.LedgerRow {
	return []experiment.LedgerRow{
		{
			ID: "spin17-3.2-01", Of: bothNICs + "action=endless messages=1 size=256KiB hpu.waiting_handlers=8 hpu.max_cycles=10000 hpu.max_cycles_per_byte=0", How: "with handlers that take 10,000 cycles and room for 8 that wait, a message of 64 packets triggers flow control and loses packets",
			Holds: everywhere(func(at func(string) float64, _ *experiment.Point) bool {
				return at("flow_control") == 1 && at("dropped") > 0
			}),
		},
		{
			ID: "spin17-7-01", Of: bothNICs + "action=endless messages=1 size=1MiB nic.packet_buffer=64KiB hpu.max_cycles=10000 hpu.max_cycles_per_byte=0", How: "with handlers that take 10,000 cycles and room for 16 packets, packets of 1 MiB are dropped, and the source has sent all after less than 1.1 times what a link takes for them",
			Holds: everywhere(func(at func(string) float64, p *experiment.Point) bool {
				return at("dropped") > 0 && at("sent") < 1.1*p.Profile.Fabric.Rate.Time(1<<20).Microseconds()
			}),
		},
		{
			ID: "spin17-7-02", Of: bothNICs + "action=endless messages=1 size=8KiB", How: "each of two handlers that do not end is killed, at the latest 1% behind hpu.max_cycles and hpu.max_cycles_per_byte for its packet",
			Holds: everywhere(func(at func(string) float64, p *experiment.Point) bool {
				budget := float64(p.Profile.HPU.MaxCycles + p.Profile.HPU.MaxCyclesPerByte*int64(p.Profile.Fabric.MTU))
				return at("killed") == 2 && at("most_cycles") <= 1.01*budget
			}),
		},
	}
}

// ledgerActions are the rows on what handlers do.
func ledgerActions() []experiment.LedgerRow {
	return []experiment.LedgerRow{
		{
			ID: "spin17-B-04", Of: bothNICs + "action=add messages=1 size=32KiB fabric.mtu=512", How: "of 64 handlers that add 1 to a word of host memory, read and written by DMA, some additions are lost; packets of 512 bytes come faster than DMA answers",
			Holds: everywhere(func(at func(string) float64, _ *experiment.Point) bool {
				return at("payloads") == 64 && at("word") < 64
			}),
		},
		{
			ID: "spin17-B-05", Of: bothNICs + "action=device messages=1 size=256KiB length=4096,4097", How: "the device takes puts of 4096 bytes, a packet, and refuses those of 4097",
			Holds: everywhere(func(at func(string) float64, p *experiment.Point) bool {
				return (at("refused") > 0) == (p.Int("length") > int(p.Profile.Fabric.MTU))
			}),
		},
		{
			ID: "spin17-2-04", Of: bothNICs + "action=device messages=1 size=256KiB puts=4 length=4000 nic.egress_packets=1", How: "with room for one packet on its way out, the 4 puts of each payload handler, of 4000 bytes, keep it waiting",
			Holds: everywhere(func(at func(string) float64, _ *experiment.Point) bool { return at("blocked") > 0 }),
		},
		{
			ID: "spin17-B-06", Of: bothNICs + "action=host messages=1 size=256KiB puts=4 length=4000 nic.egress_packets=1", How: "the same with puts from host memory does not keep handlers waiting",
			Holds: everywhere(func(at func(string) float64, _ *experiment.Point) bool {
				return at("blocked") == 0 && at("refused") == 0
			}),
		},
		{
			ID: "spin17-B-09", Of: bothNICs + "action=drop messages=4 size=256KiB", How: "no payload handler runs and no byte is deposited when header handlers return DROP",
			Holds: everywhere(func(at func(string) float64, _ *experiment.Point) bool {
				return at("headers") == 4 && at("payloads") == 0 && at("deposited") == 0
			}),
		},
		{
			ID: "spin17-B-10", Of: bothNICs + "action=deposit,proceed messages=1 size=256KiB", How: "with PROCEED the whole message is in host memory, and with payload handlers all but the 16 bytes of its user header",
			Holds: everywhere(func(at func(string) float64, p *experiment.Point) bool {
				whole := float64(p.Int("size"))
				if p.Text("action") == actionProceed {
					return at("deposited") == whole && at("payloads") == 0
				}
				return at("deposited") == whole-handler.UserHeader
			}),
		},
		{
			ID: "spin17-C.3.2-04", Of: bothNICs + "action=deposit messages=1 size=256KiB dma.latency=100us", How: "with a DMA latency of 100 µs no handler that writes its packet takes longer than 1 µs",
			Holds: everywhere(func(at func(string) float64, p *experiment.Point) bool {
				return at("longest") < 1 && at("deposited") == float64(p.Int("size")-handler.UserHeader)
			}),
		},
		{ID: "spin17-C.3.1-02", Of: "profile=spin-int action=deposit messages=1 size=8KiB", Column: "payloads"},
		{
			ID: "spin17-C.3.2-02", Of: "profile=spin-int action=add messages=1 size=8KiB", How: "first_hpu and second_hpu",
			Ours: func(m *experiment.Measured) []float64 {
				return []float64{m.At("first_hpu", ""), m.At("second_hpu", "")}
			},
		},
	}
}

// everywhere reports whether a condition holds at every point. at is the number
// in a column there.
func everywhere(condition func(at func(column string) float64, p *experiment.Point) bool) func(m *experiment.Measured) bool {
	return func(m *experiment.Measured) bool {
		all := true
		for _, r := range m.Results {
			all = condition(func(column string) float64 { return m.Of(r, column) }, r.Point) && all
		}
		return all
	}
}
