package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/fields"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/reports"
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

Ours is what this version was measured to have; spinsim reproduce measures again. The distance of a row is exp|ln(ours / published)| - 1: 100% is twice or half as much.
It is 0 within what the publication gives, and a bound is met or missed by so much. Claims have no distance; they hold or not.
Without an argument ledger scores the predictions of each publication.`,
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
			var t *report.Table
			if len(args) == 1 {
				t, err = publishedRows(args[0])
			} else {
				t, err = publications()
			}
			if err != nil {
				return err
			}
			t.Origin = &provenance.Record{Build: thisBuild(), Command: strings.Join(append([]string{"ledger"}, args...), " ")}
			return t.Write(c.OutOrStdout(), chosen)
		},
	}
	c.Flags().StringVar(&format, "format", "table", "table, csv, json, ndjson, markdown or parquet")
	return c
}

// publications counts the rows of each publication by their classes, and scores
// what is predicted.
func publications() (*report.Table, error) { return publicationsOf(ledger.AllNear()) }

// publicationColumns are the columns of publications.
func publicationColumns() []report.Column {
	columns := []report.Column{
		{Name: "publication"},
		{Name: "predicted", Kind: report.Count, Help: "rows that nothing was set by, but repetitions"},
		{Name: "open", Kind: report.Count, Help: "of predicted: rows that no command measures yet"},
		{Name: "numbers", Kind: report.Count, Help: "of predicted: measured rows with numbers"},
		{Name: "median", Kind: report.Share, Help: "distance of numbers"},
		{Name: "p90", Kind: report.Share, Help: "distance of numbers: nine of ten are nearer"},
		{Name: "beyond", Kind: report.Count, Help: "of numbers: those with a distance of more than 25%"},
		{Name: "claims", Kind: report.Count, Help: "of predicted: measured rows that can only hold or not"},
		{Name: "hold", Kind: report.Count, Help: "of claims"},
		{Name: "tried", Kind: report.Count, Help: "rows with numbers, predicted or checks, with which identify chooses answers to open questions: those that are measured fast"},
		{Name: "today", Kind: report.Share, Help: "distance of tried, median: with today's answers"},
		{Name: "fitted", Kind: report.Share, Help: "distance of tried, median: with answers that bring them near"},
		{Name: "left_out", Kind: report.Share, Help: "distance of tried, median: with answers that are chosen without the rows of the same experiment"},
	}
	for _, name := range []string{"today", "fitted", "left_out"} {
		columns = append(columns, report.Column{Name: name + "_p90", Kind: report.Share, Help: "as " + name + ": nine of ten are nearer", ForPrograms: true})
	}
	for _, class := range ledger.Classes()[1:] {
		name, help := strings.NewReplacer(" ", "_", "-", "_").Replace(string(class)), ""
		if class == ledger.Sets {
			name, help = "set", "rows that set a parameter"
		}
		columns = append(columns, report.Column{Name: name, Kind: report.Count, ForPrograms: class == ledger.WhatIf, Help: help})
	}
	return append(columns, report.Column{Name: "repeated", Kind: report.Count, Help: "rows that say what another row says", ForPrograms: true}, report.Column{Name: "title", ForPrograms: true})
}

// publicationsOf is publications with distances of left-out rows. Older ones are
// not shown, and a note says so.
func publicationsOf(near map[string]*ledger.Near) (*report.Table, error) {
	t := report.New(publicationColumns()...)
	fresh, old, none, err := freshNear(near)
	if err != nil {
		return nil, err
	}
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
		score, err := p.Score(ledger.Predicted, ledger.AllMeasured())
		if err != nil {
			return nil, err
		}
		n, err := p.NearScore(ledger.AllMeasured(), near, func(id string) bool { return fresh[id] })
		if err != nil {
			return nil, err
		}
		row := []any{p.Tag, count[ledger.Predicted], score.Open, score.Numbers, known(score.Median), known(score.P90), score.Beyond, score.Claims, score.Hold}
		row = append(row, n.Rows, known(n.Today), known(n.Fitted), known(n.LeftOut), known(n.TodayP90), known(n.FittedP90), known(n.LeftOutP90))
		for _, class := range ledger.Classes()[1:] {
			row = append(row, count[class])
		}
		t.Add(append(row, repeated, p.Citation)...)
	}
	t.Notes = []string{reports.DistanceNote, "Fitted and left out choose answers to open questions; what rows have set in a profile stays."}
	if len(none) > 0 {
		t.Notes = append(t.Notes, "No rows are left out yet: "+strings.Join(none, ", ")+".")
	}
	for _, name := range old {
		t.Notes = append(t.Notes, fmt.Sprintf("Rows, questions or measurements have changed since spinsim identify %s left out rows: these distances are not shown.", name))
	}
	return t, nil
}

// known replaces a value that is none.
func known(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return f
}

// publishedRows lists the rows of a publication, the worst prediction first.
func publishedRows(tag string) (*report.Table, error) {
	all := ledger.Publications()
	i := slices.IndexFunc(all, func(p ledger.Publication) bool { return p.Tag == tag })
	if i < 0 {
		var tags []string
		for _, p := range all {
			tags = append(tags, p.Tag)
		}
		return nil, badInput(fmt.Errorf("no publication %q, expected one of %s%s", tag, strings.Join(tags, ", "), fields.DidYouMean(tag, tags)))
	}
	return reports.Ledger(all[i:i+1], ledger.AllMeasured(), true)
}
