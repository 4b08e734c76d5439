package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/goal/nodes"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// nodeFlags say on which nodes a schedule runs and who matches.
type nodeFlags struct {
	profile   string
	overrides []string
	matching  []string
	eager     string
	buffers   int
	perNode   int
	seed      uint64
	engine    string
	timeline  string
	limits    sim.Limits
	memory    cli.MemoryFlag
	links     cli.LinksFlag
	shape     cli.ShapeFlag
	// a note on processors that were chosen for handlers which did not run;
	// configs sets it
	idle string
}

// names lists the flags, which the endpoint model does not have.
func (f *nodeFlags) names() []string {
	return []string{"profile", "set", "matching", "eager", "buffers", "ranks-per-node", "seed", "engine", "links", "topology"}
}

func (f *nodeFlags) register(c *cobra.Command) {
	flags := c.Flags()
	o := mpi.DefaultOptions(mpi.Host)
	flags.StringVar(&f.profile, "profile", "spin-int", "nodes: device and network, `NAME` or file")
	flags.StringArrayVar(&f.overrides, "set", nil, "nodes: change a value of the profile: `PATH=VALUE`, such as hpu.cores=8; may be repeated")
	flags.StringSliceVar(&f.matching, "matching", formNames(), "nodes: `LIST` of those who match: host, offload")
	flags.StringVar(&f.eager, "eager", strings.ReplaceAll(sim.Size(o.Eager).String(), " ", ""), "nodes: largest message that does not wait for its receive: `SIZE`")
	flags.IntVar(&f.buffers, "buffers", o.Buffers, "nodes: `NUMBER` of buffers of each rank for messages without a receive")
	flags.IntVar(&f.perNode, "ranks-per-node", 1, "nodes: `NUMBER` of ranks on each node: rank r runs on node r / NUMBER, on a core of its own while there are any")
	flags.Uint64Var(&f.seed, "seed", 1, "nodes: `NUMBER` for the random streams of the simulation")
	f.links.Register(c)
	f.shape.Register(c)
	flags.StringVar(&f.engine, "engine", "wazero", "nodes: WebAssembly engine: wazero, or wasmtime if built in")
}

func formNames() (names []string) {
	for _, m := range mpi.Forms() {
		names = append(names, string(m))
	}
	return names
}

// mpiFlags are the flags of the options of package mpi. A buffer holds some of
// the largest eager messages.
var mpiFlags = map[string]string{
	"matching": "matching", "eager": "eager", "buffers": "buffers", "ranks on a node": "ranks-per-node", "bytes of a buffer": "eager",
}

// configs returns a configuration for each form of matching.
func (f *nodeFlags) configs(m *making) ([]nodes.Config, error) {
	size, err := f.shape.Overrides()
	if err != nil {
		return nil, badInput(err)
	}
	p, err := m.profile(f.profile, append(size, f.overrides...))
	if err != nil {
		return nil, badInput(err)
	}
	if err := checkEngine(f.engine); err != nil {
		return nil, badInput(err)
	}
	eager, err := sim.ParseSize(f.eager)
	if err != nil {
		return nil, badInput(fmt.Errorf("--eager: %w", err))
	}
	if len(f.matching) == 0 {
		return nil, badInput(fmt.Errorf("--matching: empty, expected some of %s", strings.Join(formNames(), ", ")))
	}
	for i, form := range f.matching {
		if slices.Contains(f.matching[:i], form) {
			return nil, badInput(fmt.Errorf("--matching: %s is given twice", form))
		}
	}
	if f.timeline != "" && len(f.matching) != 1 {
		return nil, badInput(fmt.Errorf("--trace: expected one form of --matching, got %s", strings.Join(f.matching, ", ")))
	}
	if f.links.Wanted() && len(f.matching) != 1 {
		return nil, badInput(fmt.Errorf("--links: expected one form of --matching, got %s", strings.Join(f.matching, ", ")))
	}
	if err := f.links.Check(); err != nil {
		return nil, badInput(err)
	}
	if f.perNode < 1 {
		return nil, badInput(fmt.Errorf("--ranks-per-node: %d, expected at least 1", f.perNode))
	}
	var list []nodes.Config
	var running []string
	m.Seed, m.Engine = &f.seed, f.engine
	for _, form := range f.matching {
		o := mpi.DefaultOptions(mpi.Matching(form))
		o.Eager, o.Buffers, o.PerNode = int(eager), f.buffers, f.perNode
		o.BufferBytes = max(o.BufferBytes, messagesPerBuffer*o.Eager)
		if err := o.Validate(); err != nil {
			return nil, badInput(fields.Renamed(err, "--", mpiFlags))
		}
		if o.Matching == mpi.Offload {
			m.AddHandler(provenance.NewHandler("matching", "", matching.Library.Wasm))
			running = []string{handlers.Must("matching").Served()}
		}
		list = append(list, nodes.Config{Profile: p, MPI: o, Seed: f.seed, Engine: f.engine, Limits: f.limits, Links: f.links.Watch()})
	}
	if m.again == nil {
		if err := profile.CheckServe(f.overrides, running); err != nil {
			return nil, badInput(err)
		}
	}
	f.idle = p.Serve.Idle(running)
	return list, nil
}

// messagesPerBuffer is how many of the largest eager messages a buffer holds at least.
const messagesPerBuffer = 16

// runNodes runs a schedule on nodes, in one form of matching after the other.
func runNodes(ctx context.Context, m *making, s *goal.Schedule, f *nodeFlags) (results []*nodes.Result, err error) {
	configs, err := f.configs(m)
	if err != nil {
		return nil, err
	}
	for _, cfg := range configs {
		what := fmt.Sprintf("%d ranks of the schedule, matching by %s, --eager %s, --buffers %d:", s.Ranks(), cfg.MPI.Matching, f.eager, f.buffers)
		if err := f.memory.Check(what, nodes.Memory(s, cfg)); err != nil {
			return nil, err
		}
	}
	var files cli.RunFiles
	tracer, err := files.Trace("--trace", f.timeline, m.Args())
	if err != nil {
		return nil, err
	}
	files.Network(&f.links, nil, &m.Record)
	defer func() { err = files.End(ctx, err) }()
	for _, cfg := range configs {
		cfg.Tracer = tracer
		r, err := nodes.Run(ctx, s, cfg)
		if input := (nodes.InputError{}); errors.As(err, &input) {
			return nil, badInput(err)
		}
		if err != nil {
			return nil, fmt.Errorf("matching by %s: %w", cfg.MPI.Matching, err)
		}
		results = append(results, r)
	}
	return results, nil
}

// writeNodesJSON writes one object for each form of matching, in an array.
func writeNodesJSON(out io.Writer, m *making, results []*nodes.Result) error {
	type object struct {
		Matching    mpi.Matching      `json:"matching"`
		Ranks       int               `json:"ranks"`
		Events      uint64            `json:"events"`
		Messages    int64             `json:"messages"`
		MaxNS       json.RawMessage   `json:"max_ns"`
		MaxRank     int               `json:"max_rank"`
		Speedup     float64           `json:"speedup"`
		Share       float64           `json:"communication_share"`
		Unexpected  int64             `json:"unexpected"`
		Large       int64             `json:"large"`
		Copied      int64             `json:"copied"`
		CopiedBytes int64             `json:"copied_bytes"`
		HostMemory  int64             `json:"host_memory_bytes"`
		HostCPU     json.RawMessage   `json:"host_cpu_ns"`
		FinishNS    []json.RawMessage `json:"finish_ns"`
	}
	var list []object
	for _, r := range results {
		o := object{
			Matching: r.Matching, Ranks: r.Ranks, Events: r.Events, Messages: r.Messages.Received, MaxNS: report.ExactNanoseconds(r.Max),
			MaxRank: r.MaxRank, Speedup: speedup(results[0], r), Share: r.Share(), Unexpected: r.Messages.Unexpected, Large: r.Messages.Large,
			Copied: r.Messages.Copied, CopiedBytes: r.Messages.CopiedBytes, HostMemory: r.Nodes.HostMemoryBytes,
			HostCPU: report.ExactNanoseconds(r.Nodes.CPUBusy),
		}
		for _, t := range r.Finish {
			o.FinishNS = append(o.FinishNS, report.ExactNanoseconds(t))
		}
		list = append(list, o)
	}
	return writeWithOrigin(out, &m.Record, map[string]any{"results": list})
}

func speedup(base, r *nodes.Result) float64 {
	if r.Max == 0 {
		return 1
	}
	return float64(base.Max) / float64(r.Max)
}

// nodeColumns describe a run on nodes.
func nodeColumns() []report.Column {
	return []report.Column{
		{Name: "matching", Help: "who matches messages and receives: host (the process, which copies) or offload (the NIC and its handlers)"},
		{Name: "max", Unit: "ns", Kind: report.Duration, Scale: "time", Help: "when the last rank had done all of its operations"},
		{Name: "speedup", Kind: report.Ratio, Help: "max of the first form divided by max"},
		{Name: "communication_share", Kind: report.Share, Help: "share of the ranks' time in which they did not compute"},
		{Name: "messages", Kind: report.Count, Help: "messages received, payload checked"},
		{Name: "unexpected", Kind: report.Count, Help: "of them, those that came before their receive"},
		{Name: "large", Kind: report.Count, Help: "of them, those above the eager limit"},
		{Name: "copied", Kind: report.Count, Help: "of them, those that a core has copied, at least in part"},
		{Name: "copied_bytes", Kind: report.Size, Help: "bytes so copied"},
		{Name: "host_memory", Unit: "bytes", Kind: report.Size, Help: "bytes through the host memories of all ranks: DMA in both directions, and reads and writes of the cores"},
		{Name: "host_cpu", Unit: "ns", Kind: report.Duration, Help: "time that cores of all ranks were busy, computations included"},
	}
}

// differs says for the head of a table which flags are not what they are by
// default: without that two runs would look alike.
func (f *nodeFlags) differs() (text string) {
	plain := mpi.DefaultOptions(mpi.Host)
	if f.perNode != 1 {
		text += fmt.Sprintf(", %d on each", f.perNode)
	}
	if eager, err := sim.ParseSize(f.eager); err == nil && int64(eager) != int64(plain.Eager) {
		text += fmt.Sprintf(", eager up to %v", eager)
	}
	if f.buffers != plain.Buffers {
		text += fmt.Sprintf(", %d buffers for each", f.buffers)
	}
	return text
}

func writeNodesTable(out io.Writer, m *making, f *nodeFlags, results []*nodes.Result, format report.Format) error {
	t := report.New(nodeColumns()...)
	first := results[0]
	t.Title = fmt.Sprintf("%d %s on nodes of %s%s", first.Ranks, report.Counted(first.Ranks, "ranks"), m.Profiles[0].Name, f.differs())
	t.Origin = &m.Record
	for _, r := range results {
		n := r.Messages
		t.Add(string(r.Matching), r.Max, speedup(first, r), r.Share(), n.Received, n.Unexpected, n.Large, n.Copied, n.CopiedBytes,
			r.Nodes.HostMemoryBytes, r.Nodes.CPUBusy)
	}
	for _, r := range results[1:] {
		t.Answer = append(t.Answer, fmt.Sprintf("%s is %.2f times as fast as %s; it copies %d messages (%v) where %s copies %d (%v).",
			r.Matching, speedup(first, r), first.Matching, r.Messages.Copied, sim.Size(r.Messages.CopiedBytes),
			first.Matching, first.Messages.Copied, sim.Size(first.Messages.CopiedBytes)))
	}
	if f.idle != "" {
		t.Notes = append(t.Notes, f.idle)
	}
	for _, r := range results {
		if m := r.Messages; m.Resent > 0 {
			t.Notes = append(t.Notes, fmt.Sprintf("%s: %d times a message was refused, because the buffers of its target were full, and sent again; ranks added %d buffers",
				r.Matching, m.Resent, m.Grown))
		}
		times := slices.Sorted(slices.Values(r.Finish))
		t.Notes = append(t.Notes, fmt.Sprintf("%s: the first rank ends at %v, half of them at %v, the last at %v (rank %d)", r.Matching,
			times[0], times[(len(times)-1)/2], r.Max, r.MaxRank))
	}
	return t.Write(out, format)
}
