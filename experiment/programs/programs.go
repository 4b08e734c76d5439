// Package programs is the experiment of a program that was compiled against
// Debian's Open MPI: how long it takes on simulated nodes (package mpirun).
package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/experiment/exanest"
	"github.com/spinsim/spinsim/experiment/part"
	"github.com/spinsim/spinsim/handlers"
	"github.com/spinsim/spinsim/handlers/mailbox"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/mpirun"
	"github.com/spinsim/spinsim/report"
)

// mostRanks is how many processes a machine may have to start.
const mostRanks = "4096"

// Of makes the experiment of a program with arguments, whose own output goes to
// out and errs.
func Of(command []string, out, errs io.Writer) *experiment.Experiment {
	name := "PROGRAM"
	if len(command) > 0 {
		name = filepath.Base(command[0])
	}
	return &experiment.Experiment{
		Name:  "mpirun",
		Short: "time of the MPI program " + name + " on simulated nodes",
		Axes: []experiment.Axis{
			{Name: "ranks", Kind: report.Count, Least: "1", Most: mostRanks, Default: "1", Help: "processes (-np)"},
			{Name: "ranks-per-node", Kind: report.Count, Least: "1", Most: mostRanks, Default: "1", Help: "processes of each simulated node"},
			{Name: "transport", Kind: report.Text, Of: exanest.TransportNames(), Default: exanest.TransportNames()[0], Help: "what carries the messages, as in spinsim osu; otherwise what suits the first profile"},
			{Name: "pages", Kind: report.Text, Of: part.PageModes(), Default: part.PagesPresent, Help: "treatment of pages that the program has not touched, with transport exanet: as mode of spinsim compare apps"},
			{Name: "allreduce", Kind: report.Text, Of: allreduceModes(), Default: string(mpi.ModeHost), Help: "who combines in MPI_Allreduce of all ranks, as mode of spinsim compare allreduce: Open MPI's own algorithms on the host, or NICs and switches with handlers, whose results are compared with the host's; with " + rooted + " they take MPI_Reduce, MPI_Bcast and MPI_Barrier, too"},
			{Name: "compute", Kind: report.Text, Default: computeNone, Help: "time of the program's own computing: none; factor=NUMBER times that of this computer's processor, which differs from run to run; instructions=TIME for each instruction, if this computer counts them; or FILE.csv, whose lines are a level of MPI_Pcontrol and the time of each of its calls, 3,250us"},
		},
		Profiles: []string{"spin-int"},
		Inputs:   tables,
		Points:   func(p *experiment.Point) (bool, error) { return measured(p, command) },
		Run: func(ctx context.Context, p *experiment.Point) (experiment.Values, error) {
			return run(ctx, p, command, out, errs)
		},
		Memory: func(p *experiment.Point) int64 { return p.Footprint(nodes(p)) },
		Columns: append([]report.Column{
			{Name: timeColumn, Unit: "us", Kind: report.Duration, Help: "virtual time from the end of MPI_Init, of the last rank, to the last beginning of MPI_Finalize; computing takes what --compute says"},
			{Name: "messages", Kind: report.Count, Help: "messages of all ranks, those of collective operations included"},
			{Name: "sent", Unit: "bytes", Kind: report.Size, Help: "bytes of the messages"},
			{Name: "onesided", Kind: report.Count, Help: "puts, gets and atomic operations of all ranks"},
			{Name: "late", Kind: report.Count, Help: "messages that arrived before their receive"},
			{Name: "offloaded", Kind: report.Count, Help: "calls of MPI_Allreduce in the NICs, of all ranks; with " + rooted + " of all that they may take"},
			{Name: "refused", Kind: report.Count, Help: "those that the modules in the NICs did not take, for their type or operation: the host did them"},
			{Name: "fresh", Kind: report.Share, Help: "share of the pages of messages that the program had not touched when it sent or received, or that its allocator had given back; empty: all pages were made present"},
			{Name: "faults", Kind: report.Count, Help: "pages that came while devices or MPI waited for them"},
		}, experiment.ClusterColumns()...),
		Relative: []experiment.Relative{{
			Column: report.Column{Name: "vs_touch", Kind: report.Ratio, Help: "time of touch divided by time"},
			Of:     timeColumn, Axis: "pages", Base: "touch",
		}},
		Slots: func(p *experiment.Point) []*handlers.Slot {
			slots, own := exanest.TransportSlots(p.Text("transport")), part.PageSlots(p.Text("pages"))
			if p.Text("transport") == exanest.TransportNames()[0] && own != nil {
				slots = append([]*handlers.Slot{mailbox.EngineSlot}, own...)
			}
			mode, _ := modeOf(p)
			return append(slots, mode.Slots()...)
		},
		Undivided: "a program has many operations of many kinds: --trace shows them",
		View: experiment.View{
			Value: timeColumn, X: "ranks", Quiet: []string{"ranks-per-node", "transport", "compute"}, Answer: answer,
			Summary: []string{"profile", "ranks", "pages", "allreduce", timeColumn, "vs_touch", "messages", "sent", "late", "fresh", "offloaded"},
		},
	}
}

const timeColumn = "time"

func nodes(p *experiment.Point) int {
	n := p.Int("ranks-per-node")
	return (p.Int("ranks") + n - 1) / n
}

func measured(p *experiment.Point, command []string) (bool, error) {
	if len(command) == 0 {
		return false, errors.New("expected a program: spinsim mpirun -np 2 -- ./program")
	}
	if _, err := exanest.TransportOptions(p.Profile, p.Text("transport")); err != nil {
		return false, fmt.Errorf("transport: %w", err)
	}
	if _, err := computeOf(p.Text("compute")); err != nil {
		return false, err
	}
	mode, _ := modeOf(p)
	if err := mode.Check(&p.Profile.Fabric); err != nil {
		return false, fmt.Errorf("profile %s: %w", p.Profile.Origin.Name, err)
	}
	if p.Text("pages") == part.PagesPresent {
		return true, nil
	}
	if p.Text("transport") != exanest.TransportNames()[0] {
		return false, fmt.Errorf("pages: %s, expected %s with transport %s: its MPI pins what it sends and receives", p.Text("pages"), part.PagesPresent, p.Text("transport"))
	}
	if !p.Profile.OS.On() || !p.Profile.SMMU.On() {
		return false, fmt.Errorf("pages: %s, but profile %s has no pages that could be absent (os.kind, smmu.kind)", p.Text("pages"), p.Profile.Origin.Name)
	}
	return true, nil
}

func run(ctx context.Context, p *experiment.Point, command []string, out, errs io.Writer) (experiment.Values, error) {
	options, err := exanest.TransportOptions(p.Profile, p.Text("transport"))
	if err != nil {
		return nil, err
	}
	options.Allreduce, options.Rooted = modeOf(p)
	options.Ranks, options.PerNode = p.Int("ranks"), p.Int("ranks-per-node")
	program := mpirun.Program{
		Config: p.Config(ctx, nodes(p)), MPI: options, Command: command, Out: out, Err: errs, Absent: p.Text("pages") != part.PagesPresent,
	}
	if program.Compute, err = computeOf(p.Text("compute")); err != nil {
		return nil, err
	}
	part.WithPages(&program.MPI.ExaNet, p.Text("pages"))
	r, err := program.Run(ctx)
	if err != nil {
		return nil, err
	}
	values := experiment.ClusterValues(&r.Nodes)
	values[timeColumn], values["messages"], values["sent"] = r.Took, int(r.Stats.Sent), int(r.Stats.SentBytes)
	values["offloaded"], values["refused"] = int(r.Reduced), int(r.Refused)
	values["onesided"] = int(r.Onesided)
	values["late"], values["faults"], values["fresh"] = int(r.Stats.Unexpected), int(r.Faults), nil
	if program.Absent && r.Pages > 0 {
		values["fresh"] = float64(r.Absent) / float64(r.Pages)
	}
	return values, nil
}

func allreduceModes() (list []string) {
	for _, m := range mpi.AllreduceChoices() {
		list = append(list, string(m))
	}
	for _, m := range mpi.AllreduceChoices() {
		if m.Rooted() && m != mpi.ModeHost {
			list = append(list, string(m)+rooted)
		}
	}
	return list
}

// rooted behind a mode makes it take more than allreduces.
const rooted = "+rooted"

// modeOf returns the mode of a point, and whether it takes more than allreduces.
func modeOf(p *experiment.Point) (mpi.Mode, bool) {
	text, more := strings.CutSuffix(p.Text("allreduce"), rooted)
	return mpi.Mode(text), more
}

// answer is a sentence for each way to treat pages, with the most ranks.
func answer(results []*experiment.Result) (lines []string) {
	ranks := 0
	for _, r := range results {
		ranks = max(ranks, r.Point.Int("ranks"))
	}
	for _, r := range results {
		p := r.Point
		if p.Int("ranks") != ranks {
			continue
		}
		line := fmt.Sprintf("%s, %s on %s over %s: %v of virtual time, %s",
			p.Profile.Name, experiment.Counted(ranks, "rank"), experiment.Counted(nodes(p), "node"), p.Text("transport"), r.Time(timeColumn), computing(p))
		if share, is := r.Values["fresh"].(float64); is {
			line += fmt.Sprintf("; pages %s, %.3g%% of those of messages fresh", p.Text("pages"), 100*share)
		}
		if mode, more := modeOf(p); mode != mpi.ModeHost {
			calls := "MPI_Allreduce"
			if more {
				calls = "collectives"
			}
			line += fmt.Sprintf("; %s did %v calls of %s, and refused %v", p.Text("allreduce"), r.Values["offloaded"], calls, r.Values["refused"])
		}
		if touch := experiment.Beside(results, r, "pages", "touch"); touch != nil && touch != r {
			line += fmt.Sprintf(", %.3f times as fast as touching", float64(touch.Time(timeColumn))/float64(r.Time(timeColumn)))
		}
		lines = append(lines, line+".")
	}
	return lines
}
