package part

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// pagefaultParts are the columns that add up to the latency, in the order of
// their priority. A block that is sent again comes first, because the work of
// cores meanwhile costs the transfer nothing. The rest, wire, is the time that
// absent pages have not hidden.
var pagefaultParts = []report.Column{
	{Name: "request", Help: "an explicit request to send a block again is on its way, from the thread that sends it to the firmware that reads it"},
	{Name: "retransmission", Help: "firmware begins to send a block again, or cells that were sent again are on their way"},
	{Name: "interrupt", Help: "a core handles an interrupt of the SMMU"},
	{Name: "get_user_pages", Help: "a tasklet brings pages in"},
	{Name: "netlink", Help: "a tasklet sends a netlink message"},
	{Name: "tasklet", Help: "a tasklet does something else: reads the fault FIFO, looks for unique pages"},
	{Name: "context_switch", Help: "a thread that was woken gets to its core"},
	{Name: "touch", Help: "a process touches or pins pages, for itself or because it was asked to"},
	{Name: "wire", Help: "the transfer goes on for the first time: descriptor, firmware, cells, acknowledgements, and the latencies between them"},
	{Name: "idle", Help: "pages are absent and nothing moves: a block waits for its time-out, or the NIC for its next look"},
}

// pagefaultPartNames are the names of pagefaultParts.
func pagefaultPartNames() (names []string) {
	for _, c := range pagefaultParts {
		names = append(names, c.Name)
	}
	return names
}

// Indices of pagefaultParts.
const (
	partRequest = iota
	partRetransmission
	partInterrupt
	partGetUserPages
	partNetlink
	partTasklet
	partContextSwitch
	partTouch
	partWire
	partIdle
	partCount
)

// Names of other columns.
const (
	overlapColumn = "overlap_formula"
	driverColumn  = "driver"
)

func pagefaultColumns() []report.Column {
	list := []report.Column{
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Scale: "latency", Help: "from the first that is done for the transfer, touching and pinning included, until the receiving process has seen the notification; of several runs that with the median"},
		{Name: "latency_least", Unit: "us", Kind: report.Duration, Scale: "latency", Help: "of the fastest run"},
		{Name: "latency_most", Unit: "us", Kind: report.Duration, Scale: "latency", Help: "of the slowest run"},
		{Name: "latency_mean", Unit: "us", Kind: report.Duration, Scale: "latency", Help: "of all runs, to a picosecond"},
		{Name: "present", Unit: "us", Kind: report.Duration, Scale: "latency", Help: "latency of the same transfer with all pages there, in the same simulation"},
	}
	for _, c := range pagefaultParts {
		c.Unit, c.Kind, c.Scale = "us", report.Duration, "part"
		list = append(list, c)
	}
	return append(list,
		report.Column{Name: driverColumn, Unit: "us", Kind: report.Duration, Help: "time that cores spent in interrupts and tasklets, whatever else went on"},
		report.Column{Name: "absent", Kind: report.Count, Help: "pages of the transfer that were absent when it began, of both sides"},
		report.Column{Name: "faults", Kind: report.Count, Help: "faults that interrupted a core"},
		report.Column{Name: "terminated", Kind: report.Count, Help: "accesses that the SMMU ended because another's fault was open (without HUPCF)"},
		report.Column{Name: "paged_in", Kind: report.Count, Help: "pages that operating systems brought in meanwhile"},
		report.Column{Name: "tasklets", Kind: report.Count, Help: "runs of the tasklets of PART"},
		report.Column{Name: "messages", Kind: report.Count, Help: "netlink messages"},
		report.Column{Name: "requests", Kind: report.Count, Help: "explicit requests to send a block again"},
		report.Column{Name: "timeouts", Kind: report.Count, Help: "time-outs of blocks"},
		report.Column{Name: "resent", Kind: report.Count, Help: "blocks that were sent again"},
		report.Column{Name: overlapColumn, Kind: report.Ratio, Help: "(G + T) / max(G, TO + T) of PART'22 (1): G is the time of get_user_pages, T present, TO the time-out; of pia with a time-out shorter than G"},
	)
}

func pagefaultRelative() []experiment.Relative {
	return []experiment.Relative{
		{
			Column: report.Column{Name: "speedup_vs_nto", Kind: report.Ratio, Help: "latency with time-out nto divided by latency, else at the same values: what PART'22's formula is of"},
			Of:     experiment.LatencyColumn, Axis: "timeout", Base: noTimeout,
		},
		{
			Column: report.Column{Name: "vs_touch", Kind: report.Ratio, Help: "latency of touch divided by latency, likewise"},
			Of:     experiment.LatencyColumn, Axis: "policy", Base: policyTouch,
		},
		{
			Column: report.Column{Name: "vs_pin", Kind: report.Ratio, Help: "latency of pin divided by latency, likewise"},
			Of:     experiment.LatencyColumn, Axis: "policy", Base: policyPin,
		},
	}
}

// at is the position of a published number.
func at(policy string, bytes int) []report.Is {
	return []report.Is{{Column: experiment.ProfileColumn, Value: "exanest-qfdb"}, {Column: "policy", Value: policy}, {Column: "bytes", Value: bytes}}
}

// asPublished are the values of the other axes there: all pages of the
// destination are absent.
func asPublished() []report.Is {
	return []report.Is{
		{Column: "side", Value: SideDestination},
		{Column: "frequency", Value: 1.0},
		{Column: "by", Value: byKernel},
		{Column: "pool", Value: "r5"},
		{Column: "hupcf", Value: true},
		{Column: "timeout", Value: "1ms"},
		{Column: "nodes", Value: 2},
	}
}

// publishedPagefault are the numbers of PART'22 §4 and §5 and of Psistakis'19.
// It notes which numbers have set a parameter of the profile, and which are
// compared with it.
func publishedPagefault() []report.Published {
	const p, t = "PART'22", "Psistakis'19"
	list := []report.Published{
		{At: at(policyTransfer, 16), Column: experiment.LatencyColumn, Value: 4, Source: p, Note: "about; checks: the firmware's 3 µs are a parameter"},
		{At: at(policyPIO, 4096), Column: experiment.LatencyColumn, Value: 38, Source: p, Note: "measured; checks the sum of the parts"},
		{At: at(policyPIA, 4096), Column: experiment.LatencyColumn, Value: 40, Source: p, Note: "38 and 2 more than pio; checks: here the mapping ends with the page"},
		{At: at(policyPIO, 4096), Column: "interrupt", Value: 1, Source: p, Note: "set a parameter; ours has two interrupts, since cells behind the first fault again"},
		{At: at(policyPIO, 4096), Column: "get_user_pages", Value: 8, Source: p, Note: "checks: 6 + 3 for each page have set parameters"},
		{At: at(policyPIO, 4096), Column: "netlink", Value: 7, Source: p, Note: "set a parameter"},
		{At: at(policyPIO, 4096), Column: "tasklet", Value: 4, Source: p, Note: "set a parameter"},
		{At: at(policyPIO, 4096), Column: "request", Value: 1, Source: p, Note: "user space only, ours has its way to the source, too; checks"},
		{At: at(policyPIO, 4096), Column: "retransmission", Value: 6, Source: p, Note: "checks"},
		{At: at(policyPIO, 4096), Column: "wire", Value: 4, Source: p, Note: "checks; issue to first packet's arrival"},
		{At: at(policyPinPresent, 4096), Column: "touch", Value: 13, Source: p, Note: "not followed: more than for absent pages; Psistakis'19 has 6"},
		{At: at(policyTouchPresent, 4096), Column: "touch", Value: 0.15, Source: p, Note: "100 to 200 ns; checks"},
	}
	for _, policy := range []string{policyTouch, policyPin} {
		for i, bytes := range []int{4 << 10, 16 << 10, 32 << 10, 64 << 10} {
			value, note := []float64{3, 10, 19, 40}[i], "checks: fault_absent is PART'22's 3 µs"
			if policy == policyPin {
				value, note = []float64{6, 15, 27, 49}[i], "checks: lock_call and lock_absent are PART'22's 3 + 3 µs"
			}
			list = append(list, report.Published{At: at(policy, bytes), Column: "touch", Value: value, Source: t, Note: note})
		}
	}
	for i := range list {
		list[i].With = asPublished()
	}
	return list
}

// pagefaultAnswer names the fastest policy with absent pages. It does so for
// the smallest and the largest size of each side, where most pages are absent.
func pagefaultAnswer(results []*experiment.Result) (lines []string) {
	most, sizes := 0.0, []int(nil)
	for _, r := range results {
		most = max(most, r.Point.Float("frequency"))
		sizes = append(sizes, r.Point.Int("size"))
	}
	for _, size := range slices.Compact([]int{slices.Min(sizes), slices.Max(sizes)}) {
		for _, side := range []string{SideDestination, SideSource, sideBoth} {
			var best *experiment.Result
			for _, r := range results {
				p := r.Point
				if p.Int("size") == size && p.Text("side") == side && p.Float("frequency") == most && absent(p) && r.Values["absent"] != int64(0) && (best == nil || r.Time(experiment.LatencyColumn) < best.Time(experiment.LatencyColumn)) {
					best = r
				}
			}
			if best != nil {
				p := best.Point
				lines = append(lines, fmt.Sprintf("%s, %s of %v absent: %s takes %s, the least; with all pages there it is %s.",
					p.Profile.Name, sideNames[side], sim.Size(size), p.Text("policy"), experiment.ShortTime(best.Time(experiment.LatencyColumn)), experiment.ShortTime(best.Time("present"))))
			}
		}
	}
	return lines
}

// sideNames are the names of sides in sentences.
var sideNames = map[string]string{SideDestination: "destination", SideSource: "source", sideBoth: "both sides"}

// overlap is PART'22's formula (1): the gain if pages are brought in while data
// is sent.
func overlap(pageIn, transfer, timeout sim.Time) float64 {
	return float64(pageIn+transfer) / float64(max(pageIn, timeout+transfer))
}
