package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/provenance"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/scenario"
)

// columnsTopic is the help topic "columns".
func columnsTopic() *cobra.Command {
	c := &cobra.Command{
		Use:   "columns",
		Short: "What the columns of tables, CSV and JSON mean, for every command",
	}
	c.SetHelpFunc(func(c *cobra.Command, _ []string) {
		_ = writeColumns(c.OutOrStdout()) // its writer notes what went wrong
	})
	return c
}

// section is the columns of a table, or the fields of a JSON object.
type section struct {
	title   string
	columns []report.Column
}

// sections are all that spinsim writes as columns.
func sections() []section {
	list := []section{
		{"compare", experiment.Columns()},
		{"compare hpus, besides", experiment.WorkColumns()},
		{"compare and goal proxies, where there are published numbers for a column (docs/results.md)", publishedColumns()},
	}
	for _, name := range scenario.TableNames {
		list = append(list, section{"run, table " + name, scenario.TableColumns(name)})
	}
	return append(
		list,
		section{"run, every table if a limit has ended the run", []report.Column{scenario.IncompleteColumn()}},
		section{"goal run, JSON", goalRunColumns()},
		section{"goal run --critical-path", pathColumns()},
		section{"goal run --on nodes", nodeColumns()},
		section{"goal run --on nodes, JSON besides", nodeFields()},
		section{"goal proxies", experiment.MatchingColumns()},
		section{"goal stat", statColumns()},
		section{"every row of CSV and NDJSON, and of JSON where rows differ in it", provenance.Columns()},
	)
}

// publishedColumns are those that stand beside a column with published numbers.
func publishedColumns() []report.Column {
	columns := report.PublishedColumns(report.Column{Name: "x", Kind: report.Number}, report.Column{Name: "x", Kind: report.Share})
	return append(columns[:2:2], columns[3], report.Column{Name: "published_source", Help: "where the published numbers of the row come from"})
}

func writeColumns(out io.Writer) error {
	for i, s := range sections() {
		gap := "\n"
		if i == 0 {
			gap = ""
		}
		if _, err := fmt.Fprintf(out, "%s%s\n\n", gap, s.title); err != nil {
			return err
		}
		if err := report.WriteHelp(out, s.columns); err != nil {
			return err
		}
	}
	return nil
}

// goalRunColumns are the fields of a result of the endpoint model.
func goalRunColumns() []report.Column {
	return []report.Column{
		{Name: "ranks", Kind: report.Count, Help: "ranks of the schedule"},
		{Name: "events", Kind: report.Count, Help: "operations that ran and messages that were sent; on nodes, events of the simulation"},
		{Name: "messages", Kind: report.Count, Help: "messages sent"},
		{Name: "mismatched", Kind: report.Count, Help: "messages whose receive has another size, which the model ignores"},
		{Name: "max", Unit: "ns", Kind: report.Count, Help: "when the last rank had done all of its operations"},
		{Name: "max_rank", Kind: report.Count, Help: "the first rank that ends then"},
		{Name: "finish", Unit: "ns", Kind: report.Count, Help: "a list: when each rank had done all of its operations"},
	}
}

// nodeFields are those that JSON has besides the columns of a run on nodes.
func nodeFields() (fields []report.Column) {
	for _, c := range goalRunColumns() {
		switch c.Name {
		case "ranks", "events", "max_rank", "finish":
			fields = append(fields, c)
		}
	}
	return fields
}
