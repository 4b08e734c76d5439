package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
)

// Narrow is a writer with a limited line width: a terminal. Tables are folded
// to that width. Other writers get lines of any length.
type Narrow interface {
	io.Writer
	Columns() int // 0: no limit
}

// widthOf returns the maximum line length of a writer, 0 for no limit.
func widthOf(w io.Writer) int {
	if n, is := w.(Narrow); is {
		return n.Columns()
	}
	return 0
}

// Buffer collects text for a writer, and has the same width.
type Buffer struct {
	bytes.Buffer
	columns int
}

// NewBuffer returns an empty buffer for a writer.
func NewBuffer(w io.Writer) *Buffer { return &Buffer{columns: widthOf(w)} }

// Columns returns the width of the writer.
func (b *Buffer) Columns() int { return b.columns }

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
func (t *Table) fold(shown []int, width int) []part {
	if width <= 0 {
		return []part{{columns: shown}}
	}
	widths := t.widths(shown)
	keys, first := shown[:t.telling(shown)], 0
	for i := range keys {
		first += widths[i]
	}
	if first > width/2 {
		keys, first = nil, 0
	}
	var parts []part
	current, used := part{columns: keys}, first
	for i := len(keys); i < len(shown); i++ {
		if used+widths[i] > width && len(current.columns) > len(keys) {
			parts = append(parts, current)
			current, used = part{columns: keys}, first
		}
		current.columns = append(current.columns[:len(current.columns):len(current.columns)], shown[i])
		if used += widths[i]; used > width && t.Columns[shown[i]].Kind == Text {
			current.widest = max(leastText, width-(used-widths[i])-columnGap)
		}
	}
	return append(parts, current)
}

// widths returns the widths of columns, with the gap behind each.
func (t *Table) widths(shown []int) []int {
	widths := make([]int, len(shown))
	for k, i := range shown {
		s := t.scaleOf(i)
		most := text.StringWidth(t.Columns[i].heading(s))
		for _, row := range t.rows {
			most = max(most, text.StringWidth(show(t.Columns[i], s, row[i])))
		}
		widths[k] = most + columnGap
	}
	return widths
}

// telling returns the smallest number of leading columns that distinguish all
// rows. It is 0 for a single row, and all columns but one if rows are equal.
func (t *Table) telling(shown []int) int {
	if len(t.rows) < 2 {
		return 0
	}
	for n := 1; n < len(shown); n++ {
		seen := map[string]bool{}
		for _, row := range t.rows {
			key := ""
			for _, i := range shown[:n] {
				key += fmt.Sprintf("%v\x00", row[i])
			}
			seen[key] = true
		}
		if len(seen) == len(t.rows) {
			return n
		}
	}
	return len(shown) - 1
}

// wrapped wraps a line between words to a width.
func wrapped(line string, width int) string {
	if width <= 0 || text.StringWidth(line) <= width {
		return line
	}
	lines := strings.Split(text.WrapSoft(line, width), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
