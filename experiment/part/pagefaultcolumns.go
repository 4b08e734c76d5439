package part

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// pagefaultParts are the columns that add up to the latency, in the order of
// their priority. A block that is sent again comes first, and then a thread on
// its way to ask for it, because the work of other cores meanwhile costs the
// transfer nothing. The rest, wire, is the time that absent pages have not
// hidden.
var pagefaultParts = []report.Column{
	{Name: "request", Help: "an explicit request to send a block again is on its way, from the thread that sends it to the firmware that reads it"},
	{Name: "retransmission", Help: "firmware begins to send a block again, or cells that were sent again are on their way"},
	{Name: "context_switch", Help: "a thread that was woken gets to its core"},
	{Name: "interrupt", Help: "a core handles an interrupt of the SMMU"},
	{Name: "get_user_pages", Help: "a tasklet brings pages in"},
	{Name: "netlink", Help: "a tasklet sends a netlink message"},
	{Name: "tasklet", Help: "a tasklet does something else: reads the fault FIFO, looks for unique pages"},
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
	partContextSwitch
	partInterrupt
	partGetUserPages
	partNetlink
	partTasklet
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
		report.Column{Name: "idle_runs", Kind: report.Count, Help: "those that found nothing to do, because an earlier run had done it"},
		report.Column{Name: "entries", Kind: report.Count, Help: "entries of the fault FIFO that the tasklets have read"},
		report.Column{Name: "refused", Kind: report.Count, Help: "pages that a process was asked to touch, or the kernel to bring in, and that it does not have any more; of all runs"},
		report.Column{Name: "messages", Kind: report.Count, Help: "netlink messages"},
		report.Column{Name: "requests", Kind: report.Count, Help: "explicit requests to send a block again"},
		report.Column{Name: "timeouts", Kind: report.Count, Help: "time-outs of blocks"},
		report.Column{Name: "resent", Kind: report.Count, Help: "blocks that were sent again"},
		report.Column{Name: "first_resent", Unit: "us", Kind: report.Duration, Scale: "latency", Help: "from the begin of the latency until firmware first begins to send a block again; empty: it never does"},
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
