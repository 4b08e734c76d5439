package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/trace"
)

// compareFlags are the flags that the benchmarks of compare share.
type compareFlags struct {
	profiles, overrides         []string
	sizes, ranks, hpus, handler string
	times, modes                string
	seed                        uint64
	engine, format, plot, trace string
	all                         bool
	waterfall                   []string
	limitFlags
}

func compareCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "compare",
		Short: "Measure the same operation on the host, with triggered operations and with handlers",
		Long:  "Compare runs a published microbenchmark in several modes and says what offloading is worth.",
		Args:  noArguments,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, b := range experiment.Benchmarks() {
		c.AddCommand(benchmarkCommand(b))
	}
	return c
}

func benchmarkCommand(b *experiment.Benchmark) *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use:   b.Name,
		Short: b.Short,
		Long:  b.Long + limitsHelp,
		Args:  exactArguments(),
		RunE:  func(c *cobra.Command, _ []string) error { return f.run(c, b) },
	}
	flags := c.Flags()
	flags.StringSliceVar(&f.profiles, "profile", b.Profiles, "device and network: `NAMES` or files, separated by commas")
	flags.StringArrayVar(&f.overrides, "set", nil, "change a value of the profiles: `PATH=VALUE`, such as hpu.cores=8; may be repeated")
	flags.StringVar(&f.sizes, "size", joinInts(b.Sizes), "message sizes: `LIST` such as 8,64KiB or 8,..,256KiB (doubling)")
	if !b.FixedRanks {
		flags.StringVar(&f.ranks, "ranks", "4,16,..,1024", "numbers of ranks: `LIST` such as 2,4,..,1024 (doubling) or 4,16,..,1024")
	}
	if len(b.Modes) > 1 {
		flags.StringVar(&f.modes, "mode", strings.Join(b.Modes, ","), "`LIST` of "+strings.Join(b.Modes, ", "))
	} else {
		flags.StringVar(&f.hpus, "hpus", "4,8", "`LIST` of numbers of HPUs")
		flags.StringVar(&f.times, "handler-time", "50ns,200ns,800ns", "`LIST` of times of a payload handler")
	}
	flags.StringVar(&f.handler, "handler", "", "your handler module in place of the built-in one: `FILE.wasm`")
	flags.Uint64Var(&f.seed, "seed", 1, "`NUMBER` from which the payload is made")
	flags.StringVar(&f.engine, "engine", "wazero", "WebAssembly engine: wazero, or wasmtime if built with that tag")
	flags.StringVar(&f.format, "format", "table", "table, csv, json, ndjson or markdown")
	flags.BoolVar(&f.all, "all", false, "show all columns in the table, not only latencies")
	flags.StringVar(&f.plot, "plot", "", "draw the result: `FILE.svg` or FILE.png")
	flags.StringSliceVar(&f.waterfall, "waterfall", nil, "two profiles `FROM,TO`: change one group of parameters at a time from the first to the second, and say what each is worth")
	flags.StringVar(&f.trace, "trace", "", "write a timeline of one run for ui.perfetto.dev: `FILE.pftrace`, .json, or either with .gz")
	f.register(c, "each measurement", false)
	return c
}

func joinInts(list []int) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = strings.ReplaceAll(sim.Size(v).String(), " ", "")
	}
	return strings.Join(parts, ",")
}

// sweep turns the flags into a sweep; everything wrong with them is reported before anything runs.
func (f *compareFlags) sweep(b *experiment.Benchmark) (*experiment.Sweep, error) {
	s := &experiment.Sweep{
		Benchmark: b, Profiles: f.profiles, Overrides: f.overrides, Modes: b.Modes, Ranks: b.Ranks, Seed: f.seed, Engine: f.engine, Traced: f.trace != "",
		Build: thisBuild(),
	}
	var errs []error
	keep := func(name string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", name, err))
		}
	}
	var err error
	if s.Limits, err = f.limits(); err != nil {
		errs = append(errs, err)
	}
	s.Sizes, err = parseInts(f.sizes, parseSize)
	keep("size", err)
	if !b.FixedRanks {
		s.Ranks, err = parseInts(f.ranks, parseCount)
		keep("ranks", err)
	}
	if len(b.Modes) > 1 {
		s.Modes = strings.Split(f.modes, ",")
	}
	if len(b.Modes) == 1 {
		s.HPUs, err = parseInts(f.hpus, parseCount)
		keep("hpus", err)
		times, err := experiment.ParseList(f.times, func(v string) (int64, error) { t, err := sim.ParseTime(v); return int64(t), err })
		keep("handler-time", err)
		for _, t := range times {
			s.Times = append(s.Times, sim.Time(t))
		}
	}
	if f.handler != "" {
		wasm, err := file.Read(f.handler, file.MaxModule)
		keep("handler", err)
		s.Handler = &experiment.Handler{Name: filepath.Base(f.handler), Path: f.handler, Wasm: wasm}
	}
	return s, errors.Join(errs...)
}

func (f *compareFlags) run(c *cobra.Command, b *experiment.Benchmark) error {
	format, err := report.ParseFormat(f.format)
	if err != nil {
		return badInput(fmt.Errorf("--format: %w", err))
	}
	if f.plot != "" {
		if err := report.CheckImage(f.plot); err != nil {
			return badInput(fmt.Errorf("--plot: %w", err))
		}
		if _, err := os.Stat(filepath.Dir(f.plot)); err != nil {
			return badInput(fmt.Errorf("--plot: %w", err))
		}
	}
	s, err := f.sweep(b)
	if err != nil {
		return badInput(err)
	}
	if len(f.waterfall) > 0 {
		return f.fall(c, s, format)
	}
	if _, err := s.Points(); err != nil {
		return badInput(err)
	}
	var writer *trace.Writer
	if f.trace != "" {
		if writer, err = trace.Create(f.trace, trace.Options{}); err != nil {
			return badInput(fmt.Errorf("--trace: %w", err))
		}
		writer.Describe(s.Record().Args()...)
		s.Tracer = writer
	}
	ctx, cancel := f.context(c)
	defer cancel()
	results, err := f.measure(ctx, c.ErrOrStderr(), s)
	err = endTimeline(writer, err)
	if err != nil {
		return err
	}
	return f.show(c.OutOrStdout(), s, results, format)
}

func (f *compareFlags) measure(ctx context.Context, errs io.Writer, s *experiment.Sweep) ([]*experiment.Result, error) {
	points, err := s.Points()
	if err != nil {
		return nil, err
	}
	progress := newProgress(errs, s.Benchmark.Name, len(points))
	defer progress.stop()
	return s.Run(ctx, points, progress.step)
}

func (f *compareFlags) show(out io.Writer, s *experiment.Sweep, results []*experiment.Result, format report.Format) error {
	all, err := s.Table(results)
	if err != nil {
		return err
	}
	t := all
	if format == report.TextFormat && !f.all {
		summary, err := s.Summary(t)
		if err != nil {
			return err
		}
		t = summary
	}
	t.Title = s.Benchmark.Name + ": " + s.Benchmark.Short
	t.Answer = s.Answer(results)
	t.Notes = s.Notes()
	if err := t.Write(out, format); err != nil || f.plot == "" {
		return err
	}
	return all.PlotFile(f.plot, s.Plot())
}

func parseInts(s string, parse func(string) (int64, error)) ([]int, error) {
	list, err := experiment.ParseList(s, parse)
	ints := make([]int, len(list))
	for i, v := range list {
		ints[i] = int(v)
	}
	return ints, err
}

func parseSize(s string) (int64, error) {
	n, err := sim.ParseSize(s)
	return int64(n), err
}

func parseCount(s string) (int64, error) {
	var n int64
	if _, err := fmt.Sscanf(s, "%d", &n); err != nil || fmt.Sprint(n) != s {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	return n, nil
}
