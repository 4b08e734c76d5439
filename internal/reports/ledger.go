package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/report"
)

// DistanceNote explains distances below a table.
const DistanceNote = "The distance of a number is exp|ln(ours / published)| - 1, and 0 within what the publication gives. A number of ours that is 0, or of the other sign, has none and counts as the farthest."

// Ledger lists the rows of a publication beside what was measured: predictions
// first, and of these the worst first. Parameters that nothing measures are
// behind.
func Ledger(p *ledger.Publication, measured map[string]*ledger.Measured) (*report.Table, error) {
	t := report.New(
		report.Column{Name: "class"},
		report.Column{Name: "distance", Kind: report.Share, Help: "of ours from what was published"},
		report.Column{Name: "holds", Kind: report.Flag, Help: "of a claim"},
		report.Column{Name: "ours", Help: "in the published unit"},
		report.Column{Name: "published"},
		report.Column{Name: "of_unit"},
		report.Column{Name: "quantity"},
		report.Column{Name: "conditions"},
		report.Column{Name: "id"},
		report.Column{Name: "section", ForPrograms: true},
		report.Column{Name: "why", Help: "what the class needs: parameters that were set, rows it follows from, a reason"},
		report.Column{Name: "same", Help: "the row that counts in place of this one"},
		report.Column{Name: "command", Help: "measures ours"},
		report.Column{Name: "how", Help: "what of the command's output counts; empty: one column"},
	)
	lines := make([]ledgerLine, len(p.Rows))
	for i := range p.Rows {
		var err error
		if lines[i], err = lineOf(&p.Rows[i], measured[p.Rows[i].ID]); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(lines, func(a, b ledgerLine) int { return cmp.Or(a.group-b.group, cmp.Compare(b.off, a.off)) })
	for _, l := range lines {
		t.Add(l.cells...)
	}
	answer, err := Score(p, func(id string) (ledger.Ours, bool) {
		if m := measured[id]; m != nil {
			return m.Ours, true
		}
		return ledger.Ours{}, false
	})
	t.Answer = answer
	t.Notes = []string{DistanceNote, p.Name + ": " + p.Citation + "."}
	return t, err
}

// ledgerLine is a line of Ledger and its place.
type ledgerLine struct {
	cells []any
	group int // smaller ones come first
	off   float64
}

// lineOf makes the line of a row. m nil: it is not measured.
func lineOf(r *ledger.Row, m *ledger.Measured) (ledgerLine, error) {
	l := ledgerLine{group: 2 * slices.Index(ledger.Classes(), r.Class)}
	var distance, holds any
	var ours, command, how string
	if m == nil {
		l.group++
	} else {
		off, err := r.Off(m.Ours)
		if err != nil {
			return l, err
		}
		ours, command, how = m.Ours.String(), m.Command, m.How
		switch l.off = off.Distance; {
		case off.Claim && off.Holds:
			holds, l.off = true, -1
		case off.Claim:
			holds, l.off = false, math.Inf(1)
		case !math.IsInf(l.off, 1):
			distance = l.off
		}
	}
	l.cells = []any{string(r.Class), distance, holds, ours, r.Published.Text, r.Unit, r.Quantity, r.Conditions, r.ID, r.Section, r.Why, r.Same, command, how}
	return l, nil
}

// Score describes in sentences how near the predictions and checks of a
// publication are.
func Score(p *ledger.Publication, ours func(id string) (ledger.Ours, bool)) (lines []string, err error) {
	for _, class := range []ledger.Class{ledger.Predicted, ledger.Checked} {
		s, err := p.Score(class, ours)
		if err != nil {
			return nil, err
		}
		if s.Numbers+s.Claims+s.Open == 0 {
			continue
		}
		var parts []string
		if s.Numbers > 0 {
			parts = append(parts, fmt.Sprintf("%d numbers are %s off in the median, a tenth of them more than %s, and %d more than 25%%", s.Numbers, written(s.Median), written(s.P90), s.Beyond))
		}
		if s.Claims > 0 {
			parts = append(parts, fmt.Sprintf("%d of %d claims hold", s.Hold, s.Claims))
		}
		if s.Open > 0 {
			parts = append(parts, fmt.Sprintf("%d rows are not measured yet", s.Open))
		}
		lines = append(lines, fmt.Sprintf("%s, %s: %s.", p.Name, map[ledger.Class]string{ledger.Predicted: "predicted", ledger.Checked: "following from what set parameters"}[class], strings.Join(parts, "; ")))
	}
	return lines, nil
}

func written(f float64) string {
	if f > 10 {
		return "1,000%"
	}
	return fmt.Sprintf("%.1f%%", 100*f)
}
