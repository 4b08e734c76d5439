package experiment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// Values of the axis "mode": who does the work of a benchmark.
const (
	ModeRDMA       = "rdma"        // host programs drive every step
	ModeP4         = "p4"          // pre-posted Portals 4 triggered operations
	ModeSpinStore  = "spin-store"  // handlers act when a message is complete
	ModeSpinStream = "spin-stream" // handlers act on every packet as it arrives
	ModeHost       = "host"        // a server's host does the work
	ModeSpin       = "spin"        // the server's handlers do the work
)

// Names of columns with published numbers.
const (
	LatencyColumn = "latency"
	SavedRDMA     = "saved_vs_rdma"
	SavedP4       = "saved_vs_p4"
)

// The largest values of the axes ranks and size.
const (
	MaxRanks = "1048576" // some 26 KB each with handlers
	MaxBytes = "1GiB"
)

// Compared is a sentence for Experiment.Notes: a run fails if a byte differs.
const Compared = "Every byte that arrived was compared with what was sent."

// modeHelp describes the modes above.
var modeHelp = map[string]string{
	ModeRDMA: "the host", ModeP4: "triggered operations of the NIC", ModeSpinStore: "handlers, when a message is complete",
	ModeSpinStream: "handlers, packet by packet", ModeHost: "the host", ModeSpin: "handlers",
}

// ModeAxis is the axis "mode" with some of the modes above, or others.
func ModeAxis(modes ...string) Axis {
	var parts []string
	for _, mode := range modes {
		if help, ok := modeHelp[mode]; ok {
			mode += " (" + help + ")"
		}
		parts = append(parts, mode)
	}
	return Axis{Name: "mode", Kind: report.Text, Of: modes, Help: "who does the work: " + strings.Join(parts, ", ")}
}

// RanksAxis is the axis "ranks", from 2 nodes to most. list is its default.
func RanksAxis(most, list string) Axis {
	return Axis{Name: "ranks", Kind: report.Count, Least: "2", Most: most, Default: list, Help: "nodes taking part"}
}

// TwoRanks is RanksAxis for an experiment between two nodes.
func TwoRanks() Axis { return RanksAxis("2", "2") }

// SizeAxis is the axis "size" of the message. list is its default.
func SizeAxis(list string) Axis {
	return Axis{Name: "size", Column: "bytes", Kind: report.Size, Most: MaxBytes, Default: list, Help: "size of the message"}
}

// BenchColumns are the columns of a Bench: the latency, ClusterColumns, and
// more.
func BenchColumns(more ...report.Column) []report.Column {
	latency := report.Column{Name: LatencyColumn, Unit: "ns", Kind: report.Duration, Help: "what the benchmark defines: half a round trip for pingpong, else from the call to the last host that has seen the result"}
	return append(append([]report.Column{latency}, ClusterColumns()...), more...)
}

// ClusterColumns count the work of a cluster. ClusterValues returns their
// values.
func ClusterColumns() []report.Column {
	return []report.Column{
		{Name: "host_cpu", Unit: "ns", Kind: report.Duration, Help: "time that cores of all ranks were busy: posting, matching, copying, and looking at completions that were there; spinning while there are none is not counted"},
		{Name: "host_memory", Unit: "bytes", Kind: report.Size, Help: "bytes through the host memories of all ranks: DMA in both directions, and reads and writes of the cores"},
		{Name: "handler_calls", Kind: report.Count, Help: "handlers that ran, on all ranks"},
		{Name: "handler_cycles", Kind: report.Count, Help: "cycles charged to them"},
		{Name: "retransmitted", Kind: report.Count, Help: "packets that a reliable transport (transport.kind) has sent again, on all ranks"},
		{Name: "duplicates", Kind: report.Count, Help: "packets that came again to it"},
		{Name: "nic_faults", Kind: report.Count, Help: "looks of NICs at pages that were not there, or not theirs to write (smmu.kind), on all ranks; one that is tried again counts again"},
		{Name: "page_faults", Kind: report.Count, Help: "pages that operating systems (os.kind) have brought or made writable, for programs and NICs, on all ranks"},
		{Name: "interrupted", Unit: "ns", Kind: report.Duration, Help: "the part of host_cpu_ns in interrupts and tasklets"},
	}
}

// ClusterValues returns the values of ClusterColumns.
func ClusterValues(s *runtime.Stats) Values {
	return Values{
		"host_cpu": s.CPUBusy, "host_memory": s.HostMemoryBytes, "handler_calls": s.HandlerCalls, "handler_cycles": s.HandlerCycles,
		"retransmitted": s.Retransmitted, "duplicates": s.Duplicates,
		"nic_faults": s.NICFaults, "page_faults": s.PageFaults, "interrupted": s.Interrupted,
	}
}

// AgainstModes compares the latency with the latency of other modes, for
// Experiment.Relative.
func AgainstModes(bases ...string) (list []Relative) {
	for _, base := range bases {
		if base == ModeRDMA {
			speedup := report.Column{Name: "speedup", Kind: report.Ratio, Help: "latency of rdma divided by latency, at the same profile, ranks and bytes; empty if rdma was not measured"}
			list = append(list, Relative{Column: speedup, Of: LatencyColumn, Axis: "mode", Base: base})
		}
		saved := report.Column{Name: "saved_vs_" + base, Kind: report.Share, Help: "1 - latency / latency of " + base + ", likewise"}
		list = append(list, Relative{Column: saved, Of: LatencyColumn, Axis: "mode", Base: base})
	}
	return list
}

// AgainstHost compares the latency with the latency of mode host.
func AgainstHost() []Relative {
	return []Relative{{
		Column: report.Column{Name: "speedup_vs_host", Kind: report.Ratio, Help: "latency of host divided by latency"},
		Of:     LatencyColumn, Axis: "mode", Base: ModeHost,
	}}
}

// ModeView shows the latencies of all modes side by side, compared with mode
// rdma. A copy with another Base compares with that.
var ModeView = View{Value: LatencyColumn, Series: []string{"mode"}, Base: ModeRDMA}

// Always is an Experiment.Slots with slots whose modules run at every point.
func Always(slots ...*handlers.Slot) func(*Point) []*handlers.Slot {
	return func(*Point) []*handlers.Slot { return slots }
}

// SlotIn is for Experiment.Slots: a slot whose module runs in some modes only.
func SlotIn(slot *handlers.Slot, modes ...string) func(p *Point) []*handlers.Slot {
	list := []*handlers.Slot{slot}
	return func(p *Point) []*handlers.Slot {
		if slices.Contains(modes, p.Text("mode")) {
			return list
		}
		return nil
	}
}

// SpinSlots is for Experiment.Slots: a slot for the mode spin-store, and one for
// spin-stream.
func SpinSlots(store, stream *handlers.Slot) func(p *Point) []*handlers.Slot {
	return func(p *Point) []*handlers.Slot {
		switch p.Text("mode") {
		case ModeSpinStore:
			return []*handlers.Slot{store}
		case ModeSpinStream:
			return []*handlers.Slot{stream}
		}
		return nil
	}
}

// Bench is a running measurement of an experiment with the axes mode, ranks and
// size. Its host programs set Latency, and the values of other columns in More.
type Bench struct {
	*Point
	Mode         string
	Ranks        int
	Bytes        int // of the message
	Cluster      *runtime.Cluster
	Handlers     *Handlers // nil: none
	Latency      sim.Time
	More         Values       // of the other columns
	Finish       func() error // runs after the simulation, for values that are known only then
	MayLose      bool         // messages may be lost: Finish checks whether that does harm
	CheckPackets bool         // compare the bytes that payload handlers see with the message
	Packets      PacketCheck  // used with CheckPackets

	mu   sync.Mutex // of Ended and Complete
	kept []kept
}

// kept is memory that may not change any more.
type kept struct {
	what   string
	in     *Entry
	memory runtime.View
	want   []byte
}

// Benchmark makes an Experiment.Run from a function that spawns the host
// programs.
func Benchmark(run func(*Bench) error) func(context.Context, *Point) (Values, error) {
	return func(ctx context.Context, p *Point) (Values, error) {
		return NewBench(p).Run(ctx, run)
	}
}

// BenchmarkSized is Benchmark without the axis size: run sets Bench.Bytes.
func BenchmarkSized(run func(*Bench) error) func(context.Context, *Point) (Values, error) {
	return func(ctx context.Context, p *Point) (Values, error) {
		return (&Bench{Point: p, Mode: p.Text("mode"), Ranks: p.Int("ranks"), More: Values{}}).Run(ctx, run)
	}
}

// NewBench begins the measurement of a point.
func NewBench(p *Point) *Bench {
	return &Bench{Point: p, Mode: p.Text("mode"), Ranks: p.Int("ranks"), Bytes: p.Int("size"), More: Values{}}
}

// Run builds the cluster, calls run, simulates to the end, and returns the
// values. A lost message is an error unless MayLose is set.
func (w *Bench) Run(ctx context.Context, run func(*Bench) error) (Values, error) {
	cfg := w.Config(ctx, w.Ranks)
	if w.CheckPackets {
		cfg.Watch = w.Packets.Watch
	}
	stats, err := SimulateLossy(ctx, cfg, func(c *runtime.Cluster) error {
		w.Cluster = c
		return run(w)
	}, func(c *runtime.Cluster) error {
		if _, n := c.Failures(); n > 0 && !w.MayLose {
			return failed(c, nil)
		}
		if err := w.unchanged(); err != nil || w.Finish == nil {
			return err
		}
		return w.Finish()
	})
	if err != nil {
		return nil, err
	}
	values := ClusterValues(&stats)
	values[LatencyColumn] = w.Latency
	maps.Copy(values, w.More)
	return values, nil
}

// LoadHandlers sets Handlers to the module in the first slot of the point.
func (w *Bench) LoadHandlers() (err error) {
	w.Handlers, err = w.Load(w.Cluster)
	return err
}

// Ended notes that a rank has ended: Latency becomes the latest of these times.
// Ranks of a divided run call it at the same time.
func (w *Bench) Ended(at sim.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Latency = max(w.Latency, at)
}

// Complete is SameView for the memory of an entry to which a message has come.
// At a point with a user's modules it compares again at the end of the
// simulation: they may send a message twice, and something else later.
func (w *Bench) Complete(what string, in *Entry, memory runtime.View, want []byte) error {
	if len(w.Point.Handlers) > 0 {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.kept = append(w.kept, kept{what, in, memory, want})
	}
	return SameView(what, memory, want)
}

func (w *Bench) unchanged() error {
	// ranks on several cores have added theirs in any order
	slices.SortFunc(w.kept, func(a, b kept) int { return strings.Compare(a.what, b.what) })
	for _, k := range w.kept {
		v, err := k.in.NI.Objects().CTGet(k.in.CT)
		if err != nil {
			return err
		}
		if sent := k.in.Target(len(k.want)); v.Success != sent || v.Failure > 0 {
			return fmt.Errorf("%s: %d bytes and %d failures came to its entry until the end, expected %d bytes", k.what, v.Success, v.Failure, sent)
		}
		if err := SameView(k.what+", at the end", k.memory, k.want); err != nil {
			return err
		}
	}
	return nil
}

// Spawn starts a host program on a node.
func (w *Bench) Spawn(rank int, name string, f func(*runtime.Proc) error) error {
	return w.Cluster.Spawn(rank, name, f)
}

// Portal table indices and match bits of requests and replies.
const (
	RequestPT   = 0
	ReplyPT     = 1
	RequestBits = 0x5049
	ReplyBits   = 0x504f
)

// Peer is the identifier of the first process of a node.
func Peer(rank int) portals.ID { return portals.PhysID(uint32(rank), 0) }
