package exanest

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/patterns"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

var scaling = &experiment.Experiment{
	Name:  "scaling",
	Short: "iterations of HPCG, LAMMPS and miniFE, weak and strong",
	Long: `Ranks execute iterations of applications (package internal/patterns): exchanges with neighbours in three dimensions, whose sizes follow from the problem and its
decomposition, sums over all ranks, and computation, which takes a core the time of its operations and bytes of memory.
  hpcg    a conjugate gradient step with multigrid: weak 104^3 points a rank, strong 256 x 256 x 128
  lammps  a step of the rhodopsin benchmark: weak 32,000 atoms a rank, strong 32,000 in all (the report does not give the number)
  minife  a conjugate gradient step: weak 64^3 elements a rank (512^3 on 512), strong 264^3
All iterations are alike, so one is enough. Efficiency is t1 / tN for weak and t1 / (N tN) for strong scaling. No collective runs on an accelerator.`,
	Source:   "TR-488",
	Smoke:    []experiment.Values{{"ranks": 2, "app": "minife"}},
	Profiles: []string{"exanest"},
	Axes: []experiment.Axis{
		{Name: "ranks", Kind: report.Count, Least: "1", Most: experiment.MaxRanks, Default: "1,8,64", Help: "ranks, one on a core"},
		{Name: "app", Kind: report.Text, Of: named(patterns.Apps()), Help: "application: hpcg, lammps, minife"},
		{Name: "scaling", Kind: report.Text, Of: named(patterns.Scalings()), Help: "constant for all numbers of ranks: the problem of each (weak) or of all (strong)"},
		{Name: "ranks-per-node", Kind: report.Count, Least: "1", Most: "4096", Default: "4", Help: "ranks on an MPSoC, or another node"},
		{Name: "core-rate", Kind: report.Number, Unit: "Mops", Least: "0.001", Most: "1000000000", Default: "650", Help: "10^6 floating point operations of a core per second; by default one in two cycles of a Cortex-A53 of 1.3 GHz (assumed)"},
		{Name: "copies", Kind: report.Count, Least: "1", Most: "1000", Default: "1", Help: "of the 32,000 atoms of LAMMPS, side by side, a rank's or with strong scaling those of all; other applications have their size"},
		transportAxis(),
		{Name: "iterations", Kind: report.Count, Least: "1", Most: "100000", Default: "1", Help: "iterations that are timed"},
	},
	Points: func(p *experiment.Point) (bool, error) {
		if err := transport(p); err != nil {
			return false, err
		}
		if _, err := problemOf(p).Plan(0, p.Int("ranks")); err != nil {
			return false, fmt.Errorf("--ranks: %w", err)
		}
		return true, nil
	},
	Run: runScaling,
	Memory: func(p *experiment.Point) int64 {
		nodes := nodesOf(p)
		plan, err := problemOf(p).Plan(p.Int("ranks")/2, p.Int("ranks"))
		if err != nil {
			return 0
		}
		_, bytes, _ := plan.Sum()
		return p.Footprint(nodes) + 2*int64(bytes)*int64(p.Int("ranks"))
	},
	Columns: append([]report.Column{
		{Name: "time", Unit: "us", Kind: report.Duration, Help: "of an iteration at the slowest rank"},
		{Name: "efficiency", Kind: report.Share, Help: "weak: time of one rank / time; strong: time of one rank / (ranks x time)"},
		{Name: "compute", Kind: report.Share, Help: "share of the time of all ranks in which they compute"},
		{Name: "exchange", Kind: report.Share, Help: "share in which they exchange with neighbours, or wait for them"},
		{Name: "reduce", Kind: report.Share, Help: "share in sums of all ranks, or waiting for the others there"},
		{Name: "neighbours", Kind: report.Count, Help: "with which a rank exchanges, at most"},
		{Name: "messages", Kind: report.Count, Help: "to them in an iteration, at most"},
		{Name: "sent", Unit: "bytes", Kind: report.Size, Help: "in these messages, at most"},
	}, experiment.ClusterColumns()...),
	Independent: true,
	Ledger:      ledgerScaling(),
	Slots:       transportSlots,
	Followed:    "time",
	View: experiment.View{
		Value: "efficiency", Series: []string{"app"}, X: "ranks", Quiet: []string{"ranks-per-node", "copies", "transport", "iterations", "core-rate"},
		Answer:  scalingAnswer,
		Summary: []string{"profile", "app", "scaling", "ranks", "time_us", "efficiency", "compute", "exchange", "reduce", "neighbours", "messages", "sent_bytes"},
	},
	Notes: []string{"What a core computes in a second is assumed, and decides how much communication weighs."},
}

// named converts values of a string type into texts.
func named[T ~string](list []T) (names []string) {
	for _, v := range list {
		names = append(names, string(v))
	}
	return names
}

func problemOf(p *experiment.Point) patterns.Problem {
	problem := patterns.Problem{App: patterns.App(p.Text("app")), Scaling: patterns.Scaling(p.Text("scaling"))}
	if problem.App == patterns.LAMMPS {
		// like the boxes of in.rhodo.scaled: as near to a cube as the number allows
		problem.Size = patterns.NewGrid(p.Int("copies"), [3]float64{1, 1, 1})
	}
	return problem
}

// scaled are the times of all ranks together.
type scaled struct {
	slowest                    sim.Time
	compute, exchange, reduced sim.Time // sums over ranks
}

func runScaling(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	ranks := p.Int("ranks")
	all, values, err := iterations(ctx, p, ranks)
	if err != nil {
		return nil, err
	}
	one := all
	if ranks > 1 {
		if one, _, err = iterations(ctx, p, 1); err != nil {
			return nil, fmt.Errorf("with one rank: %w", err)
		}
	}
	values["time"] = all.slowest / sim.Time(p.Int("iterations"))
	efficiency := float64(one.slowest) / float64(all.slowest)
	if problemOf(p).Scaling == patterns.Strong {
		efficiency /= float64(ranks)
	}
	values["efficiency"] = efficiency
	total := float64(all.compute + all.exchange + all.reduced)
	values["compute"], values["exchange"], values["reduce"] = float64(all.compute)/total, float64(all.exchange)/total, float64(all.reduced)/total
	var most [3]int
	for rank := range ranks {
		plan, err := problemOf(p).Plan(rank, ranks)
		if err != nil {
			return nil, err
		}
		messages, bytes, neighbours := plan.Sum()
		most[0], most[1], most[2] = max(most[0], neighbours), max(most[1], messages), max(most[2], bytes)
	}
	values["neighbours"], values["messages"], values["sent"] = most[0], most[1], most[2]
	return values, nil
}

// iterations runs the application of a point on some ranks. A run of one rank
// is not traced.
func iterations(ctx context.Context, p *experiment.Point, ranks int) (all scaled, values experiment.Values, err error) {
	o := transportOptions(p)
	o.Ranks, o.PerNode = ranks, p.Int("ranks-per-node")
	cfg := p.Config(ctx, o.Nodes(ranks))
	if ranks != p.Int("ranks") {
		cfg.Tracer, cfg.Links = nil, nil
	}
	p.Reads("host.compute")
	if o.PerNode > 1 && ranks > 1 {
		p.Reads("host.cores_penalty")
	}
	p.OperationOf(p.Int("iterations"))
	took := make([]experiment.Operation, ranks)
	stats, err := onWorld(cfg, o, func(w *mpi.World) error {
		for rank := range w.Size() {
			if err := w.Spawn(rank, func(r *mpi.Rank) error {
				plan, err := problemOf(p).Plan(rank, ranks)
				if err != nil {
					return err
				}
				onNode := min(o.PerNode, ranks-rank/o.PerNode*o.PerNode) // the last node may have fewer
				core := patterns.CoreOf(p.Profile, onNode, p.Float("core-rate")*1e6)
				core.Seed = p.Seed
				own, err := plan.Run(r.World(), core, p.Int("iterations"))
				if err != nil {
					return err
				}
				took[rank] = experiment.Operation{Rank: r.Proc().Rank(), Process: r.Proc().Name(), From: r.Now() - own.Time, To: r.Now()}
				one, err := together(r.World(), own)
				if rank == 0 {
					all = one
				}
				return err
			}); err != nil {
				return err
			}
		}
		return w.Run(ctx)
	})
	if err == nil && ranks == p.Int("ranks") { // the slowest, of equal ones the first
		p.OnlyOperations([]experiment.Operation{slices.MaxFunc(took, func(a, b experiment.Operation) int {
			return cmp.Or(cmp.Compare(a.To-a.From, b.To-b.From), cmp.Compare(b.To, a.To))
		})})
	}
	return all, experiment.ClusterValues(&stats), err
}

// together collects the times of all ranks at rank 0.
func together(c *mpi.Comm, own patterns.Result) (all scaled, err error) {
	reduced := func(op *mpi.Op, times ...sim.Time) ([]sim.Time, error) {
		in, err := c.Owner().Alloc(8 * len(times))
		if err != nil {
			return nil, err
		}
		out, err := c.Owner().Alloc(8 * len(times))
		if err != nil {
			return nil, err
		}
		for i, t := range times {
			binary.LittleEndian.PutUint64(in.Write()[8*i:], uint64(t))
		}
		err = c.Reduce(in, out, mpi.Int64, op, 0)
		for i, b := 0, out.Read(); i < len(times); i++ {
			times[i] = sim.Time(binary.LittleEndian.Uint64(b[8*i:]))
		}
		return times, err
	}
	most, err := reduced(mpi.Max, own.Time)
	if err != nil {
		return all, err
	}
	sums, err := reduced(mpi.Sum, own.Compute, own.Exchange, own.Reduce)
	if err != nil {
		return all, err
	}
	return scaled{most[0], sums[0], sums[1], sums[2]}, nil
}

// scalingAnswer writes the efficiency of the most ranks that were measured.
func scalingAnswer(results []*experiment.Result) (lines []string) {
	if !experiment.Apart(results, "app", "scaling", "ranks") {
		return nil
	}
	most := 0
	for _, r := range results {
		most = max(most, r.Point.Int("ranks"))
	}
	for _, how := range []string{"weak", "strong"} {
		var parts []string
		for _, r := range results {
			if r.Point.Int("ranks") == most && r.Point.Text("scaling") == how {
				parts = append(parts, fmt.Sprintf("%s %.1f%%", r.Point.Text("app"), 100*r.Float("efficiency")))
			}
		}
		if len(parts) > 0 {
			lines = append(lines, fmt.Sprintf("Efficiency of %s, %s: %s.", experiment.Counted(most, "rank"), how, strings.Join(parts, ", ")))
		}
	}
	return lines
}
