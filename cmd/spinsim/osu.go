package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/experiment/exanest"
	"github.com/spinsim/spinsim/fabric"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/osu"
	"github.com/spinsim/spinsim/mpi"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
)

// osuFormat is the output format of the OSU micro-benchmarks.
const osuFormat = "osu"

// osuFlags are the flags of osu.
type osuFlags struct {
	benchmark                   *osu.Benchmark
	profile                     string
	overrides                   []string
	shape                       cli.ShapeFlag
	path, ranks                 string
	perNode                     int
	sizes                       string
	iterations, warmup, window  int
	full                        bool
	transport, algorithms, like string
	seed                        uint64
	engine, format              string
	breakdown                   bool
	handlers                    []string
	limitFlags
}

func osuCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "osu",
		Short: "Run an OSU micro-benchmark on simulated nodes, with the output of the original",
		Long: `Osu runs a program of the OSU micro-benchmarks, rewritten for package mpi, on the nodes of a profile: the ExaNeSt prototype, or any other. Its output is
that of version 5.6.1 of the original, or 7.4, so scripts for the original can read it. Lines with # before the header give the
provenance. --format csv or json has the content of compare osu and compare osu-ranks.

  spinsim osu latency --path inter-mezz:3,1,2
  spinsim osu bw -m 4096:65536 -W 16
  spinsim osu allreduce --ranks 4..64 -f`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, b := range osu.All() {
		c.AddCommand(osuBenchmark(b))
	}
	return c
}

func osuBenchmark(b *osu.Benchmark) *cobra.Command {
	f := &osuFlags{benchmark: b, profile: "exanest", path: "intra-qfdb", ranks: "4"}
	long := b.Title + ".\n\nBy default a simulation takes few iterations, since it has no noise: up to 8 KiB 30 on up to 34 ranks, 1024/ranks on more; 1 above 8 KiB or 256 ranks."
	if b.Name == "bcast" {
		long += "\nOn ExaNeSt's boards, above 32 KiB and 256 ranks, there is no warm-up, where the first call is within 0.6% of the second: its buffers have been touched."
	}
	switch b.Kind {
	case osu.Pair:
		long += `

Paths on boards of ExaNeSt are those of TR-488's Table 1: intra-fpga (within an MPSoC), intra-qfdb (a), intra-mezz:1, :2 and :3 (b, c, d), inter-mezz:I,J,K
(e: I links between mezzanines, J on them, K in boards). On any network a path may be two nodes such as 0-5: 0-1 where there are no boards and
nothing else is asked for.`
	default:
		long += "\n\nConsecutive ranks fill nodes. Numbers of ranks such as 4..512 double; for each there is an output."
	}
	c := &cobra.Command{
		Use: b.Name, Aliases: []string{"osu_" + b.Name}, Short: b.Title, Long: long + limitsHelp,
		Args: exactArguments(),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	flags := c.Flags()
	if b.Kind == osu.Pair {
		flags.StringVar(&f.path, "path", f.path, "`PATHS` between the ranks, separated by commas")
	} else {
		flags.StringVar(&f.ranks, "ranks", f.ranks, "`NUMBERS` of ranks: 64, 4..512 or 4,64,512")
		flags.IntVar(&f.perNode, "ranks-per-node", 0, "`NUMBER` of ranks on a node (default: one for each core of the profile's host)")
	}
	if b.Kind == osu.Collective {
		flags.StringVar(&f.algorithms, "algorithms", string(mpi.ExaNetMPI), "algorithms of collectives: exanet (as ExaNet-MPI) or mpich (by size, as MPICH 3.2.1)")
		flags.BoolVarP(&f.full, "full", "f", false, "also print the minimum and maximum over ranks, and the iterations")
	}
	if b.Sized() {
		flags.StringVarP(&f.sizes, "message-size", "m", "", fmt.Sprintf("`SIZES` of messages, MIN:MAX or MAX, doubling, in bytes or with a unit (default %s)", f.defaultSizes()))
	}
	if b.Windowed {
		flags.IntVarP(&f.window, "window-size", "W", osu.DefaultWindow, "`NUMBER` of messages under way at a time")
	}
	flags.IntVarP(&f.iterations, "iterations", "i", 0, "`NUMBER` of iterations that are timed (default: above)")
	flags.IntVarP(&f.warmup, "warmup", "x", osu.DefaultWarmup, "`NUMBER` of iterations before them that are not")
	flags.StringVar(&f.like, "omb", string(osu.Version5), "`VERSION` of the OSU micro-benchmarks whose output is printed: 5.6.1 or 7.4")
	flags.StringVar(&f.profile, "profile", f.profile, "device and network: `NAME` or file")
	flags.StringArrayVar(&f.overrides, "set", nil, "change a value of the profile: `PATH=VALUE`, such as fabric.buffer=16KiB; may be repeated")
	f.shape.Register(c)
	flags.StringVar(&f.transport, "transport", "", "exanet (ExaNet-MPI), portals or portals-offload (default: exanet on ExaNeSt's MPSoCs, else portals)")
	flags.Uint64Var(&f.seed, "seed", 1, "`NUMBER` that seeds everything random, including payloads")
	flags.StringVar(&f.engine, "engine", "wazero", "WebAssembly engine: wazero, or wasmtime if built in")
	flags.StringArrayVar(&f.handlers, "handler", nil, "run your handler module in a slot: `SLOT=FILE.wasm`; spinsim compare osu --slots lists them; may be repeated")
	flags.StringVar(&f.format, "format", osuFormat, "osu, table, csv, json, ndjson, markdown or parquet")
	flags.BoolVar(&f.breakdown, "breakdown", false, "show the parts of the operation's time, in a table or another format instead of the original's")
	f.Register(c)
	return c
}

// defaultSizes lists the default sizes.
func (f *osuFlags) defaultSizes() string {
	text := fmt.Sprintf("%d:%d", f.benchmark.Least, f.benchmark.Most)
	if f.benchmark.Kind != osu.Pair {
		text += ", less if messages of all ranks would take more than 1 GiB"
	}
	return text
}

func (f *osuFlags) run(c *cobra.Command) error {
	if f.breakdown && !c.Flags().Changed("format") {
		f.format = string(report.TextFormat)
	}
	format := report.Format(f.format)
	if f.breakdown && f.format == osuFormat {
		return badInput(errors.New("--breakdown: OSU's format has no place for it, expected --format table, csv, json, ndjson, markdown or parquet"))
	}
	if f.format != osuFormat {
		var err error
		if format, err = report.ParseFormat(f.format); err != nil {
			return badInput(fmt.Errorf("--format: %w, or %s", err, osuFormat))
		}
	}
	s, err := f.sweep(c)
	if err != nil {
		return badInput(err)
	}
	points, err := s.Points()
	if err != nil {
		if memory, ok := errors.AsType[*experiment.MemoryError](err); ok {
			if i := slices.Index(memory.Axes, "size"); i >= 0 {
				memory.Axes[i] = "message-size"
			}
		}
		return f.Unfit("", err)
	}
	ctx, cancel := f.Context(c)
	defer cancel()
	results, err := experiment.RunWithProgress(ctx, c.ErrOrStderr(), s, points)
	if err != nil {
		return experiment.Finished(err, func(u *experiment.Unfinished) error {
			return f.show(c, s, u.Measured(), format, u)
		})
	}
	return f.show(c, s, results, format, nil)
}

// show writes the measurements. u is not nil if only a part of them was made.
func (f *osuFlags) show(c *cobra.Command, s *experiment.Sweep, results []*experiment.Result, format report.Format, u *experiment.Unfinished) error {
	out := c.OutOrStdout()
	var first []string
	if u != nil {
		first = []string{cli.PartOf(u)}
	}
	t, err := s.Table(results)
	if err != nil {
		return err
	}
	cli.SayBeside(c, format, s.Record().UnusedNotes())
	if f.format == osuFormat {
		for _, line := range first {
			if _, err := fmt.Fprintf(out, "# %s\n", line); err != nil {
				return err
			}
		}
		return f.print(out, s, results)
	}
	if format == report.TextFormat {
		if t, err = s.Summary(t); err != nil {
			return err
		}
	}
	if f.breakdown && len(first) == 0 {
		first = s.Answer(results)
	}
	if t.Answer, t.Notes = first, s.Notes(results); u != nil {
		t.Cut = u.Cut()
	}
	return t.Write(out, format)
}

// sweep turns the flags into a sweep of one of the two experiments. It reports
// everything wrong with them before anything runs.
func (f *osuFlags) sweep(c *cobra.Command) (*experiment.Sweep, error) {
	e := exanest.OSURanks
	if f.benchmark.Kind == osu.Pair {
		e = exanest.OSU
	}
	if f.breakdown {
		var err error
		if e, err = e.Broken(); err != nil {
			return nil, fmt.Errorf("--breakdown: %w", err)
		}
	}
	s, err := experiment.New(e)
	if err != nil {
		return nil, err
	}
	size, err := f.shape.Overrides()
	if err != nil {
		return nil, err
	}
	s.Profiles, s.Overrides, s.Seed, s.Engine = []string{f.profile}, append(size, f.overrides...), f.seed, f.engine
	s.Build, s.Hint = thisBuild(), "spinsim help columns"
	p, err := cli.LoadProfile(f.profile, s.Overrides...)
	if err != nil {
		return nil, err
	}
	if !c.Flags().Changed("path") && p.Fabric.Kind != fabric.ExaNeSt {
		f.path = "0-1"
	}
	ranksOn := max(1, p.Host.Cores)
	if c.Flags().Changed("ranks-per-node") {
		ranksOn = f.perNode
	}
	s.Limits, s.MemoryLimit, s.Workers, err = f.Bounds(c)
	if err := errors.Join(err, f.choose(s, p, ranksOn)); err != nil {
		return nil, err
	}
	ranks, err := f.places(s)
	if err != nil {
		return nil, err
	}
	list, err := f.messageSizes(ranks)
	if err == nil {
		err = s.Choose("size", list)
	}
	if err != nil {
		return nil, fmt.Errorf("--message-size: %w", err)
	}
	sizes := s.Values("size")
	if most := sizes[len(sizes)-1].(int); !c.Flags().Changed("warmup") && p.Fabric.Kind == fabric.ExaNeSt && f.benchmark.DefaultWarmup(most, ranks) != osu.DefaultWarmup {
		err = s.Choose("warmup", strconv.Itoa(osu.AutoWarmup))
	}
	for _, text := range f.handlers {
		if wrong := experiment.Fill(s, text); wrong != nil {
			err = errors.Join(err, fmt.Errorf("--handler: %w", wrong))
		}
	}
	return s, err
}

// choose sets the axes of the experiment from the flags, except the sizes.
func (f *osuFlags) choose(s *experiment.Sweep, p *profile.Profile, perNode int) error {
	var errs []error
	keep := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	keep("engine", runtime.CheckEngine(f.engine))
	if !slices.Contains(osu.Styles(), osu.Style(f.like)) {
		keep("omb", fmt.Errorf("%q, expected one of %v", f.like, osu.Styles()))
	}
	keep("benchmark", s.Choose("benchmark", f.benchmark.Name))
	keep("transport", s.Choose("transport", cmp.Or(f.transport, exanest.DefaultTransport(p))))
	keep("iterations", s.Choose("iterations", strconv.Itoa(f.iterations)))
	// some axes have a number for "the benchmark's own default"
	if err := s.Choose("warmup", strconv.Itoa(f.warmup)); f.warmup < 0 {
		keep("warmup", fmt.Errorf("%d, expected at least 0", f.warmup))
	} else {
		keep("warmup", err)
	}
	if f.benchmark.Windowed {
		keep("window-size", s.Choose("window", strconv.Itoa(f.window)))
	}
	if f.benchmark.Kind == osu.Pair {
		keep("path", s.Choose("path", f.path))
	} else {
		keep("ranks", s.Choose("ranks", f.ranks))
		keep("ranks-per-node", s.Choose("ranks-per-node", strconv.Itoa(perNode)))
	}
	if f.benchmark.Kind == osu.Collective {
		keep("algorithms", s.Choose("algorithms", f.algorithms))
	}
	return errors.Join(errs...)
}

// places checks numbers of ranks, and returns the largest.
func (f *osuFlags) places(s *experiment.Sweep) (most int, err error) {
	if f.benchmark.Kind == osu.Pair {
		return 2, nil // the experiment checks paths
	}
	for _, v := range s.Values("ranks") {
		ranks := v.(int)
		if err := f.benchmark.Check(f.benchmark.Least, ranks); err != nil {
			return 0, fmt.Errorf("--ranks: %w", err)
		}
		most = max(most, ranks)
	}
	return most, nil
}

// messageSizes returns the list of sizes for --message-size.
func (f *osuFlags) messageSizes(ranks int) (string, error) {
	least, most := f.benchmark.Least, f.benchmark.DefaultMost(ranks)
	if f.sizes != "" {
		first, last, both := strings.Cut(f.sizes, ":")
		if !both {
			first, last = "", first
		}
		for _, end := range []struct {
			text string
			n    *int
		}{{first, &least}, {last, &most}} {
			if end.text == "" {
				continue
			}
			n, err := sim.ParseSize(end.text)
			if err != nil {
				return "", err
			}
			*end.n = int(n)
		}
	}
	var list []string
	for _, n := range f.benchmark.Sizes(least, most) {
		list = append(list, strconv.Itoa(n))
	}
	if list == nil {
		return "", fmt.Errorf("%q: no size from %d to %d B, expected MIN:MAX or MAX", f.sizes, least, most)
	}
	return strings.Join(list, ","), nil
}
