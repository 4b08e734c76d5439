package part

import (
	"fmt"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/pagein"
	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

var pagefault = &experiment.Experiment{
	Name:  "pagefault",
	Short: "RDMA between buffers whose pages are absent",
	Long: `A process writes a buffer to another by RDMA, and pages of either buffer are absent. The latency is from the first action for
the transfer, including touching and pinning, until the receiving process has seen the notification after the data.
  transfer       all pages are present: the transfer only
  touch          the process reads and writes a byte of each page before; touch-present: of present pages
  pin            mlock before; pin-present: of present pages
  pio, pi4, pia  PART: the failing page comes, its block of four, or all pages to the end of the transfer, and an explicit request makes the
                 source send the block again
  touch-a-page, touch-ahead
                 PART as in Psistakis'19: a thread of the process touches the failing page (--by touch), or the
                 kernel brings in this page and the three behind it (--by get_user_pages)
  handler        PART with a policy of your own, a module in slot pagein.policy, which takes its cycles (os.handler_clock)
  timeout        the kernel brings in the failing page, and the block comes again after its time-out: no PART, and no point with time-out nto
  naive          a put of Portals, without a library: the NIC tries the page again every nic.fault_pause
Ten columns divide the latency and add up to it. Each moment belongs to the first active one in the order request,
retransmission, context_switch, interrupt, get_user_pages, netlink, tasklet, touch, wire, idle.
--experiment sets the axes to the values of a published experiment. Where pages are absent by chance, the row is the run with the
median latency.`,
	Source:   "PART'22 §5, §6",
	Smoke:    []experiment.Values{{"size": 9000, "runs": 2, "policy": policyPIA}, {"size": 40000, "policy": policyHandler, "side": sideBoth}},
	Profiles: []string{"exanest-qfdb"},
	Axes: []experiment.Axis{
		{Name: "policy", Kind: report.Text, Of: policyNames(), Default: "transfer,touch,pin,pio,pia", Help: "treatment of absent pages; the command's help describes each"},
		{Name: "side", Kind: report.Text, Of: []string{SideNone, SideDestination, SideSource, sideBoth}, Default: SideDestination, Help: "where pages are absent; none has points for transfer only"},
		{Name: "timeout", Kind: report.Text, Default: "1ms", Help: "time-out of a block, or nto: the page-fault NACK cancels it"},
		{Name: "frequency", Kind: report.Share, Least: "0", Most: "1", Default: "100%", Help: "fraction of the pages that are absent; if that is less than one page, none is (PART'22)"},
		{Name: "by", Kind: report.Text, Of: []string{byKernel, byTouch, byKernelOnly}, Default: byKernel, Help: "who brings pages of pio, pi4 and pia: get_user_pages (PART'22), touch (a thread of the process, Psistakis'19), in-kernel (no netlink: a what-if)"},
		{Name: "hupcf", Kind: report.Flag, Default: "true", Field: "smmu.hit_under_fault", Help: "the SMMU continues with other accesses while a fault is open (HUPCF)"},
		{Name: "pool", Kind: report.Text, Default: "r5", Field: "serve.part.header", Help: "processors of the profile that run the engine's firmware, hpu for sPIN's"},
		{Name: "nodes", Kind: report.Count, Least: "1", Most: "2", Default: "2", Help: "2: a write to another node; 1: a write within a process (Psistakis'19)"},
		{Name: "draw", Kind: report.Text, Of: []string{drawEach, drawOne, drawExact}, Default: drawEach, Help: "absent pages of a frequency below 100%: each page by chance; the same, but at least one; or that fraction of the pages, at places by chance"},
		{Name: "align", Kind: report.Text, Of: []string{alignBlock, alignPage}, Default: alignBlock, Help: "where buffers begin: at a multiple of a block (16 KiB), or one page behind it"},
		{Name: "prepares", Kind: report.Text, Of: []string{preparesAbsent, sideBoth}, Default: preparesAbsent, Help: "buffers that touch, touch-present, pin and pin-present prepare: that of side, or both"},
		{Name: "ends", Kind: report.Text, Of: []string{endsNotified, endsStatus}, Default: endsNotified, Help: "end of the latency: the destination has seen the notification, or the source the status of the acknowledged transfer (Psistakis'19)"},
		{Name: "runs", Kind: report.Count, Least: "1", Most: "1000", Default: "5", Help: "transfers of a row where pages are absent by chance; else one"},
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "1", Most: "64MiB", Default: "16,4KiB,64KiB,1MiB,4MiB", Help: "size of the transfer"},
	},
	Points:   canFault,
	Run:      runPagefault,
	Columns:  pagefaultColumns(),
	Relative: pagefaultRelative(),
	Ledger:   ledgerPagefault(),
	Slots:    pagefaultSlots,
	Followed: experiment.LatencyColumn,
	View:     experiment.View{Value: experiment.LatencyColumn, Series: []string{"policy"}, Base: policyTransfer, X: "bytes", Quiet: pagefaultQuiet, Answer: pagefaultAnswer},
	Presets:  pagefaultPresets(),
	Notes:    []string{experiment.Compared},
}

// Values of the axis policy.
const (
	policyTransfer     = "transfer"
	policyTouch        = "touch"
	policyTouchPresent = "touch-present"
	policyPin          = "pin"
	policyPinPresent   = "pin-present"
	policyPIO          = "pio"
	policyPI4          = "pi4"
	policyPIA          = "pia"
	policyTouchAPage   = "touch-a-page"
	policyTouchAhead   = "touch-ahead"
	policyHandler      = "handler"
	policyTimeout      = "timeout"
	policyNaive        = "naive"
)

func policyNames() []string {
	return []string{
		policyTransfer, policyTouch, policyTouchPresent, policyPin, policyPinPresent, policyPIO, policyPI4, policyPIA, policyTouchAPage, policyTouchAhead, policyHandler, policyTimeout, policyNaive,
	}
}

// Values of the axis side.
const (
	SideNone        = "none"
	SideDestination = "destination"
	SideSource      = "source"
	sideBoth        = "both"
)

// Values of the axes draw, align, prepares and ends.
const (
	alignBlock     = "block"
	alignPage      = "page"
	drawEach       = "each"
	drawOne        = "at-least-one"
	drawExact      = "exact"
	preparesAbsent = "absent"
	endsNotified   = "notified"
	endsStatus     = "status"
)

// Methods that bring in pages.
const (
	byKernel     = "get_user_pages"
	byTouch      = "touch"
	byKernelOnly = "in-kernel"
)

// noTimeout is the value of the axis timeout for transfers without one. Their
// blocks are sent again only on request.
const noTimeout = "nto"

// pagefaultQuiet are axes that tables show only if they vary.
var pagefaultQuiet = []string{"side", "timeout", "frequency", "by", "hupcf", "pool", "nodes", "draw", "align", "prepares", "ends", "runs"}

// absent reports whether a transfer may meet absent pages.
func absent(p *experiment.Point) bool {
	return !unaffected(p.Text("policy")) && p.Text("side") != SideNone && p.Float("frequency") > 0
}

// unaffected reports whether all pages are present with a policy.
func unaffected(policy string) bool {
	return policy == policyTransfer || policy == policyTouchPresent || policy == policyPinPresent
}

// canFault reports which points exist, and returns an error for wrong values of
// the axes.
func canFault(p *experiment.Point) (bool, error) {
	nto, _, err := blockTimeout(p)
	if err != nil {
		return false, fmt.Errorf("--timeout: %w", err)
	}
	if absent(p) && (!p.Profile.OS.On() || !p.Profile.SMMU.On()) {
		return false, fmt.Errorf("profile %s: no pages that could be absent (os.kind, smmu.kind)", p.Profile.Origin.Name)
	}
	if resolves(p.Text("policy")) && p.Text("by") == byTouch && p.Profile.OS.DeviceTables == host.OwnTables {
		return false, fmt.Errorf("--by %s: profile %s has os.device_tables %s: a page that is touched would not be in them", byTouch, p.Profile.Origin.Name, host.OwnTables)
	}
	if by := thesisBy[p.Text("policy")]; by != "" && by != p.Text("by") {
		return false, &experiment.NoPoint{Why: fmt.Errorf("Psistakis'19 has %s --by %s", p.Text("policy"), by)}
	}
	if f := p.Float("frequency"); absent(p) && f < 1 && p.Int("size") >= host.HugeBytes && p.Profile.OS.HugePages == host.HugeAlways {
		return false, fmt.Errorf("--frequency %g%%, --size %v: the first write brings 2 MiB, so that no page beside it is absent; expected 100%%, or --set os.huge_pages=never",
			100*f, sim.Size(p.Int("size")))
	}
	// nothing can be done to a buffer
	if p.Text("side") == SideNone && p.Text("policy") != policyTransfer {
		return false, nil
	}
	return !nto || p.Text("policy") != policyTimeout, nil
}

// pagefaultSlots are the slots of the RDMA engine, except for a put of Portals,
// and of the policy.
func pagefaultSlots(p *experiment.Point) []*handlers.Slot {
	switch p.Text("policy") {
	case policyNaive:
		return nil
	case policyHandler:
		return []*handlers.Slot{part.EngineSlot, pagein.PolicySlot}
	}
	return []*handlers.Slot{part.EngineSlot}
}

// leastTimeout is the shortest time-out of a block. If it is shorter, a block
// comes again before any of it has arrived.
const leastTimeout = 10 * sim.Microsecond

// blockTimeout is the value of the axis timeout.
func blockTimeout(p *experiment.Point) (nto bool, t sim.Time, err error) {
	text := p.Text("timeout")
	if text == noTimeout {
		return true, 0, nil
	}
	t, err = sim.ParseTime(text)
	if err == nil && (t < leastTimeout || t > sim.Second) {
		err = fmt.Errorf("%v, expected 10 µs to 1 s, or %s", t, noTimeout)
	}
	return false, t, err
}
