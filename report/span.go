package report

import (
	"fmt"
	"slices"
)

// SpanColumns are the two columns that AddSpan adds behind a column.
func SpanColumns(c Column) (low, high Column) {
	low, high = c, c
	low.Name, high.Name = c.Name+"_low", c.Name+"_high"
	low.Help = "least " + c.Name + " over what is open"
	high.Help = "largest " + c.Name + " over what is open"
	return low, high
}

// AddSpan puts the range of a number behind its column: the least and the
// largest value of each row. Values have the Go type of the column's kind, or
// are nil. A column that does not exist is an error.
func AddSpan(t *Table, name string, low, high []any) error {
	at, err := t.column(name)
	if err != nil {
		return err
	}
	if len(low) != len(t.rows) || len(high) != len(t.rows) {
		return fmt.Errorf("%d and %d values of a range, expected %d", len(low), len(high), len(t.rows))
	}
	c := t.Columns[at]
	if c.Scale == "" { // all three are shown in one unit
		c.Scale = c.Key()
	}
	from, to := SpanColumns(c)
	t.Columns = slices.Insert(slices.Clone(t.Columns), at+1, from, to)
	t.Columns[at] = c
	for i := range t.rows {
		t.rows[i] = slices.Insert(slices.Clone(t.rows[i]), at+1, normal(from, low[i]), normal(to, high[i]))
	}
	return nil
}

// span is a range of y at a place of x.
type span struct{ x, low, high float64 }

// addSpan adds the range of a row to its curve, if the table has one for y.
func (f *figure) addSpan(t *Table, row, y int, c *curve, x float64) {
	if y+2 >= len(t.Columns) {
		return
	}
	low, high := SpanColumns(t.Columns[y])
	if t.Columns[y+1].Name != low.Name || t.Columns[y+2].Name != high.Name {
		return
	}
	from, ok := float(low, t.rows[row][y+1])
	to, also := float(high, t.rows[row][y+2])
	if !ok || !also || f.y.log && from <= 0 {
		return
	}
	f.y.include(from)
	f.y.include(to)
	c.spans = append(c.spans, span{x, from, to})
}
