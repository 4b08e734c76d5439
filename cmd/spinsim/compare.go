package main

import (
	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
)

// compareCommand has a subcommand for every experiment.
func compareCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "compare",
		Short: "Measure the same operation on the host, with triggered operations and with handlers",
		Long:  "Compare runs a published experiment, most in several modes, and says what offloading is worth.",
		Args:  noArguments,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, e := range experiment.All() {
		c.AddCommand(experimentCommand(e))
	}
	return c
}

// experimentCommand makes the command of an experiment.
func experimentCommand(e *experiment.Experiment) *cobra.Command {
	return experiment.Command(e, experiment.CommandOptions{Build: thisBuild(), Command: experiment.CommandPrefix + e.Name, Columns: "spinsim help columns"})
}
