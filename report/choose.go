package report

import (
	"fmt"
	"path/filepath"
	"slices"
)

// Select returns the table with only the named columns, in the order given. It is an error if one does not exist.
func (t *Table) Select(names ...string) (*Table, error) {
	out := &Table{Title: t.Title, Answer: t.Answer, Notes: t.Notes, Origin: t.Origin, Published: t.Published}
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

// With returns the table with more columns, which have the same values in every row.
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

// CheckImage reports whether PlotFile can draw a file of that name.
func CheckImage(name string) error {
	if ext := filepath.Ext(name); ext != ".svg" && ext != ".png" {
		return fmt.Errorf("cannot draw %q files, want a name that ends in one of %s", ext, imageTypes)
	}
	return nil
}
