package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/spinsim/spinsim/internal/visible"
)

// sheet is a table as people see it: some of its columns, and each value as
// text.
type sheet struct {
	columns []Column
	heads   []string
	rows    [][]any
	cells   [][]string
}

// sheet returns the columns for people, or all of them.
func (t *Table) sheet(all bool) *sheet {
	s := &sheet{rows: make([][]any, len(t.rows)), cells: make([][]string, len(t.rows))}
	for i, c := range t.Columns {
		if c.ForPrograms && !all {
			continue
		}
		scale := t.scaleOf(i)
		s.columns = append(s.columns, c)
		s.heads = append(s.heads, visible.Line(c.heading(scale)))
		for r, row := range t.rows {
			s.rows[r] = append(s.rows[r], row[i])
			s.cells[r] = append(s.cells[r], show(c, scale, row[i]))
		}
	}
	return s
}

// leastText is the minimum width of a text column that may be wrapped.
const leastText = 16

// columnGap is the space behind each column.
const columnGap = 2

// part is a group of columns that are printed side by side.
type part struct {
	columns []int
	widest  int // width of a wrapped text column; 0: none is wrapped
}

// fold divides the columns of a table into parts that fit a line. Each part
// begins with the columns that distinguish the rows, unless these take more
// than half of the line. A single column that is too wide follows them alone,
// with its text wrapped.
func (s *sheet) fold(width int) []part {
	all := make([]int, len(s.columns))
	for i := range all {
		all[i] = i
	}
	if width <= 0 {
		return []part{{columns: all}}
	}
	widths := s.widths()
	keys, first := all[:s.telling()], 0
	for i := range keys {
		first += widths[i]
	}
	if first > width/2 {
		keys, first = nil, 0
	}
	var parts []part
	current, used := part{columns: keys}, first
	for i := len(keys); i < len(all); i++ {
		if used+widths[i] > width && len(current.columns) > len(keys) {
			parts = append(parts, current)
			current, used = part{columns: keys}, first
		}
		current.columns = append(slices.Clip(current.columns), i)
		if used += widths[i]; used > width && s.columns[i].Kind == Text {
			current.widest = max(leastText, width-(used-widths[i])-columnGap)
		}
	}
	return append(parts, current)
}

// widths returns the widths of the columns, with the gap behind each.
func (s *sheet) widths() []int {
	widths := make([]int, len(s.columns))
	for i, head := range s.heads {
		most := text.StringWidth(head)
		for _, cells := range s.cells {
			most = max(most, text.StringWidth(cells[i]))
		}
		widths[i] = most + columnGap
	}
	return widths
}

// telling returns the smallest number of leading columns that distinguish all
// rows. It is 0 for a single row, and all columns but one if rows are equal.
func (s *sheet) telling() int {
	if len(s.rows) < 2 {
		return 0
	}
	for n := 1; n < len(s.columns); n++ {
		seen := map[string]bool{}
		for _, row := range s.rows {
			key := ""
			for _, v := range row[:n] {
				key += fmt.Sprintf("%v\x00", v)
			}
			seen[key] = true
		}
		if len(seen) == len(s.rows) {
			return n
		}
	}
	return len(s.columns) - 1
}

// pretty fills a go-pretty table with a part of the columns.
func (s *sheet) pretty(of part) table.Writer {
	w := table.NewWriter()
	var header table.Row
	var configs []table.ColumnConfig
	for k, i := range of.columns {
		header = append(header, s.heads[i])
		config := table.ColumnConfig{Number: k + 1, Align: text.AlignRight, AlignHeader: text.AlignRight}
		if s.columns[i].Kind == Text {
			config.Align, config.AlignHeader = text.AlignLeft, text.AlignLeft
			config.WidthMax, config.WidthMaxEnforcer = of.widest, text.WrapSoft
		}
		configs = append(configs, config)
	}
	w.AppendHeader(header)
	w.SetColumnConfigs(configs)
	for _, cells := range s.cells {
		row := make(table.Row, len(of.columns))
		for k, i := range of.columns {
			row[k] = cells[i]
		}
		w.AppendRow(row)
	}
	return w
}

// markdown renders all columns for a document.
func (s *sheet) markdown() string {
	if len(s.cells) == 0 {
		return noRows
	}
	escape := func(cells []string) {
		for i, cell := range cells {
			cells[i] = strings.ReplaceAll(MarkdownFormat.Line(cell), `\|`, "|") // go-pretty escapes these
		}
	}
	escape(s.heads)
	for _, cells := range s.cells {
		escape(cells)
	}
	return s.pretty(s.fold(0)[0]).RenderMarkdown()
}
