package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/experiment/spin17"
	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/trace"
)

func goalCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "goal",
		Short: "Run, make and convert GOAL schedules, the format of LogGOPSim",
		Long: `A GOAL schedule lists, for each rank, its sends, receives and computations, and the dependencies between them.

Files are text or binary; the content decides. Files whose names end in .gz, .xz or .zst are unpacked. - is the standard input.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(goalRunCommand(), goalGenCommand(), goalStatCommand(), goalConvertCommand(), goalVizCommand(), goalProxiesCommand())
	return c
}

// readSchedule reads a schedule from the file that an argument names.
func readSchedule(m *making, name string) (s *goal.Schedule, err error) {
	err = m.input(name, func(r io.Reader) (err error) {
		if name == "-" {
			s, err = goal.Read(r, goal.ReadOptions{File: "standard input"})
		} else {
			s, err = goal.ReadPacked(r, name, goal.ReadOptions{})
		}
		return err
	})
	return s, badInput(err)
}

// modelFlags are the parameters of the LogGOPS model and the noise.
type modelFlags struct {
	params      goal.Params
	noise       string
	seed        uint64
	coscheduled bool
	onlyDrawn   bool // for the timeline
}

// names lists the flags of the model, which runs on nodes do not have.
func (f *modelFlags) names() []string {
	return []string{"L", "o", "g", "G", "O", "S", "noise", "noise-seed", "noise-coscheduled"}
}

func (f *modelFlags) register(c *cobra.Command) {
	f.params = goal.DefaultParams()
	flags := c.Flags()
	flags.Int64Var(&f.params.L, "L", f.params.L, "latency in `NS`")
	flags.Int64Var(&f.params.Overhead, "o", f.params.Overhead, "`NS` a processor is busy for a message, at each end")
	flags.Int64Var(&f.params.Gap, "g", f.params.Gap, "`NS` a network interface is busy for a message, at each end")
	flags.Int64Var(&f.params.ByteGap, "G", f.params.ByteGap, "`NS` that every byte after the first adds to g")
	flags.Int64Var(&f.params.ByteOverhead, "O", f.params.ByteOverhead, "`NS` that every byte after the first adds to o")
	flags.Uint64Var(&f.params.Eager, "S", f.params.Eager, "largest message in `BYTES` that does not wait for its receive")
	flags.StringVar(&f.noise, "noise", "", "operating system noise: `FILE` with a line for each detour, its start and duration in ns")
	flags.Uint64Var(&f.seed, "noise-seed", 1, "`NUMBER` that seeds the place in the noise where each rank begins")
	flags.BoolVar(&f.coscheduled, "noise-coscheduled", false, "all ranks begin at the same place in the noise")
}

// check refuses numbers that are out of range.
func (f *modelFlags) check() error {
	flags := make(map[string]string)
	for _, name := range f.names() {
		flags[name] = name
	}
	return fields.Renamed(f.params.Validate(), "--", flags)
}

// String lists the parameters of the model as flags. A result must not leave
// any out.
func (f *modelFlags) String() string {
	p := f.params
	text := fmt.Sprintf("model: L %d ns, o %d ns, g %d ns, G %d ns/B, O %d ns/B, S %d B", p.L, p.Overhead, p.Gap, p.ByteGap, p.ByteOverhead, p.Eager)
	if f.noise != "" {
		text += "; noise " + f.noise
		if f.coscheduled {
			text += ", the same for all ranks"
		}
	}
	return text
}

// drawn is the flag that names the file of the timeline.
func (f *modelFlags) drawn() string {
	if f.onlyDrawn {
		return "output"
	}
	return "trace"
}

// options checks the flags and returns the options of a run of s.
func (f *modelFlags) options(m *making, s *goal.Schedule) (options []goal.Option, err error) {
	if err := f.check(); err != nil {
		return nil, badInput(err)
	}
	if f.noise == "" {
		return nil, nil
	}
	var t *goal.NoiseTrace
	err = m.input(f.noise, func(r io.Reader) error {
		text, err := file.ReadFrom(r, f.noise, file.MaxData)
		if err == nil {
			t, err = goal.ReadNoise(bytes.NewReader(text), f.noise)
		}
		return err
	})
	if err != nil {
		return nil, badInput(fmt.Errorf("--noise: %w", err))
	}
	m.Seed = &f.seed
	return []goal.Option{goal.WithNoise(t.Noise(s.Ranks(), f.seed, f.coscheduled))}, nil
}

// parseFormat checks --format.
func parseFormat(name string) (report.Format, error) {
	format, err := report.ParseFormat(name)
	if err != nil {
		return "", badInput(fmt.Errorf("--format: %w", err))
	}
	return format, nil
}

// goalRunFlags are the flags of goal run on the model.
type goalRunFlags struct {
	model modelFlags
	path  bool
	limitFlags
}

// onNodes is the name of goal run on nodes in a record.
const onNodes = goalRunName + " --on nodes"

func goalRunCommand() *cobra.Command {
	var f goalRunFlags
	var on string
	c := fileCommand(onNodes, "run FILE")
	c.Short = "Compute the finishing time of every rank"
	c.Long = `Run computes the finishing time of every rank in the LogGOPS model (LogGOPS'10). With --on nodes it runs the schedule on simulated nodes: sends
and receives are then real messages. The host or its network interface matches them (sPIN'17 §5.1), and every byte is checked.

A schedule that does not finish is reported with the operations that wait. The exit status is then 1.` + limitsHelp
	nodes := c.RunE
	flags := c.Flags()
	onlyOn := map[string][]string{}
	flags.VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains([]string{"format", "trace", "until", "event-limit", "time-limit", "memory-limit"}, flag.Name) {
			onlyOn["nodes"] = append(onlyOn["nodes"], flag.Name)
			flag.Usage = "nodes: " + flag.Usage
		}
	})
	f.model.register(c)
	flags.BoolVar(&f.path, "critical-path", false, "model: also show the operations that determine the last finishing time")
	onlyOn["model"] = append(f.model.names(), "critical-path")
	flags.StringVar(&on, "on", "model", "model or nodes")
	c.RunE = func(c *cobra.Command, args []string) error {
		if onlyOn[on] == nil {
			return badInput(fmt.Errorf("--on: %q, expected model or nodes", on))
		}
		for other, names := range onlyOn { //lint:maporder there are two
			for _, name := range names {
				if other != on && c.Flags().Changed(name) {
					return badInput(fmt.Errorf("--%s has no meaning with --on %s", name, on))
				}
			}
		}
		if on == "nodes" {
			return nodes(c, args)
		}
		return f.run(c, args[0])
	}
	return c
}

// readNodes makes the experiment of a schedule on nodes.
func readNodes(m *making, name string) (*experiment.Experiment, error) {
	s, err := readSchedule(m, name)
	if err != nil {
		return nil, err
	}
	return spin17.Schedule(filepath.Base(name), s), nil
}

func (f *goalRunFlags) run(c *cobra.Command, file string) error {
	name, err := c.Flags().GetString("format")
	if err != nil {
		return err
	}
	format, err := parseFormat(name)
	if err != nil {
		return err
	}
	if err := f.Copy(c); err != nil {
		return err
	}
	bounds, err := f.Limits(c)
	if err != nil {
		return badInput(err)
	}
	timeline, err := c.Flags().GetString("trace")
	if err != nil {
		return err
	}
	ctx, cancel := f.Context(c)
	defer cancel()
	return f.make(ctx, newMaking(c, goalRunName), file, timeline, bounds, format, c.OutOrStdout())
}

// make runs the schedule in the model and writes the result.
func (f *goalRunFlags) make(ctx context.Context, m *making, file, timeline string, bounds sim.Limits, format report.Format, out io.Writer) error {
	if err := m.WithArguments(f.model.arguments(file)); err != nil {
		return err
	}
	s, err := readSchedule(m, file)
	if err != nil {
		return err
	}
	r, steps, err := runModel(ctx, m, s, &f.model, timeline, f.path, goal.WithLimits(bounds))
	switch {
	case errors.Is(err, goal.ErrOverflow):
		return badInput(err)
	case err != nil:
		return err
	}
	switch {
	case format == report.JSONFormat:
		return writeWithOrigin(out, &m.Record, r, nil)
	case f.path && format != report.TextFormat:
		return writePath(out, m, &f.model, steps, format)
	case format != report.TextFormat:
		return finishTable(m, &r).Write(out, format)
	}
	if err := r.WriteTable(out); err != nil {
		return err
	}
	if f.path {
		return writePath(out, m, &f.model, steps, format)
	}
	return writeLines(out, &m.Record, f.model.String())
}

// runModel runs a schedule on the LogGOPS model and draws a timeline if one is
// asked for. It also returns the critical path if path is set.
func runModel(ctx context.Context, of *making, s *goal.Schedule, model *modelFlags, timeline string, path bool, limits ...goal.Option) (r goal.Result, cp goal.CriticalPath, err error) {
	options, err := model.options(of, s)
	if err != nil {
		return r, cp, err
	}
	options = append(append(options, goal.WithContext(ctx)), limits...)
	m := goal.NewSimulator(s)
	if timeline != "" {
		var files cli.RunFiles
		w, err := files.Trace("--"+model.drawn(), timeline, &of.Record)
		if err != nil {
			return r, cp, err
		}
		d := newDrawing(w, s)
		r, err = m.Run(model.params, append(options, goal.WithTrace(d.span))...)
		if err = files.End(ctx, err); err != nil || !path {
			return r, cp, err
		}
	}
	if path {
		cp, r, err = m.CriticalPath(model.params, options...)
		return r, cp, err
	}
	if timeline == "" {
		r, err = m.Run(model.params, options...)
	}
	return r, cp, err
}

// drawing puts the spans of a run on a timeline: a line for each processor and
// each direction of a network interface.
type drawing struct {
	w      sim.Tracer
	s      *goal.Schedule
	tracks map[unitKey]sim.TrackID
}

type unitKey struct {
	rank  int
	unit  goal.Unit
	index uint8
}

func newDrawing(w sim.Tracer, s *goal.Schedule) *drawing {
	return &drawing{w: w, s: s, tracks: make(map[unitKey]sim.TrackID)}
}

func (d *drawing) span(p goal.Span) {
	key := unitKey{p.Rank, p.Unit, p.Index}
	track, known := d.tracks[key]
	if !known {
		track = d.w.Track("rank", p.Rank, fmt.Sprintf("%v %d", p.Unit, p.Index))
		d.tracks[key] = track
	}
	ref := d.s.Ref(p.OpRank, p.Op)
	d.w.Span(track, p.Kind.String(), sim.Time(p.Start)*sim.Nanosecond, sim.Time(p.End)*sim.Nanosecond, p.Flow,
		sim.Arg{Key: "operation", Text: ref.String()})
}

// finishColumns describe the finishing times of ranks, for programs.
func finishColumns() []report.Column {
	return []report.Column{
		{Name: "rank", Kind: report.Count, Help: "of the schedule"},
		{Name: "finish", Unit: "ns", Kind: report.Duration, Help: "when it had done all of its operations"},
	}
}

func finishTable(m *making, r *goal.Result) *report.Table {
	t := report.New(finishColumns()...)
	t.Origin = &m.Record
	for rank, finish := range r.FinishNS {
		t.Add(rank, sim.Time(finish)*sim.Nanosecond)
	}
	return t
}

// pathColumns describe a critical path.
func pathColumns() []report.Column {
	return []report.Column{
		{Name: "start", Unit: "ns", Kind: report.Duration, Scale: "time", Help: "when the operation begins to take time"},
		{Name: "end", Unit: "ns", Kind: report.Duration, Scale: "time", Help: "when it ends"},
		{Name: "rank", Kind: report.Count, Help: "where"},
		{Name: "busy_with", Help: "what takes the time"},
		{Name: "operation", Help: "of the schedule"},
	}
}

// writePath lists a critical path and where its time goes.
func writePath(out io.Writer, m *making, model *modelFlags, cp goal.CriticalPath, format report.Format) error {
	t := report.New(pathColumns()...)
	t.Title = fmt.Sprintf("critical path: %d ns computing, %d ns sending, %d ns receiving, %d ns on the way",
		cp.CalcNS, cp.SendNS, cp.RecvNS, cp.LatencyNS)
	t.Origin, t.Notes = &m.Record, []string{model.String()}
	for _, s := range cp.Steps {
		t.Add(sim.Time(s.Start)*sim.Nanosecond, sim.Time(s.End)*sim.Nanosecond, s.Rank, s.Kind.String(), s.Op.String())
	}
	return t.Write(out, format)
}

func goalVizCommand() *cobra.Command {
	model := modelFlags{onlyDrawn: true}
	var output string
	c := &cobra.Command{
		Use:   "viz FILE",
		Short: "Draw the run of a schedule as a timeline",
		Long: `Viz runs a schedule on the LogGOPS model and writes a timeline. It has a line for each processor and for each direction of each
network interface, and an arrow for each message. ui.perfetto.dev opens it.`,
		Args: exactArguments("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if output == "" {
				return badInput(fmt.Errorf("--output: expected the name of a file that ends in one of %s", trace.Extensions))
			}
			m := newMaking(c, goalRunName) // the same command with another output
			if err := m.WithArguments(model.arguments(args[0])); err != nil {
				return err
			}
			s, err := readSchedule(m, args[0])
			if err != nil {
				return err
			}
			_, _, err = runModel(c.Context(), m, s, &model, output, false)
			return err
		},
	}
	model.register(c)
	c.Flags().StringVarP(&output, "output", "", "", "the timeline: `FILE.pftrace` or .json, either also with .gz")
	return c
}
