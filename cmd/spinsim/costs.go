package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/cores"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
)

// costsCommand compares the cost tables with the cores they describe, or prints one.
func costsCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "costs [TABLE]",
		Short: "Compare the cost tables with the cores they describe, or print one",
		Long: `A cost table gives the cost of each instruction of a handler on a core. A profile names a table in hpu.costs. With a name costs prints the table,
with the source of every value. Without an argument it runs a dozen loops and prints the cycles of an iteration by each table,
beside a reference: the model of such a core in llvm-mca, or the user manual of the core (scripts/core-references.sh).`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactArguments("TABLE")(c, args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			out := c.OutOrStdout()
			if len(args) == 1 {
				if err := noFormat(c); err != nil {
					return err
				}
				source, err := profile.CostSource(args[0])
				if err != nil {
					return badInput(err)
				}
				_, err = out.Write(source)
				return err
			}
			chosen, err := parseFormat(format)
			if err != nil {
				return err
			}
			if chosen != report.TextFormat {
				return writeCostTable(out, chosen)
			}
			fmt.Fprintf(out, "Cycles of a round, by the cost table and by its reference; why, where they are more than %.0f%% apart\n", cores.Tolerance*100)
			for _, table := range cores.Tables() {
				if err := writeCosts(out, table); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintf(out, "\nspinsim %s\n", thisBuild())
			return err
		},
	}
	c.Flags().StringVar(&format, "format", "table", "of the comparison: table, csv, json, ndjson, markdown or parquet")
	return c
}

// costColumns are the columns of the comparison, for programs.
func costColumns() []report.Column {
	return []report.Column{
		{Name: "table", Help: "the cost table"},
		{Name: "loop", Help: "what runs"},
		{Name: "cycles", Kind: report.Number, Help: "of a round, by the table"},
		{Name: "reference", Kind: report.Number, Help: "of a round, by the model of such a core in llvm-mca or the user manual of the core; absent if neither knows"},
		{Name: "reason", Help: "why the two are apart, where they are"},
	}
}

func writeCostTable(out io.Writer, format report.Format) error {
	t := report.New(costColumns()...)
	for _, table := range cores.Tables() {
		all, err := cores.Compare(table)
		if err != nil {
			return err
		}
		for _, c := range all {
			var reference any
			if c.Reference > 0 {
				reference = c.Reference
			}
			t.Add(table, c.Loop.Name, c.Cycles, reference, c.Reason)
		}
	}
	return t.Write(out, format)
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
