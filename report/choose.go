package report

import (
	"fmt"
	"path/filepath"
	"slices"
)

// Select returns the table with only the named columns, in the given order. A
// column that does not exist is an error.
func (t *Table) Select(names ...string) (*Table, error) {
	out := &Table{Title: t.Title, Answer: t.Answer, Notes: t.Notes, Origin: t.Origin, Cut: t.Cut, Published: t.Published, Lines: t.Lines}
	from := make([]int, len(names))
	for i, name := range names {
		c, err := t.column(name)
		if err != nil {
			return nil, err
		}
		from[i] = c
		out.Columns = append(out.Columns, t.Columns[c])
	}
	for _, row := range t.rows {
		picked := make([]any, len(from))
		for i, c := range from {
			picked[i] = row[c]
		}
		out.rows = append(out.rows, picked)
	}
	return out, nil
}

// With returns the table with additional columns. Every row has the same values
// in them.
func (t *Table) With(columns []Column, values []any) *Table {
	out := *t
	out.Columns = slices.Concat(t.Columns, columns)
	out.rows = nil
	same := make([]any, len(columns))
	for i, c := range columns {
		same[i] = normal(c, values[i])
	}
	for _, row := range t.rows {
		out.rows = append(out.rows, slices.Concat(row, same))
	}
	return &out
}

// Join returns one long table from several with the same columns. Each row
// begins with the values of additional columns: values[i] for the rows of
// tables[i]. Title and notes come from the first table. Join panics if the
// tables have different columns: a programmer's mistake.
func Join(columns []Column, values [][]any, tables []*Table) *Table {
	out := &Table{Title: tables[0].Title, Notes: tables[0].Notes, Columns: slices.Concat(columns, tables[0].Columns)}
	for i, t := range tables {
		if len(t.Columns) != len(tables[0].Columns) {
			panic("report: tables with other columns are joined") //lint:panic programmer's mistake
		}
		own := make([]any, len(columns))
		for k, c := range columns {
			own[k] = normal(c, values[i][k])
		}
		for _, row := range t.rows {
			out.rows = append(out.rows, slices.Concat(own, row))
		}
	}
	return out
}

// CheckImage returns an error if PlotFile cannot draw a file with that name.
func CheckImage(name string) error {
	if ext := filepath.Ext(name); ext != ".svg" && ext != ".png" {
		return fmt.Errorf("cannot draw %q files, want a name that ends in one of %s", ext, imageTypes)
	}
	return nil
}
