package experiment

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/report"
)

// Main is the function main of a program with experiments of its own. It runs
// the only one, or the one that the first argument names, with the flags of
// spinsim compare. "rerun RESULTS.json" makes a result again, and "columns"
// explains the columns of tables. It does not return.
func Main(list ...*Experiment) {
	os.Exit(RunMain(list, provenance.ReadBuild(), os.Args[1:], os.Stdout, os.Stderr))
}

// Must returns e. If err is not nil it prints err on standard error and ends
// the program, as Main does for a wrong definition.
func Must(e *Experiment, err error) *Experiment {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(cli.ExitFailed)
	}
	return e
}

// RunMain is Main without the process. It returns the exit code, and prints the
// error of a wrong definition on errs.
func RunMain(list []*Experiment, build provenance.Build, args []string, out, errs io.Writer) int {
	if err := check(list); err != nil {
		fmt.Fprintln(errs, err)
		return cli.ExitFailed
	}
	return cli.Execute(program(list, build), args, out, errs)
}

// check returns an error if the experiments cannot be one program.
func check(list []*Experiment) error {
	if len(list) == 0 {
		return errors.New("no experiment")
	}
	seen := map[string]bool{"rerun": true, "columns": true, "help": true, "completion": true}
	for _, e := range list {
		if err := e.Check(); err != nil {
			return err
		}
		if seen[e.Name] {
			return fmt.Errorf("experiment %s: the name is taken", e.Name)
		}
		seen[e.Name] = true
	}
	return nil
}

// programName is the name of a program with several experiments.
const programName = "experiments"

// program makes the root command.
func program(list []*Experiment, build provenance.Build) *cobra.Command {
	name := programName
	if len(list) == 1 {
		name = list[0].Name
	}
	options := CommandOptions{Build: build, Columns: "the command columns of this program"}
	root := &cobra.Command{Use: name, Args: cli.NoArguments, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	for _, e := range list {
		options.Command = e.Name
		c := Command(e, options)
		if len(list) == 1 {
			root = c
			c.Args = cli.NoArguments
			continue
		}
		root.AddCommand(c)
	}
	rerunLong := "Rerun reads a document written with --format json, makes the result again from its \"provenance\", and compares both: the bytes must be equal."
	root.AddCommand(Rerun(rerunLong, build, RerunAny(list)), columnsCommand(list))
	return cli.Root(root, build.Line())
}

// columnsCommand makes the command that explains the columns of experiments.
func columnsCommand(list []*Experiment) *cobra.Command {
	return &cobra.Command{
		Use:   "columns",
		Short: "Explain the columns of tables, CSV and JSON",
		Args:  cli.ExactArguments(),
		RunE: func(c *cobra.Command, _ []string) error {
			sections := append(ColumnSections("", list), HelpSection{"every row of CSV and NDJSON, and of JSON where rows differ in it", provenance.Columns()})
			return WriteSections(c.OutOrStdout(), sections)
		},
	}
}

// HelpSection is a part of a help text: columns of a table, or fields of a JSON
// object.
type HelpSection struct {
	Title   string
	Columns []report.Column
}

// ColumnSections are the columns of experiments. Columns that several
// experiments share are one section. Each title begins with prefix.
func ColumnSections(prefix string, list []*Experiment) (sections []HelpSection) {
	published := false
	for _, e := range list {
		published = published || len(e.published()) > 0
	}
	for _, s := range commonSections(list, (*Experiment).TableColumns) {
		sections = append(sections, HelpSection{prefix + s.Title(len(list)), s.Columns})
	}
	if published {
		sections = append(sections, HelpSection{prefix + "columns with published numbers, besides", publishedColumns()})
	}
	if slices.ContainsFunc(list, func(e *Experiment) bool { return !e.Deviceless }) {
		low, high := report.SpanColumns(report.Column{Name: "x", Kind: report.Number})
		sections = append(sections, HelpSection{prefix + "columns of --over-open, besides", []report.Column{low, high}})
	}
	for _, e := range list {
		for i := range e.Details {
			d := &e.Details[i]
			sections = append(sections, HelpSection{prefix + e.Name + ", table " + d.Name + ", behind the columns of the axes", d.Columns})
		}
	}
	for _, s := range commonSections(list, (*Experiment).BreakdownColumns) {
		sections = append(sections, HelpSection{prefix + s.Title(len(list)) + ", --breakdown", s.Columns})
	}
	for _, s := range commonSections(list, (*Experiment).WaterfallColumns) {
		sections = append(sections, HelpSection{prefix + s.Title(len(list)) + ", --waterfall", s.Columns})
	}
	return sections
}

// publishedColumns are the columns beside a column with published numbers.
func publishedColumns() []report.Column {
	columns := report.PublishedColumns(report.Column{Name: "x", Kind: report.Number}, report.Column{Name: "x", Kind: report.Share})
	return append(columns[:2:2], columns[3], report.Column{Name: "published_source", Help: "where the published numbers of the row come from"})
}

// WriteSections writes sections, one below the other.
func WriteSections(out io.Writer, sections []HelpSection) error {
	for i, s := range sections {
		gap := "\n"
		if i == 0 {
			gap = ""
		}
		if _, err := fmt.Fprintf(out, "%s%s\n\n", gap, s.Title); err != nil {
			return err
		}
		if err := report.WriteHelp(out, s.Columns); err != nil {
			return err
		}
	}
	return nil
}
