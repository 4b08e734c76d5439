package pspin

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	examples "github.com/spinsim/spinsim/internal/pspin"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var handlerRuns = &experiment.Experiment{
	Name:  "pspin",
	Short: "cycles, latency and throughput of handlers like PsPIN's examples, beside its RTL",
	Long: `Rank 0 sends rank 1 a message of one packet, waits, and sends another: the handler's first run in its cluster, and a warm one. In a second run it
sends one message of many packets back to back. Times are measured at rank 1's device:
  request   from the first byte of a packet until the scheduler has it
  start     from there to the handler's first cycle
  end       from the handler's last cycle until the device knows of its end, with the commands that it waits for
  latency   from the request until the device knows of the end
The rate counts the ends of handlers of the burst, between the first and the last.
The handlers are ours, over the header that PsPIN's own compile with (docs/pspin.md).`,
	Source:   "PsPIN's RTL §examples",
	Profiles: []string{"pspin"},
	Smoke:    []experiment.Values{{"packets": 4}},
	Axes: []experiment.Axis{
		{Name: handlerAxis, Kind: report.Text, Of: examples.Names(), Help: "handler: the name of PsPIN's example"},
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "64", Most: "4KiB", Default: "64,512,1KiB", Field: "fabric.mtu", Help: "size of a packet, headers included"},
		{Name: "packets", Kind: report.Count, Least: "2", Most: "4096", Default: "64", Help: "packets of the message that is sent back to back"},
	},
	Columns: []report.Column{
		{Name: "warm", Unit: "cycles", Kind: report.Count, Help: "cycles of a run whose code is in the cache"},
		{Name: "cold", Unit: "cycles", Kind: report.Count, Help: "cycles of the first run in a cluster"},
		{Name: "request", Unit: "ns", Kind: report.Duration, Scale: "latency", Help: "from a packet's first byte to the request for its handler"},
		{Name: "start", Unit: "ns", Kind: report.Duration, Scale: "latency", Help: "from the request to the handler's first cycle"},
		{Name: "end", Unit: "ns", Kind: report.Duration, Scale: "latency", Help: "from the handler's last cycle until the device knows of its end"},
		{Name: experiment.LatencyColumn, Unit: "ns", Kind: report.Duration, Scale: "latency", Help: "from the request until the device knows of the end, warm"},
		{Name: "rate", Unit: "Gbps", Kind: report.Number, Scale: "rate", Help: "bytes of packets whose handlers have ended, back to back"},
		{Name: "least", Unit: "ns", Kind: report.Duration, Scale: "latency", Help: "least time of a packet of the message, from its first byte until the device knows of its handler's end"},
		{Name: "mean", Unit: "ns", Kind: report.Duration, Scale: "latency", Help: "the mean of those times"},
		{Name: "most", Unit: "ns", Kind: report.Duration, Scale: "latency", Help: "the largest of them"},
	},
	Run: runHandlers,
	Memory: func(p *experiment.Point) int64 {
		return p.Footprint(2) + 4*int64(p.Int("size")*p.Int("packets")) + 8<<20
	},
	Slots: func(p *experiment.Point) []*handlers.Slot {
		return []*handlers.Slot{examples.Slot(p.Text(handlerAxis))}
	},
	Undivided: "its columns are the parts of a packet's way",
	Untraced:  true,
	Ledger:    ledgerHandlers(),
	View: experiment.View{
		Value: "warm", Series: []string{handlerAxis}, X: "bytes", Quiet: []string{"packets"},
		Summary: []string{experiment.ProfileColumn, handlerAxis, "bytes", "warm", "cold", "request", "start", "end", experiment.LatencyColumn, "rate"},
	},
	Notes: []string{
		"Cycles of code that WebAssembly has and RV32 not, or the other way round, differ by a few: docs/pspin.md.",
		"The network, the host and its bus are as simple as can be: only rank 1's device is PsPIN.",
	},
}

const handlerAxis = "example"

// steps are what the device of rank 1 reports of its handlers.
type steps struct {
	requested, began, ended []sim.Time
	cycles                  []int64
	packets                 []int // of the ends
}

func (s *steps) watch(h *nic.HandlerStep) {
	if h.Rank != 1 {
		return
	}
	switch h.What {
	case nic.StepArrived:
		s.requested = append(s.requested, h.At)
	case nic.StepBegan:
		s.began = append(s.began, h.At)
	case nic.StepEnded:
		s.ended, s.cycles, s.packets = append(s.ended, h.At), append(s.cycles, h.Cycles), append(s.packets, h.Packet)
	default:
	}
}

// packetRun is a running simulation.
type packetRun struct {
	*experiment.Point
	steps
	messages int // that rank 0 sends, one after the other
	each     int // packets of each
	sent     []sim.Time

	back, entry runtime.View      // memory of the source, and of the handlers' entry
	arrived     *experiment.Entry // of the source
	in          *handlers.Installed
}

// runHandlers measures a point.
func runHandlers(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	single, burst := &packetRun{Point: p, messages: 2, each: 1}, &packetRun{Point: p, messages: 1, each: p.Int("packets")}
	if err := errors.Join(single.run(ctx), burst.run(ctx)); err != nil {
		return nil, err
	}
	if n := len(single.ended); n != 2 || len(single.requested) != n {
		return nil, fmt.Errorf("%d handlers ended after %d requests, expected 2", n, len(single.requested))
	}
	head := single.sent[1] + beforeWire(p)
	warm := p.Profile.HPU.Time(single.cycles[1])
	least, mean, most := burst.latencies()
	first, last := slices.Min(burst.ended), slices.Max(burst.ended)
	return experiment.Values{
		"warm": single.cycles[1], "cold": single.cycles[0],
		"request": single.requested[1] - head, "start": single.began[1] - single.requested[1],
		"end": single.ended[1] - single.began[1] - warm, experiment.LatencyColumn: single.ended[1] - single.requested[1],
		"rate":  float64(8*p.Int("size")*(len(burst.ended)-1)) / (last - first).Nanoseconds(),
		"least": least, "mean": mean, "most": most,
	}, nil
}

// latencies are the least, the mean and the largest time of a packet, from its
// first byte until the device knows of its handler's end. Packets of a message
// arrive at the rate of the link.
func (w *packetRun) latencies() (least, mean, most sim.Time) {
	f := &w.Profile.Fabric
	var all []sim.Time
	sum := sim.Time(0)
	for i, at := range w.ended {
		all = append(all, at-w.sent[0]-beforeWire(w.Point)-sim.Time(w.packets[i])*max(f.Gap, f.Rate.Time(int64(w.Int("size")))))
		sum += all[i]
	}
	return slices.Min(all), sum / sim.Time(len(all)), slices.Max(all)
}

// beforeWire is the time from a put until the first byte of its packet is at
// rank 1: the overhead, the read of the packet from host memory, and the wire.
func beforeWire(p *experiment.Point) sim.Time {
	d := &p.Profile.DMA
	return p.Profile.NIC.Overhead + 2*d.Latency + d.Gap + d.Bandwidth.Time(int64(p.Int("size"))) + p.Profile.Fabric.Wire
}

func (w *packetRun) run(ctx context.Context) error {
	cfg := w.Config(ctx, 2)
	cfg.Watch = w.watch
	_, err := experiment.Simulate(ctx, cfg, func(c *runtime.Cluster) error {
		return errors.Join(c.Spawn(0, "source", w.source), c.Spawn(1, "device", w.device))
	}, func() error {
		r := resultsOf(w.Text(handlerAxis), w.message(), w.messages)
		if err := r.answered(w); err != nil || w.each > 1 {
			return err // packets of a message go to the same place, in any order
		}
		return r.check(w)
	})
	return err
}

// source sends the messages, and accepts what ping_pong sends back.
func (w *packetRun) source(proc *runtime.Proc) error {
	w.back = proc.Alloc(w.Int("size"))
	var err error
	if w.arrived, err = experiment.AppendEntry(proc.NI(), experiment.RequestPT, experiment.RequestBits, w.back, nil); err != nil {
		return err
	}
	for i := range w.messages {
		proc.SleepUntil(sim.Time(i+1) * apart)
		w.sent = append(w.sent, proc.Now())
		if err := experiment.Send(proc, 1, w.message()); err != nil {
			return err
		}
	}
	return nil
}

// apart is the time between messages. No handler takes so long.
const apart = sim.Millisecond

// message is a message whose packets have headers of IP and UDP, as PsPIN's have
// them: numbers in the host's order.
func (w *packetRun) message() []byte {
	size := w.Int("size")
	message := make([]byte, size*w.each)
	experiment.Pattern(message, w.Seed)
	for at := 0; at < len(message); at += size {
		message[at] = 0x54 // a header of 5 words, version 4
		binary.LittleEndian.PutUint16(message[at+2:], uint16(size))
	}
	return message
}

// device runs the handlers.
func (w *packetRun) device(proc *runtime.Proc) (err error) {
	w.entry = proc.Alloc(w.Int("size") * w.each)
	w.in, err = installed(w.Point, proc, w.entry)
	return err
}

// installed gives rank 1 the handlers of a point, for messages to a memory.
func installed(p *experiment.Point, proc *runtime.Proc, memory runtime.View) (in *handlers.Installed, err error) {
	h, err := p.Load(proc.Cluster())
	if err != nil {
		return nil, err
	}
	if in, err = h.Install(proc, map[string]any{"send_pt": experiment.RequestPT, "send_bits": experiment.RequestBits}); err != nil {
		return nil, err
	}
	_, err = experiment.AppendEntry(proc.NI(), experiment.RequestPT, experiment.RequestBits, memory, in)
	return in, err
}
