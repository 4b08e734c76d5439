package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/identify"
	"github.com/spinsim/spinsim/report"
)

// effectsTable has a row for each row of the ledger that an alternative moves.
func effectsTable(v *identify.Verdict) *report.Table {
	t := report.New(
		report.Column{Name: "question"}, report.Column{Name: "alternative"}, report.Column{Name: "set"}, report.Column{Name: "row"},
		report.Column{Name: "factor", Kind: report.Number, Help: "of ours, against today's; none for a claim"},
		report.Column{Name: "distance", Kind: report.Share, Help: "of the row then"}, report.Column{Name: "today", Kind: report.Share, Help: "distance of the row today"},
	)
	for _, e := range v.Effects {
		for _, m := range e.Moved {
			t.Add(e.Question, e.Alternative, strings.Join(e.Set, " "), m.Row, known(m.Factor), known(m.Then), known(m.Before))
		}
	}
	return t
}

// alternativesTable has a row for each alternative that moves something.
func alternativesTable(study *identify.Study, v *identify.Verdict) *report.Table {
	t := report.New(
		report.Column{Name: "question"}, report.Column{Name: "alternative"},
		report.Column{Name: "mean", Kind: report.Share, Help: "distance of all rows"},
		report.Column{Name: "moved", Kind: report.Count, Help: "rows by more than 3%"}, report.Column{Name: "nearer", Kind: report.Count}, report.Column{Name: "farther", Kind: report.Count},
		report.Column{Name: "most", Help: "the row that it moves most"}, report.Column{Name: "factor", Kind: report.Ratio, Help: "of ours there"}, report.Column{Name: "what"},
	)
	t.Title = "What each alternative moves alone"
	var still, no, unasked []string
	for _, e := range v.Effects {
		if errors.Is(e.Err, experiment.ErrNoneTakes) {
			unasked = append(unasked, e.Question+" "+e.Alternative)
			continue
		}
		if e.Err != nil {
			line, _, _ := strings.Cut(e.Err.Error(), "\n")
			no = append(no, e.Question+" "+e.Alternative+" is not possible: "+line)
			continue
		}
		if len(e.Moved) == 0 {
			still = append(still, e.Question+" "+e.Alternative)
			continue
		}
		nearer, farther := 0, 0
		for _, m := range e.Moved {
			if m.Then < m.Before {
				nearer++
			} else if m.Then > m.Before {
				farther++
			}
		}
		what := ""
		for _, q := range study.Questions {
			if q.ID == e.Question {
				what = q.What
			}
		}
		t.Add(e.Question, e.Alternative, e.Distance, len(e.Moved), nearer, farther, e.Moved[0].Row, known(e.Moved[0].Factor), what)
	}
	if len(still) > 0 {
		t.Notes = append(t.Notes, "No row moves by more than 3% with "+strings.Join(still, "; ")+".")
	}
	if len(unasked) > 0 {
		t.Notes = append(t.Notes, "No row that is measured here can have "+strings.Join(unasked, "; ")+".")
	}
	t.Notes = append(t.Notes, no...)
	return t
}

// found is what was found: for people the alternatives, for programs all that
// they move.
func found(id *identification, v *identify.Verdict, format report.Format) *report.Table {
	t := effectsTable(v)
	if format == report.TextFormat || format == report.MarkdownFormat {
		t = alternativesTable(&id.study, v)
	}
	t.Answer = id.answer(v)
	for i, s := range v.Path {
		t.Notes = append(t.Notes, fmt.Sprintf("Change %d: %s. Then the mean distance is %s.", i+1, strings.Join(s.Changes, ", "), share(s.Distance)))
	}
	for i := range v.Rivals[:min(shown, len(v.Rivals))] {
		t.Notes = append(t.Notes, rival(&v.Rivals[i]))
	}
	if n := len(v.Rivals) - shown; n > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%d more are as near; --format json lists them.", n))
	}
	for i := range v.Far {
		t.Notes = append(t.Notes, id.far(&v.Far[i]))
	}
	t.Notes = append(t.Notes, leftOut(v)...)
	t.Notes = append(t.Notes, id.excluded(v)...)
	if format == report.JSONFormat {
		t.Further = further(v)
	}
	for _, one := range id.unused {
		t.Notes = append(t.Notes, strings.Replace(one, " (", ": the row does not depend on it (", 1)+".")
	}
	for _, x := range v.Separate {
		t.Notes = append(t.Notes, fmt.Sprintf("To measure: %s would tell %s %s from today's: %.3g times as much.", x.Number, x.Question, x.Alternative, x.Factor))
	}
	drawn := ""
	if v.Drawn > 0 {
		drawn = fmt.Sprintf(", %d of them in samples", v.Drawn)
	}
	t.Notes = append(t.Notes, fmt.Sprintf("%d settings were measured%s. The mean distance, %s today, is exp of the mean logarithm less 1; a claim that does not hold counts as 100%%.", v.Measured, drawn, share(v.Today)))
	t.Origin = &id.record
	return t
}

// excluded has a sentence for each alternative that a row excludes, and for each
// question that has none left.
func (id *identification) excluded(v *identify.Verdict) (notes []string) {
	for _, x := range v.Excluded {
		stays := fmt.Sprintf("stays %s off or more in every setting that was measured with it", share(x.Best))
		if math.IsInf(x.Best, 1) {
			stays = "is measured in no setting with it"
		}
		notes = append(notes, fmt.Sprintf("Excluded: %s %s: %s %s; with %s it is %s.", x.Question, x.Alternative, id.row(x.Row), stays, x.Instead, share(x.Then)))
	}
	for i := range v.Unfit {
		notes = append(notes, id.contradiction(&v.Unfit[i]))
	}
	if len(notes) > 0 && id.some {
		notes = append(notes, "Only some questions were asked (--only): with other answers to the rest, what is excluded here may be admissible.")
	}
	return notes
}

// far is a sentence about a row that stays far: whether any answers bring it
// nearer, and which rows stand against them.
func (id *identification) far(f *identify.Far) string {
	text := fmt.Sprintf("Far: %s, %s off.", id.row(f.Row), share(f.Fitted))
	if math.Log1p(f.Fitted)-math.Log1p(f.Nearest) < math.Log(1.03) {
		return text + " No setting that was measured brings it nearer by more than 3%."
	}
	text += fmt.Sprintf(" The nearest is %s, with %s.", share(f.Nearest), cmp.Or(strings.Join(f.Set, " "), "today's answers"))
	if n := len(f.Against); n > 0 {
		text += fmt.Sprintf(" Then %s farther, most of all %s: %s off in place of %s.", are(n, "row"), f.Against[0].Row, share(f.Against[0].Then), share(f.Against[0].Before))
	}
	return text
}

// are counts things, with the verb.
func are(n int, one string) string {
	if n == 1 {
		return experiment.Counted(n, one) + " is"
	}
	return experiment.Counted(n, one) + " are"
}

// shown is how many sets of answers that are as near the text lists.
const shown = 5

// rival is a sentence about other answers that are as near.
func rival(r *identify.Rival) string {
	tell := "no number that is measured here would tell them apart"
	if r.Apart.Number != "" {
		tell = fmt.Sprintf("to tell them apart, measure %s: %.3g times as much", r.Apart.Number, r.Apart.Factor)
	}
	return fmt.Sprintf("As near: %s, with a mean distance of %s; %s.", cmp.Or(strings.Join(r.Set, " "), "today's answers"), share(r.Distance), tell)
}

// further are the other findings, for programs.
func further(v *identify.Verdict) (list []report.Further) {
	add := func(name string, t *report.Table) { list = append(list, report.Further{Name: name, Table: t}) }
	words := func(names ...string) (columns []report.Column) {
		for _, name := range names {
			columns = append(columns, report.Column{Name: name})
		}
		return columns
	}
	shares := func(names ...string) (columns []report.Column) {
		for _, name := range names {
			columns = append(columns, report.Column{Name: name, Kind: report.Share})
		}
		return columns
	}
	path := report.New(append(words("changes"), shares("mean")...)...)
	for _, s := range v.Path {
		path.Add(strings.Join(s.Changes, ", "), s.Distance)
	}
	add("path", path)
	set := report.New(words("set")...)
	for _, one := range v.Set {
		set.Add(one)
	}
	add("set", set)
	numbers := report.New(append(words("row", "experiment"), shares("today", "fitted", "left_out")...)...)
	for _, n := range v.Rows {
		numbers.Add(n.Row, n.Experiment, known(n.Today), known(n.Fitted), known(n.LeftOut))
	}
	add("numbers", numbers)
	rivals := report.New(append(append(words("set"), shares("mean")...), report.Column{Name: "number"}, report.Column{Name: "factor", Kind: report.Number})...)
	for _, r := range v.Rivals {
		rivals.Add(strings.Join(r.Set, " "), r.Distance, r.Apart.Number, known(r.Apart.Factor))
	}
	add("rivals", rivals)
	far := report.New(append(append(words("row"), shares("fitted", "nearest")...), words("set", "against")...)...)
	for _, f := range v.Far {
		var against []string
		for _, m := range f.Against {
			against = append(against, m.Row)
		}
		far.Add(f.Row, known(f.Fitted), known(f.Nearest), strings.Join(f.Set, " "), strings.Join(against, " "))
	}
	add("far", far)
	excluded := report.New(append(append(words("question", "alternative", "row"), shares("nearest")...), append(words("instead"), shares("then")...)...)...)
	for _, x := range v.Excluded {
		excluded.Add(x.Question, x.Alternative, x.Row, known(x.Best), x.Instead, known(x.Then))
	}
	add("excluded", excluded)
	measure := report.New(append(words("question", "alternative", "against", "number"), report.Column{Name: "factor", Kind: report.Number})...)
	for _, x := range v.Separate {
		measure.Add(x.Question, x.Alternative, x.Against, x.Number, x.Factor)
	}
	add("to_measure", measure)
	return list
}

// answer are the first sentences.
func (id *identification) answer(v *identify.Verdict) []string {
	list := []string{fmt.Sprintf("%s: %d rows; numbers are %s off in the median with today's answers.", id.title, len(id.study.Rows), share(v.Before.Median))}
	if len(v.Set) > 0 {
		list = append(list, fmt.Sprintf("They are %s off with: %s.", share(v.Fitted.Median), strings.Join(v.Set, " ")))
	}
	if n := farthest(v.Rows); n.Fitted > 0.1 {
		list = append(list, fmt.Sprintf("The farthest is %s: %s off.", id.row(n.Row), share(n.Fitted)))
	}
	if !math.IsNaN(v.LeftOut.Median) {
		list = append(list, fmt.Sprintf("Rows of an experiment that the search does not see are %s off, and a tenth of them more than %s.", share(v.LeftOut.Median), share(v.LeftOut.P90)))
	}
	if len(v.Unfit) > 0 {
		var names []string
		for _, c := range v.Unfit {
			names = append(names, c.Question)
		}
		list = append(list, fmt.Sprintf("No answer is left to %s: below are the rows that stand against each other.", strings.Join(names, ", ")))
	}
	switch m, n := v.First, len(v.Rivals); {
	case n > 0 && m.Number == "":
		list = append(list, fmt.Sprintf("%s as near (below), and no number that is measured here tells them apart.", are(n, "rival set")))
	case n > 0:
		list = append(list, fmt.Sprintf("%s as near (below). The one number to measure next is %s: it would tell %d of %d from these.", are(n, "rival set"), m.Number, len(m.Tells), n))
	case m.Number != "":
		list = append(list, fmt.Sprintf("The one number to measure next is %s: it would tell %d of the %d alternatives that remain from today's.", m.Number, len(m.Tells), m.Of))
	}
	if id.left > 0 {
		list = append(list, fmt.Sprintf("%d rows are left out, because they take longer (--longest) or are not measured.", id.left))
	}
	return list
}

// farthest is the row that stays farthest with the answers of the search.
func farthest(rows []identify.Near) (far identify.Near) {
	for _, n := range rows {
		if n.Fitted > far.Fitted {
			far = n
		}
	}
	return far
}

// leftOut has a sentence for each experiment: how near its rows come if the
// search sees them, and if it does not.
func leftOut(v *identify.Verdict) (lines []string) {
	if math.IsNaN(v.LeftOut.Median) {
		return nil
	}
	var names []string
	of := map[string][]identify.Near{}
	for _, n := range v.Rows {
		if of[n.Experiment] == nil {
			names = append(names, n.Experiment)
		}
		of[n.Experiment] = append(of[n.Experiment], n)
	}
	for _, name := range names {
		rows := of[name]
		median := func(distance func(identify.Near) float64) string {
			return share(identify.SpreadOf(rows, distance).Median)
		}
		lines = append(lines, fmt.Sprintf("Left out %s: %s in the median, where today's answers give %s and those fitted with it %s (%s).", name,
			median(func(n identify.Near) float64 { return n.LeftOut }), median(func(n identify.Near) float64 { return n.Today }),
			median(func(n identify.Near) float64 { return n.Fitted }), experiment.Counted(len(rows), "number")))
	}
	return lines
}

// row names a row with its quantity, its conditions and its number.
func (id *identification) row(name string) string {
	for _, r := range id.study.Rows {
		if r.ID != name || r.Quantity == "" {
			continue
		}
		about := []string{r.Quantity}
		if r.Conditions != "" {
			about = append(about, r.Conditions)
		}
		if p := strings.TrimSpace(r.Published.Text + " " + r.Unit); p != "true" && p != "false" {
			about = append(about, "published "+p)
		}
		return fmt.Sprintf("row %s (%s)", name, strings.Join(about, "; "))
	}
	return "row " + name
}

// contradiction says which rows stand against each other, and what would decide.
func (id *identification) contradiction(c *identify.Contradiction) string {
	var b strings.Builder
	what := ""
	for _, q := range id.study.Questions {
		if q.ID == c.Question {
			what = " (" + q.What + ")"
		}
	}
	fmt.Fprintf(&b, "%s%s: no alternative is left.", c.Question, what)
	for _, s := range c.Sides {
		fmt.Fprintf(&b, " The %s comes near with %q (%s off) and excludes %s.", id.row(s.Row), s.Needs, share(s.Distance), inQuotes(s.Against))
	}
	if len(c.Sides) > 1 {
		b.WriteString(" An alternative is missing, or these rows contradict each other.")
	} else {
		b.WriteString(" An alternative is missing.")
	}
	if n := c.Number; n.Number != "" {
		fmt.Fprintf(&b, " To decide, measure %s: with %q it is %.3g times that with %q.", n.Number, n.Alternative, n.Factor, n.Against)
	}
	return b.String()
}

// inQuotes lists names, which may have commas.
func inQuotes(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = strconv.Quote(name)
	}
	return strings.Join(list, ", ")
}

// share writes a share in a sentence.
func share(x float64) string {
	switch {
	case math.IsInf(x, 1):
		return "infinitely"
	case x > 10:
		return fmt.Sprintf("%.0f%%", 100*x)
	}
	return fmt.Sprintf("%.1f%%", 100*x)
}
