package reports

import (
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/internal/page"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/report"
)

// Page puts results together. If title is empty, it is the title of the only
// result, or counts the results.
func Page(title string, build provenance.Build, results []*Result) *page.Page {
	p := &page.Page{Title: title, Made: "Made by spinsim " + build.String()}
	if build.Commit != "" {
		p.Made += ", commit " + build.Commit
	}
	p.Made += "."
	overview := &report.Grid{Headings: []report.Heading{
		{Text: "result"},
		{Text: "published numbers", Number: true, Help: "of publications, that the result has a number for"},
		{Text: "answer"},
	}}
	for i, r := range results {
		r.ID = page.ID(r.Title, i+1)
		p.Sections = append(p.Sections, r.Section)
		count := fmt.Sprint(len(r.Deviations))
		cells := []report.Cell{{Text: r.Title}, {Text: count, Value: count}, {Text: strings.Join(r.Answer[:min(1, len(r.Answer))], " ")}}
		overview.Rows = append(overview.Rows, cells)
	}
	switch {
	case title != "":
	case len(results) == 1:
		p.Title = results[0].Title
		p.Sections[0].Title = "Result"
	default:
		p.Title = fmt.Sprintf("%d results", len(results))
	}
	if len(results) > 1 {
		p.Overview = []page.Table{{Caption: "Results", Grid: overview, Prose: true}}
	}
	return p
}
