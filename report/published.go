package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/sim"
)

// Published is a number from a publication, to compare with a row.
type Published struct {
	At     []Is    // the row: values of columns, in the order for its name
	With   []Is    // further values of the row that its name leaves out
	Column string  // name or key of the column with our number
	Value  float64 // in the unit of the column
	Source string  // such as "sPIN'17 §4.4.3"
	// a remark for the reader; may be empty; if a parameter was set by the
	// number, it begins with "set " and the parameter
	Note string
}

// Calibrated reports whether a parameter of the profile was set by the number.
// Then ours is no prediction.
func (p *Published) Calibrated() bool { return strings.HasPrefix(p.Note, "set ") }

// Is is a value of a column, with the type of the column's kind.
type Is struct {
	Column string // name or key
	Value  any
}

// SetPublished puts published numbers beside the table's. Each column that has
// some gets two more columns behind it: the published number and the distance.
// The distance is "x_deviation", (ours - published) / published, or for shares
// "x_difference", ours - published in percentage points. The last column names
// the sources. If some rows have no number, text and Markdown show the numbers
// in a separate list below the table. Numbers without a row are left out. A
// column that does not exist is an error.
func (t *Table) SetPublished(list []Published) error {
	for i := range list {
		if err := t.checkPublished(&list[i]); err != nil {
			return fmt.Errorf("published number %d: %w", i+1, err)
		}
	}
	var names []string
	for _, p := range list {
		if !slices.Contains(names, p.Column) {
			names = append(names, p.Column)
		}
	}
	if len(names) == 0 {
		return nil
	}
	t.references = list
	everywhere := len(t.rows) > 0
	sources := make([][]string, len(t.rows))
	for _, name := range names {
		found := t.insertPublished(name, list, sources)
		everywhere = everywhere && found == len(t.rows)
	}
	t.Columns = append(t.Columns, Column{Name: "published_source", ForPrograms: true, Help: "where the published numbers of the row come from"})
	for r := range t.rows {
		var source any
		if sources[r] != nil {
			source = strings.Join(slices.Compact(sources[r]), "; ")
		}
		t.rows[r] = append(t.rows[r], source)
	}
	if !everywhere {
		t.listPublished(names, list)
	}
	return nil
}

func (t *Table) checkPublished(p *Published) error {
	c, err := t.column(p.Column)
	if err != nil {
		return err
	}
	if k := t.Columns[c].Kind; k == Text || k == Flag {
		return fmt.Errorf("column %s of kind %v has no numbers", p.Column, k)
	}
	for _, is := range slices.Concat(p.At, p.With) {
		if _, err := t.column(is.Column); err != nil {
			return err
		}
	}
	return nil
}

// fits reports whether row r belongs to a published number.
func (t *Table) fits(r int, p *Published) bool {
	for _, values := range [...][]Is{p.At, p.With} {
		for _, is := range values {
			c, err := t.column(is.Column)
			if err != nil || t.rows[r][c] != normal(t.Columns[c], is.Value) {
				return false
			}
		}
	}
	return true
}

// companions returns the columns to add for a column with published numbers.
func companions(c Column) (published, distance Column) {
	published, distance = c, Column{Name: c.Name + "_deviation", Kind: Change}
	published.Name += "_published"
	published.Help = "what the publication gives for " + c.Name + "; published_source names it"
	distance.Help = fmt.Sprintf("(%s - %s) / %s", c.Name, published.Name, published.Name)
	if c.Kind == Share {
		distance.Name, distance.Kind = c.Name+"_difference", Points
		distance.Help = fmt.Sprintf("%s - %s", c.Name, published.Name)
	}
	return published, distance
}

// PublishedColumns returns the given columns with those that SetPublished would
// add, for a help text.
func PublishedColumns(columns ...Column) (all []Column) {
	for _, c := range columns {
		p, d := companions(c)
		all = append(all, p, d)
	}
	return all
}

// insertPublished adds the two columns behind the named column. It returns how
// many rows have a number there.
func (t *Table) insertPublished(name string, list []Published, sources [][]string) (found int) {
	at, err := t.column(name)
	if err != nil {
		return 0
	}
	c := t.Columns[at]
	published, distance := companions(c)
	values := make([][2]any, len(t.rows))
	for r, row := range t.rows {
		for i := range list {
			p := &list[i]
			if p.Column != name || !t.fits(r, p) || row[at] == nil {
				continue
			}
			ours, _ := float(c, row[at])
			values[r] = [2]any{valueOf(c, p.Value), far(c, ours, p.Value)}
			sources[r] = append(sources[r], p.source())
			found++
			break
		}
	}
	published.ForPrograms = found < len(t.rows)
	distance.ForPrograms = published.ForPrograms
	t.Columns = slices.Insert(t.Columns, at+1, published, distance)
	for r := range t.rows {
		t.rows[r] = slices.Insert(t.rows[r], at+1, values[r][0], values[r][1])
	}
	return found
}

// far returns the distance from the published number to ours.
func far(c Column, ours, published float64) any {
	d := ours - published
	if c.Kind != Share {
		d /= published
	}
	if math.IsNaN(d) || math.IsInf(d, 0) {
		return nil
	}
	return d
}

// valueOf converts a number in the column's unit to a value of the column.
func valueOf(c Column, f float64) any {
	switch c.Kind {
	case Count, Size:
		return int64(math.Round(f))
	case Duration:
		return sim.Time(math.Round(f * float64(durationUnits[c.Unit])))
	}
	return f
}

// listPublished makes the list for people.
func (t *Table) listPublished(names []string, list []Published) {
	out := New(Column{Name: "at"}, Column{Name: "quantity"}, Column{Name: "here"}, Column{Name: "published"}, Column{Name: "deviation"}, Column{Name: "source"})
	for _, name := range names {
		at, err := t.column(name)
		if err != nil {
			continue
		}
		c := t.Columns[at]
		_, distance := companions(c)
		for i := range list {
			p := &list[i]
			for r, row := range t.rows {
				if p.Column != name || !t.fits(r, p) || row[at] == nil {
					continue
				}
				ours, _ := float(c, row[at])
				off := far(c, ours, p.Value)
				line := []any{t.where(p), c.title(), alone(c, legible(row[at])), alone(c, valueOf(c, p.Value)), alone(distance, off), p.source()}
				// rows may differ in columns that the number
				// does not depend on
				if n := out.Len(); n == 0 || !slices.Equal(out.rows[n-1], line) {
					out.Add(line...)
				}
			}
		}
	}
	if out.Len() > 0 {
		out.Title = "Beside the publication"
		t.Published = out
	}
}

// Comparisons returns sentences, for example for a caption, about the published
// numbers that have rows in the table: ours, the published one, its source and
// the distance.
func (t *Table) Comparisons() (lines []string) {
	t.eachPublished(func(row int, p *Published, at int) {
		c := t.Columns[at]
		_, distance := companions(c)
		ours, _ := float(c, t.rows[row][at])
		line := fmt.Sprintf("%s: %s %s, published %s (%s), %s.", t.where(p), c.title(), alone(c, legible(t.rows[row][at])), alone(c, valueOf(c, p.Value)),
			p.source(), alone(distance, far(c, ours, p.Value)))
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	})
	return lines
}

// eachPublished calls do for every row with a published number. column is the
// index of the column with ours.
func (t *Table) eachPublished(do func(row int, p *Published, column int)) {
	for i := range t.references {
		p := &t.references[i]
		at, err := t.column(p.Column)
		if err != nil {
			continue
		}
		for r, row := range t.rows {
			if t.fits(r, p) && row[at] != nil {
				do(r, p, at)
			}
		}
	}
}

// source returns the source with its note.
func (p *Published) source() string {
	if p.Note == "" {
		return p.Source
	}
	return p.Source + " (" + p.Note + ")"
}

// where names the row of a published number.
func (t *Table) where(p *Published) string {
	parts := make([]string, 0, len(p.At))
	for _, is := range p.At {
		c, err := t.column(is.Column)
		if err != nil {
			continue
		}
		parts = append(parts, t.Columns[c].named(normal(t.Columns[c], is.Value)))
	}
	return strings.Join(parts, ", ")
}

// named returns a value as a name on its own: numbers come with what they
// count.
func (c Column) named(v any) string {
	switch {
	case v == nil:
		return missing
	case c.Kind == Count || c.Kind == Flag:
		what := c.title()
		if c.Each != "" {
			what = c.Each
		}
		return alone(c, v) + " " + Counted(v, what)
	}
	if f, is := v.(float64); is { // different values have different names
		number := strings.TrimSpace(compact(strconv.FormatFloat(f, 'g', nameDigits, 64)) + " " + c.Unit)
		if c.Kind == Share || c.Kind == Change {
			number = strconv.FormatFloat(100*f, 'g', nameDigits, 64) + "%"
		}
		return number + " " + c.title()
	}
	return alone(c, v)
}

// legibleDigits is how many digits our number has beside a published one, which
// has three or four.
const legibleDigits = 5

// legible returns a value with no more digits than people read.
func legible(v any) any {
	round := func(f float64) float64 {
		if f == 0 || math.IsInf(f, 0) || math.IsNaN(f) {
			return f
		}
		unit := math.Pow10(int(math.Floor(math.Log10(math.Abs(f)))) + 1 - legibleDigits)
		if unit < 1 { // the number is not exact, but its inverse is
			return math.Round(f*math.Round(1/unit)) / math.Round(1/unit)
		}
		return math.Round(f/unit) * unit
	}
	switch v := v.(type) {
	case sim.Time:
		return sim.Time(round(float64(v)))
	case float64:
		return round(v)
	}
	return v
}

// nameDigits is how many digits a number in a name has, as a decimal fraction.
const nameDigits = 12

// Counted returns what a number counts, for example "rank per node" for 1 and
// "ranks per node" for 2.
func Counted(n any, what string) string {
	if fmt.Sprint(n) != "1" {
		return what
	}
	thing, of, _ := strings.Cut(what, " per ")
	thing, plural := strings.CutSuffix(thing, "s")
	switch {
	case !plural:
	case strings.HasSuffix(thing, "s"): // "loss" is no plural
		thing += "s"
	case strings.HasSuffix(thing, "sse"):
		thing = strings.TrimSuffix(thing, "e")
	}
	if of != "" {
		thing += " per " + of
	}
	return thing
}

// alone returns a value as people read it outside of a column.
func alone(c Column, v any) string {
	if at, isTime := v.(sim.Time); isTime {
		return at.String()
	}
	if f, isNumber := v.(float64); isNumber && c.Kind == Number {
		text := shortNumber(f)
		if c.Unit != "" {
			text += " " + c.Unit
		}
		return text
	}
	return show(c, scale{divisor: 1, decimals: significant}, v)
}
