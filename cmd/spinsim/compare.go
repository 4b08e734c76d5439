package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
)

// compareCommand has the experiment that the arguments of the program name,
// or all. To make one takes 0.1 ms, and there are many.
func compareCommand(args []string) *cobra.Command {
	c := &cobra.Command{
		Use:   "compare",
		Short: "Measure the same operation on the host, with triggered operations and with handlers",
		Long:  "Compare runs a published experiment, usually in several modes, and shows the gain by offloading.",
		Args:  noArguments,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	all := experiment.All()
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

// experimentCommand makes the command of an experiment.
func experimentCommand(e *experiment.Experiment) *cobra.Command {
	return experiment.Command(e, experiment.CommandOptions{Build: thisBuild(), Command: experiment.CommandPrefix + e.Name, Columns: "spinsim help columns"})
}
