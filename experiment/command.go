package experiment

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/batch"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/trace"
)

// CommandOptions describe the program that the command of an experiment is part
// of.
type CommandOptions struct {
	Build   provenance.Build // the program that makes the results
	Command string           // the command that makes the results, for their record
	Columns string           // the command that explains the columns, for the notes of tables

	// Input makes an experiment from the command's argument, a file, or from the
	// words of a program. It has the axes of the experiment that the command was made
	// for, and others of Parameter. It may give flags the values of the file. nil: the
	// command has no argument.
	Input func(c *cobra.Command, words []string) (*Made, error)
	// Use is the usage line, with the argument if there is one: several words if it
	// ends in "...]". "": the name of the experiment.
	Use string
}

// compareFlags are the flags of every experiment.
type compareFlags struct {
	CommandOptions
	experiment                  *Experiment
	axes                        map[string]*string // by name
	profiles, overrides         []string
	preset, table               string
	handlers                    []string
	slots                       bool
	seed                        uint64
	engine, format, plot, trace string
	all                         bool
	waterfall                   []string
	links                       cli.LinksFlag
	pcap                        cli.CaptureFlags
	shape                       cli.ShapeFlag
	made                        Made
	params                      []string
	breakdown, open             bool
	samples                     SamplesFlag
	resume                      batch.ResumeFlags
	cli.LimitFlags
}

// listHelp explains the lists of values in flags.
const listHelp = `

A LIST is values separated by commas. Ranges: 2,4,..,1024 continues as it begins, 8..64KiB doubles, and 1,2,3,..,8 continues with its step. 8..64KiB*4 multiplies by 4, and
0..1+0.25 adds 0.25.`

// Command makes the command that runs an experiment, with a flag for each of
// its axes. It panics if Check returns an error: a programmer's mistake.
func Command(e *Experiment, o CommandOptions) *cobra.Command {
	if err := e.Check(); err != nil {
		panic("experiment: " + err.Error()) //lint:panic programmer's mistake
	}
	f := &compareFlags{CommandOptions: o, experiment: e, axes: make(map[string]*string)}
	short := e.Short
	if e.Source != "" {
		short += " (" + e.Source + ")"
	}
	long := e.Long
	if long == "" {
		long = short + "."
	}
	if len(e.Presets) > 0 {
		long += "\n\nExperiments for --experiment:"
		for _, p := range e.Presets {
			long += fmt.Sprintf("\n  %-12s %s", p.Name, p.Short)
			if p.Source != "" {
				long += " (" + p.Source + ")"
			}
		}
	}
	for i := range e.Axes {
		long += e.Axes[i].TermsHelp()
	}
	if help := slotsHelp(e); help != "" {
		long += "\n\n" + help
	}
	c := &cobra.Command{
		Use:   e.Name,
		Short: short,
		Long:  long + listHelp + cli.LimitsHelp,
		Args:  cli.ExactArguments(),
		RunE:  f.run,
	}
	if o.Input != nil {
		_, argument, _ := strings.Cut(o.Use, " ")
		c.Use, c.Args = o.Use, cli.ExactArguments(argument)
		if strings.HasSuffix(o.Use, "...]") { // what stands behind the first is not ours
			c.Args = cobra.ArbitraryArgs
			c.Flags().SetInterspersed(false)
		}
	}
	f.register(c)
	return c
}

func (f *compareFlags) register(c *cobra.Command) {
	e := f.experiment
	flags := c.Flags()
	if !e.Deviceless {
		f.registerDevice(c)
	}
	flags.StringArrayVar(&f.params, "param", nil, "another form of the experiment's flags: `NAME=LIST`, such as size=8..64KiB*2; may be repeated")
	for i := range e.Axes {
		if a := &e.Axes[i]; !a.Fixed() {
			f.axes[a.Name] = flags.String(a.Name, a.DefaultList(), a.Usage())
			cli.SuggestList(c, a.Name, a.Of...)
		}
	}
	if len(e.Presets) > 0 {
		flags.StringVar(&f.preset, "experiment", "", "set the flags above as published, except those given: `NAME` of "+presetNames(e))
		var names []string
		for _, p := range e.Presets {
			names = append(names, p.Name+"\t"+p.Short)
		}
		cli.Suggest(c, "experiment", names...)
	}
	flags.StringVar(&f.format, "format", "table", "table, csv, json, ndjson, markdown or parquet")
	flags.BoolVar(&f.all, "all", false, "show all columns in the table")
	flags.StringVar(&f.plot, "plot", "", "draw the result: `FILE.svg` or FILE.png")
	if len(e.Details) > 0 {
		flags.StringVar(&f.table, "table", "", "show only the table `NAME`: "+strings.Join(e.tableNames(), ", "))
		cli.Suggest(c, "table", e.tableNames()...)
	}
	if !e.Untraced {
		flags.StringVar(&f.trace, "trace", "", "write a timeline of one run for ui.perfetto.dev: `FILE.pftrace`, .json, or either with .gz")
	}
	cli.SuggestParameters(c, func([]string) (names []string) {
		for i := range e.Axes {
			if !e.Axes[i].Fixed() {
				names = append(names, e.Axes[i].Name)
			}
		}
		return names
	})
	f.resume.Register(c)
	f.Register(c)
}

// registerDevice adds the flags that choose devices, and what to look at in
// them.
func (f *compareFlags) registerDevice(c *cobra.Command) {
	e := f.experiment
	flags := c.Flags()
	flags.StringSliceVar(&f.profiles, "profile", e.DefaultProfiles(), "device and network: `NAMES` or files, separated by commas")
	flags.StringArrayVar(&f.overrides, "set", nil, "change a value of the profiles: `PATH=VALUE`, such as hpu.cores=8; PATH=LIST measures at each; may be repeated")
	f.shape.Register(c)
	if e.Slots != nil {
		flags.StringArrayVar(&f.handlers, "handler", nil, "run your handler module in a slot: `SLOT=FILE.wasm`, or FILE.wasm where all slots are of one library; may be repeated")
		flags.BoolVar(&f.slots, "slots", false, "list the slots for handler modules, and what each expects, and measure nothing")
	}
	flags.Uint64Var(&f.seed, "seed", 1, "`NUMBER` that seeds everything random, including payloads")
	flags.StringVar(&f.engine, "engine", "wazero", "WebAssembly engine: wazero, or wasmtime if built in")
	flags.BoolVar(&f.breakdown, "breakdown", false, "show the parts of the operation's time, how busy the nodes were, and the times of single operations")
	f.samples.Register(c)
	flags.BoolVar(&f.open, "over-open", false, "measure again with each admissible answer to what publications leave open, and show the ranges")
	flags.StringSliceVar(&f.waterfall, "waterfall", nil, "two profiles `FROM,TO`: change one group of parameters at a time from the first to the second, and show the effect of each")
	if !e.Untraced {
		f.links.Register(c)
		f.pcap.Register(c)
	}
}

// presetNames lists the presets of an experiment.
func presetNames(e *Experiment) string {
	var names []string
	for _, p := range e.Presets {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// sweep turns the flags into a sweep. It reports everything wrong with them
// before anything runs.
func (f *compareFlags) sweep(c *cobra.Command) (*Sweep, error) {
	e := f.experiment
	if f.preset != "" {
		var err error
		if e, err = e.Preset(f.preset); err != nil {
			return nil, fmt.Errorf("--experiment: %w", err)
		}
	}
	if f.breakdown {
		var err error
		if e, err = e.Broken(); err != nil {
			return nil, fmt.Errorf("--breakdown: %w", err)
		}
	}
	if err := f.samples.of(e); err != nil {
		return nil, fmt.Errorf("--samples: %w", err)
	}
	s, err := New(e)
	if err != nil {
		return nil, err
	}
	size, err := f.shape.Overrides()
	if err != nil {
		return nil, err
	}
	s.OverOpen = f.open
	s.Profiles, s.Overrides, s.Seed, s.Engine, s.Traced = f.profiles, size, f.seed, f.engine, f.traced()
	if f.trace != "" {
		s.Held = trace.Memory
	}
	s.Build, s.Command, s.Hint, s.Inputs, s.Given = f.Build, f.Command, f.Columns, f.made.Inputs, f.made.Given
	var errs []error
	keep := func(name string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", name, err))
		}
	}
	if s.Limits, s.MemoryLimit, s.Workers, err = f.Bounds(c); err != nil {
		errs = append(errs, err)
	}
	for _, set := range f.overrides {
		keep("set", s.Set(set))
	}
	keep("engine", runtime.CheckEngine(f.engine))
	for _, param := range f.params {
		keep("param", f.param(c, s, param))
	}
	for i := range f.experiment.Axes {
		if name := f.experiment.Axes[i].Name; f.axes[name] != nil && c.Flags().Changed(name) {
			keep(name, s.Choose(name, *f.axes[name]))
		}
	}
	for _, text := range f.handlers {
		keep("handler", Fill(s, text))
	}
	return s, errors.Join(errs...)
}

// param gives an axis the values of one --param.
func (f *compareFlags) param(c *cobra.Command, s *Sweep, text string) error {
	name, list, given := strings.Cut(text, "=")
	if name = strings.TrimSpace(name); !given {
		return fmt.Errorf("%q, expected NAME=LIST", text)
	}
	if f.axes[name] != nil && c.Flags().Changed(name) {
		return fmt.Errorf("%s is given by --%s, too", name, name)
	}
	if err := s.Choose(name, list); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// traced returns the flag that needs a single run: a trace, links, or packets.
func (f *compareFlags) traced() string {
	switch {
	case f.trace != "":
		return "--trace"
	case f.links.Wanted():
		return "--links"
	case f.pcap.Wanted():
		return "--pcap"
	}
	return ""
}

// checkTable checks the name of the table.
func (f *compareFlags) checkTable() error {
	if names := f.experiment.tableNames(); f.table != "" && !slices.Contains(names, f.table) {
		return cli.BadInput(fmt.Errorf("--table: no table %q, expected one of %s%s", f.table, strings.Join(names, ", "), fields.DidYouMean(f.table, names)))
	}
	return nil
}

// checkFiles checks the names of the output files.
func (f *compareFlags) checkFiles() error {
	if f.trace != "" {
		if err := trace.CheckName(f.trace); err != nil {
			return cli.BadInput(fmt.Errorf("--trace: %w", err))
		}
	}
	if f.plot != "" {
		if err := report.CheckImage(f.plot); err != nil {
			return cli.BadInput(fmt.Errorf("--plot: %w", err))
		}
	}
	if err := errors.Join(f.links.Check(), f.pcap.Check()); err != nil {
		return cli.BadInput(err)
	}
	if err := f.samples.Check(f.resume.Given()); err != nil {
		return cli.BadInput(err)
	}
	return cli.BadInput(f.resume.Check(f.traced() != ""))
}

func (f *compareFlags) run(c *cobra.Command, args []string) error {
	if err := f.checkTable(); err != nil {
		return err
	}
	if f.Input != nil {
		made, err := f.Input(c, args)
		if err != nil {
			return cli.BadInput(err)
		}
		f.experiment, f.made = made.Experiment, *made
	}
	if f.slots {
		_, err := io.WriteString(c.OutOrStdout(), slotsText(f.experiment))
		return err
	}
	format, err := report.ParseFormat(f.format)
	if err != nil {
		return cli.BadInput(fmt.Errorf("--format: %w", err))
	}
	if err := errors.Join(f.checkTable(), f.checkFiles()); err != nil {
		return err
	}
	s, err := f.sweep(c)
	if err != nil {
		return cli.BadInput(err)
	}
	return f.measure(c, s, format)
}

// measure measures the sweep and shows it.
func (f *compareFlags) measure(c *cobra.Command, s *Sweep, format report.Format) error {
	if len(f.waterfall) > 0 {
		return f.fall(c, s, format)
	}
	points, err := s.Points()
	if err != nil {
		return f.Unfit("", err)
	}
	if err := errors.Join(f.checkAlone(points, format), f.checkOutputs(c, s)); err != nil {
		return err
	}
	open, err := f.overOpen(s)
	if err != nil {
		return cli.BadInput(fmt.Errorf("--over-open: %w", err))
	}
	name := func(i int) string { return points[i].String() }
	if f.resume.List {
		return batch.WriteList(c.OutOrStdout(), len(points), name, pointNoun)
	}
	if s.Checkpoint, err = f.resume.Open(); err != nil {
		return err
	}
	defer s.Checkpoint.Close() //nolint:errcheck // every result is in its file
	if err := batch.Missing(&f.resume, s.batch(points), name); err != nil {
		return err
	}
	files := cli.RunFiles{Below: f.made.Below}
	if points[0].Tracer, err = files.Trace("--trace", f.trace, s.Record()); err != nil {
		return err
	}
	points[0].Links, points[0].Capture = f.links.Watch(), f.pcap.Hook()
	f.made.begin(len(points) == 1 && f.paged(format))
	ctx, cancel := f.Context(c)
	defer cancel()
	ctx = f.pcap.Bound(ctx, &f.Memory, points[0].Need())
	results, err := RunWithProgress(ctx, c.ErrOrStderr(), s, batch.Share(&f.resume, points))
	if err == nil && open != nil {
		if err = open.measure(ctx, c.ErrOrStderr(), s, results); err != nil {
			err = &Unfinished{results, fmt.Errorf("the ranges over what is open were not measured: %w", err)}
		}
	}
	f.resume.NoteOthers(c.ErrOrStderr(), c.Root().Name(), s.Checkpoint)
	f.outputs(&files, s, results)
	shown := func(results []*Result, u *Unfinished) error {
		if f.resume.Parted() {
			return f.sayPart(c.OutOrStdout(), results, len(points))
		}
		return f.showBeside(c, s, results, format, u)
	}
	if err == nil && cutOf(results) != "" { // tables show the time before
		return errors.Join(shown(results, nil), f.unjudged(files.End(ctx, problems(results))))
	}
	if err = files.End(ctx, f.alone(len(points), err)); err != nil {
		return Finished(err, func(u *Unfinished) error {
			return errors.Join(shown(u.Measured(), u), problems(u.Measured()))
		})
	}
	return errors.Join(shown(results, nil), f.unjudged(problems(results)))
}

// outputs adds the files of the results.
func (f *compareFlags) outputs(files *cli.RunFiles, s *Sweep, results []*Result) {
	files.Network(&f.links, &f.pcap, s.Record())
	files.Result("--samples", f.samples.name, func() error { return f.samples.write(s, results) })
	files.Result("--plot", f.plot, nil) // show draws it
	if f.made.Output != nil {
		files.Add(f.made.Output(s.Record()))
	}
}

// checkOutputs refuses files that the sweep reads, too, and a plot of nothing.
func (f *compareFlags) checkOutputs(c *cobra.Command, s *Sweep) error {
	if err := cli.CheckInputs(c.Context(), s.Record().Files()); err != nil {
		return err
	}
	if f.plot != "" && s.Plot().X == "" {
		return cli.BadInput(errors.New("--plot: nothing to draw along: expected an axis of numbers, or several values of another"))
	}
	return nil
}

// overOpen prepares the ranges over what is open; nil: none are wanted.
func (f *compareFlags) overOpen(s *Sweep) (*overOpen, error) {
	if !f.open {
		return nil, nil //nolint:nilnil // none are wanted
	}
	if f.traced() != "" || f.breakdown || f.samples.name != "" || s.Handlers != nil || !f.resume.Whole() {
		return nil, errAlone
	}
	return newOverOpen(s)
}

// RunWithProgress runs the points of a sweep and shows its progress on a
// terminal.
func RunWithProgress(ctx context.Context, errs io.Writer, s *Sweep, points []*Point) ([]*Result, error) {
	return unfinished(s.batch(points).Shown(ctx, errs, s.grid.experiment.Name))
}
