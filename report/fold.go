package report

import (
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

// Exact returns a writer for bytes that are no text, such as Parquet. The
// standard output of a command makes characters visible that a terminal obeys;
// other writers are returned as they are.
func Exact(w io.Writer) io.Writer {
	if text, is := w.(interface{ Exact() io.Writer }); is {
		return text.Exact()
	}
	return w
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
