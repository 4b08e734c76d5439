package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spinsim/spinsim/internal/identify"
	"github.com/spinsim/spinsim/report"
)

// longestName is how many characters a name beside or above the picture has.
const longestName = 64

// heat is the picture of a study: which alternative moves which row. Those that
// bring all rows nearest come first.
func (id *identification) heat(v *identify.Verdict) *report.Heat {
	shown := slices.Clone(v.Effects)
	shown = slices.DeleteFunc(shown, func(e identify.Effect) bool { return len(e.Moved) == 0 || e.Inner })
	slices.SortStableFunc(shown, func(a, b identify.Effect) int { return cmp.Compare(a.Distance, b.Distance) })
	h := &report.Heat{
		Title: fmt.Sprintf("%s: what each answer to an open question moves alone", id.title),
		Aside: fmt.Sprintf("mean, today %s", share(v.Today)),
		Scale: "times today's number; grey: a claim, which only holds or not",
		Signs: "+ nearer to what was published, or the claim now holds; \u2013 farther, or it does not hold any more; no sign: as far as today",
		Caption: []string{
			"Mean: distance of all rows with this answer, exp of the mean logarithm less 1; a claim that does not hold counts as 100%. Answers above the line bring them nearer. Of a range its two ends are shown, and the number between that brings them nearer than both. Grey names: a row excludes the answer.",
			fmt.Sprintf("Answers and rows without a movement of more than 3%% are left out: %d of %d rows are shown.", len(id.movedRows(shown)), len(id.study.Rows)),
		},
		Origin: &id.record,
	}
	h.Caption = append(h.Caption, id.record.Lines()...)
	columns := id.movedRows(shown)
	for _, i := range columns {
		r := &id.study.Rows[i]
		h.Columns = append(h.Columns, named(r.ID, r.Quantity, r.Conditions))
		h.Groups = append(h.Groups, r.Experiment)
	}
	for i := range shown {
		line := id.heatLine(v, &shown[i], columns)
		line.Rule = shown[i].Distance > v.Today && (i == 0 || shown[i-1].Distance <= v.Today)
		h.Lines = append(h.Lines, line)
	}
	return h
}

// movedRows are the rows that some effect moves, in the order of the study.
func (id *identification) movedRows(effects []identify.Effect) (list []int) {
	for i, r := range id.study.Rows {
		if slices.ContainsFunc(effects, func(e identify.Effect) bool {
			return slices.ContainsFunc(e.Moved, func(m identify.Move) bool { return m.Row == r.ID })
		}) {
			list = append(list, i)
		}
	}
	return list
}

func (id *identification) heatLine(v *identify.Verdict, e *identify.Effect, columns []int) report.HeatLine {
	what := ""
	for _, q := range id.study.Questions {
		if q.ID == e.Question {
			what = q.What
		}
	}
	line := report.HeatLine{Name: named(e.Question, what+": "+e.Alternative), Aside: share(e.Distance), Cells: make([]report.HeatCell, len(columns))}
	line.Faint = slices.ContainsFunc(v.Excluded, func(x identify.Exclusion) bool {
		return x.Question == e.Question && (x.Alternative == e.Alternative || strings.HasPrefix(e.Alternative, x.Alternative+" "))
	})
	for k, row := range columns {
		i := slices.IndexFunc(e.Moved, func(m identify.Move) bool { return m.Row == id.study.Rows[row].ID })
		if i < 0 {
			continue
		}
		m := e.Moved[i]
		line.Cells[k].Factor = m.Factor
		switch by := math.Log1p(m.Then) - math.Log1p(m.Before); {
		case by < -1e-9:
			line.Cells[k].Sign = "+"
		case by > 1e-9:
			line.Cells[k].Sign = "\u2013"
		}
	}
	return line
}

// named joins an id with words about it, as many as have room.
func named(id string, words ...string) string {
	text := id
	for _, w := range words {
		if w != "" {
			text += " " + w
		}
	}
	if utf8.RuneCountInString(text) <= longestName {
		return text
	}
	return string([]rune(text)[:longestName-1]) + "…"
}
