package spin17

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/handlers/mailbox"
	offload "github.com/spinsim/spinsim/handlers/matching"
	"github.com/spinsim/spinsim/handlers/rdma"
	"github.com/spinsim/spinsim/handlers/rnr"
	"github.com/spinsim/spinsim/nic"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/goal/nodes"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Schedule runs a GOAL schedule on nodes. Its sends and receives are messages
// of package mpi. name is the schedule's name in tables. nil: the experiment
// can be described but not run.
func Schedule(name string, s *goal.Schedule) *experiment.Experiment {
	g := &scheduleRun{swaps: newSwaps(s, true), wrong: make(map[checked]error)}
	short := "a GOAL schedule on nodes"
	if s != nil {
		short = fmt.Sprintf("a GOAL schedule of %d %s on nodes", s.Ranks(), report.Counted(s.Ranks(), "ranks"))
	}
	return &experiment.Experiment{
		Name:     "schedule",
		Short:    short,
		Source:   "sPIN'17 §5.1",
		Profiles: []string{"spin-int"},
		Axes:     scheduleAxes(name),
		Points:   g.has, Run: g.run, Independent: true,
		Memory: func(p *experiment.Point) int64 { return nodes.Memory(g.swaps.at(p).Schedule, g.config(p)) },
		Columns: []report.Column{
			{Name: "max", Unit: "ns", Kind: report.Duration, Scale: "time", Help: "when the last rank had done all of its operations"},
			{Name: "max_rank", Kind: report.Count, Help: "the first rank that ends then"},
			{Name: "half", Unit: "ns", Kind: report.Duration, Scale: "time", Help: "when half of the ranks had done all of their operations; --samples has the time of each"},
			{Name: "first", Unit: "ns", Kind: report.Duration, Scale: "time", Help: "when the first rank had done all of its operations"},
			{Name: "communication_share", Kind: report.Share, Help: "share of the ranks' time in which they did not compute"},
			{Name: "messages", Kind: report.Count, Help: "messages received, payload checked"},
			{Name: "unexpected", Kind: report.Count, Help: "of them, those that came before their receive"},
			{Name: "large", Kind: report.Count, Help: "of them, those above the eager limit"},
			{Name: "copied", Kind: report.Count, Help: "of them, those that a core has copied, at least in part"},
			{Name: "copied_bytes", Kind: report.Size, Help: "bytes so copied"},
			{Name: "resent", Kind: report.Count, Help: "times that a message was refused, because the buffers of its target were full, and sent again"},
			{Name: "added_buffers", Kind: report.Count, Help: "buffers that ranks added then"},
			{Name: "host_memory", Unit: "bytes", Kind: report.Size, Help: "bytes through the host memories of all ranks: DMA in both directions, and reads and writes of the cores"},
			{Name: "host_cpu", Unit: "ns", Kind: report.Duration, Help: "time that cores of all ranks were busy, computations included"},
			{Name: "events", Kind: report.Count, Help: "events of the simulation"},
		},
		Relative: []experiment.Relative{{
			Column: report.Column{Name: "speedup", Kind: report.Ratio, Help: "max of host / max"},
			Of:     "max", Axis: "matching", Base: string(mpi.Host),
		}},
		Slots: g.slots,
		View: experiment.View{
			Value: "max", Series: []string{"matching"}, Base: string(mpi.Host), X: "eager", Quiet: []string{"eager", "buffers", "ranks-per-node", "transport", "payload", "cold", collAxis},
			Summary: []string{
				experiment.ProfileColumn, "transport", "payload", "cold", collAxis, "eager", "buffers", "ranks_per_node", "matching", "max", "speedup", "communication_share",
				"messages", "unexpected", "large", "copied", "copied_bytes", "host_memory", "host_cpu",
			},
		},
		Details:   []experiment.Detail{collectivesDetail(s, report.Duration)},
		Caveats:   both(scheduleCaveats(s), collectiveCaveats(collAxis, "matching")),
		Operation: "the time of a rank, from the beginning of the run to the end of its last operation",
	}
}

// slots are the slots of the transport, of the NIC that matches, and of the library.
func (g *scheduleRun) slots(p *experiment.Point) (list []*handlers.Slot) {
	list = g.swaps.at(p).mode.Slots()
	switch transport := mpi.Transport(p.Text("transport")); {
	case transport == mpi.ExaNet:
		return append(list, mailbox.EngineSlot, rdma.EngineSlot)
	case transport == mpi.InfiniBand:
		return append(list, rnr.EngineSlot)
	case p.Text("matching") == string(mpi.Host):
		return list
	}
	return append(list, offload.ReceiverSlot)
}

// scheduleAxes are the axes of a schedule on nodes.
func scheduleAxes(name string) []experiment.Axis {
	host := mpi.DefaultOptions(mpi.Host)
	return []experiment.Axis{
		{Name: "file", Kind: report.Text, Of: []string{strings.ReplaceAll(name, ",", "_")}, Help: "the schedule"},
		{Name: "matching", Kind: report.Text, Of: []string{string(mpi.Host), string(mpi.Offload)}, Help: "who matches messages and receives: host (the process, which copies) or offload (the NIC and its handlers)"},
		{Name: "eager", Kind: report.Size, Default: fmt.Sprint(host.Eager), Help: "largest message that does not wait for its receive"},
		{Name: "buffers", Kind: report.Count, Least: "1", Default: fmt.Sprint(host.Buffers), Help: "buffers of each rank for messages without a receive; each holds 16 of the largest eager messages, and at least 256 KiB"},
		{Name: "ranks-per-node", Kind: report.Count, Least: "1", Default: "1", Help: "rank r runs on node r / ranks-per-node, on its own core while cores are left"},
		{Name: "transport", Kind: report.Text, Of: transportNames(), Default: string(mpi.Portals), Help: "what carries the messages: portals (whose matching is host or offload), exanet (packetizer, mailbox and RDMA of ExaNeSt) or infiniband (reliable connections); the last two match on the host"},
		{Name: "payload", Kind: report.Text, Of: []string{payloadChecked, payloadNone}, Default: payloadChecked, Help: "checked: each byte of each message; none: messages have lengths and times but no bytes, for schedules of gigabytes"},
		{Name: "cold", Kind: report.Flag, Default: "false", Help: "ranks touch the memory of messages for the first time, as after an allocation; otherwise its pages are there"},
		collectiveAxis(libraryModes()),
	}
}

// scheduleCaveats are about several cpu and nic of a rank, and messages that were refused.
func scheduleCaveats(s *goal.Schedule) func([]*experiment.Result) []string {
	return func(results []*experiment.Result) (lines []string) {
		if s != nil && nodes.Several(s) {
			lines = append(lines, "Each cpu of a rank is a core. Their calls of the library take turns; what arrives takes a core that does not compute, in the model that of its send.")
		}
		if s != nil && nodes.SeveralNICs(s) {
			lines = append(lines, "Each nic is a NIC of the host, with a port, a bus and memory of its own. A receive waits at the NIC of its message, as in the model, whatever it names. A breakdown follows the first NIC; waits for the others are in other.")
		}
		for _, r := range results {
			if n := r.Values["resent"].(int64); n > 0 {
				lines = append(lines, fmt.Sprintf("%v: %d times a message was refused, because the buffers of its target were full, and sent again; ranks added %d buffers.",
					r.Point, n, r.Values["added_buffers"]))
			}
		}
		return lines
	}
}

// scheduleRun measures points of a schedule.
type scheduleRun struct {
	swaps *swaps
	wrong map[checked]error // why it cannot run; Points has no goroutines
}

// checked is a schedule with an eager limit.
type checked struct {
	schedule *goal.Schedule
	eager    int
}

// messagesPerBuffer is how many of the largest eager messages a buffer holds at
// least.
const messagesPerBuffer = 16

// flagsOfMPI are the axes by the options of package mpi.
var flagsOfMPI = map[string]string{
	"eager": "eager", "buffers": "buffers", "ranks on a node": "ranks-per-node", "bytes of a buffer": "eager", "allreduce": collAxis,
}

// Values of the axis payload.
const (
	payloadChecked = "checked"
	payloadNone    = "none"
)

func transportNames() (list []string) {
	for _, t := range mpi.Transports() {
		list = append(list, string(t))
	}
	return list
}

// config describes the run of a point.
func (g *scheduleRun) config(p *experiment.Point) nodes.Config {
	o := mpi.DefaultOptions(mpi.Matching(p.Text("matching")))
	o.Transport = mpi.Transport(p.Text("transport"))
	o.Eager, o.Buffers, o.PerNode = p.Int("eager"), p.Int("buffers"), p.Int("ranks-per-node")
	o.BufferBytes = max(o.BufferBytes, messagesPerBuffer*o.Eager)
	s := g.swaps.at(p)
	o.Allreduce = s.mode
	return nodes.Config{
		Config: p.Config(context.Background(), o.Nodes(s.Ranks())), MPI: o, Calls: s.calls,
		Empty: p.Text("payload") == payloadNone, Cold: p.Flag("cold"),
	}
}

// has refuses a schedule that cannot run on nodes. A schedule whose operations
// wait for each other is still a point, and Run names them.
func (g *scheduleRun) has(p *experiment.Point) (bool, error) {
	s, cfg := g.swaps.at(p), g.config(p)
	if s.err != nil {
		return false, fmt.Errorf("--%s: %w", collAxis, s.err)
	}
	o := cfg.MPI
	if o.Transport != mpi.Portals && o.Matching == mpi.Offload {
		return false, nil // it has no such matching
	}
	if d := p.Profile; o.Transport != mpi.Portals && d.HPU.DMAWrite != nic.Landed {
		return false, fmt.Errorf("profile %s: hpu.dma_write: %s, expected %s for transport %s: what is acknowledged must have landed", d.Origin.Name, d.HPU.DMAWrite, nic.Landed, o.Transport)
	}
	if err := o.Validate(); err != nil {
		return false, fields.Renamed(err, "--", flagsOfMPI)
	}
	if err := errors.Join(o.Allreduce.Check(&p.Profile.Fabric), nodes.CheckCalls(s.Schedule, &cfg)); err != nil {
		return false, fmt.Errorf("--%s: %w", collAxis, err)
	}
	if err := nodes.CheckCores(s.Schedule, &cfg); err != nil {
		return false, err
	}
	this := checked{s.Schedule, o.Eager}
	err, known := g.wrong[this]
	if !known {
		if err = nodes.Check(s.Schedule, o); !errors.As(err, &nodes.InputError{}) {
			err = nil
		}
		g.wrong[this] = err
	}
	return true, err
}

func (g *scheduleRun) run(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
	cfg, s := g.config(p), g.swaps.at(p).Schedule
	r, err := nodes.Run(ctx, s, cfg)
	if err != nil {
		return nil, err
	}
	o := nodes.Placed(s, cfg)
	for rank, finish := range r.Finish {
		node, program := o.Program(rank)
		p.NoteOperation(node, program, 0, finish)
	}
	times := slices.Sorted(slices.Values(r.Finish))
	m := &r.Messages
	at := make([]window, len(r.Windows))
	for i, w := range r.Windows {
		at[i] = window{int64(w.Start), int64(w.End)}
	}
	return experiment.Values{
		collectivesTable: collectiveRows(s, at, int64(r.Max), func(t int64) any { return sim.Time(t) }),
		"max":            r.Max, "max_rank": r.MaxRank, "half": times[(len(times)-1)/2], "first": times[0], "communication_share": r.Share(),
		"messages": m.Received, "unexpected": m.Unexpected, "large": m.Large, "copied": m.Copied, "copied_bytes": m.CopiedBytes,
		"resent": m.Resent, "added_buffers": m.Grown, "host_memory": r.Nodes.HostMemoryBytes, "host_cpu": r.Nodes.CPUBusy, "events": r.Events,
	}, nil
}
