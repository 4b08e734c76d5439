package reports

import (
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/page"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/report"
)

// Reproduction is the measurements for a publication.
type Reproduction struct {
	Publication *experiment.Publication
	Full        bool
	Results     []*Result         // in the order of its runs, without skipped ones
	Only        []string          // the chosen experiments; nil: all
	Measured    []ledger.Measured // rows of the ledger
}

// Table returns every measured row of the ledger, and sentences about how near
// they are.
func (r *Reproduction) Table() (*report.Table, error) {
	measured := make(map[string]*ledger.Measured, len(r.Measured))
	for i := range r.Measured {
		measured[r.Measured[i].ID] = &r.Measured[i]
	}
	var list []ledger.Publication
	for _, p := range ledger.Publications() {
		if slices.ContainsFunc(p.Rows, func(row ledger.Row) bool { return measured[row.ID] != nil }) {
			list = append(list, p)
		}
	}
	t, err := Ledger(list, measured, false)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		t.Answer = []string{r.Publication.Title + ": no published number was measured."}
	}
	t.Answer = append(t.Answer, r.leftOut()...)
	return t, nil
}

// leftOut lists the numbers that a quick run does not measure.
func (r *Reproduction) leftOut() (lines []string) {
	if len(r.Only) > 0 {
		lines = append(lines, "Only this was asked for: "+strings.Join(r.Only, ", ")+".")
	}
	if r.Full {
		return lines
	}
	var without []string
	for i := range r.Publication.Runs {
		if run := &r.Publication.Runs[i]; run.Without != "" && (len(r.Only) == 0 || slices.Contains(r.Only, run.Experiment)) {
			without = append(without, run.Experiment+": "+run.Without)
		}
	}
	if len(without) > 0 {
		lines = append(lines, "Left out without --full, besides points between others: "+strings.Join(without, "; ")+".")
	}
	return lines
}

// Page makes the page: the summary and every row first, then the experiments.
func (r *Reproduction) Page(build provenance.Build) (*page.Page, error) {
	title := r.Publication.Title
	if !r.Full {
		title += ", quick"
	}
	p := Page(title, build, r.Results)
	t, err := r.Table()
	if err != nil {
		return nil, err
	}
	p.Lead = t.Answer
	if t.Len() > 0 {
		p.Overview = append([]page.Table{{Caption: "Every published number", Grid: t.Grid(false), Prose: true}}, p.Overview...)
	}
	return p, nil
}
