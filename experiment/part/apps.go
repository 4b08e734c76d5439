package part

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/pagein"
	"github.com/spinsim/spinsim/handlers/part"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var apps = &experiment.Experiment{
	Name:  "apps",
	Short: "exchanges like those of applications, with an MPI that touches pages or leaves them to PART",
	Long: `Ranks, one on each node, exchange messages with their neighbours in a ring. The mean length is an application's: a message is between half
and one and a half times as long, drawn from the seed. Send buffers have been written. A receive buffer is the one of the previous round, except for a fraction of
--fresh: that is new memory, which nobody has touched, as a program's allocator returns memory and gets it again.
  present  all memory is present, at no cost: the time of communication only
  touch    both sides touch each page of a message before its transfer, like an MPI that must be sure of them
  pio, pi4, pia  nobody touches: PART handles page faults
  handler  so does PART, with a policy of your own, a module in slot pagein.policy
Applications and the mean size of their messages at 16 processes: lammps 15.1 KB, hpl 42.9 KB, hpcg 23.1 KB. Computation takes most of their time
and is not included (--compute). So the difference here is the largest that they could notice.`,
	Source:   "PART'22 §6",
	Smoke:    []experiment.Values{{"ranks": 3, "rounds": 2, "fresh": 0.5, "mode": policyPIA}},
	Profiles: []string{"exanest-qfdb"},
	Axes: []experiment.Axis{
		{Name: "app", Kind: report.Text, Of: []string{"lammps", "hpl", "hpcg"}, Help: "whose messages: lammps, hpl, hpcg"},
		{Name: "mode", Kind: report.Text, Of: PageModes(), Default: "present,touch,pia", Help: "treatment of absent pages; the command's help describes each"},
		{Name: "fresh", Kind: report.Share, Least: "0", Most: "1", Default: "0%,5%", Help: "fraction of receive buffers that are new memory"},
		{Name: "compute", Kind: report.Duration, Unit: "us", Least: "0us", Most: "1s", Default: "0us", Help: "computation of a rank in a round"},
		{Name: "rounds", Kind: report.Count, Least: "1", Most: "100000", Default: "20", Help: "rounds, each a message to each neighbour; one more warms up"},
		{Name: "ranks", Kind: report.Count, Least: "1", Most: "16", Default: "1,4,16", Help: "processes, one for each node"},
	},
	Points: func(p *experiment.Point) (bool, error) {
		if !p.Profile.OS.On() || !p.Profile.SMMU.On() {
			return false, fmt.Errorf("profile %s: no pages that could be absent (os.kind, smmu.kind)", p.Profile.Origin.Name)
		}
		return true, nil
	},
	Run:    runApps,
	Memory: func(p *experiment.Point) int64 { return p.Footprint(p.Int("ranks")) + 4*appBytes(p) },
	Columns: append([]report.Column{
		{Name: experiment.LatencyColumn, Unit: "us", Kind: report.Duration, Help: "mean time of a round, of the rank that took longest, from the barrier behind the first"},
		{Name: "faults", Kind: report.Count, Help: "pages that came while devices or programs waited for them, of all ranks, the first round left out"},
	}, experiment.ClusterColumns()...),
	Relative: []experiment.Relative{{
		Column: report.Column{Name: "vs_touch", Kind: report.Ratio, Help: "latency of touch divided by latency"},
		Of:     experiment.LatencyColumn, Axis: "mode", Base: policyTouch,
	}},
	Slots: func(p *experiment.Point) []*handlers.Slot {
		if slots := PageSlots(p.Text("mode")); slots != nil {
			return slots
		}
		return []*handlers.Slot{part.EngineSlot} // all modes have it
	},
	Followed: experiment.LatencyColumn,
	View:     experiment.View{Value: experiment.LatencyColumn, Series: []string{"mode"}, Base: policyTouch, X: "ranks", Quiet: []string{"compute", "rounds"}, Answer: appsAnswer},
	Ledger:   ledgerApps(),
	Notes:    []string{experiment.Compared},
}

// PagesPresent is the mode of pages in which all are present.
const PagesPresent = "present"

// PageModes lists how an MPI over ExaNet may treat absent pages.
func PageModes() []string {
	return []string{PagesPresent, policyTouch, policyPIO, policyPI4, policyPIA, policyHandler}
}

// WithPages makes an MPI treat absent pages in a mode of PageModes. Somebody else
// makes them present in mode PagesPresent.
func WithPages(o *mpi.ExaNetOptions, mode string) {
	o.Touch = mode == policyTouch
	if resolves(mode) {
		o.Load = func(c *runtime.Cluster) (mpi.PageOpener, error) { return loadPart(c, mode, part.GetUserPages) }
	}
}

// PageSlots are the slots of a mode; nil: it runs no handlers of its own.
func PageSlots(mode string) []*handlers.Slot {
	switch {
	case mode == policyHandler:
		return []*handlers.Slot{part.EngineSlot, pagein.PolicySlot}
	case resolves(mode):
		return []*handlers.Slot{part.EngineSlot}
	}
	return nil
}

// appMean is the mean size of a message in bytes: MPI_Send in PART'22, 16
// processes.
var appMean = map[string]int{"lammps": 15_100, "hpl": 42_900, "hpcg": 23_100}

// appBytes is how many bytes the buffers of a point take at most.
func appBytes(p *experiment.Point) int64 {
	return int64(p.Int("ranks")) * int64(2*(1+p.Int("rounds"))) * int64(2*appMean[p.Text("app")])
}

// exchanging is a running measurement.
type exchanging struct {
	*experiment.Point
	ranks  int
	left   int      // ranks that are still in their first round
	faults int64    // until the last rank has ended
	took   sim.Time // of the slowest rank, from the barrier on
}

func runApps(ctx context.Context, p *experiment.Point) (values experiment.Values, err error) {
	x := &exchanging{Point: p, ranks: p.Int("ranks"), left: p.Int("ranks")}
	o := mpi.DefaultExaNetOptions()
	o.Ranks = x.ranks
	mode := p.Text("mode")
	WithPages(&o.ExaNet, mode)
	c, err := runtime.NewCluster(p.Config(ctx, x.ranks))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	w, err := mpi.New(c, o)
	if err != nil {
		return nil, err
	}
	for rank := range x.ranks {
		if err := w.Spawn(rank, func(r *mpi.Rank) error { return x.program(c, r, rank) }); err != nil {
			return nil, err
		}
	}
	if err := w.Run(ctx); err != nil {
		return nil, err
	}
	stats := c.Stats()
	values = experiment.ClusterValues(&stats)
	values[experiment.LatencyColumn] = x.took / sim.Time(p.Int("rounds"))
	values["faults"] = pagesCome(c) - x.faults
	return values, nil
}

// pagesCome is how many pages were brought in so far because of page faults.
func pagesCome(c *runtime.Cluster) (n int64) {
	for i := range c.Nodes() {
		s := c.Node(i).Kernel().Stats()
		n += s.Minor + s.Major
	}
	return n
}

// length is the length of a rank's message in a round to the neighbour on a
// side, 0 or 1.
func (x *exchanging) length(rank, round, side int) int {
	mean := appMean[x.Text("app")]
	rng := rand.New(rand.NewPCG(x.Seed, uint64(rank)<<40|uint64(round)<<1|uint64(side)))
	return mean/2 + rng.IntN(mean+1)
}

// program is the program of a rank. The first round is a warm-up, the others
// are measured.
func (x *exchanging) program(c *runtime.Cluster, r *mpi.Rank, rank int) error {
	most := 2 * appMean[x.Text("app")]
	var out, in [2]runtime.View
	for side := range out {
		var err error
		if out[side], err = r.Alloc(most); err != nil {
			return err
		}
		experiment.Pattern(out[side].Raw(), x.Seed+uint64(rank)<<1+uint64(side))
		if in[side], err = x.buffer(r, most, true); err != nil {
			return err
		}
	}
	spare, err := x.spares(r, rank, most)
	if err != nil {
		return err
	}
	var begun, from sim.Time
	var rounds []experiment.Operation
	for round := range 1 + x.Int("rounds") {
		for side := range in {
			if v, is := spare[[2]int{round, side}]; is {
				in[side] = v
			}
		}
		if err := x.round(r, rank, round, out, in); err != nil {
			return err
		}
		if round > 0 {
			rounds = append(rounds, experiment.Operation{Rank: r.Proc().Rank(), Process: r.Proc().Name(), From: from, To: r.Now()})
			from = r.Now()
			continue
		}
		if x.left--; x.left == 0 {
			x.faults = pagesCome(c)
		}
		if err := r.World().Barrier(); err != nil {
			return err
		}
		begun, from = r.Now(), r.Now()
	}
	if took := r.Now() - begun; took > x.took {
		x.took = took
		x.OnlyOperations(rounds)
	}
	return nil
}

// spares allocates the receive buffers that are new memory, by round and side.
func (x *exchanging) spares(r *mpi.Rank, rank, most int) (map[[2]int]runtime.View, error) {
	spare := map[[2]int]runtime.View{}
	rng := rand.New(rand.NewPCG(x.Seed^0xf5e5, uint64(rank)))
	for round := 1; round <= x.Int("rounds"); round++ {
		for side := range 2 {
			if rng.Float64() >= x.Float("fresh") {
				continue
			}
			v, err := x.buffer(r, most, x.Text("mode") == PagesPresent)
			if err != nil {
				return nil, err
			}
			spare[[2]int{round, side}] = v
		}
	}
	return spare, nil
}

// buffer allocates memory. there: all pages are present.
func (x *exchanging) buffer(r *mpi.Rank, n int, there bool) (runtime.View, error) {
	v, err := r.Alloc(n)
	if err == nil && there {
		v.Raw()
	}
	return v, err
}

// round sends a message to each neighbour, computes, and reads every byte that
// arrived.
func (x *exchanging) round(r *mpi.Rank, rank, round int, out, in [2]runtime.View) error {
	var all []*mpi.Request
	other := [2]int{(rank + x.ranks - 1) % x.ranks, (rank + 1) % x.ranks}
	for side, from := range other {
		q, err := r.Irecv(in[side].Slice(0, x.length(from, round, 1-side)), from, uint32(1-side))
		if err != nil {
			return err
		}
		all = append(all, q)
	}
	for side, to := range other {
		q, err := r.Isend(out[side].Slice(0, x.length(rank, round, side)), to, uint32(side))
		if err != nil {
			return err
		}
		all = append(all, q)
	}
	if err := r.WaitAll(all, nil); err != nil {
		return err
	}
	for side, from := range other {
		got := in[side].Slice(0, x.length(from, round, 1-side)).Snapshot()
		want := make([]byte, 2*appMean[x.Text("app")])
		experiment.Pattern(want, x.Seed+uint64(from)<<1+uint64(1-side))
		if !bytes.Equal(got, want[:len(got)]) {
			return fmt.Errorf("rank %d, round %d: not what rank %d has sent", rank, round, from)
		}
	}
	if d := x.Time("compute"); d > 0 {
		r.Compute(d)
	}
	return nil
}

// appsAnswer writes the gain or loss with PART for each share of new memory, at
// the largest number of ranks.
func appsAnswer(results []*experiment.Result) (lines []string) {
	type group struct {
		profile, mode string
		fresh         float64
	}
	ranks, order, ratios := 0, []group(nil), map[group][]float64{}
	for _, r := range results {
		ranks = max(ranks, r.Point.Int("ranks"))
	}
	for _, r := range results {
		p := r.Point
		if !resolves(p.Text("mode")) || p.Int("ranks") != ranks {
			continue
		}
		g := group{p.Profile.Name, p.Text("mode"), p.Float("fresh")}
		if touch := experiment.Beside(results, r, "mode", policyTouch); touch != nil {
			if ratios[g] == nil {
				order = append(order, g)
			}
			ratios[g] = append(ratios[g], float64(touch.Time(experiment.LatencyColumn))/float64(r.Time(experiment.LatencyColumn)))
		}
	}
	for _, g := range order {
		all := ratios[g]
		lines = append(lines, fmt.Sprintf("%s, %s, %g%% of the receive buffers new memory: %s is %.2f to %.2f times as fast as touching.",
			g.profile, experiment.Counted(ranks, "rank"), 100*g.fresh, g.mode, slices.Min(all), slices.Max(all)))
	}
	return lines
}
