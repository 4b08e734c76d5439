package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/experiment/spin17"
	"github.com/spinsim/spinsim/goal"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/report"
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
	c.AddCommand(goalRunCommand(), goalGenCommand(), goalStatCommand(), goalConvertCommand(), goalMergeCommand(), goalImportCommand(), goalVizCommand(), goalProxiesCommand())
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

// parseFormat checks --format.
func parseFormat(name string) (report.Format, error) {
	format, err := report.ParseFormat(name)
	if err != nil {
		return "", badInput(fmt.Errorf("--format: %w", err))
	}
	return format, nil
}

// Names of goal run in the record of a result: in the models and on nodes.
const (
	goalRunName = "goal run"
	byATLAHS    = goalRunName + " --model atlahs"
	onNodes     = goalRunName + " --on nodes"
)

func goalRunCommand() *cobra.Command {
	of := map[string]*cobra.Command{"model": modelCommand("run FILE"), "nodes": fileCommand(onNodes, "run FILE")}
	atlahs := fileCommand(byATLAHS, "run FILE") // has flags of model only
	atlahs.Flags().VisitAll(func(f *pflag.Flag) {
		of["model"].Flags().Lookup(f.Name).Value = &sharedValue{of["model"].Flags().Lookup(f.Name).Value, f.Value}
	})
	var on, model string
	c := &cobra.Command{
		Use:   "run FILE",
		Short: "Compute the finishing time of every rank",
		Long: `Run computes the finishing time of every rank in the LogGOPS model (LogGOPS'10). With --model atlahs it follows the rules of ATLAHS' simulator
(SC'25). With --on nodes it runs the schedule on simulated nodes: sends
and receives are then real messages. The host or its network interface matches them (sPIN'17 §5.1), and every byte is checked.

Each parameter takes a LIST of values, too: --L 1000,2000,4000.

A schedule that does not finish is reported with the operations that wait. The exit status is then 1.` + limitsHelp,
		Args: exactArguments("FILE"),
	}
	only := make(map[string][]string)
	for _, name := range []string{"model", "nodes"} {
		join(c.Flags(), of[name].Flags(), name, func(flag string) { only[name] = append(only[name], flag) })
	}
	shareEager(c, of["model"])
	only["nodes"] = slices.DeleteFunc(only["nodes"], func(flag string) bool { return flag == eagerFlag })
	c.Flags().StringVar(&on, "on", "model", "model or nodes")
	c.Flags().StringVar(&model, "model", "loggops", "model: loggops or atlahs")
	only["model"] = append(only["model"], "model")
	c.RunE = func(c *cobra.Command, args []string) error {
		if of[on] == nil {
			return badInput(fmt.Errorf("--on: %q, expected model or nodes", on))
		}
		for _, other := range []string{"model", "nodes"} {
			for _, name := range only[other] {
				if other != on && of[on].Flags().Lookup(name) == nil && c.Flags().Changed(name) {
					return badInput(fmt.Errorf("--%s has no meaning with --on %s", name, on))
				}
			}
		}
		switch s := c.Flags().Lookup("S"); {
		case !c.Flags().Changed(eagerFlag):
		case s.Changed:
			return badInput(errors.New("--eager and --S are the same, expected one of them"))
		default:
			s.Changed = on == "model" // its value is set
		}
		switch {
		case model != "loggops" && model != "atlahs":
			return badInput(fmt.Errorf("--model: %q, expected loggops or atlahs", model))
		case model == "atlahs" && c.Flags().Changed("critical-path"):
			return badInput(errors.New("--critical-path has no meaning with --model atlahs"))
		case model == "atlahs":
			return atlahs.RunE(c, args)
		}
		return of[on].RunE(c, args)
	}
	return c
}

// eagerFlag is the eager limit, on nodes and in the models.
const eagerFlag = "eager"

// shareEager lets the flag of nodes for the eager limit stand for the models'
// S, too. They mean the same.
func shareEager(c, model *cobra.Command) {
	eager, s := c.Flags().Lookup(eagerFlag), model.Flags().Lookup("S")
	eager.Usage = fmt.Sprintf("%s (default %s on nodes, %s in the model, as --S)", strings.TrimPrefix(eager.Usage, "nodes: "), eager.DefValue, s.DefValue)
	eager.DefValue = ""
	eager.Value = &sharedValue{eager.Value, s.Value}
}

// join adds the flags of one of several commands to those of all. A flag that
// several commands have sets it in each. others gets the names of flags that the
// command does not share with one before it.
func join(all, of *pflag.FlagSet, name string, others func(flag string)) {
	of.VisitAll(func(f *pflag.Flag) {
		if known := all.Lookup(f.Name); known != nil {
			known.Value = &sharedValue{known.Value, f.Value}
			known.Usage = strings.TrimPrefix(known.Usage, "model: ")
			return
		}
		f.Usage = name + ": " + f.Usage
		all.AddFlag(f)
		others(f.Name)
	})
}

// sharedValue is the value of a flag of two commands.
type sharedValue struct {
	pflag.Value

	also pflag.Value
}

// Set implements pflag.Value.
func (v *sharedValue) Set(text string) error {
	if err := v.Value.Set(text); err != nil {
		return err
	}
	return v.also.Set(text)
}

// modelCommand runs a schedule in the LogGOPS model.
func modelCommand(use string) *cobra.Command {
	c := fileCommand(goalRunName, use)
	for _, name := range []string{"noise-coscheduled", "critical-path"} {
		c.Flags().Lookup(name).NoOptDefVal = "true"
	}
	return c
}

// readModel returns a function that makes the experiment of a schedule in a
// model. detours names the file with noise; "": there is none.
func readModel(of func(string, *goal.Schedule, spin17.Noise) *experiment.Experiment) func(m *making, name, detours string) (*experiment.Experiment, error) {
	return func(m *making, name, detours string) (*experiment.Experiment, error) {
		s, noise, err := readNoisy(m, name, detours)
		if err != nil {
			return nil, err
		}
		return of(filepath.Base(name), s, noise), nil
	}
}

// readNoisy reads a schedule and the noise of its run.
func readNoisy(m *making, name, detours string) (*goal.Schedule, spin17.Noise, error) {
	var noise spin17.Noise
	s, err := readSchedule(m, name)
	if err != nil || detours == "" {
		return s, noise, err
	}
	noise.Name = filepath.Base(detours)
	err = m.input(detours, func(r io.Reader) error {
		text, err := file.ReadFrom(r, detours, file.MaxData)
		if err == nil {
			noise.Trace, err = goal.ReadNoise(bytes.NewReader(text), detours)
		}
		return err
	})
	if err != nil {
		return nil, noise, fmt.Errorf("--noise: %w", err)
	}
	return s, noise, nil
}

// readNodes makes the experiment of a schedule on nodes.
func readNodes(m *making, name, _ string) (*experiment.Experiment, error) {
	s, err := readSchedule(m, name)
	if err != nil {
		return nil, err
	}
	return spin17.Schedule(filepath.Base(name), s), nil
}

func goalVizCommand() *cobra.Command {
	model := modelCommand("viz FILE") // the same run with another output
	c := &cobra.Command{
		Use:   "viz FILE",
		Short: "Draw the run of a schedule as a timeline",
		Long: `Viz runs a schedule on the LogGOPS model and writes a timeline. It has a line for each processor and for each direction of each
network interface, and an arrow for each message. ui.perfetto.dev opens it.`,
		Args: exactArguments("FILE"),
	}
	for _, name := range []string{"L", "o", "g", "G", "O", "S", "noise", "noise-seed", "noise-coscheduled"} {
		c.Flags().AddFlag(model.Flags().Lookup(name))
	}
	output := *model.Flags().Lookup("trace")
	output.Name, output.Usage = "output", "the timeline: `FILE.pftrace` or .json, either also with .gz"
	c.Flags().AddFlag(&output)
	c.RunE = func(c *cobra.Command, args []string) error {
		if output.Value.String() == "" {
			return badInput(fmt.Errorf("--output: expected the name of a file that ends in one of %s", trace.Extensions))
		}
		out := c.OutOrStdout()
		c.SetOut(io.Discard)
		defer c.SetOut(out)
		return model.RunE(c, args)
	}
	return c
}
