package experiment

import (
	"context"
	"fmt"
	"math"

	"github.com/spinsim/spinsim/goal/nodes"
	"github.com/spinsim/spinsim/goal/proxy"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/provenance"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Application is a row of the table of asynchronous matching (sPIN'17 §5.1): what was traced, and what offloaded matching
// was worth.
type Application struct {
	Proxy     string  // of package goal/proxy
	Ranks     int     // of the trace
	Messages  int64   // in the trace; of the larger runs the publication gives hundreds of thousands
	Share     float64 // of point-to-point communication in the run time
	Published float64 // gain: how much faster the application was: 0.036 is 3.6 %
}

// PublishedApplications is the table of sPIN'17 §5.1.
func PublishedApplications() []Application {
	return []Application{
		{"milc", 64, 5_743_212, 0.055, 0.036},
		{"pop", 64, 772_063_149, 0.031, 0.007},
		{"comd", 72, 5_337_575, 0.061, 0.037},
		{"comd", 360, 28_100_000, 0.065, 0.038},
		{"cloverleaf", 72, 2_677_705, 0.052, 0.028},
		{"cloverleaf", 360, 15_337_575, 0.056, 0.024},
	}
}

// MatchingConfig says how the applications run.
type MatchingConfig struct {
	Profile    *profile.Profile
	Iterations int // of each application; its trace had more
	Eager      int // largest message that does not wait for its receive, bytes
	Seed       uint64
	Engine     string
}

// MatchingResult is an application measured in both forms of matching.
type MatchingResult struct {
	Application
	Calc          sim.Time // computation of an iteration
	Host, Offload *nodes.Result
}

// Gain is how much faster the application is with offloaded matching: 0.036 is 3.6 %.
func (r *MatchingResult) Gain() float64 { return float64(r.Host.Max)/float64(r.Offload.Max) - 1 }

// shareTolerance is how near the share of communication must come to the published one.
const shareTolerance = 0.0002

// maxAdjustments bounds the search for the computation time; each step divides the distance by more than ten.
const maxAdjustments = 12

// RunMatching measures an application. The publication gives the share of communication and not the time of computation: the
// computation of an iteration is chosen so that the run with matching on the host has the published share. Nothing else is
// chosen, so the gain is a prediction.
func RunMatching(ctx context.Context, a Application, cfg MatchingConfig) (*MatchingResult, error) {
	p, err := proxy.Load(a.Proxy)
	if err != nil {
		return nil, err
	}
	run := func(m mpi.Matching, calc uint64) (*nodes.Result, error) {
		s, err := p.Schedule(a.Ranks, cfg.Iterations, calc)
		if err != nil {
			return nil, err
		}
		o := mpi.DefaultOptions(m)
		o.Eager = cfg.Eager
		o.BufferBytes = max(o.BufferBytes, 2*o.Eager)
		r, err := nodes.Run(ctx, s, nodes.Config{Profile: cfg.Profile, MPI: o, Seed: cfg.Seed, Engine: cfg.Engine})
		if err != nil {
			return nil, fmt.Errorf("%s, %d ranks, matching by %s: %w", a.Proxy, a.Ranks, m, err)
		}
		return r, nil
	}
	res := &MatchingResult{Application: a}
	calc := uint64(0)
	for range maxAdjustments {
		if res.Host, err = run(mpi.Host, calc); err != nil {
			return nil, err
		}
		if math.Abs(res.Host.Share()-a.Share) <= shareTolerance {
			break
		}
		calc = res.computation(cfg.Iterations)
	}
	if off := res.Host.Share() - a.Share; math.Abs(off) > shareTolerance {
		return nil, fmt.Errorf("%s, %d ranks: no computation time gives the published share of communication; it is off by %.2g", a.Proxy, a.Ranks, off)
	}
	res.Calc = sim.Time(calc) * sim.Nanosecond
	res.Offload, err = run(mpi.Offload, calc)
	return res, err
}

// computation is the computation of an iteration, in ns, at which the time that the last run did not compute would be the
// published share.
func (r *MatchingResult) computation(iterations int) uint64 {
	total := sim.Time(0)
	for _, t := range r.Host.Finish {
		total = total.Plus(t)
	}
	communication := (total - r.Host.Computing).Nanoseconds()
	return uint64(communication * (1 - r.Share) / r.Share / float64(r.Ranks*iterations))
}

// MatchingColumns describe the table of MatchingTable, but for the published numbers and what produced it.
func MatchingColumns() []report.Column {
	return []report.Column{
		{Name: "application", Help: "see spinsim goal gen --help"},
		{Name: "profile", Help: "the device and network simulated"},
		{Name: "ranks", Kind: report.Count, Help: "as published"},
		{Name: "messages", Kind: report.Count, Help: "received in the run"},
		{Name: "trace_messages", Kind: report.Count, Help: "in the published trace"},
		{Name: "p2p_share", Kind: report.Share, Help: "published share of point-to-point communication in the run time; that of the run with matching on the host"},
		{Name: "computation", Unit: "ns", Kind: report.Duration, Help: "computation of an iteration that gives this share"},
		{Name: "host", Unit: "ns", Kind: report.Duration, Scale: "time", Help: "time of the run with matching on the host"},
		{Name: "offload", Unit: "ns", Kind: report.Duration, Scale: "time", Help: "time of the run with matching on the network interface"},
		{Name: "gain", Kind: report.Share, Help: "how much faster the run is with matching on the network interface, host/offload - 1"},
		{Name: "copies_host", Kind: report.Count, Help: "messages copied by cores, with matching on the host"},
		{Name: "copies_offload", Kind: report.Count, Help: "messages copied by cores, with matching on the network interface"},
		{Name: "memory_saved", Unit: "bytes", Kind: report.Size, Help: "bytes that did not go through host memories with offloaded matching"},
	}
}

// publishedMatching are the numbers of the table of sPIN'17 §5.1. They are for no profile that was changed.
func publishedMatching(p *profile.Profile) (list []report.Published) {
	profile := p.Name
	if !p.Origin.Pristine() {
		profile = notMeasured
	}
	for _, a := range PublishedApplications() {
		at := []report.Is{{Column: "application", Value: a.Proxy}, {Column: "ranks", Value: a.Ranks}, {Column: "profile", Value: profile}}
		list = append(list, report.Published{At: at, Column: "gain", Value: a.Published, Source: "sPIN'17 §5.1"})
	}
	return list
}

// MatchingTable sets the results beside the published ones. The record says what produced them, with the profile among others.
func MatchingTable(results []*MatchingResult, made *provenance.Record, p *profile.Profile) (*report.Table, error) {
	profile, err := provenance.NewProfile(p)
	if err != nil {
		return nil, err
	}
	t := report.New(append(MatchingColumns(), provenance.Columns()...)...)
	t.Origin = made
	for _, r := range results {
		row := []any{
			r.Proxy, p.Name, r.Ranks, r.Host.Messages.Received, r.Messages, r.Share, r.Calc, r.Host.Max, r.Offload.Max, r.Gain(),
			r.Host.Messages.Copied, r.Offload.Messages.Copied, r.Host.Nodes.HostMemoryBytes - r.Offload.Nodes.HostMemoryBytes,
		}
		t.Add(append(row, made.Row(&profile, made.Handlers)...)...)
	}
	return t, t.SetPublished(publishedMatching(p))
}
