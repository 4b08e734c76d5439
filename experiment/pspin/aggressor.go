package pspin

import (
	"context"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/work"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

var aggressor = &experiment.Experiment{
	Name:  "aggressor",
	Short: "a tenant's packets beside another tenant that wants all processors",
	Long: `The victim's node sends a packet to its handlers on rank 0, waits for the acknowledgement, pauses, and sends the next one. The aggressor's
node always has more packets under way than there are processors, and its handlers take many times as long. A packet's time is the time until
the sender knows that it was handled. Beside it is the same victim alone with half of the processors: what it would have if the device were
two. With a limit the aggressor has at most half of the processors, also while the victim wants none.`,
	Source:   osmosis,
	Profiles: []string{"pspin"},
	Smoke:    []experiment.Values{{"packets": 12, "spread": 2}},
	Axes: []experiment.Axis{
		arbiterAxis("fifo,wfq,wlbvt"),
		{Name: "limit", Kind: report.Text, Of: []string{"none", "half"}, Help: "handlers of the aggressor that may be under way: none, or half of the processors"},
		{Name: "rounds", Kind: report.Count, Least: "1", Most: "100000", Default: "20", Help: "of the victim's handlers, which take a few cycles each"},
		{Name: "spread", Kind: report.Count, Least: "1", Most: "4096", Default: "16", State: "iterations", Help: "how many times as many rounds the aggressor's handlers have"},
		packetAxis(),
		{Name: "pause", Kind: report.Duration, Unit: "us", Most: "1s", Default: "1us", Help: "from the end of a packet of the victim to the next"},
		{Name: "packets", Kind: report.Count, Least: "10", Most: "1000000", Default: "200", Help: "of the victim"},
	},
	Points: canSuffer,
	Run:    runAggressor,
	Slots: func(p *experiment.Point) []*handlers.Slot {
		return append([]*handlers.Slot{work.TargetSlot}, arbiters(p)...)
	},
	Memory: func(p *experiment.Point) int64 { return p.Footprint(3) },
	Columns: []report.Column{
		{Name: "median", Unit: "ns", Kind: report.Duration, Scale: "latency", Help: "time of half of the victim's packets, at most"},
		{Name: "p99", Unit: "ns", Kind: report.Duration, Scale: "latency", Help: "time of 99% of them, at most"},
		{Name: "alone", Unit: "ns", Kind: report.Duration, Scale: "latency", Help: "the same of the victim alone with half of the processors"},
		{Name: "slowdown", Kind: report.Ratio, Help: "p99 / alone"},
		{Name: "others", Kind: report.Count, Help: "packets of the aggressor meanwhile"},
		{Name: "busy", Kind: report.Share, Help: busyHelp},
	},
	View: experiment.View{
		Value: "slowdown", Series: []string{"arbiter", "limit"}, X: "spread", Quiet: []string{"rounds", "pause", "packets"}, Answer: aggressorAnswer,
		Summary: []string{experiment.ProfileColumn, "arbiter", "limit", "spread", "median", "p99", "alone", "slowdown", "others", "busy"},
	},
	Undivided: "it measures many packets of one tenant beside another",
	Notes:     []string{aside},
}

// canSuffer refuses points without an order that looks at tenants, where a limit has
// no meaning.
func canSuffer(p *experiment.Point) (bool, error) {
	if p.Text("arbiter") == nic.FIFO && p.Text("limit") != "none" {
		return false, nil
	}
	if p.Profile.HPU.Cores < 2 {
		return false, fmt.Errorf("profile %s: hpu.cores: %d, expected 2 or more, because tenants get halves", p.Profile.Origin.Name, p.Profile.HPU.Cores)
	}
	return canShare(p)
}

// runAggressor measures a point.
func runAggressor(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	half := max(1, p.Profile.HPU.Cores/2)
	victim := func(limit int) *owner {
		return &owner{tenant: nic.Tenant{Weight: 1, Handlers: limit}, rounds: p.Int("rounds"), most: 1, every: p.Time("pause"), packets: p.Int("packets")}
	}
	alone := &shared{Point: p, arbiter: nic.WFQ, owners: []*owner{victim(half)}, own: -1, leader: true}
	if err := alone.run(ctx); err != nil {
		return nil, err
	}
	other := &owner{tenant: nic.Tenant{Weight: 1}, rounds: p.Int("rounds") * p.Int("spread"), most: underWay(p, 2)}
	if p.Text("limit") == "half" {
		other.tenant.Handlers = half
	}
	beside := &shared{Point: p, arbiter: p.Text("arbiter"), owners: []*owner{victim(0), other}, own: 1, leader: true}
	if err := beside.run(ctx); err != nil {
		return nil, err
	}
	took, before, counts := beside.owners[0].took, alone.owners[0].took, beside.counts[0]
	length := beside.over
	p99, was := centile(took, 99), centile(before, 99)
	return experiment.Values{
		"median": centile(took, 50), "p99": p99, "alone": was, "slowdown": float64(p99) / float64(was),
		"others": int(counts[1].Calls), "busy": float64(counts[0].Time+counts[1].Time) / float64(length) / float64(p.Profile.HPU.Cores),
	}, nil
}

// centile is the time that a part of packets takes at most, in per cent.
func centile(took []sim.Time, percent int) sim.Time {
	sorted := slices.Sorted(slices.Values(took))
	return sorted[(len(sorted)*percent+99)/100-1]
}

// aggressorAnswer names the arbiters under which the victim suffers most and least.
func aggressorAnswer(results []*experiment.Result) []string {
	worst, best := results[0], results[0]
	for _, r := range results {
		if r.Float("slowdown") > worst.Float("slowdown") {
			worst = r
		}
		if r.Float("slowdown") < best.Float("slowdown") {
			best = r
		}
	}
	say := func(r *experiment.Result) string {
		name := r.Point.Text("arbiter")
		if r.Point.Text("limit") == "half" {
			name += " with a limit of half"
		}
		if results[0].Point.Profile != results[len(results)-1].Point.Profile {
			name += " on " + r.Point.Profile.Origin.Name
		}
		return fmt.Sprintf("%.2f with %s", r.Float("slowdown"), name)
	}
	both := say(worst)
	if worst.Float("slowdown") > best.Float("slowdown") {
		both += ", " + say(best)
	}
	return []string{fmt.Sprintf("The victim's 99th percentile, in times of alone with half of the processors: %s.", both)}
}
