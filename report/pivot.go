package report

import (
	"cmp"
	"fmt"
)

// Pivot lays out a long table for people: one line for each combination of
// Rows, one column for each value of Series.
type Pivot struct {
	Rows   []string // columns to keep
	Series string   // the column whose values become columns
	Value  string   // the column that fills them
	// Versus, if set, is the value of Series to compare the others with.
	// For each other value a ratio column is added: Value of Versus divided
	// by its own Value. If Value is a time, 2× means twice as fast. Versus
	// has the type of the column's values.
	Versus any
	// Order gives the order of the columns by values of Series. It may have
	// values that the table does not have. Other values follow in the order
	// of their first appearance.
	Order []any
	// Called, if not nil, names the column of a value of Series; "": the
	// value's own text.
	Called func(series any) string
}

// Pivot returns t laid out as p describes. Columns follow p.Order. Other
// columns, and rows, are in the order of their first appearance. It is an error
// if a column does not exist, if Versus is not a value of Series, or if two
// rows need the same cell.
func (t *Table) Pivot(p Pivot) (*Table, error) {
	series, err := t.column(p.Series)
	if err != nil {
		return nil, err
	}
	value, err := t.column(p.Value)
	if err != nil {
		return nil, err
	}
	keep := make([]int, len(p.Rows))
	columns := make([]Column, len(p.Rows))
	for i, name := range p.Rows {
		if keep[i], err = t.column(name); err != nil {
			return nil, err
		}
		columns[i] = t.Columns[keep[i]]
	}
	names := t.ordered(series, p.Order)
	var plain []string
	for _, name := range names {
		c := t.Columns[value]
		c.Name, c.Scale = t.Columns[series].named(name), "pivot"
		plain = append(plain, c.Name)
		if p.Called != nil {
			c.Name = cmp.Or(p.Called(name), c.Name)
		}
		columns = append(columns, c)
	}
	base := -1
	if p.Versus != nil {
		base = indexOf(names, normal(t.Columns[series], p.Versus))
		if base < 0 {
			return nil, fmt.Errorf("nothing to compare with: no %s %q", p.Series, fmt.Sprint(p.Versus))
		}
		columns = append(columns, versusColumns(plain, base)...)
	}
	if err := CheckKeys(columns); err != nil {
		return nil, err
	}
	out := New(columns...)
	out.Title, out.Answer, out.Notes, out.Origin, out.Published = t.Title, t.Answer, t.Notes, t.Origin, t.Published
	if err := t.fill(out, keep, series, value, names); err != nil {
		return nil, err
	}
	if base >= 0 {
		out.compare(len(keep), len(names), len(keep)+base)
	}
	return out, nil
}

// versusColumns returns the ratio columns, which follow the columns of values.
func versusColumns(values []string, base int) []Column {
	var columns []Column
	for i, name := range values {
		if i != base {
			columns = append(columns, Column{
				Name: fmt.Sprintf("%s_vs_%s", name, values[base]), Kind: Ratio, Scale: "versus",
				Help: fmt.Sprintf("%s divided by %s: above 1, %s is the smaller.", values[base], name, name),
			})
		}
	}
	return columns
}

// fill puts the values of t into the cells of out.
func (t *Table) fill(out *Table, keep []int, series, value int, names []any) error {
	places := map[string]int{}
	for _, row := range t.rows {
		kept := make([]any, len(keep))
		for i, c := range keep {
			kept[i] = row[c]
		}
		key := fmt.Sprintf("%#v", kept)
		at, known := places[key]
		if !known {
			at = len(out.rows)
			places[key] = at
			out.rows = append(out.rows, append(kept, make([]any, len(out.Columns)-len(kept))...))
		}
		column := len(keep) + indexOf(names, row[series])
		if out.rows[at][column] != nil {
			return fmt.Errorf("two rows for %v of %s: keep more columns apart", row[series], out.Columns[column].Key())
		}
		out.rows[at][column] = row[value]
	}
	return nil
}

// compare fills the ratio columns behind the n columns of values.
func (t *Table) compare(first, n, base int) {
	for _, row := range t.rows {
		at := first + n
		for i := first; i < first+n; i++ {
			if i == base {
				continue
			}
			reference, ok := float(t.Columns[base], row[base])
			own, also := float(t.Columns[i], row[i])
			if ok && also && own != 0 {
				row[at] = reference / own
			}
			at++
		}
	}
}

// distinct returns the values of a column in the order of their appearance.
func (t *Table) distinct(column int) []any {
	var values []any
	for _, row := range t.rows {
		if indexOf(values, row[column]) < 0 {
			values = append(values, row[column])
		}
	}
	return values
}

// ordered returns the distinct values of a column: first those of first that
// occur, then the others as they appear.
func (t *Table) ordered(column int, first []any) (values []any) {
	there := t.distinct(column)
	for _, v := range first {
		if v = normal(t.Columns[column], v); indexOf(there, v) >= 0 && indexOf(values, v) < 0 {
			values = append(values, v)
		}
	}
	for _, v := range there {
		if indexOf(values, v) < 0 {
			values = append(values, v)
		}
	}
	return values
}

func indexOf(values []any, v any) int {
	for i := range values {
		if values[i] == v {
			return i
		}
	}
	return -1
}
