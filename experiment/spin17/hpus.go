package spin17

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/spinsim/spinsim/experiment"
	handler "github.com/spinsim/spinsim/handlers/work"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var hpus = &experiment.Experiment{
	Name:  "hpus",
	Short: "packets a device can handle, by handler time and packet size",
	Long: `Rank 0 streams packets to rank 1, whose payload handler works for a given time. The rate counts the ends of handlers, between the
first and the last. The bytes that each handler gets are compared with the bytes sent. Little's law predicts the rate: P HPUs handle P packets
per handler time, and packets arrive at most every max(g, G*s) for packets of s bytes. The latency is the time until the host knows
that the last packet has been handled.`,
	Source:   "sPIN'17 §4.4.2",
	Smoke:    []experiment.Values{{"size": 256, "hpus": 4}},
	Profiles: []string{"spin-int"},
	Axes: []experiment.Axis{
		// a thousand times the time that handlers may take
		{Name: "handler-time", Kind: report.Duration, Most: "1s", Default: "50ns,200ns,800ns", State: "iterations", Help: "time that a payload handler should take"},
		{Name: "hpus", Kind: report.Count, Least: "1", Most: strconv.Itoa(maxWorkPackets / leastRounds), Default: "4,8", Each: "HPUs", Field: "hpu.cores", Help: "handler processing units of the device"},
		experiment.ModeAxis(experiment.ModeSpinStream),
		experiment.TwoRanks(),
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "64", Most: "64KiB", Default: "64,512,4KiB", Field: "fabric.mtu", Help: "size of a packet"},
	},
	Points:  canWork,
	Run:     runHPUs,
	Columns: experiment.BenchColumns(workColumns()...),
	Ledger:  ledgerHPUs(),
	Slots:   experiment.Always(handler.TargetSlot),
	Memory: func(p *experiment.Point) int64 {
		packets, err := workPackets(p)
		if err != nil {
			return 0 // Points refuses it
		}
		return p.Footprint(2) + 8*int64(packets*p.Int("size"))
	},
	Followed: experiment.LatencyColumn,
	View: experiment.View{
		Value: "rate", Series: []string{"hpus", "handler-time"}, X: "handler",
		Summary: []string{experiment.ProfileColumn, "bytes", "hpus", "handler", "rate", "littles_law", "littles_law_deviation", "hpus_needed", handlerLimit},
		Place: map[string]func(value func(string) float64, published float64) (x, y float64){
			handlerLimit: func(value func(string) float64, published float64) (x, y float64) {
				return published, 1e3 * value("hpus") / value(handlerLimit) // packets per ns to Mpps
			},
		},
		Answer: workAnswer,
	},
	Notes: []string{experiment.Compared},
}

// handlerLimit is the column with published numbers.
const handlerLimit = "handler_limit"

// workColumns are the measured and predicted columns besides the latency.
func workColumns() []report.Column {
	return []report.Column{
		{Name: "handler", Unit: "ns", Kind: report.Duration, Help: "time that a payload handler took: whole iterations, nearest to handler_time"},
		{Name: "rate", Unit: "Mpps", Kind: report.Number, Scale: "rate", Help: "million packets handled per second, measured between the first and the last"},
		{Name: "littles_law", Unit: "Mpps", Kind: report.Number, Scale: "rate", Help: "million packets per second, the smaller of the arrival rate, 1/max(g, G*bytes), and hpus/handler"},
		{Name: "littles_law_deviation", Kind: report.Change, Help: "(rate - littles_law) / littles_law"},
		experiment.LineColumns()[0],
		{Name: handlerLimit, Unit: "ns", Kind: report.Duration, Help: "longest handler with which the HPUs keep up with the arrival rate, hpus x max(g, G*bytes)"},
	}
}

// canWork refuses devices on which handlers take no time, are killed because of
// their time, or have room for too few packets.
func canWork(p *experiment.Point) (bool, error) {
	if charge := p.Profile.HPU.Charge; charge == nic.ChargeNothing {
		return false, fmt.Errorf("profile %s: hpu.charge: %s, hpus measures handlers that take time; --set hpu.charge=%s", p.Profile.Origin.Name, charge, nic.ChargeCycles)
	}
	budget := workBudget(p)
	if t, most := p.Time("handler-time"), p.Profile.HPU.Clock.Cycles(budget); t > most {
		return false, fmt.Errorf("--handler-time: %v, but profile %s kills a handler of a packet of %d bytes after %v, %d cycles at %v; --set hpu.max_cycles=... allows up to 10^9",
			t, p.Profile.Origin.Name, p.Int("size"), most, budget, p.Profile.HPU.Clock)
	}
	_, err := workPackets(p)
	return true, err
}

// workBudget is how many cycles a handler may take for its packet.
func workBudget(p *experiment.Point) int64 {
	return p.Profile.HPU.MaxCycles + p.Profile.HPU.MaxCyclesPerByte*int64(p.Int("size"))
}

// workPackets is how many packets a measurement has.
func workPackets(p *experiment.Point) (int, error) {
	packets, cores := min(maxWorkPackets, int(p.Profile.NIC.PacketBuffer)/p.Int("size")), p.Profile.HPU.Cores
	if least := leastRounds * cores; packets < least {
		return 0, fmt.Errorf("profile %s: nic.packet_buffer: %v holds %d packets of %d bytes, a steady state of %d HPUs needs %d",
			p.Profile.Origin.Name, p.Profile.NIC.PacketBuffer, packets, p.Int("size"), cores, least)
	}
	return packets, nil
}

// workAnswer compares the rates with the prediction.
func workAnswer(results []*experiment.Result) []string {
	worst := 0.0
	for _, r := range results {
		d := r.Float("littles_law_deviation")
		worst = max(worst, d, -d)
	}
	return []string{fmt.Sprintf("The rates differ from Little's law by %.2f%% at most.", 100*worst)}
}

// maxWorkPackets is the most packets of a measurement. The packet buffer may
// allow fewer.
const maxWorkPackets = 4096

// leastRounds is the least number of packets for each HPU in a measurement.
// With fewer, the beginning and the end would matter.
const leastRounds = 50

// runHPUs measures a point.
func runHPUs(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	return newWork(p).Run(ctx, work)
}

// newWork begins a measurement that compares the packets that handlers see with
// the message.
func newWork(p *experiment.Point) *experiment.Bench {
	w := experiment.NewBench(p)
	w.CheckPackets = true
	return w
}

// work spawns the programs of a measurement.
func work(b *experiment.Bench) error {
	w := bench{b}
	if err := w.LoadHandlers(); err != nil {
		return err
	}
	packets, err := workPackets(w.Point)
	if err != nil {
		return err
	}
	total := packets * w.Bytes
	iterations, err := w.iterations()
	if err != nil {
		return err
	}
	err = w.Spawn(1, "worker", func(p *runtime.Proc) error {
		kept := p.Alloc(total)
		in, err := w.Handlers.Install(p, experiment.Values{"iterations": iterations})
		if err != nil {
			return err
		}
		arrived, err := experiment.AppendEntry(p.NI(), experiment.RequestPT, experiment.RequestBits, kept, in)
		if err != nil {
			return err
		}
		start := p.Now()
		if err := arrived.Wait(total); err != nil {
			return err
		}
		w.Latency = p.Now() - start
		w.Operation(p, start)
		w.Finish = func() error {
			err := errors.Join(w.Packets.Complete(), w.littlesLaw(packets))
			if len(w.Point.Handlers) > 0 {
				return err // only the author of a user's handler knows its result
			}
			var state handler.State
			return errors.Join(err, in.Read(&state), w.worked(&state, kept.Snapshot(), iterations))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.Spawn(0, "source", func(p *runtime.Proc) error {
		sent := memory.Make[byte](total)
		experiment.Pattern(sent, w.Seed)
		w.Packets.Expect(sent)
		data := p.Alloc(total)
		copy(data.Raw(), sent)
		md, err := p.NI().Objects().MDBind(&portals.MD{Start: data.Addr(), Length: uint64(total)})
		if err != nil {
			return err
		}
		return p.NI().Put(portals.Put{MD: md, Length: uint64(total), Target: experiment.Peer(1), PT: experiment.RequestPT, MatchBits: experiment.RequestBits})
	})
}

// worked checks the results of the built-in handlers: every HPU has the result
// of its last packet, and host memory is unchanged.
func (w bench) worked(state *handler.State, host []byte, iterations uint64) error {
	if state.Iterations != iterations {
		return fmt.Errorf("the handlers' state has %d iterations, %d were set", state.Iterations, iterations)
	}
	left := map[uint64]bool{}
	for _, x := range state.Results {
		if x != 0 { // else the HPU had no packet
			left[x] = true
		}
	}
	if len(left) == 0 {
		return errors.New("no HPU has left a result")
	}
	for at := len(host) - w.Bytes; at >= 0 && len(left) > 0; at -= w.Bytes { // last packets first
		x := handler.Seed(uint64(at))
		for range iterations {
			x = handler.Step(x)
		}
		delete(left, x)
	}
	if len(left) > 0 {
		return fmt.Errorf("results that belong to no packet: %d of those that HPUs have left", len(left))
	}
	if i := slices.IndexFunc(host, func(b byte) bool { return b != 0 }); i >= 0 {
		return fmt.Errorf("byte %d of host memory is %#x, but the handlers deposit nothing", i, host[i])
	}
	return nil
}

// littlesLaw compares the rate of completed handlers with the prediction.
func (w bench) littlesLaw(packets int) error {
	s := w.Cluster.Node(1).Stats()
	if s.HandlerCalls != int64(packets) {
		return fmt.Errorf("%d of %d packets were handled", s.HandlerCalls, packets)
	}
	per := sim.Time(math.Round(float64(w.Profile.HPU.Clock.Cycles(s.HandlerCycles)) / float64(packets)))
	interval := max(w.Profile.Fabric.Gap, w.Profile.Fabric.Rate.Time(int64(w.Bytes)))
	arrival := 1 / interval.Seconds()
	rate := float64(packets-1) / (s.LastHandler - s.FirstHandler).Seconds()
	law := min(arrival, float64(w.Profile.HPU.Cores)/per.Seconds())
	w.More["handler"] = per
	w.More["rate"], w.More["littles_law"], w.More["littles_law_deviation"] = rate/1e6, law/1e6, (rate-law)/law
	w.More["hpus_needed"] = w.HPUsNeeded(&s, sim.Time(packets)*interval)
	w.More[handlerLimit] = sim.Time(w.Profile.HPU.Cores) * interval
	return nil
}

// iterations finds the number of the handler's iterations for the wanted
// handler time, from the cycles of two short runs.
func (w bench) iterations() (uint64, error) {
	const few, many = 16, 32
	var cycles [2]int64
	for i, n := range [2]uint64{few, many} {
		c, err := w.cyclesOf(n)
		if err != nil {
			return 0, err
		}
		cycles[i] = c
	}
	slope := float64(cycles[1]-cycles[0]) / (many - few)
	if slope <= 0 {
		if w.Handlers.Has("iterations") {
			return 0, fmt.Errorf("%d more iterations do not lengthen the payload handler, whose state has that number", many-few)
		}
		return 0, nil // the handler's own time counts
	}
	want := float64(w.Time("handler-time")) / float64(w.Profile.HPU.Clock.Cycles(1))
	// rounding may add up to one iteration
	want = min(want, float64(workBudget(w.Point))-slope)
	return uint64(max(0, math.Round(few+(want-float64(cycles[0]))/slope))), nil
}

// cyclesOf runs the handler once on one packet, in its own cluster.
func (w bench) cyclesOf(iterations uint64) (cycles int64, err error) {
	c, err := runtime.NewCluster(runtime.Config{Profile: w.Profile, Nodes: 2, Engine: w.Engine})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	err = c.Spawn(1, "worker", func(p *runtime.Proc) error {
		buffer := p.Alloc(w.Bytes)
		in, err := w.Handlers.Install(p, experiment.Values{"iterations": iterations})
		if err != nil {
			return err
		}
		_, err = experiment.AppendEntry(p.NI(), experiment.RequestPT, experiment.RequestBits, buffer, in)
		return err
	})
	if err != nil {
		return 0, err
	}
	err = c.Spawn(0, "source", func(p *runtime.Proc) error {
		data := p.Alloc(w.Bytes)
		md, err := p.NI().Objects().MDBind(&portals.MD{Start: data.Addr(), Length: uint64(w.Bytes)})
		if err != nil {
			return err
		}
		return p.NI().Put(portals.Put{MD: md, Length: uint64(w.Bytes), Target: experiment.Peer(1), PT: experiment.RequestPT, MatchBits: experiment.RequestBits})
	})
	if err != nil {
		return 0, err
	}
	if err := c.Run(context.Background()); err != nil {
		return 0, err
	}
	return c.Node(1).Stats().HandlerCycles, nil
}

// ledgerHPUs are the rows of sPIN'17 that hpus answers.
func ledgerHPUs() []experiment.LedgerRow {
	const of = "profile=spin-int hpus=8 handler-time=50ns "
	return []experiment.LedgerRow{
		{ID: "spin17-4.4.2-09", Of: of + "size=64", Column: handlerLimit},
		{ID: "spin17-4.4.2-11", Of: of + "size=4KiB", Column: handlerLimit},
		{
			ID: "spin17-4.4.2-12", Of: "hpus=4,8 handler-time=50ns,200ns,800ns size=64,512,4KiB", How: "the rate differs by less than 1% from the smaller of the arrival rate and HPUs by handler time, 50 ns to 800 ns, 64 B to 4 KiB, 4 and 8 HPUs",
			Holds: func(m *experiment.Measured) bool {
				held := true
				for _, r := range m.Results {
					held = held && math.Abs(m.Of(r, "littles_law_deviation")) < 0.01
				}
				return held
			},
		},
		{
			ID: "spin17-4.2-19", Of: of + "size=64", How: "8 HPUs handle packets of 64 B at 99% of 1/g and more, though each packet also takes a look-up of 2 ns",
			Holds: func(m *experiment.Measured) bool {
				return m.At("rate", "size=64") >= 0.99/m.Results[0].Point.Profile.Fabric.Gap.Microseconds()
			},
		},
	}
}
