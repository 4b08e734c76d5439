// Package lab is the common part of the experiments of its folders: a scenario,
// and handlers on messages. Both run once for a point, and list what went wrong
// beside their values.
//
//	run.go     the cluster, and the entries of its nodes
//	record.go  what the Portals interfaces did, with times
//	rows.go    tables whose rows are structs
//	points.go  what points need, and parameters as axes
//	lab.go     columns and values of a run
package lab

import (
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/sim"
)

// Columns and further tables of every run.
const (
	EndColumn     = "end"
	CutColumn     = "cut"
	FailuresTable = "failures"
	WarningsTable = "warnings"
)

// MaxLogBytes is how many bytes of the log of handlers a run keeps.
const MaxLogBytes = 1 << 20

// Columns are EndColumn, others, the count of failures, and CutColumn.
func Columns(others ...report.Column) []report.Column {
	list := append([]report.Column{{Name: EndColumn, Unit: "ns", Kind: report.Duration, Help: "when the run ended"}}, others...)
	list = append(list, report.Column{Name: "failed", Kind: report.Count, ForPrograms: true, Help: "what was expected and is not so: rows of the table failures"})
	return append(list, report.Column{Name: CutColumn, Kind: report.Text, ForPrograms: true, Help: "what has ended the run early; empty: nothing"})
}

// Details are the tables of warnings and failures.
func Details() []experiment.Detail {
	text := func(help string) []report.Column { return []report.Column{{Name: "text", Help: help}} }
	return []experiment.Detail{
		{Name: WarningsTable, Title: "Warnings", Columns: text("What happened without being an error."), Quiet: true},
		{Name: FailuresTable, Title: "Failures", Columns: text("What was expected and is not so."), Quiet: true},
	}
}

// Values are the values of Columns and Details, but for other columns. cut is
// what has ended the run early; "": nothing.
func Values(end sim.Time, cut string, failures, warnings []string) experiment.Values {
	texts := func(list []string) (rows experiment.Rows) {
		for _, text := range list {
			rows = append(rows, []any{text})
		}
		return rows
	}
	values := experiment.Values{EndColumn: end, CutColumn: nil, "failed": len(failures), FailuresTable: texts(failures), WarningsTable: texts(warnings)}
	if cut != "" {
		values[CutColumn] = cut
	}
	return values
}

// Texts returns the first column of a table of a result.
func Texts(r *experiment.Result, table string) (list []string) {
	rows, _ := r.Values[table].(experiment.Rows)
	for _, row := range rows {
		list = append(list, fmt.Sprint(row[0]))
	}
	return list
}

// mostShown is how many failed or incomplete runs an answer lists. The tables
// have all.
const mostShown = 10

// Happened begins an answer. It counts the results with failures, and lists them
// and what has ended runs early.
func Happened(results []*experiment.Result) (failed int, lines []string) {
	for _, r := range results {
		where := ""
		if len(results) > 1 {
			where = r.Point.String() + ": "
		}
		cut, _ := r.Values[CutColumn].(string)
		if texts := Texts(r, FailuresTable); len(texts) > 0 {
			failed++
			if first, _, _ := strings.Cut(texts[0], "\n"); where != "" && (cut == "" || len(texts) > 1) {
				lines = append(lines, where+"FAILED: "+first)
			}
		}
		if cut != "" {
			lines = append(lines, where+"INCOMPLETE: "+cut)
		}
	}
	if more := len(lines) - mostShown; more > 0 {
		lines = append(lines[:mostShown], fmt.Sprintf("and %d more", more))
	}
	return failed, lines
}

// Plural formats a number with its noun.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
