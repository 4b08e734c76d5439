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
const DistanceNote = "Distance: exp|ln(ours / published)| - 1, and 0 within what is published. Ours of 0, or of the other sign, counts as the farthest."

// ledgerColumns are the columns of Ledger.
func ledgerColumns() []report.Column {
	return []report.Column{
		{Name: "class"},
		{Name: "distance", Kind: report.Share, Help: "of ours from what was published"},
		{Name: "holds", Kind: report.Flag, Help: "of a claim"},
		{Name: "ours", Help: "in the published unit"},
		{Name: "published"},
		{Name: "of_unit"},
		{Name: "quantity"},
		{Name: "conditions"},
		{Name: "id"},
		{Name: "section", ForPrograms: true},
		{Name: "why", Help: "what the class needs: parameters that were set, rows it follows from, a reason; of a number that is predicted and far, the answers that bring it near, or what stands against it"},
		{Name: "same", Help: "the row that counts in place of this one"},
		{Name: "command", Help: "measures ours"},
		{Name: "how", Help: "what of the command's output counts; empty: one column"},
	}
}

// Ledger lists rows of publications beside what was measured: predictions first,
// and of these the worst first. Rows that are not measured are there if all is
// true.
func Ledger(list []ledger.Publication, measured map[string]*ledger.Measured, all bool) (*report.Table, error) {
	t := report.New(ledgerColumns()...)
	var lines []ledgerLine
	for k := range list {
		p := &list[k]
		for i := range p.Rows {
			r := &p.Rows[i]
			if measured[r.ID] == nil && !all {
				continue
			}
			l, err := lineOf(r, measured[r.ID])
			if err != nil {
				return nil, err
			}
			lines = append(lines, l)
		}
		score, err := scores(p, measured, all)
		if err != nil {
			return nil, err
		}
		t.Answer = append(t.Answer, score...)
		t.Notes = append(t.Notes, p.Name+": "+p.Citation+".")
	}
	slices.SortStableFunc(lines, func(a, b ledgerLine) int { return cmp.Or(a.group-b.group, cmp.Compare(b.off, a.off)) })
	for _, l := range lines {
		t.Add(l.cells...)
	}
	t.Notes = append([]string{DistanceNote}, t.Notes...)
	return t, nil
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

// scores describes in sentences how near the predictions and checks of a
// publication are.
func scores(p *ledger.Publication, measured map[string]*ledger.Measured, all bool) (lines []string, err error) {
	what := map[ledger.Class]string{ledger.Predicted: "predicted", ledger.Checked: "following from what set parameters"}
	for _, class := range []ledger.Class{ledger.Predicted, ledger.Checked} {
		s, err := p.Score(class, measured)
		if err != nil {
			return nil, err
		}
		var parts []string
		if s.Numbers > 0 {
			parts = append(parts, fmt.Sprintf("%d numbers are %s off in the median, a tenth of them more than %s, and %d more than 25%%", s.Numbers, written(s.Median), written(s.P90), s.Beyond))
		}
		if s.Claims > 0 {
			parts = append(parts, fmt.Sprintf("%d of %d claims hold", s.Hold, s.Claims))
		}
		switch {
		case s.Open > 0 && all:
			parts = append(parts, fmt.Sprintf("%d rows are not measured yet", s.Open))
		case s.Open > 0:
			parts = append(parts, fmt.Sprintf("%d rows were not measured here", s.Open))
		}
		if len(parts) > 0 {
			lines = append(lines, fmt.Sprintf("%s, %s: %s.", p.Name, what[class], strings.Join(parts, "; ")))
		}
	}
	return lines, nil
}

// written writes a share in a sentence.
func written(f float64) string {
	if f > 10 {
		return "over 1,000%"
	}
	return fmt.Sprintf("%.1f%%", 100*f)
}
