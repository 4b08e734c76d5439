package report

import (
	"fmt"
	"io"
	"strings"
)

// helpWidth is the maximum number of characters in a line of help.
const helpWidth = 100

// WriteHelp describes each column: its key in CSV and JSON, its kind and its
// Help, wrapped and aligned.
func WriteHelp(w io.Writer, columns []Column) error {
	keys, kinds := 0, 0
	for _, c := range columns {
		keys = max(keys, len(c.Key()))
		kinds = max(kinds, len(c.Kind.String()))
	}
	indent := keys + 2 + kinds + 2
	var out strings.Builder
	for _, c := range columns {
		fmt.Fprintf(&out, "%-*s  %-*s", keys, c.Key(), kinds, c.Kind)
		at, start := indent-2, true
		for word := range strings.FieldsSeq(c.Help) {
			if !start && at+1+len(word) > helpWidth {
				fmt.Fprintf(&out, "\n%*s", indent-1, "")
				at = indent - 1
			} else if start {
				out.WriteByte(' ')
				at++
			}
			fmt.Fprintf(&out, " %s", word)
			at += 1 + len(word)
			start = false
		}
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return err
}
