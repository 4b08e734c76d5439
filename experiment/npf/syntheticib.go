package npf

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/host"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var syntheticInfiniBand = &experiment.Experiment{
	Name:  "npf-synthetic-ib",
	Short: "throughput of a reliable connection some of whose receive buffers are absent",
	Long: `A process sends messages over a reliable connection of InfiniBand as fast as it can (ib_send_bw), to buffers that were all present at the beginning. Before the receiver posts a buffer again it gives up the first page of the buffer, by chance, for
the fraction of buffers in --frequency. The throughput covers all messages, from the first one sent to the last one received.
  rnr   the receiver asks the sender to pause (RNR NACK), for the time of --pause
  drop  it drops the packet, which comes again after the sender's time-out, as on the paper's Ethernet without a backup ring
The kernel resolves a minor fault; a major one also reads storage (storage.read_latency). The removal of the page is not included; it takes the time of an invalidation.`,
	Source:   "NPF'17 §6",
	Smoke:    []experiment.Values{{"messages": 40, "frequency": 0.5, "size": 8192, "fault": faultMajor}},
	Profiles: []string{"ib-npf"},
	Axes: []experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: []string{"rnr", npfDropped}, Help: "treatment of packets with absent memory; the command's help describes each"},
		{Name: "fault", Kind: report.Text, Of: []string{"minor", "major"}, Help: "whether storage is read"},
		{Name: "pause", Kind: report.Count, Least: "1", Most: "31", Default: strconv.Itoa(rnr.DefaultPause), Help: "code of the RNR NACK's time in InfiniBand's table: 1 is 10 us, 9 is 240 us, 12 is 640 us"},
		{Name: "messages", Kind: report.Count, Least: "2", Most: "1000000", Default: "500", Help: "that are sent"},
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "4KiB", Most: "16MiB", Multiple: "4KiB", Default: "64KiB", Help: "of a message; ib_send_bw's 64 KiB"},
		{Name: "frequency", Kind: report.Share, Least: "0", Most: "1", Default: "0%,0.1%,1%,10%,100%", Help: "fraction of the buffers that are absent when they are posted again"},
	},
	Points: func(p *experiment.Point) (bool, error) { return true, hasNPF(p) },
	Run:    runNPFSynthetic,
	Columns: append([]report.Column{
		{Name: "throughput", Unit: "Gbps", Kind: report.Number, Help: "bytes of messages"},
		{Name: "faults", Kind: report.Count, Help: "that were reported"},
		{Name: "again", Kind: report.Count, Help: "packets that were gone back, to be sent again"},
		{Name: "pauses", Kind: report.Count, Help: "RNR NACKs"},
	}, experiment.ClusterColumns()...),
	Relative: []experiment.Relative{{
		Column: report.Column{Name: "vs_optimum", Kind: report.Ratio, Help: "how many times as fast as without faults, the optimum: throughput / throughput with frequency 0, at the same mode, fault, pause, messages and bytes; empty if that was not measured"},
		Of:     "throughput", Axis: "frequency", Base: "0%", Rate: true,
	}},
	Ledger:    ledgerSyntheticIB(),
	Slots:     experiment.Always(rnr.EngineSlot),
	Operation: "the time from the first send to the end of the last receive, for each message",
	Memory:    func(p *experiment.Point) int64 { return p.Footprint(2) + 2*npfReceives*int64(p.Int("size")) },
	View: experiment.View{
		Value: "throughput", Series: []string{"mode", "fault"}, X: "frequency", Quiet: []string{"pause", "messages", "size"},
		Summary: []string{"mode", "fault", "pause", "frequency", "throughput", "vs_optimum", "faults", "pauses", "again"},
	},
	Notes: []string{
		"Every message that came was compared with what was sent.",
		"The paper's text has no numbers for this figure, and neither the time of its RNR NACK nor that of the connection's time-out: 67.1 ms, seven times, is what programs of InfiniBand usually ask for. No point stands beside these.",
	},
}

const (
	npfDropped  = "drop"
	npfReceives = 32 // posted at a time; also the sends
)

// ledgerSyntheticIB are the rows of NPF'17 that npf-synthetic-ib answers.
func ledgerSyntheticIB() []experiment.LedgerRow {
	const absent = 100 // buffers
	return []experiment.LedgerRow{
		{
			ID: "npf17-4-30", Of: "mode=rnr fault=minor pause=1 frequency=100% messages=" + strconv.Itoa(npfReceives+absent),
			How: "with pauses of 10 us, less than a fault takes, each of 100 absent buffers is reported once, and answered by more than two NACKs on average",
			Holds: func(m *experiment.Measured) bool {
				return m.At("faults", "mode=rnr") == absent && m.At("pauses", "mode=rnr") > 2*absent
			},
		},
		{
			ID: "npf17-6.4-07", Of: "mode=rnr,drop fault=minor,major frequency=0.1%,1%,10%,100%", How: "rnr has at least 1.5 times the throughput of drop wherever there are faults, 0.1% to 100% of buffers, minor and major",
			Holds: func(m *experiment.Measured) bool { return significantlyBetter(m, "rnr") },
		},
	}
}

// npfStream is a running measurement.
type npfStream struct {
	*experiment.Point
	sender, receiver *rnr.Conn
	begun, ended     sim.Time
}

func runNPFSynthetic(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	one := *p
	var err error
	if one.Profile, err = majorFaults(p); err != nil {
		return nil, err
	}
	w := &npfStream{Point: &one}
	o := rnr.Options{Pause: p.Int("pause")}
	if p.Text("mode") == npfDropped {
		o.Pause = rnr.NoPause
	}
	values := experiment.Values{}
	stats, err := experiment.Simulate(ctx, w.Config(ctx, 2), func(c *runtime.Cluster) error {
		lib, err := rnr.Load(c, o)
		if err != nil {
			return err
		}
		return errors.Join(
			c.Spawn(0, "sender", func(proc *runtime.Proc) error { return w.sends(proc, lib) }),
			c.Spawn(1, "receiver", func(proc *runtime.Proc) error { return w.receives(proc, lib) }),
		)
	}, func() error {
		from, to := w.sender.State(), w.receiver.State()
		values["faults"], values["again"], values["pauses"] = int(to.Stats.Reported), int(from.Stats.Again), int(to.Stats.RNR)
		return nil
	})
	if err != nil {
		return nil, err
	}
	maps.Copy(values, experiment.ClusterValues(&stats))
	w.OperationOf(p.Int("messages"))
	w.NoteOperation(1, "receiver", w.begun, w.ended)
	values["throughput"] = 8 * float64(p.Int("messages")*p.Int("size")) / (float64(w.ended-w.begun) / float64(sim.Nanosecond))
	return values, nil
}

// npfBegin is when both processes are ready.
const npfBegin = 100 * sim.Millisecond

func (w *npfStream) sends(p *runtime.Proc, lib *rnr.Loaded) (err error) {
	if w.sender, err = lib.Connect(p, "synthetic"); err != nil {
		return err
	}
	v := p.Alloc(w.Int("size"))
	experiment.Pattern(v.Raw(), w.Seed)
	p.SleepUntil(npfBegin)
	w.begun = p.Now()
	var works []*rnr.Work
	for range w.Int("messages") {
		if len(works) == npfReceives {
			if _, err := works[0].Wait(); err != nil {
				return err
			}
			works = slices.Delete(works, 0, 1)
		}
		work, err := w.sender.PostSend(v)
		if err != nil {
			return err
		}
		works = append(works, work)
	}
	_, err = works[len(works)-1].Wait()
	return err
}

func (w *npfStream) receives(p *runtime.Proc, lib *rnr.Loaded) (err error) {
	if w.receiver, err = lib.Connect(p, "synthetic"); err != nil {
		return err
	}
	size, rng := w.Int("size"), rand.New(rand.NewPCG(w.Seed, 0x73796e))
	ring := p.Alloc(npfReceives * size)
	ring.Raw()
	want := make([]byte, size)
	experiment.Pattern(want, w.Seed)
	var works [npfReceives]*rnr.Work
	for i := range works {
		if works[i], err = w.receiver.PostReceive(ring.Slice(i*size, (i+1)*size)); err != nil {
			return err
		}
	}
	for i := range w.Int("messages") {
		v := ring.Slice(i%npfReceives*size, (i%npfReceives+1)*size)
		if _, err := works[i%npfReceives].Wait(); err != nil {
			return err
		}
		w.ended = p.Now()
		if err := experiment.SameBytes("message", v.Snapshot(), want); err != nil {
			return err
		}
		if rng.Float64() < w.Float("frequency") {
			if err := p.OS().Discard(p.Thread(), v.Addr(), host.PageBytes); err != nil { // the first page
				return err
			}
		}
		if works[i%npfReceives], err = w.receiver.PostReceive(v); err != nil {
			return err
		}
	}
	return nil
}
