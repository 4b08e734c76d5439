package spin17

import (
	"context"
	"maps"

	offload "github.com/spinsim/spinsim/handlers/matching"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var receives = &experiment.Experiment{
	Name:  "receive",
	Short: "one message whose receive comes before it, or late, matched by the host or by the network interface",
	Long: `Rank 0 sends a message to rank 1 with package mpi. Rank 1 computes for a while. The four cases of sPIN'17 figure 5b are a small and a large message with
  before  the receive is posted, and rank 1 then computes
  late    rank 1 computes, and posts the receive after that
A message is large if it is above --eager.`,
	Source: "sPIN'17 §5.1",
	Smoke:  []experiment.Values{{"size": 40000}, {"size": 64}},
	Axes: []experiment.Axis{
		{Name: "matching", Kind: report.Text, Of: []string{string(mpi.Host), string(mpi.Offload)}, Help: "who matches: the process, which copies (host), or the NIC and its handlers (offload)"},
		{Name: "receive", Kind: report.Text, Of: []string{receiveBefore, receiveLate}, Help: "when the receive is posted; the command's help describes each"},
		{Name: "size", Column: "bytes", Kind: report.Size, Most: "64MiB", Default: "64,4KiB,16KiB,64KiB,1MiB", Help: "size of the message"},
		{Name: "compute", Kind: report.Duration, Most: "1s", Default: "100us", Help: "time that rank 1 computes"},
		{Name: "eager", Kind: report.Size, Default: "16KiB", Help: "largest message that does not wait for its receive"},
	},
	Points: func(p *experiment.Point) (bool, error) {
		return true, matchingOptions(mpi.Matching(p.Text("matching")), p.Int("eager")).Validate()
	},
	Run: runReceive,
	Memory: func(p *experiment.Point) int64 {
		o := matchingOptions(mpi.Offload, p.Int("eager"))
		return p.Footprint(2) + 4*int64(p.Int("size")) + 2*int64(o.Buffers*o.BufferBytes)
	},
	Columns: append([]report.Column{
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Scale: "latency", Help: "from the call of the send until rank 1 has received the message, its computation included"},
		{Name: "waited", Unit: "us", Kind: report.Duration, Scale: "latency", Help: "the part of it after the computation of rank 1"},
		{Name: "copies", Kind: report.Count, Help: "messages that a core copied, at least in part"},
	}, experiment.ClusterColumns()...),
	Ledger: ledgerReceive(),
	Slots: func(p *experiment.Point) []*handlers.Slot {
		if p.Text("matching") == string(mpi.Host) {
			return nil
		}
		return []*handlers.Slot{offload.ReceiverSlot}
	},
	Followed: experiment.LatencyColumn,
	View:     experiment.View{Value: "waited", Series: []string{"matching", "receive"}, X: "bytes", Quiet: []string{"compute", "eager"}, Summary: []string{experiment.ProfileColumn, "bytes", "receive", "matching", experiment.LatencyColumn, "waited", "copies", "host_cpu", "host_memory"}},
	Notes:    []string{experiment.Compared},
}

// Values of the axis receive.
const (
	receiveBefore = "before"
	receiveLate   = "late"
)

// receiving is a running measurement.
type receiving struct {
	*experiment.Point
	sent                 []byte
	from                 int // the sender's rank
	began, computed, end sim.Time
}

func runReceive(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	w := &receiving{Point: p, sent: make([]byte, p.Int("size")), from: p.First()}
	experiment.Pattern(w.sent, p.Seed)
	var world *mpi.World
	values := experiment.Values{}
	stats, err := experiment.Simulate(ctx, p.Config(ctx, 2), func(c *runtime.Cluster) (err error) {
		if world, err = mpi.New(c, matchingOptions(mpi.Matching(p.Text("matching")), p.Int("eager"))); err != nil {
			return err
		}
		if err := world.Spawn(w.from, w.send); err != nil {
			return err
		}
		return world.Spawn(1-w.from, w.receive)
	}, func() error {
		p.NoteOperation(1-w.from, "", w.began, w.end)
		values[experiment.LatencyColumn], values["waited"], values["copies"] = w.end-w.began, w.end-w.computed, world.Stats().Copied
		return nil
	})
	if err != nil {
		return nil, err
	}
	maps.Copy(values, experiment.ClusterValues(&stats))
	return values, nil
}

func (w *receiving) send(r *mpi.Rank) error {
	memory, err := r.Alloc(len(w.sent))
	if err != nil {
		return err
	}
	copy(memory.Raw(), w.sent)
	w.began = r.Now()
	return r.World().Send(memory, 1-w.from, 0)
}

func (w *receiving) receive(r *mpi.Rank) error {
	memory, err := r.Alloc(len(w.sent))
	if err != nil {
		return err
	}
	if w.Text("receive") == receiveLate {
		r.Compute(w.Time("compute"))
	}
	request, err := r.Irecv(memory, w.from, 0)
	if err != nil {
		return err
	}
	if w.Text("receive") == receiveBefore {
		r.Compute(w.Time("compute"))
		w.computed = r.Now()
	} else {
		w.computed = w.Time("compute")
	}
	if _, err := r.Wait(request); err != nil {
		return err
	}
	w.end = r.Now()
	return experiment.SameView("message", memory, w.sent)
}

// ledgerReceive are the rows of sPIN'17 §5.1 that receive answers.
func ledgerReceive() []experiment.LedgerRow {
	return []experiment.LedgerRow{
		{
			ID: "spin17-5.1-01", Of: "profile=spin-int matching=host,offload receive=before size=4KiB compute=100us", How: "copies with matching by the host less those with matching by the NIC",
			Ours: func(m *experiment.Measured) []float64 {
				return []float64{m.At("copies", "matching=host") - m.At("copies", "matching=offload")}
			},
		},
		{
			ID: "spin17-5.1-03", Of: bothNICs + "matching=offload receive=before,late size=1MiB compute=1ms",
			How: "1 MiB: if the receive is late rank 1 waits at least as long as a link takes for what is above the eager limit, and cores are busy for nic.overhead more than if it is there before, when rank 1 waits less than 1 µs",
			Holds: func(m *experiment.Measured) bool {
				held := true
				for _, r := range m.Results {
					if r.Point.Text("receive") == receiveBefore {
						held = held && m.Of(r, "waited") < 1
						continue
					}
					rest := r.Point.Profile.Fabric.Rate.Time(int64(r.Point.Int("size") - r.Point.Int("eager")))
					held = held && m.Of(r, "waited") >= rest.Microseconds() &&
						m.Of(r, "host_cpu") >= m.Beside(r, "host_cpu", "receive="+receiveBefore)+r.Point.Profile.NIC.Overhead.Microseconds()
				}
				return held
			},
		},
		{
			ID: "spin17-5.1-06", Of: "profile=spin-int matching=host,offload receive=before size=8KiB,16KiB compute=0ns eager=16KiB", How: "by how much longer each byte from 8 KiB to 16 KiB takes with the copy of the host than when the NIC deposits it",
			Ours: func(m *experiment.Measured) []float64 {
				each := func(matching string) float64 {
					return m.At(experiment.LatencyColumn, "size=16KiB matching="+matching) - m.At(experiment.LatencyColumn, "size=8KiB matching="+matching)
				}
				return []float64{100 * (each("host")/each("offload") - 1)}
			},
		},
	}
}
