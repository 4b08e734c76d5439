package exanest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/handlers/rdma"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/osu"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// OSU is the experiment of OSU benchmarks between two ranks.
var OSU = &experiment.Experiment{
	Name:  "osu",
	Short: "OSU micro-benchmarks between two ranks along a path",
	Long: `The programs latency, bw and bibw of the OSU micro-benchmarks (package internal/osu). spinsim osu prints their output; here they are beside the published numbers.
Paths have the names of TR-488's Table 1, with any number of links: intra-fpga (within an MPSoC), intra-qfdb (a), intra-mezz:1, :2 and :3 (b, c, d), and
inter-mezz:I,J,K (e: I links between mezzanines, J on them, K in boards); or two nodes such as 0-5.`,
	Source:   "TR-488",
	Smoke:    []experiment.Values{{"benchmark": "bibw", "size": 5000, "path": "intra-qfdb", "window": 4}},
	Profiles: []string{"exanest"},
	Axes: []experiment.Axis{
		{Name: "path", Kind: report.Text, Default: strings.Join(table1, ","), Help: "where the ranks are; the command's help lists the paths"},
		{Name: "benchmark", Column: "program", Kind: report.Text, Of: osu.Names(osu.Pair), Default: "latency", Help: "program of the OSU micro-benchmarks"},
		transportAxis(),
		windowAxis(), iterationsAxis(), warmupAxis(),
		{Name: "size", Column: "bytes", Kind: report.Size, Most: experiment.MaxBytes, Default: "0,1,8,32,64,256,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB,4MiB", Help: "size of a message"},
	},
	Points: func(p *experiment.Point) (bool, error) {
		if err := transport(p); err != nil {
			return false, err
		}
		if _, _, err := p.Profile.Fabric.Path(p.Text("path")); err != nil {
			return false, fmt.Errorf("--path: %w", err)
		}
		if err := benchmarkOf(p).Check(p.Int("size"), 2); err != nil {
			return false, &experiment.NoPoint{Why: fmt.Errorf("--size: %w", err)}
		}
		return true, nil
	},
	Run: func(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
		src, dst, err := p.Profile.Fabric.Path(p.Text("path"))
		if err != nil {
			return nil, err
		}
		row, values, err := runOSU(ctx, p, p.Config(ctx, 1+max(src, dst)), func(o *mpi.Options, _ *osu.Options) { o.Places = []int{src, dst} })
		if err != nil {
			return nil, err
		}
		values["of_link"] = ofLink(p, row.Bandwidth, src, dst)
		return values, nil
	},
	Columns: append([]report.Column{
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Help: "of latency: half of the mean round trip"},
		bandwidthColumn,
		{Name: "of_link", Kind: report.Share, Help: "bandwidth as a part of what the slowest link of the path carries, of bibw in both directions"},
	}, experiment.ClusterColumns()...),
	Ledger:    ledgerOSU(),
	Slots:     transportSlots,
	Operation: osuOperation,
	View: experiment.View{
		Value: experiment.LatencyColumn, Summary: []string{"profile", "program", "path", "bytes", experiment.LatencyColumn, "bandwidth_MBps", "of_link"},
		Series: []string{"path"}, X: "bytes", Quiet: osuQuiet,
	},
	Notes: []string{experiment.Compared},
	Presets: []experiment.Preset{
		{
			Name: "latency", Short: "osu_latency on the paths of Table 1, 0 B to 4 MB",
			Values: map[string]string{"benchmark": "latency", "size": "0,1,2,4,..,4MiB"},
			View:   &experiment.View{Value: experiment.LatencyColumn, Series: []string{"path"}, X: "bytes", Quiet: append(osuQuiet, "benchmark")},
		},
		{
			Name: "bandwidth", Short: "osu_bw and osu_bibw on the paths of Table 1",
			Values: map[string]string{"benchmark": "bw,bibw", "size": "1,32,64,256,1KiB,4KiB,16KiB,64KiB,256KiB"},
			View:   &experiment.View{Value: "bandwidth", Series: []string{"path"}, X: "bytes", Quiet: osuQuiet},
		},
	},
}

// linkPaths are the paths of Table 1 in TR-488 that have links. The last is the
// longest in the report.
var linkPaths = []string{"intra-qfdb", "intra-mezz:1", "intra-mezz:2", "intra-mezz:3", "inter-mezz:3,1,2"}

// table1 are all paths of the table.
var table1 = append([]string{"intra-fpga"}, linkPaths...)

var (
	bandwidthColumn = report.Column{Name: "bandwidth", Unit: "MBps", Kind: report.Number, Help: "of bw, bibw and mbw_mr: 10^6 bytes of messages in a second, of all ranks that send"}
	osuQuiet        = []string{"transport", "window", "iterations", "warmup"}
)

// Values of the axis transport.
const (
	overExaNet  = "exanet"
	overPortals = "portals"
	overOffload = "portals-offload"
)

func transportAxis() experiment.Axis {
	return experiment.Axis{
		Name: "transport", Kind: report.Text, Of: TransportNames(), Default: overExaNet,
		Help: "what carries the messages: exanet (ExaNet-MPI), portals (the process matches) or portals-offload (the NIC and its handlers do)",
	}
}

func windowAxis() experiment.Axis {
	return experiment.Axis{Name: "window", Kind: report.Count, Least: "1", Most: "4096", Default: fmt.Sprint(osu.DefaultWindow), Help: "messages in flight at a time, for bw, bibw and mbw_mr"}
}

func iterationsAxis() experiment.Axis {
	return experiment.Axis{Name: "iterations", Kind: report.Count, Least: "0", Most: "100000", Default: "0", Help: "that are timed; 0: up to 8 KiB 30 on up to 34 ranks, 1024/ranks on more, and 1 above 8 KiB or 256 ranks"}
}

func warmupAxis() experiment.Axis {
	return experiment.Axis{Name: "warmup", Kind: report.Count, Least: "0", Most: "100000", Default: fmt.Sprint(osu.DefaultWarmup), Help: "iterations before them that are not timed"}
}

// ranksWarmupAxis has a value for the default of each benchmark, too.
func ranksWarmupAxis() experiment.Axis {
	a := warmupAxis()
	a.Least = fmt.Sprint(osu.AutoWarmup)
	a.Help += "; -1: 1, and none for bcast above 32 KiB on more than 256 ranks, where the first call takes as long as the second: on exanest within 0.6%"
	return a
}

// DefaultTransport is the value of the axis transport that suits a device. It
// is ExaNet-MPI if the device has packetizers and mailboxes that acknowledge
// landed data.
func DefaultTransport(p *profile.Profile) string {
	if p.HPU.DMAWrite == nic.Landed {
		return overExaNet
	}
	return overPortals
}

// transport returns an error if the device does not have the transport of the
// point.
func transport(p *experiment.Point) error { return hasTransport(p.Profile, p.Text("transport")) }

func hasTransport(p *profile.Profile, name string) error {
	if name == overExaNet && p.HPU.DMAWrite != nic.Landed {
		return fmt.Errorf("profile %s: hpu.dma_write: %s, expected %s for transport %s: what is acknowledged must be in the mailbox; there are transports %s and %s",
			p.Origin.Name, p.HPU.DMAWrite, nic.Landed, overExaNet, overPortals, overOffload)
	}
	return nil
}

var transports = map[string]func() mpi.Options{
	overExaNet:  mpi.DefaultExaNetOptions,
	overPortals: func() mpi.Options { return mpi.DefaultOptions(mpi.Host) },
	overOffload: func() mpi.Options { return mpi.DefaultOptions(mpi.Offload) },
}

// TransportNames lists the values of the axis transport.
func TransportNames() []string { return []string{overExaNet, overPortals, overOffload} }

// TransportOptions are the options of package mpi for a value of the axis
// transport. It is an error if the device does not have that transport.
func TransportOptions(p *profile.Profile, name string) (mpi.Options, error) {
	options, known := transports[name]
	if !known {
		return mpi.Options{}, fmt.Errorf("%q, expected one of %s", name, strings.Join(TransportNames(), ", "))
	}
	return options(), hasTransport(p, name)
}

// transportOptions are the options of package mpi for the transport of a point.
func transportOptions(p *experiment.Point) mpi.Options { return transports[p.Text("transport")]() }

// transportSlots are the slots of the transport.
func transportSlots(p *experiment.Point) []*handlers.Slot { return TransportSlots(p.Text("transport")) }

// TransportSlots are the slots of a transport.
func TransportSlots(name string) []*handlers.Slot {
	switch name {
	case overPortals:
		return nil
	case overOffload:
		return []*handlers.Slot{matching.ReceiverSlot}
	}
	return []*handlers.Slot{mailbox.EngineSlot, rdma.EngineSlot}
}

// benchmarkOf returns the benchmark of a point. The axis has only known ones.
func benchmarkOf(p *experiment.Point) *osu.Benchmark {
	b, err := osu.Find(p.Text("benchmark"))
	if err != nil {
		panic("experiment: " + err.Error()) //lint:panic programmer's mistake
	}
	return b
}

// runOSU runs the benchmark of a point on a cluster.
func runOSU(ctx context.Context, p *experiment.Point, cfg runtime.Config, set func(o *mpi.Options, of *osu.Options)) (row osu.Row, values experiment.Values, err error) {
	b, o := benchmarkOf(p), transportOptions(p)
	of := osu.Options{
		Bytes: p.Int("size"), Iterations: p.Int("iterations"), Warmup: p.Int("warmup"), Window: p.Int("window"), Seed: p.Seed, Timed: timedOSU(p, b),
	}
	set(&o, &of)
	stats, err := onWorld(cfg, o, func(w *mpi.World) (err error) {
		row, err = osu.Run(ctx, w, b, of)
		return err
	})
	values = experiment.ClusterValues(&stats)
	values[experiment.LatencyColumn], values["bandwidth"] = nil, nil
	if b.Unit == osu.Latency {
		values[experiment.LatencyColumn] = row.Latency
	} else {
		values["bandwidth"] = row.Bandwidth
	}
	return row, values, err
}

// osuOperation describes the operation that --breakdown divides.
const osuOperation = "the mean of iterations: of latency and multi_lat half of a round trip, of bw, bibw and mbw_mr the time of a window and its answer for each of its messages, of collectives a call, over all ranks"

// timedOSU notes the iterations of the ranks whose times the benchmark prints.
func timedOSU(p *experiment.Point, b *osu.Benchmark) func(r *mpi.Rank, from sim.Time) {
	switch {
	case b.Windowed:
		p.OperationOf(p.Int("window"))
	case b.Kind != osu.Collective:
		p.OperationOf(2)
	}
	return func(r *mpi.Rank, from sim.Time) {
		measures := r.Rank() == 0 || b.Kind == osu.Collective
		if b.Kind == osu.Pairs {
			measures = b.Unit == osu.Latency || r.Rank() < r.World().Size()/2
		}
		if measures {
			p.Operation(r.Proc(), from)
		}
	}
}

// ofLink divides a bandwidth, in 10^6 B/s, by the rate of the slowest link
// between two nodes. nil: there is no link or no bandwidth.
func ofLink(p *experiment.Point, bandwidth float64, src, dst int) any {
	if bandwidth == 0 || src == dst {
		return nil
	}
	path, _, err := fabric.Way(p.Profile.Fabric, 1+max(src, dst), src, dst, 0)
	if err != nil {
		return nil // the run has returned this error before
	}
	slowest := 0.0
	for _, h := range path {
		slowest = max(slowest, h.Rate.Time(1e6).Seconds()) // a megabyte
	}
	if p.Text("benchmark") == "bibw" {
		bandwidth /= 2
	}
	return bandwidth * slowest
}

// onWorld runs ranks on a cluster of their own and returns its statistics.
func onWorld(cfg runtime.Config, o mpi.Options, run func(w *mpi.World) error) (stats runtime.Stats, err error) {
	c, err := runtime.NewCluster(cfg)
	if err != nil {
		return stats, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	w, err := mpi.New(c, o)
	if err == nil {
		err = run(w)
	}
	return c.Stats(), err
}
