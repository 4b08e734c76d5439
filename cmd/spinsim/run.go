package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/batch"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/lab/scenario"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/trace"
)

// runFlags are the flags of run.
type runFlags struct {
	overrides             []string
	ranks                 int
	seed                  uint64
	engine, format        string
	table, trace          string
	allowed               []string // further folders for the files of the scenario
	params                []string
	ranksGiven, seedGiven bool
	breakdown             bool
	resume                batch.ResumeFlags
	limitFlags
	links cli.LinksFlag
	pcap  cli.CaptureFlags
	shape cli.ShapeFlag
}

// runCommand runs a scenario.
func runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run FILE",
		Short: "Run an experiment from a file",
		Long: `Run executes a scenario: a YAML file with the device and the network, match list entries with handlers, programs of the hosts, expectations
and outputs. The exit status is 0 if all expectations hold. It is 1 if one does not hold, a handler fails, a message finds no entry, or
a program waits for ever. It is 2 if the file or a flag has an error; then nothing has run.

  spinsim scenario example count > count.yaml
  spinsim run count.yaml

docs/scenarios.md describes the format.` + limitsHelp,
		Args: exactArguments("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			f.ranksGiven, f.seedGiven = c.Flags().Changed("ranks"), c.Flags().Changed("seed")
			return f.run(c, args[0])
		},
	}
	flags := c.Flags()
	flags.StringArrayVar(&f.overrides, "set", nil, "change a value of the profile: `PATH=VALUE`, such as hpu.cores=8; PATH=LIST runs with each; may be repeated")
	flags.StringArrayVar(&f.params, "param", nil, "give a parameter of the scenario a value: `NAME=VALUE`; NAME=LIST, such as size=8..64KiB*2, runs with each; may be repeated")
	cli.SuggestParameters(c, func(args []string) []string {
		if len(args) == 0 {
			return nil
		}
		return scenario.ParametersIn(args[0])
	})
	f.resume.Register(c)
	flags.IntVar(&f.ranks, "ranks", 0, "`NUMBER` of nodes instead of the scenario's")
	flags.Uint64Var(&f.seed, "seed", 0, "`NUMBER` instead of the scenario's seed")
	flags.StringVar(&f.engine, "engine", "", "WebAssembly engine `NAME`: wazero, or wasmtime if built in")
	flags.StringVar(&f.format, "format", "", "format `NAME` instead of the scenario's: table, csv, json, ndjson, markdown or parquet")
	flags.StringVar(&f.table, "table", "", "show only the table `NAME`: latency, breakdown, stats, state, memory, events or log")
	flags.StringVar(&f.trace, "trace", "", "write a timeline for ui.perfetto.dev: `FILE.pftrace`, .json, or either with .gz")
	flags.StringArrayVar(&f.allowed, "allow-output", nil, "also let the scenario write below a `FOLDER`; by default only below the current one; may be repeated")
	flags.BoolVar(&f.breakdown, "breakdown", false, "show the parts of each measured time, or of the whole run, in table breakdown")
	f.links.Register(c)
	f.pcap.Register(c)
	f.shape.Register(c)
	f.Register(c, "the run", false)
	return c
}

// options returns the options that the flags override in the scenario.
func (f *runFlags) options(c *cobra.Command) (o scenario.Options, err error) {
	o = scenario.Options{Engine: f.engine, Build: thisBuild(), Links: f.links.Watch(), Breakdown: f.breakdown}
	if f.ranksGiven {
		if f.ranks < 1 {
			return o, fmt.Errorf("--ranks: %d, expected at least 1", f.ranks)
		}
		o.Ranks = f.ranks
	}
	if f.seedGiven {
		o.Seed = &f.seed
	}
	if err := checkEngine(f.engine); err != nil {
		return o, err
	}
	for _, folder := range f.allowed {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return o, fmt.Errorf("--allow-output: %q, expected a FOLDER that is there", folder)
		}
	}
	if o.Set, err = f.shape.Overrides(); err == nil {
		err = errors.Join(f.links.Check(), f.pcap.Check())
	}
	o.Capture = f.pcap.Hook()
	if err == nil {
		o.Limits, err = f.Limits(c)
	}
	return o, err
}

// traced reports whether the user wants a file that only a single run has.
func (f *runFlags) traced() bool { return f.trace != "" || f.links.Wanted() || f.pcap.Wanted() }

// load plans a run and returns the format of its result.
func (f *runFlags) load(file string, o scenario.Options) (*scenario.Plan, report.Format, error) {
	p, err := scenario.Load(file, o)
	if err != nil {
		return nil, "", err
	}
	format := p.Format()
	if f.format != "" {
		if format, err = report.ParseFormat(f.format); err != nil {
			return nil, "", fmt.Errorf("--format: %w", err)
		}
	}
	if f.table != "" {
		if err := p.Show(f.table); err != nil {
			return nil, "", fmt.Errorf("--table: %w", err)
		}
	}
	return p, format, p.CheckFormat(format)
}

func (f *runFlags) run(c *cobra.Command, file string) error {
	o, err := f.options(c)
	if err != nil {
		return badInput(err)
	}
	if err := f.resume.Check(f.traced()); err != nil {
		return badInput(err)
	}
	s, err := scenario.NewSweep(&o, f.params, f.overrides)
	if err != nil {
		return badInput(err)
	}
	if s.Several() {
		return f.sweep(c, file, o, s)
	}
	if f.resume.Given() {
		return badInput(errors.New("one run has no points to keep or share out (--resume, --part, --points, sweep): expected a list of values in --param or --set"))
	}
	p, format, err := f.load(file, o)
	if err != nil {
		return badInput(err)
	}
	var files cli.RunFiles
	timeline, err := f.timeline(c, file, p, &files)
	if err != nil {
		return err
	}
	need := p.Memory()
	if timeline != "" {
		need += trace.Memory
	}
	if err := f.Memory.Check(fmt.Sprintf("%s: ranks: %d with their memories", file, p.Ranks()), need); err != nil {
		return err
	}
	p.Bound(cli.Beside(f.Memory.Bytes(), need, 1))
	record, err := p.Record()
	if err != nil {
		return err
	}
	tracer, err := files.Trace("--trace", timeline, record)
	if err != nil {
		return err
	}
	ctx, cancel := f.Context(c)
	defer cancel()
	ctx = f.pcap.Bound(ctx, &f.Memory, need)
	result, err := p.Run(ctx, tracer)
	files.Network(&f.links, &f.pcap, record)
	files.Ended = result != nil && result.Cut == ""
	err = files.End(ctx, err)
	if result != nil {
		s.Describe(result, record)
		err = errors.Join(result.Write(c.OutOrStdout(), format), err)
	}
	return err
}

// timeline returns the file for the timeline. The scenario's is below the
// current folder, or below one that the user allows.
func (f *runFlags) timeline(c *cobra.Command, file string, p *scenario.Plan, files *cli.RunFiles) (string, error) {
	if f.trace != "" {
		return f.trace, nil
	}
	files.Below = append([]string{"."}, f.allowed...)
	name, err := p.TraceFile(files.Below)
	if err != nil || name == "" {
		return "", badInput(err)
	}
	return name, cli.CheckOutputs(c, cli.Output{What: file + ": output.trace", Name: name})
}

// sweep runs a scenario with every combination of values. It prints one long
// table for each table of the scenario.
func (f *runFlags) sweep(c *cobra.Command, file string, o scenario.Options, s *scenario.Sweep) error {
	if f.traced() {
		return badInput(fmt.Errorf("--trace, --links and --pcap follow one run, but there are %d", len(s.Runs)))
	}
	o = f.needed(file, o, s.Runs[0].Variation)
	var format report.Format
	load := func(_ int, v scenario.Variation) (p *scenario.Plan, err error) {
		p, format, err = f.load(file, o.With(v))
		return p, err
	}
	if err := s.Plan(load); err != nil {
		return badInput(err)
	}
	workers := min(cli.Workers(), len(s.Runs))
	for _, r := range s.Runs {
		need := r.Plan.Memory() * int64(workers)
		if err := f.Memory.Check(fmt.Sprintf("%s: %s: ranks: %d with their memories", file, r.Label, r.Plan.Ranks()), need); err != nil {
			return err
		}
		r.Plan.Bound(cli.Beside(f.Memory.Bytes(), need, workers))
	}
	if f.resume.List {
		return batch.WriteList(c.OutOrStdout(), len(s.Runs), s.Label, scenario.Noun)
	}
	record, err := s.Record(load)
	if err != nil {
		return badInput(err)
	}
	folder, err := f.resume.Open()
	if err != nil {
		return err
	}
	defer folder.Close() //nolint:errcheck // every result is in its file
	all := len(s.Runs)
	s = s.Part(batch.Share(&f.resume, s.Runs))
	b := s.Batch(workers, folder)
	if err := batch.Missing(&f.resume, b, s.Label); err != nil {
		return err
	}
	ctx, cancel := f.Context(c)
	defer cancel()
	results, err := b.Shown(ctx, c.ErrOrStderr(), c.Name())
	u := (*batch.Unfinished[scenario.Result])(nil)
	if errors.As(err, &u) {
		results = u.Results
	}
	if err != nil && !slices.ContainsFunc(results, func(r *scenario.Result) bool { return r != nil }) {
		return err
	}
	if f.resume.Parted() {
		return errors.Join(f.sayPart(c, results, all), err)
	}
	f.resume.NoteOthers(c.ErrOrStderr(), c.Root().Name(), folder)
	result := s.Result(results)
	if result.Origin = record; u != nil {
		result.Cut = u.Cut()
	}
	return errors.Join(result.Write(c.OutOrStdout(), format), result.Err(), err)
}

// needed adds the first value of each swept field to the options if the profile
// is invalid without them, for example a torus without lengths. Each run then
// sets its own values on top.
func (f *runFlags) needed(file string, o scenario.Options, first scenario.Variation) scenario.Options {
	if _, _, err := f.load(file, o.With(scenario.Variation{Parameters: first.Parameters})); err == nil {
		return o
	}
	if _, _, err := f.load(file, o.With(first)); err != nil {
		return o // each run reports the error
	}
	return o.With(scenario.Variation{Set: first.Set})
}

// sayPart prints, instead of a table, which part of the runs is kept. all is
// the number of runs in all parts.
func (f *runFlags) sayPart(c *cobra.Command, results []*scenario.Result, all int) error {
	ended, cut := 0, 0
	for _, r := range results {
		switch {
		case r != nil && r.Incomplete:
			cut++
		case r != nil:
			ended++
		}
	}
	err := f.resume.SayPart(c.OutOrStdout(), ended, all, scenario.Noun)
	if cut > 0 {
		err = errors.Join(err, fmt.Errorf("a limit has ended %d more, which are not kept", cut))
	}
	return err
}
