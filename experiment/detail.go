package experiment

import (
	"fmt"
	"slices"

	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/report"
)

// Detail is a further table of a point. It has as many rows as the point gives
// it: for example one for each rank of a schedule.
type Detail struct {
	Name    string          // of the table: a-z, 0-9 and -, a letter first
	Title   string          // its heading for people
	Columns []report.Column // of its rows
	// Quiet means that people see it only if they ask for it: it may have
	// thousands of rows. Documents have every table.
	Quiet bool
	// Zeros is the number of the first column that people do not see if it is zero
	// in every row, and so for all behind it. A line below names them. 0: they see
	// every column.
	Zeros int
}

// Rows are the value of a Detail in Values: rows with a value for each of its
// columns. nil: the point has none.
type Rows [][]any

// check compares rows with the columns.
func (d *Detail) check(v any) error {
	rows, ok := v.(Rows)
	if !ok {
		return fmt.Errorf("Run has returned a %T for table %s, expected Rows", v, d.Name)
	}
	for i, row := range rows {
		if len(row) != len(d.Columns) {
			return fmt.Errorf("Run has returned %d values in row %d of table %s, expected %d", len(row), i+1, d.Name, len(d.Columns))
		}
		for k, c := range d.Columns {
			if !c.Holds(row[k]) {
				return fmt.Errorf("Run has returned a %T for column %s of table %s, which has kind %v", row[k], c.Name, d.Name, c.Kind)
			}
		}
	}
	return nil
}

// detail returns the further table with a name; nil: there is none.
func (e *Experiment) detail(name string) *Detail {
	if i := slices.IndexFunc(e.Details, func(d Detail) bool { return d.Name == name }); i >= 0 {
		return &e.Details[i]
	}
	return nil
}

// pointsTable is the name of the table with a row for each point.
const pointsTable = "points"

// tableNames lists the tables: of the points, and the further ones.
func (e *Experiment) tableNames() (names []string) {
	if len(e.Details) == 0 {
		return nil
	}
	names = append(names, pointsTable)
	for i := range e.Details {
		names = append(names, e.Details[i].Name)
	}
	return names
}

// keptRows are rows in a checkpoint.
type keptRows [][]checkpoint.Value

func (rows Rows) encode() keptRows {
	kept := make(keptRows, len(rows))
	for i, row := range rows {
		kept[i] = make([]checkpoint.Value, len(row))
		for k, v := range row {
			kept[i][k] = checkpoint.Value{V: v}
		}
	}
	return kept
}

func (kept keptRows) decode() Rows {
	var rows Rows
	for _, row := range kept {
		one := make([]any, len(row))
		for k := range row {
			one[k] = row[k].V
		}
		rows = append(rows, one)
	}
	return rows
}
