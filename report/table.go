// Package report turns results into what people and programs read: aligned
// tables, CSV, JSON, NDJSON, Markdown and plots.
//
// A [Table] has typed columns. Every renderer takes unit, scale and alignment
// from the column, so that a result is described once. Text is for people: times
// are scaled, digits limited. CSV and JSON are for programs: exact values in the
// column's unit, the unit in the key ("latency_ns"). The bytes of every format
// depend on the table alone.
package report

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spinsim/spinsim/sim"
)

// Kind says what the values of a column are.
type Kind int

// Kinds of columns, with the Go type of their values. In place of a value of any
// kind, nil means that there is none.
const (
	Text     Kind = iota // string
	Count                // int, int64 or uint64
	Size                 // int or int64, bytes; read by people in powers of 1024
	Duration             // sim.Time
	Number               // float64 in the column's unit
	Ratio                // float64; read by people as 1.35×
	Share                // float64, 0 to 1; read by people as a percentage
	Flag                 // bool
	Change               // float64; read by people as +1.2%
	Points               // float64, a difference of shares; read by people as +1.2 points
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
	// Scale, if set, names the columns that are shown to people in one unit and
	// with the same digits, because they are to be compared.
	Scale string
	// PartOf, if set, names the column that this one is a part of: both are
	// shown to people in the same unit, this one with one digit more.
	PartOf string
	// Each, if set, is what a number of the column counts where it stands by
	// itself, in legends and names: "cores" for 8 cores. Without it the title
	// is taken.
	Each string
	// ForPrograms keeps the column out of text and Markdown: what it says stands
	// below the table, once.
	ForPrograms bool
}

// Key returns what CSV and JSON call the column: name and unit.
func (c Column) Key() string {
	if c.Unit == "" {
		return c.Name
	}
	return c.Name + "_" + c.Unit
}

// title is what people read at the head of the column, unit apart.
func (c Column) title() string { return strings.ReplaceAll(c.Name, "_", " ") }

// Table is a list of rows under typed columns.
type Table struct {
	Title  string   // what was run
	Answer []string // what the reader wanted to know; text prints it first
	Notes  []string // what the reader should know; text prints it last
	// what produced the rows; text prints it below the notes, JSON as the
	// object "provenance"
	Origin  Origin
	Columns []Column
	// Published, if not nil, is printed below the table; SetPublished makes it.
	Published  *Table
	references []Published // as SetPublished was given them
	rows       [][]any
}

// Origin says what produced a table. JSON gets it as encoding/json writes it.
type Origin interface {
	Lines() []string // for people
}

// CheckKeys says which columns have the same key.
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

// CheckColumns says what is wrong with the columns of a table: a name that is
// no key, two with the same key, a kind that there is not, a time without a
// unit of time.
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
		case c.Unit != "" && unitless(c.Kind):
			errs = append(errs, fmt.Errorf("column %s: unit %q, but a column of kind %v has none", c.Name, c.Unit, c.Kind))
		}
	}
	return errors.Join(errs...)
}

// unitless reports whether values of a kind are in no unit.
func unitless(k Kind) bool {
	return slices.Contains([]Kind{Text, Ratio, Share, Flag, Change, Points}, k)
}

// isKey reports whether a text can be a key, or a part of one, in every format.
func isKey(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r != '_' && (r < '0' || r > '9')) {
			return false
		}
	}
	return s != ""
}

// durationUnits maps the units a [Duration] column may have.
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

// AddColumn appends a column with the same value in every row there is.
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

// Rows are the rows of the table, for those who keep it. They must not be changed.
func (t *Table) Rows() [][]any { return t.rows }

// normal returns v in the type kept for its kind: string, int64, uint64,
// sim.Time, float64, bool or nil.
func normal(c Column, v any) any {
	kept, ok := c.kept(v)
	if !ok {
		panic(fmt.Sprintf("report: column %s of kind %v cannot hold a %T", c.Key(), c.Kind, v)) //lint:panic programmer's mistake
	}
	return kept
}

// Holds reports whether the value is one of the column: of a Go type of its kind, or nil.
func (c Column) Holds(v any) bool {
	_, ok := c.kept(v)
	return ok
}

// kept is normal, or false for a value that the column cannot hold.
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
		return v, slices.Contains([]Kind{Number, Ratio, Share, Change, Points}, c.Kind)
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
// plots; bytes and times as they are exported. ok is false if there is none.
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
