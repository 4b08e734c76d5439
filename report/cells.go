package report

import "math"

// Grid is a table for people, cell by cell, for a layout elsewhere, such as a
// page.
type Grid struct {
	Headings []Heading
	Rows     [][]Cell
}

// Heading is the head of a column.
type Heading struct {
	Text   string // with the unit of the values
	Help   string // what is counted or measured
	Number bool   // the values are numbers, or text that sorts as numbers
}

// Cell is one value of a Grid.
type Cell struct {
	Text  string // as people read it
	Value string // the exact number to sort by, in the column's unit; "": sort by Text
}

// Grid lays the table out: the columns for people, or all of them if all is
// set.
func (t *Table) Grid(all bool) *Grid {
	g, s := &Grid{}, t.sheet(all)
	for i, c := range s.columns {
		g.Headings = append(g.Headings, Heading{Text: s.heads[i], Help: c.Help, Number: c.Kind != Text && c.Kind != Flag})
	}
	for r, row := range s.rows {
		cells := make([]Cell, 0, len(row))
		for i, v := range row {
			cell := Cell{Text: s.cells[r][i]}
			if _, isNumber := float(s.columns[i], v); isNumber {
				cell.Value = exact(s.columns[i], v)
			}
			cells = append(cells, cell)
		}
		g.Rows = append(g.Rows, cells)
	}
	return g
}

// Deviation is a published number beside the table's own.
type Deviation struct {
	At         string  // the row, in words
	Quantity   string  // the column
	Here       string  // the table's value, as people read it
	Published  string  // the published value, as people read it
	Text       string  // the distance, as people read it
	Off        float64 // the distance: (ours - published) / published, or of shares ours - published
	Source     string  // with the note
	Calibrated bool    // a parameter was set by it, so ours is no prediction
}

// Deviations returns the published numbers that have rows in the table, each
// once.
func (t *Table) Deviations() (list []Deviation) {
	t.eachPublished(func(row int, p *Published, at int) {
		c := t.Columns[at]
		_, distance := companions(c)
		ours, _ := float(c, t.rows[row][at])
		off := far(c, ours, p.Value)
		d := Deviation{
			At: t.where(p), Quantity: c.title(), Here: alone(c, legible(t.rows[row][at])), Published: alone(c, valueOf(c, p.Value)),
			Text: alone(distance, off), Off: math.NaN(), Source: p.source(), Calibrated: p.Calibrated(),
		}
		if f, known := off.(float64); known {
			d.Off = f
		}
		for _, o := range list { // rows may differ in columns that the number does not depend on
			if o.At == d.At && o.Quantity == d.Quantity && o.Here == d.Here && o.Source == d.Source {
				return
			}
		}
		list = append(list, d)
	})
	return list
}

// DeviationGrid lays deviations out, and marks the calibrated ones.
func DeviationGrid(list []Deviation) *Grid {
	g := &Grid{Headings: []Heading{
		{Text: "at"},
		{Text: "quantity"},
		{Text: "here"},
		{Text: "published"},
		{Text: "deviation", Number: true, Help: "(here - published) / published; of shares here - published, in points"},
		{Text: "predicted", Help: "no: a parameter of the profile was set by the published number"},
		{Text: "source"},
	}}
	for _, d := range list {
		cell := Cell{Text: d.Text}
		if !math.IsNaN(d.Off) {
			cell.Value = exactNumber(d.Off)
		}
		predicted := "yes"
		if d.Calibrated {
			predicted = "no"
		}
		g.Rows = append(g.Rows, []Cell{{Text: d.At}, {Text: d.Quantity}, {Text: d.Here}, {Text: d.Published}, cell, {Text: predicted}, {Text: d.Source}})
	}
	return g
}
