package spin17

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/replicate"
	"github.com/spinsim/spinsim/internal/memory"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var replication = &experiment.Experiment{
	Name:  "replicate",
	Short: "a write to memory of which several servers keep copies, passed on by their NICs or cores, or sent to each",
	Long: `Rank 0 writes memory of which the other ranks, the servers, keep copies. The latency is the time from the call until rank 0 knows that every server has all of it.
Modes select who sends the copies:
  client  rank 0, to each server separately: its NIC sends all bytes for each
  host    cores of the servers: each forwards a message when all of it is in its memory, in messages of 64 KiB; the last servers tell rank 0
  spin    handlers of the servers, each packet when it arrives; the last servers tell rank 0
Shapes select the servers to which a server forwards:
  ring    the next one
  tree    two others, so that the distance to the last one is the logarithm of their number
If rank 0 sends to all there is no shape: such a point is shown as ring.`,
	Source: replicateSource,
	Smoke:  []experiment.Values{{"size": 3000}},
	Axes: []experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: []string{modeClient, experiment.ModeHost, experiment.ModeSpin}, Help: "who sends the copies; the command's help describes each"},
		{Name: "shape", Kind: report.Text, Of: []string{shapeRing, shapeTree}, Help: "servers to which a server forwards a write"},
		{Name: "copies", Kind: report.Count, Least: "1", Most: fmt.Sprint(replicate.MaxServers), Default: "2,4,8", Help: "servers, each of which has all bytes"},
		{Name: "size", Column: "bytes", Kind: report.Size, Least: "1", Most: experiment.MaxBytes, Default: "64,4KiB,64KiB,1MiB", Help: "bytes of the write"},
		{Name: "guarded", Kind: report.Flag, Of: []string{"false", "true"}, Default: "false", Help: "handlers check a capability before anything is written; cores would see the data only after it is written"},
	},
	Points: func(p *experiment.Point) (bool, error) {
		mode := p.Text("mode")
		return (mode != modeClient || p.Text("shape") == shapeRing) && (mode == experiment.ModeSpin || !p.Flag("guarded")), nil
	},
	Run: runReplicate,
	Columns: append([]report.Column{
		{Name: experiment.LatencyColumn, Unit: "ns", Kind: report.Duration, Help: "from the call to its return"},
		{Name: "throughput", Unit: "GiBps", Kind: report.Number, Help: "size of the write by latency; each of the servers has it then"},
		{Name: "server_cpu", Unit: "ns", Kind: report.Duration, Help: "time that cores of the servers were busy"},
	}, append(experiment.LineColumns(), experiment.ClusterColumns()...)...),
	Relative: []experiment.Relative{{
		Column: report.Column{Name: "speedup", Kind: report.Ratio, Help: "latency of host divided by latency, at the same profile, shape, copies and bytes; empty if host was not measured"},
		Of:     experiment.LatencyColumn, Axis: "mode", Base: experiment.ModeHost,
	}},
	Slots: func(p *experiment.Point) []*handlers.Slot {
		if p.Text("mode") != experiment.ModeSpin {
			return nil
		}
		return []*handlers.Slot{replicate.ServerSlot}
	},
	Ledger:   ledgerCopies(),
	Followed: experiment.LatencyColumn,
	View: experiment.View{
		Value: experiment.LatencyColumn, Series: []string{"mode"}, Base: experiment.ModeHost, X: "bytes", Quiet: []string{"guarded"}, Answer: replicateAnswer,
	},
	Presets: []experiment.Preset{{
		Name: "cost", Short: "what four copies along a ring cost whom: cores of servers, bytes through all memories, HPUs", Values: map[string]string{"shape": shapeRing, "copies": "4"},
		View: &experiment.View{
			Value: experiment.LatencyColumn, Series: []string{"mode"}, Base: experiment.ModeHost, X: "bytes", Quiet: []string{"guarded"}, Answer: replicateAnswer,
			Summary: []string{experiment.ProfileColumn, "copies", "bytes", "mode", experiment.LatencyColumn, "throughput", "server_cpu", "host_memory", "hpus_needed", "littles_law_share", "speedup"},
		},
	}, {
		Name: "shapes", Short: "many copies along a ring and down a tree, by handlers", Values: map[string]string{"mode": "spin", "copies": "2,4,8,16", "size": "64,4KiB,64KiB,1MiB"},
		View: &experiment.View{Value: experiment.LatencyColumn, Series: []string{"shape"}, X: "copies", Quiet: []string{"mode", "guarded"}},
	}, {
		Name: "guard", Short: "what looking at a capability costs: of each message, by a signature and five comparisons", Values: map[string]string{
			"mode": experiment.ModeSpin, "shape": shapeRing, "copies": "1,4", "guarded": "false,true",
		},
		View: &experiment.View{
			Value: experiment.LatencyColumn, Series: []string{"guarded"}, X: "bytes", Quiet: []string{"mode", "shape"},
			Summary: []string{experiment.ProfileColumn, "copies", "bytes", "guarded", experiment.LatencyColumn, "handler_calls", "handler_cycles", "hpus_needed"},
		},
	}},
	Caveats: experiment.KeepingUp,
	Notes: []string{
		"Every byte that servers have afterwards was compared with what was written.",
		"SC'22 says that handlers of its NIC (PsPIN, 400 Gb/s) replicate in up to half the time of CPUs and of RDMA; numbers of single points are not at hand, so none stands beside these.",
	},
}

const replicateSource = "SC'22, Building Blocks for Network-Accelerated Distributed File Systems"

// Values of the axes.
const (
	modeClient = "client"
	shapeRing  = "ring"
	shapeTree  = "tree"
)

var replicateModes = map[string]replicate.Mode{modeClient: replicate.Client, experiment.ModeHost: replicate.Hosts, experiment.ModeSpin: replicate.Handlers}

func runReplicate(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	copies, size := p.Int("copies"), p.Int("size")
	o := replicate.Options{Bytes: int64(size), Tree: p.Text("shape") == shapeTree, Mode: replicateModes[p.Text("mode")], Clients: 1}
	if p.Flag("guarded") {
		o.Key = &replicate.Key{p.Seed, p.Seed + 1}
	}
	for i := range copies {
		o.Servers = append(o.Servers, 1+i)
	}
	want := memory.Make[byte](size)
	experiment.Pattern(want, p.Seed)
	var group *replicate.Group
	var latency, servers sim.Time
	values := experiment.Values{}
	var cluster *runtime.Cluster
	stats, err := experiment.Simulate(ctx, p.Config(ctx, copies+1), func(c *runtime.Cluster) (err error) {
		cluster = c
		if group, err = replicate.New(c, o); err != nil {
			return err
		}
		return c.Spawn(0, "client", func(proc *runtime.Proc) error {
			client, err := group.Open(proc, 0)
			if err != nil {
				return err
			}
			if o.Key != nil {
				client.Use(replicate.Grant(o.Key, client.ID(), 0, o.Bytes, replicate.MayWrite, 0))
			}
			memory := proc.Alloc(size)
			copy(memory.Raw(), want)
			start := proc.Now()
			err = client.Write(0, memory)
			latency = proc.Now() - start
			p.Operation(proc, start)
			return err
		})
	}, func() error {
		for i := range copies {
			if got := group.Peek(i); !bytes.Equal(got, want) {
				return fmt.Errorf("copy %d: %w", i, experiment.SameBytes("memory", got, want))
			}
			servers += group.Node(i).Stats().CPUBusy
		}
		p.AtLineRate(cluster, values, nil)
		return nil
	})
	if err != nil {
		return nil, err
	}
	maps.Copy(values, experiment.ClusterValues(&stats))
	values[experiment.LatencyColumn], values["server_cpu"] = latency, servers
	values["throughput"] = float64(size) / (1 << 30) * float64(sim.Second) / float64(latency)
	return values, nil
}

// replicateAnswer names the fastest mode for the fewest and the most bytes, for
// each profile and the most copies. Each mode has its better shape. The fastest
// mode differs.
func replicateAnswer(results []*experiment.Result) (lines []string) {
	var profiles []string
	copies := 0
	for _, r := range results {
		if name := r.Point.Profile.Name; !slices.Contains(profiles, name) {
			profiles = append(profiles, name)
		}
		copies = max(copies, r.Point.Int("copies"))
	}
	what := "1 copy"
	if copies > 1 {
		what = fmt.Sprintf("%d copies", copies)
	}
	for _, name := range profiles {
		var sizes []int
		for _, r := range results {
			if p := r.Point; p.Profile.Name == name && p.Int("copies") == copies {
				sizes = append(sizes, p.Int("size"))
			}
		}
		slices.Sort(sizes)
		sizes = slices.Compact(sizes)
		for _, size := range slices.Compact([]int{sizes[0], sizes[len(sizes)-1]}) {
			if ways := replicateWays(results, name, copies, size); len(ways) > 1 {
				lines = append(lines, fmt.Sprintf("%s, %s, %s: %s; %s.", name, what, sim.Size(size), ways[0], strings.Join(ways[1:], ", ")))
			}
		}
	}
	return lines
}

// replicateWays describes the measured modes of a write, the fastest first.
func replicateWays(results []*experiment.Result, profile string, copies, size int) (words []string) {
	best := make(map[string]*experiment.Result)
	shapes := make(map[string]bool)
	var modes []string
	for _, r := range results {
		p := r.Point
		if p.Profile.Name != profile || p.Int("copies") != copies || p.Int("size") != size || p.Flag("guarded") {
			continue
		}
		mode := p.Text("mode")
		shapes[p.Text("shape")] = true
		if best[mode] == nil {
			modes = append(modes, mode)
		} else if r.Time(experiment.LatencyColumn) >= best[mode].Time(experiment.LatencyColumn) {
			continue
		}
		best[mode] = r
	}
	slices.SortStableFunc(modes, func(a, b string) int {
		return int(best[a].Time(experiment.LatencyColumn) - best[b].Time(experiment.LatencyColumn))
	})
	for i, mode := range modes {
		how := ""
		if len(shapes) > 1 && mode != modeClient {
			how = map[string]string{shapeRing: " along a ring", shapeTree: " down a tree"}[best[mode].Point.Text("shape")]
		}
		t := best[mode].Time(experiment.LatencyColumn)
		if i == 0 {
			words = append(words, fmt.Sprintf("%s%s is the fastest, %s", mode, how, experiment.ShortTime(t)))
			continue
		}
		words = append(words, fmt.Sprintf("%s%s takes %s (%.2f times as long)", mode, how, experiment.ShortTime(t), float64(t)/float64(best[modes[0]].Time(experiment.LatencyColumn))))
	}
	return words
}
