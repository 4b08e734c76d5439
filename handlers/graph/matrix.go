//go:build !tinygo

package graph

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spinsim/spinsim/internal/memory"
)

// banner begins the first line of a file of MatrixMarket. Files with fewer
// percent signs or in lower case are accepted, too.
const (
	banner         = "%%MatrixMarket"
	expectedBanner = "expected " + banner + " matrix coordinate, then pattern, integer or real, then general, symmetric or skew-symmetric"
)

// isBanner reports whether a line is the banner of MatrixMarket.
func isBanner(line string) bool {
	words := strings.Fields(strings.TrimLeft(line, "% \t"))
	return strings.HasPrefix(line, "%") && len(words) > 0 && strings.EqualFold(words[0], banner[2:])
}

// matrix is the adjacency matrix of a graph in a file.
type matrix struct {
	pattern         bool // entries have no value: the weights are 1
	integer         bool // values are whole numbers, and are written as such
	symmetric, skew bool // entries above the diagonal equal those below; in skew, with the other sign
	rows, entries   uint64
}

// readMatrix reads a matrix with its banner. Rows and columns are vertices,
// from 1, and each entry is an edge with its value as weight. There are as many
// vertices as rows, including those without an edge.
func readMatrix(l *lines, first string) (*Graph, error) {
	m, err := parseBanner(first)
	if err != nil {
		return nil, err
	}
	text, err := l.data()
	if err != nil {
		return nil, ended(err, "the size: rows, columns and entries")
	}
	if err := m.size(strings.Fields(text)); err != nil {
		return nil, err
	}
	var list []Edge
	for uint64(len(list)) < m.entries {
		if text, err = l.data(); err != nil {
			return nil, ended(err, fmt.Sprintf("%d entries, as the size has it, and there are %d", m.entries, len(list)))
		}
		e, err := m.entry(strings.Fields(text))
		if err != nil {
			return nil, err
		}
		list = memory.Append(list, e)
	}
	switch text, err = l.data(); {
	case err == nil:
		return nil, fmt.Errorf("%.40q, expected the end: the size has %d entries", text, m.entries)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return New(int(m.rows), list), nil
}

// data returns the next line that is neither empty nor a comment.
func (l *lines) data() (text string, err error) {
	for err == nil && (text == "" || text[0] == '%') {
		text, err = l.next()
	}
	return text, err
}

// ended turns the end of a file into an error about what is missing; other
// errors stay.
func ended(err error, lacks string) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the file ends, expected " + lacks)
	}
	return err
}

// parseBanner reads the first line.
func parseBanner(line string) (*matrix, error) {
	words := strings.Fields(strings.ToLower(strings.TrimLeft(line, "% \t")))
	if len(words) != 5 {
		return nil, fmt.Errorf("%d words, %s", len(words), expectedBanner)
	}
	for i, allowed := range [][]string{1: {"matrix"}, 2: {"coordinate"}, 3: {"pattern", "integer", "real"}, 4: {"general", "symmetric", "skew-symmetric"}} {
		if i > 0 && !slices.Contains(allowed, words[i]) {
			return nil, fmt.Errorf("%.40q is no graph, %s", words[i], expectedBanner)
		}
	}
	m := &matrix{pattern: words[3] == "pattern", integer: words[3] == "integer", symmetric: words[4] == "symmetric", skew: words[4] == "skew-symmetric"}
	if m.pattern && m.skew {
		return nil, errors.New("pattern and skew-symmetric: entries without a value have no sign, expected general or symmetric")
	}
	return m, nil
}

// size reads the line of the size.
func (m *matrix) size(fields []string) error {
	if len(fields) != 3 {
		return fmt.Errorf("%s, expected the size: rows, columns and entries", counted(len(fields)))
	}
	var n [3]uint64
	for i, f := range fields {
		var err error
		if n[i], err = strconv.ParseUint(f, 10, 62); err != nil {
			return fmt.Errorf("%.40q in the size, expected a number of rows, columns and entries", f)
		}
	}
	switch {
	case n[0] != n[1]:
		return fmt.Errorf("%d rows and %d columns, expected as many: both are the vertices", n[0], n[1])
	case n[0] < 1 || n[0] > MaxVertices:
		return fmt.Errorf("%d rows, expected 1 to %d vertices", n[0], MaxVertices)
	case n[2] < 1:
		return errors.New("no entries, expected an edge at least")
	}
	m.rows, m.entries = n[0], n[2]
	return nil
}

// entry parses a line of an edge.
func (m *matrix) entry(fields []string) (e Edge, err error) {
	want := 3
	if m.pattern {
		want = 2
	}
	if len(fields) != want {
		return e, fmt.Errorf("%s, expected row and column%s", counted(len(fields)), map[bool]string{false: " and value", true: ", without a value"}[m.pattern])
	}
	var at [2]uint64
	for i := range at {
		if at[i], err = strconv.ParseUint(fields[i], 10, 32); err != nil || at[i] < 1 || at[i] > m.rows {
			return e, fmt.Errorf("vertex %.40q, expected a number from 1 to %d", fields[i], m.rows)
		}
	}
	switch {
	case m.skew && at[0] <= at[1]:
		return e, fmt.Errorf("row %d and column %d, expected an entry below the diagonal: the matrix is skew-symmetric", at[0], at[1])
	case m.symmetric && at[0] < at[1]:
		return e, fmt.Errorf("row %d and column %d, expected an entry on or below the diagonal: the matrix is symmetric", at[0], at[1])
	}
	e = Edge{uint32(at[0] - 1), uint32(at[1] - 1), 1}
	if !m.pattern {
		x, err := m.value(fields[2])
		if m.skew { // there and back have different signs, but one length
			x = math.Abs(x)
		}
		if err != nil || x != math.Trunc(x) || x < 1 || x > MaxWeight {
			return e, fmt.Errorf("weight %.40q, expected a whole number from 1 to %d; a matrix of kind pattern has none", fields[2], MaxWeight)
		}
		e.Weight = uint32(x)
	}
	return e, nil
}

// value parses the value of an entry.
func (m *matrix) value(text string) (float64, error) {
	if m.integer {
		n, err := strconv.ParseInt(text, 10, 64)
		return float64(n), err
	}
	return strconv.ParseFloat(text, 64)
}

// counted returns a number of fields in words.
func counted(n int) string {
	if n == 1 {
		return "1 field"
	}
	return fmt.Sprintf("%d fields", n)
}
