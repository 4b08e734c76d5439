package spin17

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/spinsim/spinsim/experiment"
	offload "github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/internal/goal/nodes"
	"github.com/spinsim/spinsim/internal/goal/proxy"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

var matching = &experiment.Experiment{
	Name:  "matching",
	Short: "applications with matching on the host and on the network interface",
	Long: `Matching runs the halo exchanges of the applications of sPIN'17 §5.1 at the published numbers of ranks, with matching on the host
and on the network interface, and compares the gains with the published ones.

Message sizes and counts come from the applications (spinsim goal proxies --source). The publication gives the share of
point-to-point communication in the run time but no computation time. So the computation of an iteration is chosen such that the
run with matching on the host has that share. Nothing else is chosen. There are fewer iterations than in the traces.`,
	Source:   "sPIN'17 §5.1",
	Smoke:    []experiment.Values{{"ranks": 64, "app": "milc", "iterations": 1}},
	Profiles: []string{"spin-int"},
	Axes: []experiment.Axis{
		{Name: "ranks", Kind: report.Count, Of: []string{"64", "72", "360"}, Help: "as published"},
		{Name: "app", Column: "application", Kind: report.Text, Of: []string{"milc", "pop", "comd", "cloverleaf"}, Help: "see spinsim goal gen --help"},
		{Name: "iterations", Kind: report.Count, Least: "1", Default: "5", Help: "iterations of each application; its trace had more"},
		{Name: "eager", Kind: report.Size, Default: "16KiB", Help: "largest message that does not wait for its receive"},
	},
	Points: isPublished,
	Run:    runMatching,
	Memory: matchingMemory,
	Columns: []report.Column{
		{Name: "messages", Kind: report.Count, Help: "received in the run"},
		{Name: "trace_messages", Kind: report.Count, Help: "in the published trace"},
		{Name: "p2p_share", Kind: report.Share, Help: "share of point-to-point communication in the time of the run with matching on the host: the published one, to which the computation is fitted"},
		{Name: "computation", Unit: "ns", Kind: report.Duration, Help: "computation of an iteration that gives this share"},
		{Name: "host", Unit: "ns", Kind: report.Duration, Scale: "time", Help: "time of the run with matching on the host"},
		{Name: "offload", Unit: "ns", Kind: report.Duration, Scale: "time", Help: "time of the run with matching on the network interface"},
		{Name: "gain", Kind: report.Share, Help: "how much faster the run is with matching on the network interface, host/offload - 1"},
		{Name: "copies_host", Kind: report.Count, Help: "messages copied by cores, with matching on the host"},
		{Name: "copies_offload", Kind: report.Count, Help: "messages copied by cores, with matching on the network interface"},
		{Name: "memory_saved", Unit: "bytes", Kind: report.Size, Help: "bytes that did not go through host memories with offloaded matching"},
	},
	Ledger:   ledgerMatching(),
	Slots:    experiment.Always(offload.ReceiverSlot),
	Untraced: true,
	View: experiment.View{
		Value: "gain", Series: []string{"app"}, X: "ranks",
		Summary: []string{
			experiment.ProfileColumn, "application", "ranks", "messages", "trace_messages", "p2p_share", "computation", "host", "offload", "gain",
			"copies_host", "copies_offload", "memory_saved",
		},
	},
	Notes: []string{"gain is a prediction; the computation time gives matching on the host the published share of communication."},
}

// sideAxis is the axis of matchingSides.
const sideAxis = "matched-by"

func init() { matching.Divided = matchingSides }

// matchingSides is what --breakdown measures instead of matching: each of its
// runs alone.
func matchingSides() *experiment.Experiment {
	e := *matching
	e.Divided, e.Ledger, e.Relative = nil, nil, nil
	e.Axes = append([]experiment.Axis{{
		Name: sideAxis, Column: "matched_by", Kind: report.Text, Of: []string{string(mpi.Host), string(mpi.Offload)}, Help: "who matches: the process (host) or the network interface (offload)",
	}}, matching.Axes...)
	e.Columns = []report.Column{
		{Name: "time", Unit: "ns", Kind: report.Duration, Help: "of the run, at the rank that ends last"},
		{Name: "copies", Kind: report.Count, Help: "messages copied by cores"},
	}
	e.Followed = "time"
	e.Run = func(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
		r, _, err := measurePair(ctx, p, p.Text(sideAxis))
		if err != nil {
			return nil, err
		}
		one := r.Offload
		if p.Text(sideAxis) == string(mpi.Host) {
			one = r.Host
		}
		p.NoteOperation(one.MaxRank, "", 0, one.Max)
		return experiment.Values{"time": one.Max, "copies": one.Messages.Copied}, nil
	}
	e.View = experiment.View{Value: "time", Series: []string{"app", sideAxis}, X: "ranks", Quiet: []string{"iterations", "eager"}}
	e.Notes = []string{"The computation of an iteration is that with which matching on the host has the published share of communication, for both."}
	return &e
}

// Application is a row of the table of asynchronous matching (sPIN'17 §5.1): a
// traced application.
type Application struct {
	Proxy    string  // of package internal/goal/proxy
	Ranks    int     // of the trace
	Messages int64   // in the trace; the publication gives only hundreds of thousands for larger runs
	Share    float64 // of point-to-point communication in the run time
}

// PublishedApplications is the table of sPIN'17 §5.1.
func PublishedApplications() []Application {
	return []Application{
		{"milc", 64, 5_743_212, 0.055},
		{"pop", 64, 772_063_149, 0.031},
		{"comd", 72, 5_337_575, 0.061},
		{"comd", 360, 28_100_000, 0.065},
		{"cloverleaf", 72, 2_677_705, 0.052},
		{"cloverleaf", 360, 15_300_000, 0.056},
	}
}

// application returns the published application of a point.
func application(p *experiment.Point) (a Application, found bool) {
	all := PublishedApplications()
	i := slices.IndexFunc(all, func(a Application) bool { return a.Proxy == p.Text("app") && a.Ranks == p.Int("ranks") })
	if i < 0 {
		return a, false
	}
	return all[i], true
}

// isPublished leaves out applications and numbers of ranks that were not
// published, and refuses points that cannot run.
func isPublished(p *experiment.Point) (bool, error) {
	a, found := application(p)
	if !found {
		return false, nil
	}
	app, err := proxy.Load(a.Proxy)
	if err == nil {
		err = app.Check(a.Ranks, p.Int("iterations"))
	}
	if err == nil {
		err = matchingOptions(mpi.Offload, p.Int("eager")).Validate()
	}
	return true, err
}

// matchingOptions are the options of the message passing library.
func matchingOptions(m mpi.Matching, eager int) mpi.Options {
	o := mpi.DefaultOptions(m)
	o.Eager = eager
	o.BufferBytes = max(o.BufferBytes, 2*eager)
	return o
}

// matchingMemory estimates the memory of the larger of a point's two runs.
// These applications use at most half of the buffers.
func matchingMemory(p *experiment.Point) int64 {
	a, found := application(p)
	app, err := proxy.Load(a.Proxy)
	if !found || err != nil {
		return 0 // Points refuses it
	}
	o := matchingOptions(mpi.Offload, p.Int("eager"))
	o.Buffers /= 2
	return nodes.MostMemory(nodes.Config{Config: runtime.Config{Profile: p.Profile}, MPI: o}, a.Ranks, app.Operations(a.Ranks, p.Int("iterations")))
}

// pair is an application measured with both forms of matching.
type pair struct {
	Application
	iterations    int
	Host, Offload *nodes.Result
}

// gain is how much faster the application is with offloaded matching: 0.036 is
// 3.6 %.
func (r *pair) gain() float64 { return float64(r.Host.Max)/float64(r.Offload.Max) - 1 }

// shareTolerance is the largest difference from the published share of
// communication.
const shareTolerance = 0.0002

// maxAdjustments bounds the search for the computation time. Each step makes
// the error more than ten times smaller.
const maxAdjustments = 12

// runMatching measures an application.
func runMatching(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	r, calc, err := measurePair(ctx, p, "")
	if err != nil {
		return nil, err
	}
	p.NoteOperation(r.Offload.MaxRank, "", 0, r.Offload.Max)
	return r.values(sim.Time(calc) * sim.Nanosecond), nil
}

// measurePair measures an application with both forms of matching. traced is
// the one to trace. The publication gives the share of communication, but not
// the time of computation. So the computation of an iteration is chosen such
// that the run with matching on the host has the published share. Nothing else
// is chosen, so the gain is a prediction. It also returns the computation, in
// ns.
func measurePair(ctx context.Context, p *experiment.Point, traced string) (r *pair, calc uint64, err error) {
	a, found := application(p)
	if !found {
		return nil, 0, fmt.Errorf("%s was not published for %d ranks", p.Text("app"), p.Int("ranks"))
	}
	app, err := proxy.Load(a.Proxy)
	if err != nil {
		return nil, 0, err
	}
	r = &pair{Application: a, iterations: p.Int("iterations")}
	run := func(m mpi.Matching, calc uint64, tracer sim.Tracer) (*nodes.Result, error) {
		s, err := app.Schedule(a.Ranks, r.iterations, calc)
		if err != nil {
			return nil, err
		}
		cfg := nodes.Config{Config: p.Config(ctx, a.Ranks), MPI: matchingOptions(m, p.Int("eager"))}
		cfg.Tracer, cfg.Links, cfg.Capture = tracer, nil, nil // a point has several simulations
		result, err := nodes.Run(ctx, s, cfg)
		if err != nil {
			return nil, fmt.Errorf("matching by %s: %w", m, err)
		}
		return result, nil
	}
	for range maxAdjustments {
		if r.Host, err = run(mpi.Host, calc, nil); err != nil {
			return nil, 0, err
		}
		if math.Abs(r.Host.Share()-a.Share) <= shareTolerance {
			break
		}
		calc = r.computation()
	}
	if off := r.Host.Share() - a.Share; math.Abs(off) > shareTolerance {
		return nil, 0, fmt.Errorf("no computation time gives the published share of communication; it is off by %.2g", off)
	}
	switch traced {
	case string(mpi.Host):
		r.Host, err = run(mpi.Host, calc, p.Tracer)
	case string(mpi.Offload):
		r.Offload, err = run(mpi.Offload, calc, p.Tracer)
	default:
		r.Offload, err = run(mpi.Offload, calc, nil)
	}
	return r, calc, err
}

// values are the values of the columns. calc is the computation of an
// iteration.
func (r *pair) values(calc sim.Time) experiment.Values {
	return experiment.Values{
		"messages": r.Host.Messages.Received, "trace_messages": r.Messages, "p2p_share": r.Host.Share(), "computation": calc,
		"host": r.Host.Max, "offload": r.Offload.Max, "gain": r.gain(),
		"copies_host": r.Host.Messages.Copied, "copies_offload": r.Offload.Messages.Copied,
		"memory_saved": r.Host.Nodes.HostMemoryBytes - r.Offload.Nodes.HostMemoryBytes,
	}
}

// computation returns a new computation of an iteration, in ns. With it, the
// time that the last run spent on other things would be the published share.
func (r *pair) computation() uint64 {
	total := sim.Time(0)
	for _, t := range r.Host.Finish {
		total = total.Plus(t)
	}
	communication := (total - r.Host.Computing).Nanoseconds()
	return uint64(communication * (1 - r.Share) / r.Share / float64(r.Ranks*r.iterations))
}

// ledgerMatching are the rows of the table of sPIN'17 §5.1.
func ledgerMatching() (list []experiment.LedgerRow) {
	for _, a := range []struct{ of, share, gain string }{
		{"ranks=64 app=milc", "12", "13"},
		{"ranks=64 app=pop", "16", "17"},
		{"ranks=72 app=comd", "20", "21"},
		{"ranks=360 app=comd", "24", "25"},
		{"ranks=72 app=cloverleaf", "28", "29"},
		{"ranks=360 app=cloverleaf", "32", "33"},
	} {
		list = append(
			list,
			experiment.LedgerRow{ID: "spin17-5.1-" + a.gain, Of: a.of, Column: "gain"},
			experiment.LedgerRow{
				ID: "spin17-5.1-" + a.share, Of: a.of, How: "p2p_share, to which the computation is fitted",
				Ours: func(m *experiment.Measured) []float64 { return []float64{100 * m.At("p2p_share", "")} },
			},
		)
	}
	return list
}
