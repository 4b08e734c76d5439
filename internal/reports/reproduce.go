package reports

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/page"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/report"
)

// Reproduction is the measurements for a publication.
type Reproduction struct {
	Publication *experiment.Publication
	Full        bool
	Results     []*Result // in the order of its runs, without skipped ones
	Only        []string  // the chosen experiments; nil: all
	Missing     []string  // published numbers that were not measured, in words
}

// numbers returns the deviations of all results, each once, with the place of
// its measurement.
func (r *Reproduction) numbers() (list []report.Deviation) {
	for _, one := range r.Results {
		for _, d := range one.Deviations {
			name, _, _ := strings.Cut(one.Title, ":")
			d.At = name + ", " + d.At
			same := func(o report.Deviation) bool {
				return o.At == d.At && o.Quantity == d.Quantity && o.Source == d.Source && o.Published == d.Published
			}
			if !slices.ContainsFunc(list, same) {
				list = append(list, d)
			}
		}
	}
	return list
}

// Summary describes in sentences how near the numbers are.
func (r *Reproduction) Summary() []string {
	all := r.numbers()
	var predicted []report.Deviation
	for _, d := range all {
		if !d.Calibrated {
			predicted = append(predicted, d)
		}
	}
	if len(all) == 0 {
		return append([]string{r.Publication.Title + ": no published number was measured."}, r.leftOut()...)
	}
	lines := []string{fmt.Sprintf("%s: %d published numbers measured; parameters were set by %d of them, the other %d are predicted.", r.Publication.Title, len(all), len(all)-len(predicted), len(predicted))}
	if median, most := Distances(predicted); !math.IsNaN(median) {
		at := slices.IndexFunc(predicted, func(d report.Deviation) bool { return math.Abs(d.Off) == most })
		lines = append(lines, fmt.Sprintf("What is predicted is %.1f%% from the publication in the median, and %.1f%% at most (shares in points): %s, %s.", 100*median, 100*most, predicted[at].At, predicted[at].Quantity))
	}
	return append(lines, r.leftOut()...)
}

// leftOut lists the numbers that a quick run does not measure.
func (r *Reproduction) leftOut() (lines []string) {
	if len(r.Missing) > 0 {
		lines = append(lines, fmt.Sprintf("%d published numbers were not measured: %s.", len(r.Missing), strings.Join(r.Missing, "; ")))
	}
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

// Page makes the page: the summary and every number first, then the experiments.
func (r *Reproduction) Page(build provenance.Build) *page.Page {
	title := r.Publication.Title
	if !r.Full {
		title += ", quick"
	}
	p := Page(title, build, r.Results)
	p.Lead = r.Summary()
	if all := r.numbers(); len(all) > 0 {
		p.Overview = append([]page.Table{{Caption: "Every published number", Grid: report.DeviationGrid(all), Prose: true}}, p.Overview...)
	}
	return p
}

// Table returns every published number with ours, for programs and for people
// in a terminal.
func (r *Reproduction) Table() *report.Table {
	t := report.New(
		report.Column{Name: "at", Help: "experiment and row"}, report.Column{Name: "quantity", Help: "what is measured"}, report.Column{Name: "here", Help: "what spinsim has measured"},
		report.Column{Name: "published", Help: "what the publication gives"}, report.Column{Name: "deviation", Help: "(here - published) / published; of shares here - published, in points"},
		report.Column{Name: "predicted", Kind: report.Flag, Help: "no: a parameter of the profile was set by the number"}, report.Column{Name: "source", Help: "publication and section, with what has to be known"},
	)
	for _, d := range r.numbers() {
		t.Add(d.At, d.Quantity, d.Here, d.Published, d.Text, !d.Calibrated, d.Source)
	}
	t.Answer = r.Summary()
	return t
}
