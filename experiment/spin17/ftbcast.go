package spin17

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/handlers/ftbcast"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
)

var ftbcastExperiment = &experiment.Experiment{
	Name:  "ftbcast",
	Short: "a broadcast that arrives although nodes have failed",
	Long: `Rank 0 broadcasts a message. Some of the other nodes have failed before, and nobody knows which. The latency is the time from the call at rank 0 until
the host of the last live rank has the whole message.
  rdma      hosts, down a binomial tree in which all ranks must be live, as in compare bcast
  detector  hosts, down a binomial tree; a rank whose NIC does not acknowledge within timeout has failed, and the root is told: it broadcasts again,
            down a tree without that rank, until all ranks below have reported that they have the message (Buntinas, IPDPS'12)
  graph     hosts, each to all its neighbours in a binomial graph (Angskun et al., ISPA'07): copies travel other routes, and all reach host memory
  spin      the same by handlers (library ftbcast), which deliver only the first copy of each packet and forward it from the device
A graph of n ranks stays connected if fewer fail than a rank has neighbours; points with more failures are left out. The seed determines which nodes fail.`,
	Source: "sPIN'17, Fault-tolerant Broadcast",
	Smoke:  []experiment.Values{{"ranks": 8}},
	Axes: []experiment.Axis{
		{Name: "mode", Kind: report.Text, Of: []string{experiment.ModeRDMA, modeDetector, modeGraph, experiment.ModeSpin}, Help: "how it is broadcast; the command's help describes each"},
		{Name: "failed", Kind: report.Count, Most: "61", Default: "0,1,3", Help: "nodes that have failed"},
		experiment.RanksAxis(experiment.MaxRanks, "8,64"),
		experiment.SizeAxis("8,64KiB"),
		{Name: "timeout", Unit: "us", Kind: report.Duration, Least: "1ns", Most: "1s", Default: "100us", Help: "longest wait for an acknowledgement (detector)"},
	},
	Points:      hasFTBcast,
	Independent: true,
	Run:         runFTBcast,
	Columns: experiment.BenchColumns(append(experiment.LineColumns(),
		report.Column{Name: "known", Unit: "ns", Kind: report.Duration, Help: "time at which the root knows that all have it (detector)"},
		report.Column{Name: "attempts", Kind: report.Count, Help: "broadcasts that the root has begun (detector)"},
	)...),
	Relative: []experiment.Relative{{
		Column: report.Column{Name: "speedup", Kind: report.Ratio, Help: "latency of detector divided by latency, at the same profile, ranks, bytes and failed nodes; empty if detector was not measured"},
		Of:     experiment.LatencyColumn, Axis: "mode", Base: modeDetector,
	}},
	Slots:    experiment.SlotIn(ftbcast.RankSlot, experiment.ModeSpin),
	Followed: experiment.LatencyColumn,
	View: experiment.View{
		Value: experiment.LatencyColumn, Series: []string{"mode"}, Base: modeDetector, Quiet: []string{"timeout"},
		Summary: []string{"profile", "ranks", "bytes", "failed", "mode", experiment.LatencyColumn, "speedup", "host_cpu", "host_memory", "handler_calls", "hpus_needed", "littles_law_share"},
	},
	Caveats: experiment.KeepingUp,
	Notes:   []string{experiment.Compared, "The time-out of detectors is the user's to choose: MPI libraries have milliseconds to seconds."},
}

// Values of the axis mode besides rdma and spin.
const (
	modeDetector = "detector"
	modeGraph    = "graph"
)

// hasFTBcast leaves out points for which no mode promises a result.
func hasFTBcast(p *experiment.Point) (bool, error) {
	failed := p.Int("failed")
	if reliable := p.Profile.Transport.Kind; failed > 0 && reliable == "reliable" {
		return false, fmt.Errorf("profile %s: transport.kind: %s, expected none: what a reliable transport cannot deliver to nodes that have failed counts as a failure of the run", p.Profile.Origin.Name, reliable)
	}
	switch most := max(1, len(ftbcast.Graph(uint32(p.Int("ranks"))))) - 1; {
	case failed > 0 && p.Text("mode") == experiment.ModeRDMA:
		return false, &experiment.NoPoint{Why: fmt.Errorf("--failed %d: --mode %s has no remedy for nodes that fail", failed, experiment.ModeRDMA)}
	case failed > most:
		return false, &experiment.NoPoint{Why: fmt.Errorf("--failed %d: the graph of --ranks %d holds together without %d nodes at most", failed, p.Int("ranks"), most)}
	}
	return true, nil
}

func runFTBcast(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	w := experiment.NewBench(p)
	w.More["known"], w.More["attempts"], w.More["hpus_needed"], w.More["littles_law_share"] = nil, nil, nil, nil
	if w.Mode == experiment.ModeRDMA {
		return w.Run(ctx, runBcast)
	}
	f := &failing{Bench: w, down: make([]bool, w.Ranks), has: make([]bool, w.Ranks), message: make([]byte, w.Bytes)}
	experiment.Pattern(f.message, w.Seed)
	f.fail(p.Int("failed"))
	w.Finish, w.MayLose = f.finish, p.Int("failed") > 0
	run := map[string]func(rank int) error{modeDetector: f.spawnDetector, modeGraph: f.spawnGraph, experiment.ModeSpin: f.spawnSpin}[w.Mode]
	return w.Run(ctx, func(*experiment.Bench) error {
		for rank := range f.Ranks {
			if f.down[rank] {
				continue
			}
			if err := run(rank); err != nil {
				return err
			}
		}
		return nil
	})
}

// failing is a broadcast among nodes of which some have failed.
type failing struct {
	*experiment.Bench
	message   []byte
	down, has []bool // by rank
	suspected []int  // ranks that the root takes for failed
	library   *ftbcast.Loaded
}

// fail draws the nodes that are down, in a copy of the profile.
func (f *failing) fail(n int) {
	one := *f.Profile
	one.Fabric.Faults.Down = append([]fabric.Down(nil), one.Fabric.Faults.Down...)
	rng := rand.New(rand.NewPCG(f.Seed, uint64(n)))
	for _, i := range rng.Perm(f.Ranks - 1)[:n] {
		rank := i + 1
		f.down[rank] = true
		one.Fabric.Faults.Down = append(one.Fabric.Faults.Down, fabric.Down{Node: &rank, To: fabric.MaxTime})
	}
	point := *f.Point
	point.Profile = &one
	f.Point = &point
}

// arrived notes that a rank's host has the message.
func (f *failing) arrived(p *runtime.Proc, memory runtime.View) error {
	if f.has[p.Rank()] {
		return nil
	}
	f.has[p.Rank()] = true
	f.Ended(p.Now())
	f.LastOperation(p, 0)
	return experiment.SameView(fmt.Sprintf("rank %d", p.Rank()), memory, f.message)
}

// finish checks that every rank that is up has the message.
func (f *failing) finish() error {
	f.AtLineRate(f.Cluster, f.More, nil)
	for _, rank := range f.suspected {
		if !f.down[rank] {
			return fmt.Errorf("rank %d is up, but its acknowledgement has not come within timeout, %v: give a longer one", rank, f.Time("timeout"))
		}
	}
	for rank, has := range f.has {
		if rank > 0 && !has && !f.down[rank] {
			return fmt.Errorf("rank %d is up and has not got the message", rank)
		}
	}
	return nil
}

// spawnSpin starts a rank whose NIC broadcasts.
func (f *failing) spawnSpin(rank int) (err error) {
	if f.library == nil {
		if f.library, err = ftbcast.Load(f.Cluster); err != nil {
			return err
		}
	}
	return f.Spawn(rank, "broadcast", func(p *runtime.Proc) error {
		memory := p.Alloc(f.Bytes)
		if rank == 0 {
			copy(memory.Raw(), f.message)
		}
		m, err := f.library.Join(p, ftbcast.Options{PT: experiment.RequestPT, MatchBits: experiment.RequestBits, Memory: memory})
		if err != nil {
			return err
		}
		if rank == 0 {
			return m.Send()
		}
		if err := m.Wait(); err != nil {
			return err
		}
		return f.arrived(p, memory)
	})
}
