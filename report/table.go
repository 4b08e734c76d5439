// Package report turns results into tables for people and programs: aligned
// tables, CSV, JSON, NDJSON, Markdown, Parquet and plots.
//
// A [Table] has typed columns. Every renderer takes unit, scale and alignment
// from the column, so a result is described once. Text is for people: times are
// scaled, and digits limited. CSV and JSON are for programs: they have exact
// values in the column's unit, and the unit in the key ("latency_ns"). The
// bytes of every format depend on the table alone.
package report

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/sim"
)

// Kind is the kind of a column's values.
type Kind int

// Kinds of columns, with the Go type of their values. For any kind, nil means
// no value.
const (
	Text     Kind = iota // string
	Count                // int, int64 or uint64; with Column.Fractions also float64
	Size                 // int or int64, bytes; shown in powers of 1024
	Duration             // sim.Time
	Number               // float64 in the column's unit
	Ratio                // float64; shown as 1.35×
	Share                // float64, 0 to 1; shown as a percentage
	Flag                 // bool
	Change               // float64; shown as +1.2%
	Points               // float64, a difference of shares; shown as +1.2 points
)

var kindNames = [...]string{"text", "count", "bytes", "time", "number", "ratio", "share", "yes/no", "change", "points"}

// String returns the name of the kind as the help text prints it.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kindNames[k]
}

// Column describes the values of one column.
type Column struct {
	Name string // lower case, words joined by _, without the unit: "latency"
	Unit string // suffix of the key: "ns", "B"; of a [Duration] one of ps, ns, us, ms, s
	Kind Kind
	Help string // one sentence: what is counted or measured, from where to where
	// Fractions lets a column of counts hold numbers with a fraction, too:
	// whole numbers stay as they are.
	Fractions bool
	// Scale, if set, groups columns that people compare: they are shown in
	// one unit and with the same digits.
	Scale string
	// PartOf, if set, names the column that this one is a part of. Both are
	// shown in the same unit, this one with one digit more.
	PartOf string
	// Each, if set, is what a number of the column counts, for legends and
	// names: "cores" for 8 cores. The default is the title.
	Each string
	// ForPrograms hides the column in text and Markdown, because its value
	// stands below the table, once.
	ForPrograms bool
}

// Key returns the column's name in CSV and JSON: name and unit.
func (c Column) Key() string {
	if c.Unit == "" {
		return c.Name
	}
	return c.Name + "_" + c.Unit
}

// title returns the heading for people, without the unit.
func (c Column) title() string { return strings.ReplaceAll(c.Name, "_", " ") }

// Table is a list of rows under typed columns.
type Table struct {
	Title  string   // what was run
	Answer []string // what the reader wants to know; text prints it first
	Notes  []string // what the reader should know; text prints it last
	// the origin of the rows; text prints it below the notes, JSON as the
	// object "provenance"
	Origin Origin
	// why and where what the rows describe has ended early, for the seal;
	// "": they are complete
	Cut     string
	Columns []Column
	// Published, if not nil, is printed below the table. SetPublished makes
	// it.
	Published *Table
	// Further are more tables of the same results. Text and Markdown print them
	// below, JSON has each behind "rows". Other formats leave them out.
	Further []Further
	// Lines means that text has the one row as lines: value, unit
	// and Help of each column.
	Lines      bool
	references []Published // the argument of SetPublished
	rows       [][]any
}

// Further is one of several tables of the same results.
type Further struct {
	Name string // its key in JSON
	*Table
}

// Origin describes what produced a table. JSON gets it as encoding/json writes
// it. Files of tables and plots have a seal if it has a method
//
//	Seal() (program, record string, err error)
//
// which returns the version of the program, and a hash of all that the table
// depends on.
type Origin interface {
	Lines() []string // for people
}

// CheckKeys returns an error if two columns have the same key.
func CheckKeys(columns []Column) error {
	var errs []error
	seen := map[string]bool{}
	for _, c := range columns {
		if seen[c.Key()] {
			errs = append(errs, fmt.Errorf("two columns %s", c.Key()))
		}
		seen[c.Key()] = true
	}
	return errors.Join(errs...)
}

// CheckColumns checks the columns of a table. Errors are an invalid name, two
// equal keys, an unknown kind, and a time without a unit of time.
func CheckColumns(columns []Column) error {
	errs := []error{CheckKeys(columns)}
	for _, c := range columns {
		if !isKey(c.Name) {
			errs = append(errs, fmt.Errorf("column %q: expected a name of letters, digits and _, a letter first", c.Name))
		}
		switch {
		case c.Kind < Text || c.Kind > Points:
			errs = append(errs, fmt.Errorf("column %s: no kind %v", c.Name, c.Kind))
		case c.Kind == Duration && durationUnits[c.Unit] == 0:
			errs = append(errs, fmt.Errorf("column %s: unit %q of a time, expected one of ps, ns, us, ms, s", c.Name, c.Unit))
		case c.Unit != "" && !isKey(c.Unit):
			errs = append(errs, fmt.Errorf("column %s: unit %q, expected letters, digits and _, a letter first", c.Name, c.Unit))
		case c.Unit != "" && slices.Contains([]Kind{Text, Ratio, Share, Flag, Change, Points}, c.Kind):
			errs = append(errs, fmt.Errorf("column %s: unit %q, but a column of kind %v has none", c.Name, c.Unit, c.Kind))
		}
	}
	return errors.Join(errs...)
}

// isKey reports whether a text can be a key, or a part of a key, in every
// format.
func isKey(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r != '_' && (r < '0' || r > '9')) {
			return false
		}
	}
	return s != ""
}

// durationUnits maps the units of a [Duration] column.
var durationUnits = map[string]sim.Time{
	"ps": sim.Picosecond, "ns": sim.Nanosecond, "us": sim.Microsecond, "ms": sim.Millisecond, "s": sim.Second,
}

// New returns an empty table. It panics if two columns have the same key or a
// time has no unit of time.
func New(columns ...Column) *Table {
	seen := map[string]bool{}
	for _, c := range columns {
		if seen[c.Key()] {
			panic("report: two columns " + c.Key()) //lint:panic programmer's mistake
		}
		seen[c.Key()] = true
		if c.Kind == Duration && durationUnits[c.Unit] == 0 {
			panic("report: column " + c.Name + ": a time needs a unit of ps, ns, us, ms, s") //lint:panic programmer's mistake
		}
	}
	return &Table{Columns: columns}
}

// AddColumn appends a column with the same value in all present rows.
func (t *Table) AddColumn(c Column, value any) {
	t.Columns = append(slices.Clone(t.Columns), c)
	for i, row := range t.rows {
		t.rows[i] = append(slices.Clone(row), normal(c, value))
	}
}

// Add appends a row. It panics if the values do not fit the columns.
func (t *Table) Add(values ...any) {
	if len(values) != len(t.Columns) {
		panic(fmt.Sprintf("report: %d values for %d columns", len(values), len(t.Columns))) //lint:panic programmer's mistake
	}
	row := make([]any, len(values))
	for i, v := range values {
		row[i] = normal(t.Columns[i], v)
	}
	t.rows = append(t.rows, row)
}

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Rows returns the rows of the table, for a caller that stores them. They must
// not be changed.
func (t *Table) Rows() [][]any { return t.rows }

// normal returns v in the stored type of its kind: string, int64, uint64,
// sim.Time, float64, bool or nil.
func normal(c Column, v any) any {
	kept, ok := c.kept(v)
	if !ok {
		panic(fmt.Sprintf("report: column %s of kind %v cannot hold a %T", c.Key(), c.Kind, v)) //lint:panic programmer's mistake
	}
	return kept
}

// Holds reports whether the column can hold the value: nil, or a Go type of its
// kind.
func (c Column) Holds(v any) bool {
	_, ok := c.kept(v)
	return ok
}

// kept is like normal, but returns false for a value that the column cannot
// hold.
func (c Column) kept(v any) (kept any, ok bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case string:
		return v, c.Kind == Text
	case bool:
		return v, c.Kind == Flag
	case int:
		return c.kept(int64(v))
	case int64:
		return v, c.Kind == Count || c.Kind == Size
	case uint64:
		return v, c.Kind == Count
	case sim.Time:
		return v, c.Kind == Duration
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, slices.Contains([]Kind{Number, Ratio, Share, Change, Points}, c.Kind)
		}
		return v, slices.Contains([]Kind{Number, Ratio, Share, Change, Points}, c.Kind) || c.Kind == Count && c.Fractions
	}
	return nil, false
}

// column returns the index of the column with that name or key.
func (t *Table) column(name string) (int, error) {
	keys := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		if name == c.Name || name == c.Key() {
			return i, nil
		}
		keys[i] = c.Key()
	}
	return 0, fmt.Errorf("no column %q, there are %s", name, strings.Join(keys, ", "))
}

// float returns a value as a number in the column's unit, for arithmetic and
// plots. Bytes and times are as exported. ok is false if there is no value.
func float(c Column, v any) (f float64, ok bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	case sim.Time:
		return float64(v) / float64(durationUnits[c.Unit]), true
	}
	return 0, false
}
