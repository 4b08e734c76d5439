package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment/cores"
	"github.com/spinsim/spinsim/profile"
)

// costsCommand compares the cost tables with the cores they describe, or prints one.
func costsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "costs [TABLE]",
		Short: "Compare the cost tables with the cores they describe, or print one",
		Long: `A cost table says what the instructions of a handler cost on a core; a profile names one in hpu.costs. With a name costs prints the table,
with the source of every value. Without an argument it runs a dozen loops and prints what a round of each costs by each table, in
cycles, beside a reference: the model of such a core in llvm-mca, or the user manual of the core (scripts/core-references.sh).`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactArguments("TABLE")(c, args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			out := c.OutOrStdout()
			if len(args) == 1 {
				source, err := profile.CostSource(args[0])
				if err != nil {
					return badInput(err)
				}
				_, err = out.Write(source)
				return err
			}
			fmt.Fprintf(out, "Cycles of a round, by the cost table and by its reference; why, where they are more than %.0f%% apart\n", cores.Tolerance*100)
			for _, table := range profile.CostNames() {
				if err := writeCosts(out, table); err != nil {
					return err
				}
			}
			_, err := fmt.Fprintf(out, "\nspinsim %s\n", thisBuild())
			return err
		},
	}
}

func writeCosts(out io.Writer, table string) error {
	all, err := cores.Compare(table)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s, beside %s\n", table, cores.Source(table))
	const line = "%8s  %9s  %9s  %-9s  %s\n"
	fmt.Fprintf(out, line, "cycles", "reference", "deviation", "loop", "a round")
	for _, c := range all {
		reference, deviation := "-", "-"
		if c.Reference > 0 {
			reference, deviation = fmt.Sprintf("%.2f", c.Reference), fmt.Sprintf("%+.0f%%", c.Deviation()*100)
		}
		fmt.Fprintf(out, line, fmt.Sprintf("%.2f", c.Cycles), reference, deviation, c.Loop.Name, c.Loop.What)
	}
	for _, c := range all {
		if c.Reason != "" {
			fmt.Fprintf(out, "  %s: %s\n", c.Loop.Name, c.Reason)
		}
	}
	return nil
}
