package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
)

// Table makes the table of a sweep's results: a row for each point, with all
// columns, published numbers beside them, and their provenance.
func (s *Sweep) Table(results []*Result) (*report.Table, error) { return sweepTable(s, results, true) }

// sweepTable is Table. If quiet is false, the further tables that are quiet are
// missing: they may have a million rows.
func sweepTable(s *Sweep, results []*Result, quiet bool) (*report.Table, error) {
	s.record.Unused = unusedIn(s, results)
	e := s.grid.experiment
	t := report.New(append(e.TableColumns(), provenance.Columns()...)...)
	t.Title = s.title()
	t.Origin = s.record
	t.Lines = e.View.Lines && len(results) == 1
	recorded := make(recordedProfiles)
	at := make(map[string]*Result, len(results))
	for _, r := range results {
		at[r.Point.key(-1, nil)] = r
	}
	for _, r := range results {
		from, err := recorded.of(r.Point.Profile)
		if err != nil {
			return nil, err
		}
		row := identityOf(r.Point)
		for _, c := range e.Columns {
			row = append(row, r.Values[c.Name])
		}
		for i := range e.Relative {
			row = append(row, e.relative(&e.Relative[i], r, at))
		}
		t.Add(append(row, originOf(s, r.Point, from)...)...)
	}
	if err := addFurther(s, t, results, quiet); err != nil {
		return nil, err
	}
	if s.open != nil {
		if err := s.open.addSpans(t, e); err != nil {
			return nil, err
		}
	}
	return t, t.SetPublished(s.published())
}

// notMeasured is a profile that does not exist. Published numbers for it are in
// no row, but their columns are there.
const notMeasured = ""

// published lists the published numbers for the sweep. There are none for a
// changed profile or for other handlers.
func (s *Sweep) published() (list []report.Published) {
	for _, p := range s.grid.experiment.published() {
		if p.Source == "" {
			p.Source = s.grid.experiment.Source
		}
		of := slices.IndexFunc(p.At, func(is report.Is) bool { return is.Column == ProfileColumn })
		at := slices.Clone(p.At)
		if of < 0 {
			of = len(at)
			at = append(at, report.Is{Column: ProfileColumn})
		}
		for _, is := range s.asPublished(at[of].Value) {
			p.At = slices.Concat(at[:of], is, at[of+1:])
			list = append(list, s.grid.ofTerms(p)...)
		}
	}
	return list
}

// asPublished lists the rows that a published number for a profile stands in:
// the profile must run unchanged, with the experiment's handlers. name nil: any
// profile. If there is none, it is the row of notMeasured.
func (s *Sweep) asPublished(name any) (rows [][]report.Is) {
	for i := range s.record.Profiles {
		p := &s.record.Profiles[i]
		if at, as := s.grid.unchanged(p); as && s.Handlers == nil && p.Embedded && len(p.Overrides) == 0 && (name == nil || profile.Undated(p.Name) == name) {
			rows = append(rows, append(at, report.Is{Column: ProfileColumn, Value: p.Name}))
		}
	}
	if rows == nil {
		rows = [][]report.Is{{{Column: ProfileColumn, Value: notMeasured}}}
	}
	return rows
}

// Summary makes a table for people from a table. It has the columns of
// View.Summary, if there are any. Else it has a line for each point of the axes
// that are no series, and a column for each value of the series.
func (s *Sweep) Summary(t *report.Table) (*report.Table, error) {
	out, err := summaryOf(s, t)
	if err != nil {
		return nil, err
	}
	for _, f := range t.Further {
		d := s.grid.experiment.detail(f.Name)
		if d.Quiet || f.Len() == 0 {
			continue
		}
		one, err := seenBy(s, d, f.Table)
		if err != nil {
			return nil, err
		}
		out.Further = append(out.Further, report.Further{Name: d.Name, Table: one})
	}
	return out, nil
}

// summaryOf is Summary without further tables.
func summaryOf(s *Sweep, t *report.Table) (*report.Table, error) {
	e := s.grid.experiment
	if t.Lines {
		var names []string
		for _, c := range e.Columns {
			names = append(names, c.Name)
		}
		return t.Select(names...)
	}
	if len(e.View.Summary) > 0 {
		names := s.grid.named()
		if e.broken {
			names = e.shown(t, names)
		}
		return t.Select(beside(t, names)...)
	}
	var rows []string
	if !e.Deviceless {
		rows = append(rows, ProfileColumn)
	}
	for i := range e.Axes {
		if a := &e.Axes[i]; !a.Fixed() && !slices.Contains(e.View.Series, a.Name) && !s.grid.quiet(i) {
			rows = append(rows, a.column().Name)
		}
	}
	if len(e.View.Series) != 1 || s.open != nil { // a range needs columns of its own
		for _, name := range e.View.Series {
			rows = append(rows, e.Axis(name).column().Name)
		}
		columns := e.Columns
		if s.open != nil {
			columns = rangedColumns(e)
		}
		for _, c := range columns {
			rows = append(rows, c.Name)
		}
		return t.Select(beside(t, rows)...)
	}
	series := e.axis(e.View.Series[0])
	p := report.Pivot{Rows: rows, Series: e.Axes[series].column().Name, Value: e.value().Name, Order: s.grid.values[series]}
	if s.Handlers != nil {
		p.Called = func(v any) string { return s.yours(series, v) }
	}
	if base, err := e.Axes[series].parse(e.View.Base); err == nil && e.View.Base != "" && slices.Contains(s.grid.values[series], base) {
		p.Versus = base
	}
	return t.Pivot(p)
}

// title is the experiment's title. It names the user's handlers if they run.
func (s *Sweep) title() string {
	var names []string
	for _, slot := range sortedSlots(s.Handlers) {
		if name := s.Handlers[slot].Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if names == nil {
		return s.grid.experiment.Title()
	}
	return s.grid.experiment.Title() + ", handlers of " + strings.Join(names, ", ")
}

// yours is the name of the column for a value of an axis where the user's
// handlers run. "": they do not run there.
func (s *Sweep) yours(axis int, value any) (name string) {
	values := slices.Clone(s.grid.values)
	values[axis] = []any{value}
	for _, slot := range slotsAt(s.grid.experiment, values) {
		if s.Handlers[slot.Name] != nil {
			return s.grid.experiment.Axes[axis].write(value) + " (yours)" // the title names the handlers
		}
	}
	return ""
}

// beside adds to columns their columns of published numbers that people see in
// every row.
func beside(t *report.Table, columns []string) (all []string) {
	for _, name := range columns {
		all = append(all, name)
		i := slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.Name == name })
		if i < 0 || i+2 >= len(t.Columns) || t.Columns[i+1].ForPrograms {
			continue
		}
		c := t.Columns[i]
		if both := report.PublishedColumns(c); t.Columns[i+1].Key() == both[0].Key() {
			all = append(all, both[0].Key(), both[1].Key())
			i += 2
		}
		if low, high := report.SpanColumns(c); i+2 < len(t.Columns) && t.Columns[i+1].Key() == low.Key() {
			all = append(all, low.Key(), high.Key())
		}
	}
	return all
}

// Notes list what happened at points without being an error, and explain how to
// read the table of a sweep.
func (s *Sweep) Notes(results []*Result) []string {
	notes := slices.Concat(warnings(results), s.idle, s.record.UnusedNotes())
	if all := s.grid.everywhere(); all != "" {
		notes = append(notes, all)
	}
	notes = append(notes, s.grid.told()...)
	notes = append(notes, s.grid.experiment.Notes...)
	if s.Hint == "" {
		return notes
	}
	hint := "Columns: " + s.Hint + "."
	if len(notes) == 0 {
		return []string{hint}
	}
	notes[len(notes)-1] += " " + hint
	return notes
}

// Answer writes the findings of a sweep in sentences, and its caveats.
func (s *Sweep) Answer(results []*Result) (lines []string) {
	s.grid.parts(results, func(of *grid, where string, these []*Result) {
		found := of.found(s.open, len(s.Profiles), these)
		if s.grid.experiment.Caveats != nil {
			found = append(found, s.grid.experiment.Caveats(these)...)
		}
		for _, line := range found {
			lines = append(lines, where+line)
		}
	})
	if s.open == nil {
		return lines
	}
	if line := s.open.last(results); line != "" && !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, overWhatIsOpen) }) {
		lines = append(lines, line)
	}
	lines = append(lines, s.open.says(s.grid.experiment)...)
	return lines
}

func (g *grid) found(open *overOpen, devices int, results []*Result) []string {
	e := g.experiment
	if e.View.Answer != nil {
		return e.View.Answer(results)
	}
	if len(e.View.Series) != 1 || e.View.Base == "" || e.value().Kind != report.Duration {
		return nil
	}
	var lines []string
	for device := range devices {
		for _, at := range g.ends() {
			lines = append(lines, g.fastest(open, device, at, results)...)
		}
	}
	return lines
}

// ends lists the combinations of values that an answer is about. Every axis,
// except the series, has its largest value. The last axis of the experiment has
// the smallest and the largest.
func (g *grid) ends() (list [][]any) {
	e := g.experiment
	series := e.axis(e.View.Series[0])
	one, last := make([]any, len(e.Axes)), -1
	for i := range e.Axes {
		if i == series {
			continue
		}
		if one[i] = g.values[i][largest(g.values[i])]; i < len(e.Axes)-g.varied {
			last = i
		}
	}
	if last < 0 {
		return [][]any{one}
	}
	first := slices.Clone(one)
	first[last] = g.values[last][least(g.values[last])]
	if first[last] == one[last] {
		return [][]any{one}
	}
	return [][]any{first, one}
}

// fastest compares the fastest value of the series with the base, at a
// combination of the other axes.
func (g *grid) fastest(open *overOpen, device int, at []any, results []*Result) []string {
	e := g.experiment
	series := e.axis(e.View.Series[0])
	var best, base *Result
	measured := 0
	for _, r := range results {
		p := r.Point
		here := p.device == device
		for i := range p.values {
			here = here && (i == series || p.values[i] == at[i])
		}
		if !here || r.Values[e.value().Name] == nil {
			continue
		}
		if e.Axes[series].write(p.values[series]) == e.View.Base {
			base = r
		}
		measured++
		if best == nil || r.Time(e.value().Name) < best.Time(e.value().Name) {
			best = r
		}
	}
	if base == nil {
		return nil
	}
	others := slices.DeleteFunc(e.rows(), func(i int) bool { return g.quiet(i) || slices.Contains(g.own(), i) })
	where := base.Point.Profile.Name
	if len(others) > 0 {
		where += ", " + base.Point.label(others)
	}
	mode := func(r *Result) string { return e.Axes[series].show(r.Point.values[series]) }
	ours, theirs := best.Time(e.value().Name), base.Time(e.value().Name)
	if measured == 1 {
		return []string{fmt.Sprintf("%s: %s takes %s.", where, mode(base), ShortTime(theirs))}
	}
	if best == base {
		return []string{fmt.Sprintf("%s: %s is the fastest, %s.", where, mode(base), ShortTime(theirs))}
	}
	if ours == 0 { // of a schedule without work
		return []string{fmt.Sprintf("%s: %s takes no time, %s %s.", where, mode(best), mode(base), ShortTime(theirs))}
	}
	text := fmt.Sprintf("%s: %s takes %s, %s %s: %.2f times as fast", where, mode(best), ShortTime(ours), mode(base), ShortTime(theirs), float64(theirs)/float64(ours))
	if open != nil && open.kept == nil {
		low, high := open.factor(e.value(), base, best)
		text += fmt.Sprintf(" (%.2f to %.2f %s)", low, high, overWhatIsOpen)
	}
	return []string{text + "."}
}
