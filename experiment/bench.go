package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/manifest"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// The ways a benchmark can be carried out: values of the axis "mode".
const (
	ModeRDMA       = "rdma"        // host programs drive every step
	ModeP4         = "p4"          // pre-posted Portals 4 triggered operations
	ModeSpinStore  = "spin-store"  // handlers act when a message is complete
	ModeSpinStream = "spin-stream" // handlers act on every packet as it arrives
	modeHost       = "host"        // a server's host does the work
	modeSpin       = "spin"        // its handlers do
)

// Columns that publications give numbers for.
const (
	latencyColumn = "latency"
	savedRDMA     = "saved_vs_rdma"
	savedP4       = "saved_vs_p4"
)

const (
	maxRanks = "131072" // some 70 KB each with handlers
	maxBytes = "1GiB"
)

// compared is what readers of a benchmark should know.
const compared = "Every byte that arrived was compared with what was sent."

// modeAxis is who does the work.
func modeAxis(modes ...string) Axis {
	return Axis{
		Name: "mode", Kind: report.Text, Of: modes,
		Help: "who does the work: rdma (the host), p4 (triggered operations of the NIC), spin-store (handlers, when a message is complete), spin-stream (handlers, packet by packet)",
	}
}

// ranksAxis is how many nodes take part.
func ranksAxis(most, list string) Axis {
	return Axis{Name: "ranks", Kind: report.Count, Least: "2", Most: most, Default: list, Help: "nodes taking part"}
}

// twoRanks is the axis of benchmarks between two nodes.
func twoRanks() Axis { return ranksAxis("2", "2") }

// sizeAxis is how long the message is.
func sizeAxis(list string) Axis {
	return Axis{Name: "size", Column: "bytes", Kind: report.Size, Most: maxBytes, Default: list, Help: "size of the message"}
}

// benchColumns are what every benchmark of the host interface measures.
func benchColumns(more ...report.Column) []report.Column {
	latency := report.Column{Name: latencyColumn, Unit: "ns", Kind: report.Duration, Help: "what the benchmark defines: half a round trip for pingpong, else from the call to the last host that has seen the result"}
	return append(append([]report.Column{latency}, ClusterColumns()...), more...)
}

// ClusterColumns are columns of what a cluster has done, for Experiment.Columns; ClusterValues has their values.
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

// ClusterValues are the values of ClusterColumns.
func ClusterValues(s *runtime.Stats) Values {
	return Values{
		"host_cpu": s.CPUBusy, "host_memory": s.HostMemoryBytes, "handler_calls": s.HandlerCalls, "handler_cycles": s.HandlerCycles,
		"retransmitted": s.Retransmitted, "duplicates": s.Duplicates,
		"nic_faults": s.NICFaults, "page_faults": s.PageFaults, "interrupted": s.Interrupted,
	}
}

// againstModes are the columns that compare latencies with those of other modes.
func againstModes(bases ...string) (list []Relative) {
	for _, base := range bases {
		if base == ModeRDMA {
			speedup := report.Column{Name: "speedup", Kind: report.Ratio, Help: "latency of rdma divided by latency, at the same profile, ranks and bytes; empty if rdma was not measured"}
			list = append(list, Relative{Column: speedup, Of: latencyColumn, Axis: "mode", Base: base})
		}
		saved := report.Column{Name: "saved_vs_" + base, Kind: report.Share, Help: "1 - latency / latency of " + base + ", likewise"}
		list = append(list, Relative{Column: saved, Of: latencyColumn, Axis: "mode", Base: base})
	}
	return list
}

// againstHost is the column that compares latencies with those of a server whose host serves.
func againstHost() []Relative {
	return []Relative{{
		Column: report.Column{Name: "speedup_vs_host", Kind: report.Ratio, Help: "latency of host divided by latency"},
		Of:     latencyColumn, Axis: "mode", Base: modeHost,
	}}
}

// modeView lets modes stand side by side.
var modeView = View{Value: latencyColumn, Series: []string{"mode"}, Base: ModeRDMA}

// libraryIn is the library of an experiment whose handlers run in some of its modes.
func libraryIn(library string, modes ...string) func(p *Point) []*handlers.Library {
	list := []*handlers.Library{handlers.Must(library)}
	return func(p *Point) []*handlers.Library {
		if slices.Contains(modes, p.Text("mode")) {
			return list
		}
		return nil
	}
}

// inSpinModes is libraryIn of a benchmark with handlers that act on messages or on packets.
func inSpinModes(library string) func(p *Point) []*handlers.Library {
	return libraryIn(library, ModeSpinStore, ModeSpinStream)
}

// storeRole and streamRole are what the handlers of the two modes do. A handler that acts when a message is complete handles its
// completion, one that acts on every packet its payload.
func storeRole(payload, completion string, sets, may []string) Role {
	return Role{Axis: "mode", Is: ModeSpinStore, Exports: handlers.Exports{"", payload, completion}, Needs: []manifest.Kind{manifest.Completion}, Sets: sets, May: may}
}

func streamRole(payload, completion string, sets, may []string) Role {
	return Role{Axis: "mode", Is: ModeSpinStream, Exports: handlers.Exports{"", payload, completion}, Needs: []manifest.Kind{manifest.Payload}, Sets: sets, May: may}
}

// bench is a measurement of a benchmark under way.
type bench struct {
	*Point
	Mode    string
	Ranks   int
	Bytes   int // of the message
	c       *runtime.Cluster
	runs    *Handlers // nil: none
	latency sim.Time
	more    Values       // of columns besides benchColumns
	finish  func() error // after the run: what is known only then
	losing  bool         // messages may be lost: finish looks whether that does harm
	watched bool         // what payload handlers are given is compared with what was sent
	packets packetCheck  // where watched
}

// benchmark makes a function for Experiment.Run of one that spawns the host programs.
func benchmark(run func(*bench) error) func(context.Context, *Point) (Values, error) {
	return func(ctx context.Context, p *Point) (Values, error) {
		return newBench(p).run(ctx, run)
	}
}

// benchmarkSized is benchmark for one whose point says otherwise how long the message is.
func benchmarkSized(run func(*bench) error) func(context.Context, *Point) (Values, error) {
	return func(ctx context.Context, p *Point) (Values, error) {
		return (&bench{Point: p, Mode: p.Text("mode"), Ranks: p.Int("ranks"), more: Values{}}).run(ctx, run)
	}
}

// newBench begins a measurement.
func newBench(p *Point) *bench {
	return &bench{Point: p, Mode: p.Text("mode"), Ranks: p.Int("ranks"), Bytes: p.Int("size"), more: Values{}}
}

// run carries the measurement out.
func (w *bench) run(ctx context.Context, run func(*bench) error) (Values, error) {
	cfg := w.config(ctx, w.Ranks)
	if w.watched {
		cfg.Watch = w.packets.watch
	}
	stats, err := carryOut(ctx, cfg, func(c *runtime.Cluster) error {
		w.c = c
		return run(w)
	}, func(c *runtime.Cluster) error {
		if _, n := c.Failures(); n > 0 && !w.losing {
			return failed(c, nil)
		}
		if w.finish == nil {
			return nil
		}
		return w.finish()
	})
	if err != nil {
		return nil, err
	}
	values := ClusterValues(&stats)
	values[latencyColumn] = w.latency
	maps.Copy(values, w.more)
	return values, nil
}

// Simulate builds a cluster of the point's device with a node for each of the host programs, and runs them to their end. It returns what the
// nodes have done. A program that waits for ever or fails, a message that is lost and a handler that fails are errors.
func (p *Point) Simulate(ctx context.Context, programs ...func(*runtime.Proc) error) (runtime.Stats, error) {
	return simulate(ctx, p.config(ctx, len(programs)), func(c *runtime.Cluster) error {
		for rank, program := range programs {
			if err := c.Spawn(rank, p.experiment.Name, program); err != nil {
				return err
			}
		}
		return nil
	}, func() error { return nil })
}

// config is that of a cluster of the point's device.
func (p *Point) config(ctx context.Context, nodes int) runtime.Config {
	return runtime.Config{
		Profile: p.Profile, Nodes: nodes, Seed: p.Seed, Engine: p.Engine, Tracer: p.Tracer, Limits: p.Limits,
		Translator: p.Translator, Links: p.Links, Capture: p.Capture, Stop: func() error { return context.Cause(ctx) },
	}
}

// simulate is Simulate of any configuration; after the run it calls finish while the cluster is still there.
func simulate(ctx context.Context, cfg runtime.Config, setup func(*runtime.Cluster) error, finish func() error) (runtime.Stats, error) {
	return carryOut(ctx, cfg, setup, func(c *runtime.Cluster) error {
		if _, n := c.Failures(); n > 0 {
			return failed(c, nil)
		}
		return finish()
	})
}

// simulateTCP is simulate of runs whose programs answer what the network loses or damages, as TCP does.
func simulateTCP(ctx context.Context, cfg runtime.Config, setup func(*runtime.Cluster) error, finish func() error) (runtime.Stats, error) {
	return carryOut(ctx, cfg, setup, func(c *runtime.Cluster) error {
		if list, n := c.FailuresOfNodes(); n > 0 {
			return fmt.Errorf("%d failures, the first: %w", n, list[0])
		}
		return finish()
	})
}

// carryOut is simulate of runs in which messages may be lost: finish looks at that, too.
func carryOut(ctx context.Context, cfg runtime.Config, setup func(*runtime.Cluster) error, finish func(*runtime.Cluster) error) (stats runtime.Stats, err error) {
	c, err := runtime.NewCluster(cfg)
	if err != nil {
		return stats, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := setup(c); err != nil {
		return stats, failed(c, err)
	}
	if err := c.Run(ctx); err != nil {
		return stats, failed(c, err)
	}
	if err := finish(c); err != nil {
		return stats, err
	}
	return c.Stats(), nil
}

// failed says what a run failed of: err, if it is not nil, the messages that were lost and the handlers that failed. These stand before who waits for
// ever, as the causes that they are.
func failed(c *runtime.Cluster, err error) error {
	var stuck *sim.StuckError
	if errors.As(err, &stuck) {
		return errors.Join(c.Broken(), err)
	}
	return errors.Join(err, c.Broken())
}

// load makes the handlers ready: the user's if there are any, else the built-in ones.
func (w *bench) load() (err error) {
	w.runs, err = w.Load(w.c)
	return err
}

func (w *bench) spawn(rank int, name string, f func(*runtime.Proc) error) error {
	return w.c.Spawn(rank, name, f)
}

// benchMemory is what the nodes of a benchmark take; handlers run on all or on none.
func benchMemory(p *Point, nodes int) int64 {
	instances := 0
	if len(p.modules()) > 0 {
		instances = nodes
	}
	return p.Footprint(nodes, instances)
}

// messages is what so many copies of the message of a benchmark take.
func messages(p *Point, copies float64) int64 { return int64(copies * float64(p.Int("size"))) }

// pattern fills b with bytes that depend on the seed and on every position, so that a misplaced or missing byte shows.
func pattern(b []byte, seed uint64) {
	x := seed*0x9e3779b97f4a7c15 + 0x632be59bd9b4e019
	for i := range b {
		if i%8 == 0 {
			x ^= x >> 12
			x ^= x << 25
			x ^= x >> 27
		}
		b[i] = byte(x * 0x2545f4914f6cdd1d >> (56 - 8*(i%8)))
	}
}

// same compares what arrived with what was sent.
func same(what string, got, want []byte) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d bytes arrived, %d were sent", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("%s: byte %d of %d is %#02x, %#02x was sent", what, i, len(want), got[i], want[i])
		}
	}
	return nil
}

// Portal table indices and match bits of the benchmarks.
const (
	requestPT   = 0
	replyPT     = 1
	requestBits = 0x5049
	replyBits   = 0x504f
)

// peer names the first process of a node.
func peer(rank int) portals.ID { return portals.PhysID(uint32(rank), 0) }
