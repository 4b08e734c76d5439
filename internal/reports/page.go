package reports

import (
	"fmt"
	"math"
	"slices"
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
		{Text: "median distance", Number: true, Help: "of these from ours, without sign"},
		{Text: "largest", Number: true},
		{Text: "answer"},
	}}
	for i, r := range results {
		r.ID = page.ID(r.Title, i+1)
		p.Sections = append(p.Sections, r.Section)
		median, most := Distances(r.Deviations)
		count := fmt.Sprint(len(r.Deviations))
		cells := []report.Cell{{Text: r.Title}, {Text: count, Value: count}, percent(median), percent(most), {Text: strings.Join(r.Answer[:min(1, len(r.Answer))], " ")}}
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

// Distances returns the median and the largest distance from published numbers,
// without sign; NaN if there is none.
func Distances(list []report.Deviation) (median, most float64) {
	var all []float64
	for _, d := range list {
		if !math.IsNaN(d.Off) {
			all = append(all, math.Abs(d.Off))
		}
	}
	if len(all) == 0 {
		return math.NaN(), math.NaN()
	}
	slices.Sort(all)
	n := len(all)
	return (all[(n-1)/2] + all[n/2]) / 2, all[n-1]
}

// percent returns a share in a readable and sortable form.
func percent(x float64) report.Cell {
	if math.IsNaN(x) {
		return report.Cell{Text: "–"}
	}
	return report.Cell{Text: fmt.Sprintf("%.1f%%", 100*x), Value: fmt.Sprint(x)}
}
