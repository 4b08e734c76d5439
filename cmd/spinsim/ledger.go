package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/report"
)

// ledgerCommand prints what publications say, and what each row is worth.
func ledgerCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "ledger [PUBLICATION]",
		Short: "List what publications say, and what each row is worth as evidence",
		Long: `A row of the ledger is a number or a claim of a publication. Its class was fixed before the row was measured:

  predicted          nothing in spinsim was set by it
  checks             it follows from rows that set parameters
  sets a parameter   of a profile, or is a condition of an experiment
  what-if            a term was made for it
  not modelled       with the reason

Without an argument ledger counts the rows of each publication. It prints what was published; spinsim reproduce measures.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactArguments("PUBLICATION")(c, args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			chosen, err := parseFormat(format)
			if err != nil {
				return err
			}
			t := publications()
			if len(args) == 1 {
				if t, err = publishedRows(args[0]); err != nil {
					return badInput(err)
				}
			}
			return t.Write(c.OutOrStdout(), chosen)
		},
	}
	c.Flags().StringVar(&format, "format", "table", "table, csv, json, ndjson, markdown or parquet")
	return c
}

// publications counts the rows of each publication by their classes.
func publications() *report.Table {
	columns := []report.Column{{Name: "publication"}, {Name: "rows", Kind: report.Count}}
	for _, class := range ledger.Classes() {
		columns = append(columns, report.Column{Name: strings.NewReplacer(" ", "_", "-", "_").Replace(string(class)), Kind: report.Count})
	}
	columns = append(columns, report.Column{Name: "repeated", Kind: report.Count}, report.Column{Name: "title"})
	t := report.New(columns...)
	for _, p := range ledger.Publications() {
		count := map[ledger.Class]int{}
		repeated := 0
		for i := range p.Rows {
			if p.Rows[i].Same != "" {
				repeated++
				continue
			}
			count[p.Rows[i].Class]++
		}
		row := []any{p.Tag, len(p.Rows)}
		for _, class := range ledger.Classes() {
			row = append(row, count[class])
		}
		t.Add(append(row, repeated, p.Citation)...)
	}
	t.Notes = []string{"Repeated are rows that say what another row says. They count once."}
	return t
}

// publishedRows lists the rows of a publication.
func publishedRows(tag string) (*report.Table, error) {
	var tags []string
	for _, p := range ledger.Publications() {
		tags = append(tags, p.Tag)
		if p.Tag != tag {
			continue
		}
		t := report.New(report.Column{Name: "id"}, report.Column{Name: "section"}, report.Column{Name: "class"}, report.Column{Name: "value"}, report.Column{Name: "of_unit"},
			report.Column{Name: "quantity"}, report.Column{Name: "conditions"}, report.Column{Name: "why"}, report.Column{Name: "same"})
		for i := range p.Rows {
			r := &p.Rows[i]
			t.Add(r.ID, r.Section, string(r.Class), r.Published.Text, r.Unit, r.Quantity, r.Conditions, r.Why, r.Same)
		}
		t.Notes = []string{p.Name + ": " + p.Citation + "."}
		return t, nil
	}
	return nil, fmt.Errorf("no publication %q, expected one of %s%s", tag, strings.Join(tags, ", "), fields.DidYouMean(tag, tags))
}
