package pspin

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/work"
	"github.com/spinsim/spinsim/laws"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var tenants = &experiment.Experiment{
	Name:  "tenants",
	Short: "the parts of a device's processors that owners of handlers get, by arbiter",
	Long: `Processes of several tenants on rank 0 each have a handler that works on every packet; those of a tenant take several times as long as
those of the one before. Each tenant gets packets from a node of its own, which keeps so many under way that there is always one that waits.
A tenant's part is the time that its handlers had processors, of all such time, from a tenth of the run to its end. Jain's index of the parts,
each divided by its weight, is 1 if all have what they should, and 1/n if one of n has everything.`,
	Source:   osmosis,
	Profiles: []string{"pspin"},
	Smoke:    []experiment.Values{{"time": "40us", "tenants": 2}},
	Axes: []experiment.Axis{
		arbiterAxis(strings.Join(nic.Arbiters(), ",")),
		{Name: "tenants", Kind: report.Count, Least: "2", Most: "16", Default: "3", Help: "owners of handlers"},
		{Name: "weights", Kind: report.Text, Of: []string{equal, ascending}, Default: equal, Help: "of the tenants: equal, or ascending (1, 2, 3 ...)"},
		{Name: "rounds", Kind: report.Count, Least: "1", Most: "100000", Default: "20", Help: "of the first tenant's handlers, which take a few cycles each"},
		{Name: "spread", Kind: report.Count, Least: "1", Most: "64", Default: "4", Help: "how many times the rounds of the tenant before the handlers of a tenant have"},
		packetAxis(),
		{Name: "time", Kind: report.Duration, Unit: "us", Least: "10us", Most: "1s", Default: "500us", Help: "length of the run"},
	},
	Points: canShare,
	Run:    runTenants,
	Slots:  arbiters,
	Memory: func(p *experiment.Point) int64 { return p.Footprint(p.Int("tenants") + 1) },
	Columns: []report.Column{
		{Name: "jain", Kind: report.Number, Help: "Jain's index of the tenants' parts by weight: 1 is fair"},
		{Name: "worst", Kind: report.Share, Help: "largest distance of a part from the weights, relative"},
		{Name: "packets", Kind: report.Count, Help: "packets handled"},
		{Name: "busy", Kind: report.Share, Help: busyHelp},
	},
	Details: []experiment.Detail{{
		Name: "parts", Title: "tenants",
		Columns: []report.Column{
			{Name: "tenant", Help: "in the order of their handlers' time"},
			{Name: "weight", Kind: report.Count, Help: "of the tenant"},
			{Name: "handler", Unit: "ns", Kind: report.Duration, Help: "mean time of its handlers"},
			{Name: "packets", Kind: report.Count, Help: "that they handled"},
			{Name: "share", Kind: report.Share, Help: "of the processors' time"},
			{Name: "fair", Kind: report.Share, Help: "share by weight"},
			{Name: "waited", Kind: report.Share, Help: "of the time, with a packet or more that waits"},
		},
	}},
	View: experiment.View{
		Value: "jain", Series: []string{"arbiter"}, X: "spread", Quiet: []string{"rounds", "time"}, Answer: tenantsAnswer,
		Summary: []string{experiment.ProfileColumn, "arbiter", "tenants", "weights", "spread", "jain", "worst", "packets", "busy"},
	},
	Caveats:   wantedLess,
	Ledger:    ledgerTenants(),
	Undivided: "it measures parts of the processors, not the time of an operation",
	Notes:     []string{aside},
}

const aside = "A handler ends before another takes its processor. With other arbiters than fifo, clusters take no handler in advance (hpu.cluster_tasks 0)."

// arbiterSlot is the arbiter. Without a module of the user's, package nic has it.
var arbiterSlot = handlers.New("tenants", laws.WLBVTModule).Slot(handlers.Slot{
	Name: "arbiter", Short: "an arbiter in place of hpu.arbiter", Handlers: []string{laws.ExportKey}, Free: true,
	Expects: []string{"The module's function key gets the record Tenant and 64 words of state, for each tenant with a handler that waits when an HPU is idle, and sets Key: the least is next (docs/abi.md)."},
})

// arbiters is the slot of a point whose order looks at tenants.
func arbiters(p *experiment.Point) []*handlers.Slot {
	if p.Text("arbiter") == nic.FIFO {
		return nil
	}
	return []*handlers.Slot{arbiterSlot}
}

const busyHelp = "time that handlers had processors, of all time of all processors"

// osmosis is Khalilov et al., OSMOSIS (USENIX ATC 2024, arXiv 2309.03628).
const osmosis = "after OSMOSIS"

// Values of the axis weights.
const (
	equal     = "equal"
	ascending = "ascending"
)

func arbiterAxis(list string) experiment.Axis {
	return experiment.Axis{Name: "arbiter", Kind: report.Text, Of: nic.Arbiters(), Default: list, Help: "whose handler an idle processor takes: " + strings.Join(nic.Arbiters(), ", ") + " (hpu.arbiter)"}
}

// packetAxis is the size of packets, which wait in a buffer of the device.
func packetAxis() experiment.Axis {
	size := experiment.SizeAxis("64")
	size.Least = "1"
	return size
}

// canShare refuses devices with tenants of their own, and on which handlers take no
// time.
func canShare(p *experiment.Point) (bool, error) {
	name := p.Profile.Origin.Name
	switch {
	case p.Text("arbiter") == nic.FIFO && p.Handlers[runtime.SlotArbiter] != nil:
		return false, nil // a module is in place of an order that looks at tenants
	case len(p.Profile.Tenants) > 0:
		return false, fmt.Errorf("profile %s: tenants: given, but the experiment has its own", name)
	case p.Profile.HPU.Charge == nic.ChargeNothing:
		return false, fmt.Errorf("profile %s: hpu.charge: %s, tenants share what takes time; --set hpu.charge=%s", name, nic.ChargeNothing, nic.ChargeCycles)
	case p.Int("size") > int(p.Profile.Fabric.MTU):
		return false, &experiment.NoPoint{Why: fmt.Errorf("--size: %d B, expected a packet: at most %d B (fabric.mtu)", p.Int("size"), p.Profile.Fabric.MTU)}
	}
	return true, nil
}

// owner is a tenant of an experiment: a process of rank 0 with handlers, and a node
// that sends it packets.
type owner struct {
	tenant  nic.Tenant
	rounds  int
	most    int      // packets under way
	every   sim.Time // from a packet's end to the next; 0: none
	packets int      // in all; 0: as many as there is time for

	took []sim.Time // of each packet, as the sender sees it
}

// shared is a device that owners share.
type shared struct {
	*experiment.Point
	arbiter string
	owners  []*owner
	own     int        // which of them has the module of the experiment's slot; -1: none
	at      []sim.Time // when the counts are read
	leader  bool       // the first owner's packets are the run: they are read when it has had them
	over    sim.Time   // when no packet begins any more; 0: it is not known yet
	counts  [][]nic.TenantStats
}

// tenantName is the name of an owner, in the order of their numbers.
func tenantName(i int) string { return fmt.Sprintf("t%02d", i+1) }

func (w *shared) run(ctx context.Context) error {
	device := *w.Profile
	device.HPU.Arbiter, device.Tenants = w.arbiter, nic.Tenants{}
	if w.arbiter != nic.FIFO {
		device.HPU.ClusterTasks = 0
	}
	for i, o := range w.owners {
		o.tenant.UID = uint32(i + 1)
		device.Tenants[tenantName(i)] = o.tenant
	}
	cfg := w.Config(ctx, len(w.owners)+1)
	cfg.Profile = &device
	_, err := experiment.Simulate(ctx, cfg, w.spawn, func() error { return nil })
	return err
}

func (w *shared) spawn(c *runtime.Cluster) error {
	size := w.Int("size")
	for i, o := range w.owners {
		err := c.Spawn(0, tenantName(i), func(p *runtime.Proc) error {
			p.SetUID(o.tenant.UID)
			in, err := w.install(p, i)
			if err != nil {
				return err
			}
			_, err = experiment.AppendEntry(p.NI(), experiment.RequestPT, experiment.RequestBits, p.Alloc(size), in)
			return err
		})
		if err != nil {
			return err
		}
		if err := c.Spawn(i+1, "source", func(p *runtime.Proc) error { return w.send(p, o, i, size) }); err != nil {
			return err
		}
	}
	return c.Spawn(0, "observer", func(p *runtime.Proc) error {
		for _, at := range w.at {
			p.SleepUntil(at)
			w.counts = append(w.counts, p.Node().Tenants()[1:])
		}
		return nil
	})
}

// install gives the process of an owner its handlers.
func (w *shared) install(p *runtime.Proc, i int) (*handlers.Installed, error) {
	if i == w.own {
		h, err := w.Load(p.Cluster())
		if err != nil {
			return nil, err
		}
		values := experiment.Values{}
		if h.Has("iterations") {
			values["iterations"] = uint64(w.owners[i].rounds)
		}
		return h.Install(p, values)
	}
	m, err := work.Library.Load(p.Cluster())
	if err != nil {
		return nil, err
	}
	return m.Install(p, handlers.Options{State: work.State{Iterations: uint64(w.owners[i].rounds)}, Payload: work.Payload})
}

// send keeps packets to an owner's process under way.
func (w *shared) send(p *runtime.Proc, o *owner, number, size int) error {
	objects := p.NI().Objects()
	ct, err := objects.CTAlloc()
	if err != nil {
		return err
	}
	memory := p.Alloc(size)
	md, err := objects.MDBind(&portals.MD{Start: memory.Addr(), Length: uint64(size), CT: ct, Options: portals.OptMDEventCTAck})
	if err != nil {
		return err
	}
	p.Sleep(sim.Microsecond) // the entries are there
	var began []sim.Time
	for (w.over == 0 || p.Now() < w.over) && (o.packets == 0 || len(o.took) < o.packets) {
		if len(began)-len(o.took) == o.most {
			if _, err := p.NI().CTWait(ct, uint64(len(o.took)+1)); err != nil {
				return err
			}
			o.took = append(o.took, p.Now()-began[len(o.took)])
			if o.every > 0 {
				p.Sleep(o.every)
			}
			continue
		}
		began = append(began, p.Now())
		err := p.NI().Put(portals.Put{MD: md, Length: uint64(size), Ack: portals.Ack, Target: portals.PhysID(0, uint32(number)), PT: experiment.RequestPT, MatchBits: experiment.RequestBits})
		if err != nil {
			return err
		}
	}
	_, err = p.NI().CTWait(ct, uint64(len(began)))
	if w.leader && number == 0 {
		w.over = p.Now()
		w.counts = append(w.counts, p.Cluster().Node(0).Tenants()[1:])
	}
	return err
}

// runTenants measures a point.
func runTenants(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	length := p.Time("time")
	w := &shared{Point: p, arbiter: p.Text("arbiter"), own: -1, at: []sim.Time{length / 10, length}, over: length}
	rounds := p.Int("rounds")
	for i := range p.Int("tenants") {
		o := &owner{tenant: nic.Tenant{Weight: 1}, rounds: rounds}
		if p.Text("weights") == ascending {
			o.tenant.Weight = i + 1
		}
		o.most = underWay(p, p.Int("tenants"))
		w.owners = append(w.owners, o)
		rounds *= p.Int("spread")
	}
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	return w.shares(w.at[1] - w.at[0])
}

// underWay is how many packets each tenant keeps under way: for each processor 32,
// as far as the device has room for those of all.
func underWay(p *experiment.Point, tenants int) int {
	d := p.Profile
	return max(1, min(32*d.HPU.Cores, int(d.NIC.PacketBuffer)/p.Int("size")/tenants, d.HPU.WaitingHandlers/tenants))
}

// shares makes the values of a point.
func (w *shared) shares(length sim.Time) (experiment.Values, error) {
	var rows experiment.Rows
	total, weights := sim.Time(0), 0
	for i, o := range w.owners {
		total += w.counts[1][i].Time - w.counts[0][i].Time
		weights += o.tenant.Weight
	}
	packets, sum, squares, worst := 0, 0.0, 0.0, 0.0
	for i, o := range w.owners {
		from, to := &w.counts[0][i], &w.counts[1][i]
		calls := to.Calls - from.Calls
		if calls == 0 {
			return nil, fmt.Errorf("tenant %s handled no packet in %v: expected a longer --time, or fewer --rounds", to.Name, length)
		}
		packets += int(to.Calls)
		had := to.Time - from.Time
		share, fair := float64(had)/float64(total), float64(o.tenant.Weight)/float64(weights)
		sum, squares, worst = sum+share/fair, squares+share/fair*share/fair, max(worst, math.Abs(share/fair-1))
		rows = append(rows, []any{to.Name, o.tenant.Weight, sim.Time(int64(had) / calls), int(calls), share, fair, float64(to.Waited-from.Waited) / float64(length)})
	}
	n := float64(len(w.owners))
	return experiment.Values{
		"jain": sum * sum / (n * squares), "worst": worst, "packets": packets, "busy": float64(total) / float64(length) / float64(w.Profile.HPU.Cores), "parts": rows,
	}, nil
}

// wantedLess names tenants that did not always want processors.
func wantedLess(results []*experiment.Result) (lines []string) {
	for _, r := range results {
		var parts []string
		for _, row := range r.Values["parts"].(experiment.Rows) {
			if waited := row[6].(float64); waited < 0.99 {
				parts = append(parts, fmt.Sprintf("%v %.0f%%", row[0], 100*waited))
			}
		}
		if parts != nil {
			lines = append(lines, fmt.Sprintf("%v: tenants did not always have a packet that waits (%s of the time), so others had some of their parts: more --rounds.", r.Point, strings.Join(parts, ", ")))
		}
	}
	return lines
}

// tenantsAnswer says how fair each arbiter is at its worst.
func tenantsAnswer(results []*experiment.Result) []string {
	var parts []string
	for _, name := range nic.Arbiters() {
		least := math.Inf(1)
		for _, r := range results {
			if r.Point.Text("arbiter") == name {
				least = min(least, r.Float("jain"))
			}
		}
		if !math.IsInf(least, 1) {
			parts = append(parts, fmt.Sprintf("%s %.3f", name, least))
		}
	}
	return []string{"Jain's index of the tenants' parts, at least: " + strings.Join(parts, ", ") + "."}
}
