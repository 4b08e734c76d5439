package networks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/laws"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Values of the axis victim.
const (
	victimRDMA     = "rdma"
	victimPingPong = "pingpong"
)

// Values of the axis partner.
const (
	partnerNeighbour = "neighbour"
	partnerTarget    = "target"
)

// Values of the axis beside, with incast.
const (
	besideNone       = "none"
	besidePIO        = "pio"
	besidePIA        = "pia"
	besideBackground = "background"
)

// noLaw is the value of the axis law for the network without a congestion control.
const noLaw = "none"

var congestion = &experiment.Experiment{
	Name:  "congestion",
	Short: "RDMA and MPI beside an incast, page faults or background traffic",
	Long: `The last node, the victim, repeats an operation with node 1 or node 0. Meanwhile others write to node 0 by RDMA.
The victim's operation:
  rdma        a write by ExaNeSt's RDMA engine, until its sender knows that all has arrived
  pingpong    half of a round trip of ExaNet-MPI
Beside it:
  none        nothing
  incast      senders, spread over the network, write a burst each at once; when all have arrived, the next ones
  pio, pia    the same, but all pages of the bursts' destinations are absent: cells that arrive there are discarded, PART brings in
              the failing page (pio), or all to the end of the burst (pia), and the block is sent again
  background  the same senders write bursts at times by chance (Poisson), which in the mean are a share --load of node 0's link
The processes of node 0 are on its cores in turn, the victim's partner first: by default on the one that takes the interrupts of faults
(os.interrupt_core). Law none is the network as it is in the profile; with others cells have a reliable transport with that rate law.`,
	Source:   "ours",
	Profiles: []string{"exanest-qfdb"},
	Smoke: []experiment.Values{
		{"beside": besidePIA, "senders": 2, "burst": 8192, "rounds": 2},
		{"victim": victimPingPong, "beside": besideBackground, "senders": 2, "burst": 8192, "rounds": 2},
	},
	Axes: []experiment.Axis{
		{Name: "beside", Kind: report.Text, Of: []string{besideNone, incast, besidePIO, besidePIA, besideBackground}, Help: "what others do: none, incast, pio or pia (into absent pages), background"},
		{Name: "victim", Kind: report.Text, Of: []string{victimRDMA, victimPingPong}, Help: "what the last node does: rdma, pingpong"},
		{Name: "partner", Kind: report.Text, Of: []string{partnerNeighbour, partnerTarget}, Help: "whom the victim works with: neighbour, node 1, or target, node 0, which the others write to"},
		{Name: "law", Kind: report.Text, Of: append([]string{noLaw}, laws.Names(laws.Rates)...), Default: noLaw + ",nscc", Help: "rate law: none, " + strings.Join(laws.Names(laws.Rates), ", ") + " (docs/networks.md)"},
		{Name: "load", Kind: report.Share, Least: "0.01", Most: "1", Default: "50%", Help: "share of node 0's link that background has"},
		{Name: "nodes", Kind: report.Count, Least: "4", Most: "4096", Default: "16", Help: "of the network"},
		{Name: "senders", Kind: report.Count, Least: "1", Most: "4093", Default: "4", Help: "that write to node 0"},
		{Name: "burst", Kind: report.Size, Least: "1", Most: "64MiB", Default: "64KiB", Help: "size of each of their writes"},
		{Name: "rounds", Kind: report.Count, Least: "1", Most: "100000", Default: "100", Help: "operations that are measured, after two that are not"},
		experiment.SizeAxis("16KiB"),
	},
	Slots: func(p *experiment.Point) []*handlers.Slot {
		list := []*handlers.Slot{part.EngineSlot}
		if p.Text("victim") == victimPingPong {
			list = append(list, mailbox.EngineSlot)
		}
		return list
	},
	Points: canCongest, Run: runCongestion,
	Memory: func(p *experiment.Point) int64 {
		return p.Footprint(p.Int("nodes")) + 4*int64(p.Int("size")) + int64(2*slots*p.Int("senders"))*int64(p.Int("burst"))
	},
	Columns: append([]report.Column{
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Help: "of the victim's operations, mean"},
		{Name: "p99", Unit: "us", Kind: report.Duration, Help: "that 99% of them do not exceed"},
		{Name: "bursts", Kind: report.Count, Help: "that have arrived at node 0 when the victim ends"},
		{Name: "late", Kind: report.Count, Help: "of background, those that began later than at their time, by more than a tenth of the mean interval"},
		{Name: "carried", Kind: report.Share, Help: "their bytes, headers included, each once, as a share of what node 0's link can carry in that time"},
		{Name: "faults", Kind: report.Count, Help: "that the drivers of the SMMUs were told of; nic_faults has those of all cells"},
		{Name: "resent", Kind: report.Count, Help: "blocks that RDMA engines have sent again"},
		{Name: "timeouts", Kind: report.Count, Help: "of their blocks"},
		{Name: "pauses", Kind: report.Count, Help: "how often a link was paused (fabric.pause_from)"},
	}, experiment.ClusterColumns()...),
	Relative: []experiment.Relative{{
		Column: report.Column{Name: "added", Kind: report.Change, Help: "latency / latency beside none - 1"},
		Of:     experiment.LatencyColumn, Axis: "beside", Base: besideNone,
	}},
	Followed: experiment.LatencyColumn,
	View: experiment.View{
		Value: experiment.LatencyColumn, Series: []string{"beside"}, Base: besideNone, X: "bytes", Quiet: []string{"load", "nodes", "senders", "burst", "rounds"}, Answer: congestionAnswer,
		Summary: []string{experiment.ProfileColumn, "victim", "partner", "law", "bytes", "beside", "latency_us", "added", "p99_us", "carried", "faults", "resent", "retransmitted", "pauses"},
	},
	Caveats: unreached,
	Notes:   []string{experiment.Compared},
}

// canCongest refuses what cannot run.
func canCongest(p *experiment.Point) (bool, error) {
	nodes, senders := p.Int("nodes"), p.Int("senders")
	if most := nodes - 3; senders > most { // not node 0, and neither end of the victim's
		return false, &experiment.NoPoint{Why: fmt.Errorf("--senders: %d, of %d nodes at most %d send", senders, nodes, most)}
	}
	if p.Profile.HPU.DMAWrite != nic.Landed {
		return false, fmt.Errorf("profile %s: hpu.dma_write: %s, expected %s: what is acknowledged must be in memory", p.Profile.Origin.Name, p.Profile.HPU.DMAWrite, nic.Landed)
	}
	if !p.Profile.OS.On() || !p.Profile.SMMU.On() {
		return false, fmt.Errorf("profile %s: no pages that could be absent (os.kind, smmu.kind)", p.Profile.Origin.Name)
	}
	_, err := lawful(p)
	return true, err
}

// lawful returns the point with its law.
func lawful(p *experiment.Point) (*experiment.Point, error) {
	if p.Text("law") == noLaw {
		return p, nil
	}
	device, err := experiment.WithFields(p.Profile, []string{"transport.kind=reliable", "transport.law=" + p.Text("law")})
	if err != nil {
		return nil, fmt.Errorf("--law: %s: %w", p.Text("law"), err)
	}
	other := *p
	other.Profile = device
	return &other, nil
}

func runCongestion(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	p, err := lawful(p)
	if err != nil {
		return nil, err
	}
	w := newCongested(p)
	var values experiment.Values
	stats, err := experiment.Simulate(ctx, p.Config(ctx, p.Int("nodes")), w.spawn, func() error {
		values = w.values()
		return nil
	})
	if err != nil {
		return nil, err
	}
	for name, v := range experiment.ClusterValues(&stats) { //lint:maporder a map is made of a map
		values[name] = v
	}
	return values, nil
}

// values are the values of a point.
func (w *congested) values() experiment.Values {
	slices.Sort(w.took)
	sum := sim.Time(0)
	for _, t := range w.took {
		sum += t
	}
	n := sim.Time(len(w.took))
	v := experiment.Values{
		experiment.LatencyColumn: sum / (n * w.share), "p99": w.took[(99*n+99)/100-1] / w.share,
		"bursts": w.bursts, "late": w.late, "carried": nil,
	}
	if w.bursts > 0 {
		v["carried"] = float64(w.bursts) * float64(w.wire(w.burst)) / float64(w.ended)
	}
	var faults, resent, timeouts, pauses int64
	for i := range w.c.Nodes() {
		if d := w.c.Node(i).Driver(); d != nil {
			faults += d.Stats().Faults
		}
	}
	for _, g := range w.pages {
		c := g.Counts()
		resent += int64(c.Sent.Retransmitted)
		timeouts += int64(c.Sent.Timeouts)
	}
	for _, l := range w.c.Fabric().Links() {
		pauses += l.Pauses
	}
	v["faults"], v["resent"], v["timeouts"], v["pauses"] = faults, resent, timeouts, pauses
	return v
}

// wire is the time of bytes on a node's link.
func (w *congested) wire(bytes int) (t sim.Time) {
	spec := &w.Profile.Fabric
	for at := 0; at < bytes; at += int(spec.MTU) {
		t += spec.Serial(min(int(spec.MTU), bytes-at))
	}
	return t
}

// congestionAnswer compares each victim beside each traffic with itself alone.
func congestionAnswer(results []*experiment.Result) (lines []string) {
	if !experiment.Apart(results, "victim", "beside", "partner", "law") {
		return nil
	}
	parts := make(map[string][]string)
	key := func(law, beside string) string { return law + " " + beside }
	var order []string // of laws
	for _, r := range results {
		law, beside := r.Point.Text("law"), r.Point.Text("beside")
		if !slices.Contains(order, law) {
			order = append(order, law)
		}
		if none := experiment.Beside(results, r, "beside", besideNone); none != nil && none != r {
			slower := float64(r.Time(experiment.LatencyColumn)) / float64(none.Time(experiment.LatencyColumn))
			parts[key(law, beside)] = append(parts[key(law, beside)], fmt.Sprintf("%s with %s %.2f", r.Point.Text("victim"), r.Point.Text("partner"), slower))
		}
	}
	p := results[0].Point
	pages := p.Int("senders") * ((p.Int("burst") + host.PageBytes - 1) / host.PageBytes)
	what := []struct{ beside, text string }{
		{besidePIO, fmt.Sprintf("Bursts of %s make the victim so many times as slow", experiment.Counted(pages, "page fault"))},
		{besidePIA, "If all pages of a write come with the first"},
		{incast, "The same bursts to pages that are there"},
		{besideBackground, fmt.Sprintf("Background of %.0f%% of a link", 100*p.Float("load"))},
	}
	for _, of := range what {
		var said []string
		for _, law := range order {
			if list := parts[key(law, of.beside)]; list != nil {
				with := ""
				if law != noLaw {
					with = "with law " + law + " "
				}
				said = append(said, with+strings.Join(list, ", "))
			}
		}
		if said != nil {
			lines = append(lines, of.text+": "+strings.Join(said, "; ")+".")
		}
	}
	return lines
}

// unreached reports background traffic that is less than was asked for.
func unreached(results []*experiment.Result) []string {
	rows, late := 0, 0
	for _, r := range results {
		if r.Point.Text("beside") == besideBackground {
			rows++
			if 10*r.Values["late"].(int64) > r.Values["bursts"].(int64) {
				late++
			}
		}
	}
	if late == 0 {
		return nil
	}
	return []string{fmt.Sprintf("In %d of %s with background more than a tenth of the bursts began late, because %d of a sender were under way: see carried for the load.", late, experiment.Counted(rows, "row"), slots)}
}
