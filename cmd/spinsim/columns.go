package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/lab/scenario"
	"github.com/spinsim/spinsim/internal/provenance"
)

// columnsTopic is the help topic "columns".
func columnsTopic() *cobra.Command {
	c := &cobra.Command{
		Use:   "columns",
		Short: "Explain the columns of tables, CSV and JSON, for every command",
	}
	c.SetHelpFunc(func(c *cobra.Command, _ []string) {
		// the writer notes what went wrong
		cli.Fit(c.OutOrStdout(), func(to io.Writer) { _ = experiment.WriteSections(to, sections()) })
	})
	return c
}

type section = experiment.HelpSection

// sections lists every table that spinsim writes as columns.
func sections() []section {
	list := experiment.ColumnSections("compare: ", experiment.All())
	for _, f := range fromFiles() {
		list = append(list, experiment.ColumnSections(f.command+": ", []*experiment.Experiment{f.empty})...)
	}
	list = append(list, experiment.ColumnSections(runName+": ", []*experiment.Experiment{scenario.Any()})...)
	return append(
		list,
		section{Title: "--samples of compare, behind experiment, profile and axes", Columns: experiment.SampleColumns()},
		section{Title: "--links of compare, run and goal run", Columns: cli.LinkColumns()},
		section{Title: "topology", Columns: classColumns()},
		section{Title: "topology path", Columns: hopColumns()},
		section{Title: "goal stat", Columns: statColumns()},
		section{Title: "advise", Columns: adviceColumns()},
		section{Title: "doctor", Columns: doctorColumns()},
		section{Title: "profile", Columns: profileColumns()},
		section{Title: "profile costs, but for the table", Columns: costColumns()},
		section{Title: "every row of CSV and NDJSON, and of JSON where rows differ in it", Columns: provenance.Columns()},
	)
}
