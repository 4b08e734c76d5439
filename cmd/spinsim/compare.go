package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/lab/scenario"
)

// compareCommand has the experiment that the arguments of the program name,
// or all. To make one takes 0.1 ms, and there are many.
func compareCommand(args []string) *cobra.Command {
	c := &cobra.Command{
		Use:   "compare",
		Short: "Measure the same operation on the host, with triggered operations and with handlers",
		Long:  "Compare runs a published experiment, usually in several modes, and shows the gain by offloading.",
		Args:  noArguments,
	}
	all := experiment.All()
	format := c.Flags().String("format", "text", "list the experiments with their axes, columns and slots: text, or json for programs")
	c.RunE = func(c *cobra.Command, _ []string) error { return listExperiments(c, *format) }
	if len(args) > 1 && args[0] == c.Name() {
		if k := slices.IndexFunc(all, func(e *experiment.Experiment) bool { return e.Name == args[1] }); k >= 0 {
			all = all[k : k+1]
		}
	}
	for _, e := range all {
		c.AddCommand(experimentCommand(e))
	}
	return c
}

// listExperiments writes what compare can measure, and the columns of run.
func listExperiments(c *cobra.Command, format string) error {
	switch format {
	case "text":
		return c.Help()
	case "json":
	default:
		return cli.BadInput(fmt.Errorf("--format: unknown format %q, expected text or json", format))
	}
	list := struct {
		Experiments []*experiment.Description `json:"experiments"`
		Run         *experiment.Description   `json:"run"` // any scenario
	}{Run: experiment.Describe(scenario.Any())}
	for _, e := range experiment.All() {
		list.Experiments = append(list.Experiments, experiment.Describe(e))
	}
	encoder := json.NewEncoder(c.OutOrStdout())
	encoder.SetIndent("", "  ")
	return encoder.Encode(list)
}

// experimentCommand makes the command of an experiment.
func experimentCommand(e *experiment.Experiment) *cobra.Command {
	return experiment.Command(e, experiment.CommandOptions{Build: thisBuild(), Command: experiment.CommandPrefix + e.Name, Columns: "spinsim help columns"})
}
