package report

import (
	"fmt"
	"path/filepath"
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

// CheckImage returns an error if PlotFile cannot draw a file with that name.
func CheckImage(name string) error {
	if ext := filepath.Ext(name); ext != ".svg" && ext != ".png" {
		return fmt.Errorf("cannot draw %q files, want a name that ends in one of %s", ext, imageTypes)
	}
	return nil
}
