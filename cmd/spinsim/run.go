package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/lab/scenario"
	"github.com/spinsim/spinsim/internal/provenance"
)

// runName is the name of run in the record of a result.
const runName = "run"

// runFlags are the flags of run besides those of every experiment.
type runFlags struct {
	ranks   int
	allowed []string // further folders for the timeline of the scenario
}

// runCommand runs a scenario.
func runCommand() *cobra.Command {
	var f runFlags
	c := experiment.Command(scenario.Any(), experiment.CommandOptions{
		Build: thisBuild(), Command: runName, Columns: "spinsim help columns", Use: "run FILE", Input: f.open,
	})
	c.Short = "Run an experiment from a file"
	c.Long = `Run executes a scenario: a YAML file with the device and the network, match list entries with handlers, programs of the hosts, expectations
and outputs. The exit status is 0 if all expectations hold. It is 1 if one does not hold, a handler fails, a message finds no entry, or
a program waits for ever. It is 2 if the file or a flag has an error; then nothing has run.

  spinsim scenario example count > count.yaml
  spinsim run count.yaml

The scenario's profile, seed, engine, format and timeline stand where no flag is given. --param gives its parameters other values: --param size=8..64KiB*2 runs with each.

docs/scenarios.md describes the format.` + limitsHelp
	flags := c.Flags()
	for name, usage := range map[string]string{
		"param":   "give a parameter of the scenario a value: `NAME=VALUE`; NAME=LIST, such as size=8..64KiB*2, runs with each; may be repeated",
		"profile": "device and network instead of the scenario's: `NAMES` or files, separated by commas",
		"seed":    "`NUMBER` instead of the scenario's seed",
		"table":   "show only the table `NAME`, all of it if the scenario does not select it: " + strings.Join(append([]string{"points"}, tablesOf(scenario.Any())...), ", "),
	} {
		flags.Lookup(name).Usage = usage
	}
	for _, never := range []string{"samples", "over-open", "waterfall"} {
		flags.Lookup(never).Hidden = true // a scenario has neither; the error says why
	}
	flags.IntVar(&f.ranks, "ranks", 0, "`NUMBER` of nodes instead of the scenario's")
	flags.StringArrayVar(&f.allowed, "allow-output", nil, "also let the scenario write below a `FOLDER`; by default only below the current one; may be repeated")
	cli.SuggestParameters(c, func(args []string) []string {
		if len(args) == 0 {
			return nil
		}
		return scenario.ParametersIn(args[0])
	})
	return c
}

// tablesOf lists the tables of an experiment behind that of its points.
func tablesOf(e *experiment.Experiment) (names []string) {
	for i := range e.Details {
		names = append(names, e.Details[i].Name)
	}
	return names
}

// open makes the experiment of a scenario. Flags that are not given have the
// scenario's values.
func (f *runFlags) open(c *cobra.Command, files []string) (*experiment.Made, error) {
	flags, name := c.Flags(), files[0]
	o, given, err := f.options(c)
	if err != nil {
		return nil, err
	}
	m := newMaking(c, runName)
	s, err := openScenario(m, name, given, o)
	if err == nil {
		err = s.CheckGiven()
	}
	if err != nil {
		return nil, err
	}
	made := &experiment.Made{Experiment: s.Experiment(), Inputs: m.Inputs, Given: given}
	own := map[string]string{"engine": s.Engine(), "format": s.Format()}
	if seed := s.Seed(); seed != nil {
		own["seed"] = strconv.FormatUint(*seed, 10)
	}
	if !flags.Changed("trace") {
		made.Below = append([]string{"."}, f.allowed...)
		if own["trace"], err = s.TraceFile(made.Below); err == nil && own["trace"] != "" {
			err = cli.CheckOutputs(c, cli.Output{What: name + ": output.trace", Name: own["trace"]})
		}
		if err != nil {
			return nil, err
		}
		if own["trace"] != "" && several(c, &o) {
			fmt.Fprintf(c.ErrOrStderr(), "%s: output.trace is of one run and is not written\n", c.Root().Name())
			own["trace"] = ""
		}
	}
	for flag, value := range own { //lint:maporder each is set alone
		if value != "" && !flags.Changed(flag) {
			err = errors.Join(err, flags.Set(flag, value))
		}
	}
	return made, err
}

// options reads the flags that a scenario needs before it is an experiment. The
// record needs the given ones.
func (f *runFlags) options(c *cobra.Command) (o scenario.Options, given map[string]string, err error) {
	flags := c.Flags()
	for _, folder := range f.allowed {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return o, nil, fmt.Errorf("--allow-output: %q, expected a FOLDER that is there", folder)
		}
	}
	given = make(map[string]string)
	if flags.Changed("ranks") {
		if f.ranks < 1 {
			return o, nil, fmt.Errorf("--ranks: %d, expected at least 1", f.ranks)
		}
		given["ranks"] = strconv.Itoa(f.ranks)
	}
	if table := flags.Lookup("table").Value.String(); scenario.Collects(table) {
		given["table"] = table
	}
	if flags.Changed("seed") {
		o.Seed = new(uint64) // its value is the point's
	}
	params, err := flags.GetStringArray("param")
	if err != nil {
		return o, nil, err
	}
	for flag, path := range map[string]string{"profile": "profile", "ranks": "ranks", "seed": "seed", "trace": "output.trace", "format": "output.format"} {
		if flags.Changed(flag) {
			o.Replaced = append(o.Replaced, path)
		}
	}
	o.Parameters, o.Several, err = experiment.GivenParameters(params)
	return o, given, err
}

// several reports whether a run has points of which one timeline cannot be: the
// flags may ask for more than one, or for points that are kept.
func several(c *cobra.Command, o *scenario.Options) bool {
	sets, err := c.Flags().GetStringArray("set")
	if err == nil {
		_, more, err := experiment.GivenParameters(sets)
		if err == nil && len(more) > 0 {
			return true
		}
	}
	names, err := c.Flags().GetStringSlice("profile")
	if err == nil && len(names) > 1 || len(o.Several) > 0 {
		return true
	}
	return slices.ContainsFunc([]string{"resume", "part", "points"}, c.Flags().Changed)
}

// openScenario reads a scenario. given are the flags that it is made with.
func openScenario(m *making, name string, given map[string]string, o scenario.Options) (s *scenario.File, err error) {
	var text []byte
	err = m.input(name, func(r io.Reader) error {
		text, err = file.ReadFrom(r, name, file.MaxText)
		return err
	})
	if err != nil {
		return nil, err
	}
	for flag, value := range given { //lint:maporder each is set alone
		switch flag {
		case "ranks":
			if o.Ranks, err = strconv.Atoi(value); err != nil || o.Ranks < 1 {
				return nil, fmt.Errorf("--ranks: %q, expected at least 1", value)
			}
		case "table":
			if o.Table = value; !scenario.Collects(value) {
				return nil, fmt.Errorf("--table: no table %q", value)
			}
		default:
			return nil, fmt.Errorf("no flag --%s that a scenario is made with", flag)
		}
	}
	return scenario.Open(name, text, o)
}

// recordedScenario makes the experiment of a record of run.
func recordedScenario(r *provenance.Record, folder string, stdin io.Reader) (*experiment.Experiment, error) {
	given, err := experiment.GivenIn(r)
	if err != nil {
		return nil, fmt.Errorf("%w; run has the document of an experiment now: spinsim run FILE --format json writes it anew", err)
	}
	if len(r.Inputs) == 0 {
		return nil, errors.New("provenance.inputs: expected a scenario as the first")
	}
	m := repeating(r, folder, stdin)
	read := func(name string, limit int64) ([]byte, error) { return recordedFile(r, m, name, limit) }
	o := scenario.Options{Seed: r.Seed, Read: read}
	if o.Parameters, o.Several, err = experiment.ParametersOf(r); err != nil {
		return nil, err
	}
	s, err := openScenario(m, r.Inputs[0].Name, given, o)
	if err != nil {
		return nil, err
	}
	s.Recorded(r)
	return s.Experiment(), nil
}

// recordedFile returns a file that a scenario reads, as it is in a record.
func recordedFile(r *provenance.Record, m *making, name string, limit int64) ([]byte, error) {
	if in := r.Input(name); in != nil {
		return in.Data(func(name string) ([]byte, error) { return m.read(name, limit) })
	}
	for i := range r.Handlers {
		if h := &r.Handlers[i]; h.Path == name && name != "" {
			wasm, err := m.read(name, limit)
			if err == nil {
				err = h.Verify(wasm)
			}
			return wasm, err
		}
	}
	return nil, fmt.Errorf("%s is not among the recorded files", name)
}
