package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/sim"
)

// missing is shown for no value.
const missing = "–"

// significant is the number of digits of a column's smallest value.
const significant = 3

// mostDecimals is the maximum number of decimals for people.
const mostDecimals = 6

// scale describes how people see the values of a column.
type scale struct {
	unit     string
	divisor  float64 // shown = value in the column's unit / divisor
	decimals int
}

// readable lists the units of time for people, in rising order, in picoseconds.
var readable = []struct {
	name   string
	length float64
}{{"ns", 1e3}, {"µs", 1e6}, {"ms", 1e9}, {"s", 1e12}}

// scaleOf chooses a scale for the column at index: the largest unit of time in
// which the smallest value is at least 1, and enough digits for that value.
func (t *Table) scaleOf(index int) scale {
	c := t.Columns[index]
	if whole := slices.IndexFunc(t.Columns, func(o Column) bool { return o.Name == c.PartOf }); whole >= 0 {
		s := t.scaleOf(whole)
		s.divisor *= float64(durationUnits[t.Columns[whole].Unit]) / float64(durationUnits[c.Unit])
		s.decimals = min(s.decimals+1, mostDecimals)
		return s
	}
	low := math.Inf(1)
	whole := true
	for i, other := range t.Columns {
		if i != index && (c.Scale == "" || other.Scale != c.Scale) {
			continue
		}
		for _, row := range t.rows {
			f, ok := float(other, row[i])
			if f = math.Abs(f); ok && f > 0 {
				low = min(low, f)
				whole = whole && f == math.Trunc(f)
			}
		}
	}
	s := scale{unit: c.Unit, divisor: 1}
	if math.IsInf(low, 1) {
		if c.Kind == Duration && c.Unit == "us" {
			s.unit = "µs" // as people write it
		}
		return s
	}
	if c.Kind == Duration {
		picoseconds := float64(durationUnits[c.Unit])
		s.unit, s.divisor = readable[0].name, readable[0].length/picoseconds
		for _, u := range readable[1:] {
			if low*picoseconds >= u.length {
				s.unit, s.divisor = u.name, u.length/picoseconds
			}
		}
		low /= s.divisor
		whole = whole && s.divisor <= 1
	}
	if !whole {
		s.decimals = min(max(significant-1-int(math.Floor(math.Log10(low))), 0), mostDecimals)
	}
	return s
}

// heading returns the column's title with the unit of the shown values.
func (c Column) heading(s scale) string {
	if s.unit == "" || c.Kind == Size {
		return c.title()
	}
	return c.title() + " (" + s.unit + ")"
}

// show returns a value as people read it.
func show(c Column, s scale, v any) string {
	switch v := v.(type) {
	case string:
		return visible.Line(v)
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case int64:
		if c.Kind == Size {
			return showSize(v)
		}
		return group(strconv.FormatInt(v, 10))
	case uint64:
		return group(strconv.FormatUint(v, 10))
	case sim.Time:
		inUnit := float64(v) / float64(durationUnits[c.Unit])
		return group(fixed(inUnit/s.divisor, s.decimals))
	case float64:
		switch c.Kind {
		case Ratio:
			return group(fixed(v, ratioDecimals(v))) + "×"
		case Share:
			return fixed(100*v, 1) + "%"
		case Change:
			return signed(100*v, 1) + "%"
		case Points:
			return signed(100*v, 1) + " points"
		default:
			return group(fixed(v/s.divisor, s.decimals))
		}
	}
	return missing
}

// ratioDecimals returns two, or enough to show two digits of a ratio that would
// read as 0.
func ratioDecimals(v float64) int {
	if least := math.Abs(v); least > 0 && least < 0.01 {
		return min(1-int(math.Floor(math.Log10(least))), 12)
	}
	return 2
}

// fixed writes a number with the given decimals. A number that rounds to 0 has
// no sign.
func fixed(v float64, decimals int) string {
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if rest, negative := strings.CutPrefix(s, "-"); negative && strings.Trim(rest, "0.") == "" {
		return rest
	}
	return s
}

// signed is fixed with a sign, also + for what is above 0.
func signed(v float64, decimals int) string {
	s := fixed(v, decimals)
	if v > 0 && strings.Trim(s, "0.") != "" {
		return "+" + s
	}
	return s
}

// showSize returns a number of bytes, exactly, in the largest power of 1024
// that divides it.
func showSize(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for n != 0 && n%1024 == 0 && i < len(units)-1 {
		n /= 1024
		i++
	}
	return group(strconv.FormatInt(n, 10)) + " " + units[i]
}

// group puts commas between thousands, from five digits on.
func group(number string) string {
	digits := number
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	whole, fraction, point := strings.Cut(digits, ".")
	if len(whole) > 4 {
		var parts []string
		for len(whole) > 3 {
			parts = append([]string{whole[len(whole)-3:]}, parts...)
			whole = whole[:len(whole)-3]
		}
		whole = strings.Join(append([]string{whole}, parts...), ",")
	}
	if point {
		whole += "." + fraction
	}
	return sign + whole
}

// below returns the lines below a table: notes, then the origin.
func (t *Table) below() []string {
	lines := slices.Clone(t.Notes)
	if t.Origin != nil {
		lines = append(lines, t.Origin.Lines()...)
	}
	return lines
}

// text renders the table for people: the answer, then the table. width is the
// line width, 0 for no limit.
func (t *Table) text(width int) string {
	var out strings.Builder
	for _, line := range t.Answer {
		fmt.Fprintln(&out, wrapped(visible.Line(line), width))
	}
	if t.Lines {
		asLines(t, &out, width)
	} else {
		t.grid(&out, width)
	}
	if t.Published != nil {
		t.Published.grid(&out, width)
	}
	for _, f := range t.Further {
		f.grid(&out, width)
		for _, note := range f.Notes {
			fmt.Fprintln(&out, wrapped(visible.Line(note), width))
		}
	}
	for i, note := range t.below() {
		if i == 0 {
			fmt.Fprintln(&out)
		}
		fmt.Fprintln(&out, wrapped(visible.Line(note), width))
	}
	return out.String()
}

// asLines writes the title, and the one row as lines: value, unit and what it is.
func asLines(t *Table, out *strings.Builder, width int) {
	if t.Title != "" {
		fmt.Fprintf(out, "%s%s\n", gap(out), wrapped(visible.Line(t.Title), width))
	}
	out.WriteString(gap(out))
	type line struct{ value, unit, what string }
	var list []line
	widest, unit := 0, 0
	for i, c := range t.Columns {
		if v := t.rows[0][i]; v != nil && !c.ForPrograms {
			s := t.scaleOf(i)
			one := line{show(c, s, v), s.unit, c.Help}
			if c.Kind == Size {
				one.unit = ""
			}
			list = append(list, one)
			widest, unit = max(widest, text.StringWidth(one.value)), max(unit, text.StringWidth(one.unit))
		}
	}
	for _, one := range list {
		fmt.Fprintf(out, "%s  %s  %s\n", text.AlignRight.Apply(one.value, widest), text.AlignLeft.Apply(one.unit, unit), visible.Line(one.what))
	}
}

// noRows stands in place of a table without rows.
const noRows = "none"

// grid writes title, heads and rows. It folds them to width unless that is 0.
func (t *Table) grid(out *strings.Builder, width int) {
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options = table.Options{SeparateHeader: true}
	style.Box.PaddingLeft, style.Box.PaddingRight = "", strings.Repeat(" ", columnGap)
	if t.Title != "" {
		fmt.Fprintf(out, "%s%s\n", gap(out), wrapped(visible.Line(t.Title), width))
	}
	if len(t.rows) == 0 {
		fmt.Fprintf(out, "%s%s\n", gap(out), noRows)
		return
	}
	s := t.sheet(false)
	for _, part := range s.fold(width) {
		w := s.pretty(part)
		w.SetStyle(style)
		out.WriteString(gap(out))
		for line := range strings.SplitSeq(w.Render(), "\n") {
			fmt.Fprintln(out, strings.TrimRight(line, " "))
		}
	}
}

// gap separates a block from the one before it.
func gap(out *strings.Builder) string {
	if out.Len() == 0 {
		return ""
	}
	return "\n"
}

// markdown renders the content of text for a document.
func (t *Table) markdown() string {
	var out strings.Builder
	line := MarkdownFormat.Line
	for _, one := range t.Answer {
		fmt.Fprintf(&out, "**%s**\n", line(one))
	}
	if t.Title != "" {
		fmt.Fprintf(&out, "%s%s\n", gap(&out), line(t.Title))
	}
	fmt.Fprintf(&out, "%s%s\n", gap(&out), t.sheet(false).markdown())
	if p := t.Published; p != nil {
		fmt.Fprintf(&out, "\n%s\n\n%s\n", line(p.Title), p.sheet(false).markdown())
	}
	for _, f := range t.Further {
		fmt.Fprintf(&out, "\n%s\n\n%s\n", line(f.Title), f.sheet(false).markdown())
		for _, note := range f.Notes {
			fmt.Fprintf(&out, "\n%s\n", line(note))
		}
	}
	for _, note := range t.below() {
		fmt.Fprintf(&out, "\n%s\n", line(note))
	}
	return out.String()
}
