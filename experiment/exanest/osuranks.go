package exanest

import (
	"context"
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/osu"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// OSURanks is the experiment of OSU benchmarks of many ranks.
var OSURanks = &experiment.Experiment{
	Name:  "osu-ranks",
	Short: "OSU micro-benchmarks of many ranks: collectives, and pairs at the same time",
	Long: `The collective programs of the OSU micro-benchmarks, with a barrier after each call (--barrier), and those for pairs, multi_lat and mbw_mr (package internal/osu). spinsim osu
prints their output; here they are beside the published numbers. Consecutive ranks fill MPSoCs, then QFDBs.
bcast on boards of ExaNeSt has TR-488's model beside it: the sum over the steps of a binomial tree. A step takes as long as a message one way within an MPSoC, between two
MPSoCs of a QFDB, or between neighbouring QFDBs. These times are measured while only one side sends.`,
	Source:   "TR-488",
	Smoke:    []experiment.Values{{"benchmark": "allreduce", "ranks": 7, "size": 5000, "iterations": 10}},
	Profiles: []string{"exanest"},
	Axes: []experiment.Axis{
		{Name: "ranks", Kind: report.Count, Least: "2", Most: experiment.MaxRanks, Default: "4,16,64,128,512", Help: "ranks of the world"},
		{Name: "benchmark", Column: "program", Kind: report.Text, Of: osu.Names(osu.Collective, osu.Pairs), Default: "bcast", Help: "program of the OSU micro-benchmarks"},
		{Name: "ranks-per-node", Kind: report.Count, Least: "1", Most: "4096", Default: "4", Help: "ranks on an MPSoC, or another node"},
		algorithmsAxis(),
		transportAxis(),
		windowAxis(), iterationsAxis(), ranksWarmupAxis(),
		{Name: "barrier", Kind: report.Flag, Of: []string{"false", "true"}, Default: "true", Help: "a barrier after each call of a collective, outside its time; without it ranks that are done call again at once"},
		{Name: "statistic", Kind: report.Text, Of: []string{meanOfRanks, "most", "least"}, Default: meanOfRanks, Help: "whose time of a collective the latency is: the mean of all ranks, as OSU prints it, or that of the rank with the most or the least"},
		{Name: "one-way", Kind: report.Text, Of: named(osu.OneWays()), Default: string(osu.ByCalls), Help: "time of a step of bcast's model: calls, of a blocking send and a blocking receive, in the mean, where nobody answers; arrival, until its receive, which waits, has ended; half of a round trip"},
		{Name: "size", Column: "bytes", Kind: report.Size, Most: experiment.MaxBytes, Default: "4,32,64,256,1KiB,4KiB,16KiB", Help: "size of a message as OSU counts it"},
	},
	Points: func(p *experiment.Point) (bool, error) {
		if b := benchmarkOf(p); !p.Flag("barrier") && (b.Kind != osu.Collective || !b.Sized()) {
			return false, &experiment.NoPoint{Why: fmt.Errorf("--barrier: %s has none after its calls", b.Name)}
		}
		return hasOSURanks(p)
	},
	Independent: true,
	Run: func(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
		values, err := runOSURanks(ctx, p, p.Flag("barrier"))
		if of := p.Text("statistic"); err == nil && of != meanOfRanks && benchmarkOf(p).Kind == osu.Collective {
			values[experiment.LatencyColumn] = values[of]
		}
		return values, err
	},
	Memory: osuRanksMemory,
	Columns: append([]report.Column{
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Help: "of an operation: the mean of iterations and ranks"},
		{Name: "least", Unit: "us", Kind: report.Duration, Help: "of a collective: the mean of iterations at the rank for which it is least"},
		{Name: "most", Unit: "us", Kind: report.Duration, Help: "likewise at the rank for which it is most: when all have it"},
		bandwidthColumn,
		{Name: "message_rate", Unit: "Hz", Kind: report.Number, Help: "of mbw_mr: messages in a second, of all ranks that send"},
		{Name: "model", Unit: "us", Kind: report.Duration, Help: "of bcast on ExaNeSt's boards: the sum over steps of what a message takes one way"},
		{Name: "vs_model", Kind: report.Change, Help: "most / model - 1"},
	}, experiment.ClusterColumns()...),
	Ledger:    ledgerRanks(),
	Slots:     transportSlots,
	Operation: osuOperation,
	View: experiment.View{
		Value: experiment.LatencyColumn, Series: []string{"ranks"}, X: "bytes",
		Summary: []string{"profile", "program", "ranks", "bytes", experiment.LatencyColumn, "least", "most", "bandwidth_MBps", "model", "vs_model"},
		Quiet:   append(osuQuiet, "ranks-per-node", "algorithms", "barrier", "statistic", "one-way"),
	},
	Notes: []string{experiment.Compared},
	Presets: []experiment.Preset{
		{
			Name: "collectives", Short: "osu_bcast and osu_allreduce, 4 to 512 ranks, four on an MPSoC",
			Values: map[string]string{"benchmark": "bcast,allreduce", "ranks": "4..512", "size": "4,64,1KiB"},
		},
		{
			Name: "barrier", Short: "osu_bcast within an MPSoC, with and without the barrier after each call, beside the times of the model",
			Values: map[string]string{"ranks": "2,4", "barrier": "true,false", "size": "1,32"},
			View: &experiment.View{
				Value: experiment.LatencyColumn, Series: []string{"ranks", "barrier"}, X: "bytes", Quiet: append(osuQuiet, "benchmark", "ranks-per-node", "algorithms", "statistic", "one-way"),
				Summary: []string{"profile", "ranks", "barrier", "bytes", experiment.LatencyColumn, "least", "most", "model", "vs_model"},
			},
		},
		{
			Name: "torus", Short: "systems that were never built: bcast and allreduce of one rank on each of up to 4,096 MPSoCs, with --topology 16x16x4",
			Values: map[string]string{"benchmark": "bcast,allreduce", "ranks": "16,128,1024,4096", "ranks-per-node": "1", "size": "4,256", "iterations": "1"},
			View: &experiment.View{
				Value: experiment.LatencyColumn, Series: []string{"benchmark"}, X: "ranks", Quiet: append(osuQuiet, "ranks-per-node", "algorithms", "barrier", "statistic", "one-way"),
				Summary: []string{"profile", "program", "ranks", "bytes", experiment.LatencyColumn, "least", "most", "model", "vs_model"},
			},
		},
	},
}

// meanOfRanks is the value of the axis statistic that takes no single rank. The
// others are columns.
const meanOfRanks = "mean"

// credits is OSURanks for traffic that the buffers of links limit.
var credits = &experiment.Experiment{
	Name:  "credits",
	Short: "traffic that waits for buffers of links, which may be smaller or larger than the prototype's",
	Long: `OSU benchmarks of 128 ranks, one on each MPSoC, with buffers of 1, 4 and 16 KiB at every link (for each class and virtual channel). In alltoall messages
meet everywhere. In mbw_mr the first half of the ranks sends to the second, half way through the machine. A cell leaves when there is room for it behind the
link. So with small buffers it waits for the credit of the previous cell, and full buffers delay cells on other routes.`,
	Source:   "TR-488",
	Smoke:    []experiment.Values{{"benchmark": "mbw_mr", "ranks": 8, "size": 3000}},
	Profiles: []string{"exanest"},
	Axes: append([]experiment.Axis{
		{Name: "buffer", Kind: report.Size, Least: "512B", Most: "1GiB", Default: "1KiB,4KiB,16KiB", Field: "fabric.buffer", Help: "buffer at the end of every link, for each class and virtual channel"},
		{Name: "benchmark", Column: "program", Kind: report.Text, Of: []string{"alltoall", "mbw_mr", "allgather", "gather"}, Default: "alltoall,mbw_mr", Help: "program of the OSU micro-benchmarks"},
		{Name: "ranks", Kind: report.Count, Least: "2", Most: experiment.MaxRanks, Default: "128", Help: "ranks of the world"},
	}, creditAxes()...),
	Points: hasOSURanks,
	Run: func(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
		return runOSURanks(ctx, p, true)
	},
	Memory: osuRanksMemory,
	Relative: []experiment.Relative{
		{Column: report.Column{Name: "vs_4KiB", Kind: report.Change, Help: "latency / latency with buffers of 4 KiB - 1"}, Of: experiment.LatencyColumn, Axis: "buffer", Base: "4KiB"},
		{Column: report.Column{Name: "bandwidth_vs_4KiB", Kind: report.Change, Help: "likewise of the bandwidth"}, Of: "bandwidth", Axis: "buffer", Base: "4KiB"},
	},
	Slots:     transportSlots,
	Operation: osuOperation,
	View: experiment.View{
		Value: experiment.LatencyColumn, Series: []string{"benchmark"}, X: "buffer",
		Answer:  creditsAnswer,
		Summary: []string{"profile", "program", "buffer", "bytes", experiment.LatencyColumn, "vs_4KiB", "bandwidth_MBps", "bandwidth_vs_4KiB"},
		Quiet:   append(osuQuiet, "ranks", "ranks-per-node", "algorithms"),
	},
	Notes: []string{experiment.Compared},
}

func init() { credits.Columns = OSURanks.Columns }

// creditAxes are the axes that credits shares with OSURanks, with one rank on a
// node and one iteration by default.
func creditAxes() []experiment.Axis {
	axes := []experiment.Axis{
		{Name: "ranks-per-node", Kind: report.Count, Least: "1", Most: "4096", Default: "1", Help: "ranks on an MPSoC, or another node"},
		algorithmsAxis(), transportAxis(), windowAxis(), iterationsAxis(), warmupAxis(),
		{Name: "size", Column: "bytes", Kind: report.Size, Most: experiment.MaxBytes, Default: "16KiB", Help: "size of a message as OSU counts it"},
	}
	axes[4].Default, axes[5].Default = "1", "0"
	return axes
}

func algorithmsAxis() experiment.Axis {
	return experiment.Axis{Name: "algorithms", Kind: report.Text, Of: named(mpi.AlgorithmChoices()), Default: string(mpi.ExaNetMPI), Help: "algorithms of collectives: ExaNet-MPI's, or MPICH 3.2.1's by size"}
}

// hasOSURanks reports which points exist.
func hasOSURanks(p *experiment.Point) (bool, error) {
	ranks, nodes := p.Int("ranks"), nodesOf(p)
	if q, is := p.Profile.Fabric.QFDBs(); is && nodes > q.Nodes() {
		return false, fmt.Errorf("--ranks: %d, %d on a node, expected at most %d on the %d MPSoCs of %v (--topology)",
			ranks, p.Int("ranks-per-node"), q.Nodes()*p.Int("ranks-per-node"), q.Nodes(), q)
	}
	if err := transport(p); err != nil {
		return false, err
	}
	if err := benchmarkOf(p).Check(p.Int("size"), ranks); err != nil {
		return false, &experiment.NoPoint{Why: fmt.Errorf("--size, --ranks: %w", err)}
	}
	return true, nil
}

func osuRanksMemory(p *experiment.Point) int64 {
	nodes := nodesOf(p)
	return p.Footprint(nodes) + benchmarkOf(p).Memory(p.Int("size"), p.Int("ranks"))
}

// nodesOf is how many nodes the ranks of a point need.
func nodesOf(p *experiment.Point) int {
	return mpi.Options{PerNode: p.Int("ranks-per-node")}.Nodes(p.Int("ranks"))
}

func runOSURanks(ctx context.Context, p *experiment.Point, barrier bool) (experiment.Values, error) {
	ranks, perNode := p.Int("ranks"), p.Int("ranks-per-node")
	row, values, err := runOSU(ctx, p, p.Config(ctx, nodesOf(p)), func(o *mpi.Options, of *osu.Options) {
		o.Ranks, o.PerNode, o.Algorithms = ranks, perNode, mpi.Algorithms(p.Text("algorithms"))
		of.NoBarrier = !barrier
	})
	if err != nil {
		return nil, err
	}
	for _, c := range []string{"least", "most", "message_rate", "model", "vs_model"} {
		values[c] = nil
	}
	b := benchmarkOf(p)
	if b.Kind == osu.Collective {
		values["least"], values["most"] = row.Least, row.Most
	}
	if b.Unit == osu.Rate {
		values["message_rate"] = row.MessageRate
	}
	if _, boards := p.Profile.Fabric.QFDBs(); boards && b.Name == "bcast" {
		model, err := bcastModel(ctx, p, ranks, perNode)
		if err != nil {
			return nil, fmt.Errorf("the model: %w", err)
		}
		values["model"], values["vs_model"] = model, float64(row.Most)/float64(model)-1
	}
	return values, nil
}

// perQFDB is the number of MPSoCs on a board.
const perQFDB = 4

// bcastModel adds the steps of a binomial tree. A step between ranks that are
// nearer than perNode is within an MPSoC. If they are nearer than the ranks of
// a board it is within a board, else between boards. All steps between boards
// count as steps between neighbours.
func bcastModel(ctx context.Context, p *experiment.Point, ranks, perNode int) (total sim.Time, err error) {
	q, _ := p.Profile.Fabric.QFDBs()
	steps := map[string]int{}
	var classes []string
	for apart := 1; apart < ranks; apart *= 2 {
		class := "inter-mezz:1,0,0"
		switch {
		case apart < perNode:
			class = "intra-fpga"
		case apart < perNode*perQFDB:
			class = "intra-qfdb"
		case q.X > 1:
			class = "intra-mezz:1"
		}
		if steps[class]++; steps[class] == 1 {
			classes = append(classes, class)
		}
	}
	for _, class := range classes {
		one, err := oneWay(ctx, p, class)
		if err != nil {
			return 0, err
		}
		total += one * sim.Time(steps[class])
	}
	return total, nil
}

// oneWayCalls is how many messages follow each other for osu.ByCalls.
const oneWayCalls = 8

// oneWay is the time of a message along a path, as --one-way has it.
func oneWay(ctx context.Context, p *experiment.Point, path string) (took sim.Time, err error) {
	src, dst, err := p.Profile.Fabric.Path(path)
	if err != nil {
		return 0, err
	}
	cfg := p.Config(ctx, 1+max(src, dst))
	cfg.Tracer, cfg.Links = nil, nil // they are for the broadcast
	o := transportOptions(p)
	o.Places = []int{src, dst}
	by, times := osu.OneWayBy(p.Text("one-way")), 1
	if by == osu.ByCalls { // the first messages find free channels
		times = oneWayCalls
	}
	_, err = onWorld(cfg, o, func(w *mpi.World) error {
		for rank := range w.Size() {
			if err := w.Spawn(rank, func(r *mpi.Rank) error {
				one, err := osu.OneWay(r.World(), osu.Options{Bytes: p.Int("size"), Iterations: times, Warmup: 1, Seed: p.Seed}, by)
				if rank == 0 {
					took = one
				}
				return err
			}); err != nil {
				return err
			}
		}
		return w.Run(ctx)
	})
	return took, err
}

// creditsAnswer compares the other buffers with 4 KiB, for each benchmark.
func creditsAnswer(results []*experiment.Result) (lines []string) {
	if !experiment.Apart(results, "buffer", "benchmark", "ranks", "size") {
		return nil
	}
	for _, r := range results {
		p := r.Point
		base := slices.IndexFunc(results, func(b *experiment.Result) bool {
			q := b.Point
			return q.Int("buffer") == 4<<10 && q.Text("benchmark") == p.Text("benchmark") && q.Int("ranks") == p.Int("ranks") && q.Int("size") == p.Int("size")
		})
		if base < 0 || results[base] == r {
			continue
		}
		var what string
		var change float64
		if r.Values[experiment.LatencyColumn] != nil {
			what, change = "takes", float64(r.Time(experiment.LatencyColumn))/float64(results[base].Time(experiment.LatencyColumn))-1
		} else {
			what, change = "carries", r.Float("bandwidth")/results[base].Float("bandwidth")-1
		}
		lines = append(lines, fmt.Sprintf("%s, %s, %s: with buffers of %s it %s %.1f%% %s than with 4 KiB.", p.Text("benchmark"), experiment.Counted(p.Int("ranks"), "rank"),
			sim.Size(p.Int("size")), sim.Size(p.Int("buffer")), what, 100*max(change, -change), map[bool]string{true: "less", false: "more"}[change < 0]))
	}
	return lines
}
