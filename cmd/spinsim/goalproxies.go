package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/goal/proxy"
)

// goalProxiesCommand is the experiment of the applications. It can also print
// the sources of its schedules.
func goalProxiesCommand() *cobra.Command {
	e, err := experiment.Find("matching")
	if err != nil {
		panic(err) //lint:panic programmer's mistake: it is there
	}
	c := experimentCommand(e)
	c.Use = "proxies"
	c.Short = "Measure the gain by offloaded matching for MILC, POP, CoMD and CloverLeaf"
	measure := c.RunE
	source := c.Flags().Bool("source", false, "print the sources of the sizes and counts of the applications, and run nothing")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *source {
			return writeSources(c, e)
		}
		return measure(c, args)
	}
	return c
}

// writeSources prints the descriptions in the parameter files of the chosen
// applications.
func writeSources(c *cobra.Command, e *experiment.Experiment) error {
	list, err := c.Flags().GetString("app")
	if err != nil {
		return err
	}
	names, err := e.Axis("app").Parse(list)
	if err != nil {
		return badInput(fmt.Errorf("--app: %w", err))
	}
	for _, name := range names {
		p, err := proxy.Load(fmt.Sprint(name))
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(c.OutOrStdout(), "%s: %s\n  %s\n", p.Name, p.Description, p.Source); err != nil {
			return err
		}
	}
	return nil
}
