package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/spinsim/spinsim/sim"
)

// terminal is a writer with a limited width.
type terminal struct {
	bytes.Buffer
	columns int
}

func (t *terminal) Columns() int { return t.columns }

func printed(t require.TestingT, table *Table, width int) string {
	to := terminal{columns: width}
	require.NoError(t, table.Write(&to, TextFormat))
	return to.String()
}

// A table that is too wide is folded into parts. Each part begins with the
// columns that distinguish the rows. A text that is too long is wrapped between
// words.
func TestFold(t *testing.T) {
	table := New(Column{Name: "profile"}, Column{Name: "ranks", Kind: Count}, Column{Name: "first", Unit: "ns", Kind: Duration}, Column{Name: "second", Unit: "ns", Kind: Duration}, Column{Name: "why"})
	table.Title, table.Notes = "a table that is wide", []string{"below it a note"}
	table.Add("spin-int", 4, 5*sim.Nanosecond, 70*sim.Nanosecond, "the host polls and matches")
	table.Add("spin-int", 8, 15*sim.Nanosecond, 170*sim.Nanosecond, "it waits")
	require.Equal(t, `a table that is wide

profile   ranks  first (ns)  second (ns)  why
──────────────────────────────────────────────────────────────────────
spin-int      4           5           70  the host polls and matches
spin-int      8          15          170  it waits

below it a note
`, printed(t, table, 0))
	require.Equal(t, printed(t, table, 0), printed(t, table, 70))
	require.Equal(t, `a table that is wide

profile   ranks  first (ns)
─────────────────────────────
spin-int      4           5
spin-int      8          15

profile   ranks  second (ns)
──────────────────────────────
spin-int      4           70
spin-int      8          170

profile   ranks  why
────────────────────────────────────
spin-int      4  the host polls
                 and matches
spin-int      8  it waits

below it a note
`, printed(t, table, 36))
}

// For any table: no line is wider than the terminal unless a column is. Every
// cell is there. Folding changes only the text format.
func TestFoldKeepsCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(40, 120).Draw(t, "width")
		table := New()
		for i := range rapid.IntRange(1, 12).Draw(t, "columns") {
			table.Columns = append(table.Columns, Column{Name: fmt.Sprintf("c%d", i), Kind: rapid.SampledFrom([]Kind{Text, Count}).Draw(t, "kind")})
		}
		var cells []string
		for r := range rapid.IntRange(1, 4).Draw(t, "rows") {
			row := make([]any, len(table.Columns))
			for i, c := range table.Columns {
				n := 1000*(r+1) + i
				if row[i] = any(n); c.Kind == Text {
					row[i] = fmt.Sprintf("w%d%s", n, strings.Repeat("x", rapid.IntRange(0, 12).Draw(t, "letters")))
				}
				cells = append(cells, fmt.Sprint(row[i]))
			}
			table.Add(row...)
		}
		out := printed(t, table, width)
		for line := range strings.Lines(out) {
			require.LessOrEqual(t, text.StringWidth(strings.TrimSuffix(line, "\n")), width, out)
		}
		words := strings.Fields(out)
		for _, cell := range cells {
			require.Contains(t, words, cell, out)
		}
		var narrow, wide bytes.Buffer
		require.NoError(t, table.Write(&terminal{columns: width}, CSVFormat))
		require.NoError(t, table.Write(&narrow, CSVFormat))
		require.NoError(t, table.Write(&wide, CSVFormat))
		require.Equal(t, wide.String(), narrow.String())
	})
}
