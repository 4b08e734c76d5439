package osu

import (
	"fmt"
	"io"
	"strings"
)

// Style is the version of the OSU micro-benchmarks whose output layout is used.
type Style string

// The styles. Version 7 names the type of the data, and formats latency like
// collectives.
const (
	Version5 Style = "5.6.1"
	Version7 Style = "7.4"
)

// Styles lists the styles; the first is the default.
func Styles() []Style { return []Style{Version5, Version7} }

// Layout is the layout of output.
type Layout struct {
	Style Style
	// Full adds to collectives the columns of option -f: the ranks with the
	// least and the most time, and the iterations.
	Full bool
	// Pairs and Window appear in the second line of mbw_mr.
	Pairs, Window int
}

// Widths of OSU's columns, and digits after the decimal point.
const (
	sizeWidth, fieldWidth, countWidth, aloneWidth = 10, 18, 12, 17
	digits                                        = 2
)

// WriteHeader writes the lines before the rows.
func (b *Benchmark) WriteHeader(w io.Writer, l Layout) error {
	var out strings.Builder
	old := l.Style == Version5
	if b.Kind == Collective || !old && b.Unit != Rate {
		out.WriteByte('\n')
	}
	fmt.Fprintf(&out, "# %s v%s\n", b.Title, l.Style)
	if b.Unit == Rate {
		fmt.Fprintf(&out, "# [ pairs: %d ] [ window size: %d ]\n", l.Pairs, l.Window)
	}
	if !old && b.sizes {
		fmt.Fprintf(&out, "# Datatype: %s.\n", b.datatype())
	}
	var columns []string
	switch {
	case b.Unit == Rate:
		columns = []string{"MB/s", "Messages/s"}
	case b.Unit == Bandwidth:
		columns = []string{"Bandwidth (MB/s)"}
	case old && b.Kind != Collective:
		columns = []string{"Latency (us)"}
	default:
		columns = []string{"Avg Latency(us)"}
	}
	if b.sizes {
		fmt.Fprintf(&out, "%-*s%*s", sizeWidth, "# Size", fieldWidth, columns[0])
	} else {
		fmt.Fprintf(&out, "# %s", columns[0])
	}
	for _, c := range columns[1:] {
		fmt.Fprintf(&out, "%*s", fieldWidth, c)
	}
	if l.Full && b.Kind == Collective {
		fmt.Fprintf(&out, "%*s%*s%*s", fieldWidth, "Min Latency(us)", fieldWidth, "Max Latency(us)", countWidth, "Iterations")
	}
	out.WriteByte('\n')
	_, err := io.WriteString(w, out.String())
	return err
}

// datatype returns the name of the elements' type.
func (b *Benchmark) datatype() string {
	if b.floats {
		return "MPI_FLOAT"
	}
	return "MPI_CHAR"
}

// WriteRow writes the line of a row.
func (b *Benchmark) WriteRow(w io.Writer, l Layout, r *Row) error {
	var out strings.Builder
	number := func(width int, v float64) { fmt.Fprintf(&out, "%*.*f", width, digits, v) }
	first := aloneWidth
	if b.sizes {
		fmt.Fprintf(&out, "%-*d", sizeWidth, r.Bytes)
		first = fieldWidth
	}
	switch b.Unit {
	case Bandwidth, Rate:
		number(first, r.Bandwidth)
	default:
		number(first, r.Latency.Microseconds())
	}
	if b.Unit == Rate {
		number(fieldWidth, r.MessageRate)
	}
	if l.Full && b.Kind == Collective {
		number(fieldWidth, r.Least.Microseconds())
		number(fieldWidth, r.Most.Microseconds())
		fmt.Fprintf(&out, "%*d", countWidth, r.Iterations)
	}
	out.WriteByte('\n')
	_, err := io.WriteString(w, out.String())
	return err
}
