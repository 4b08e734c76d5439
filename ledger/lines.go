package ledger

import (
	"fmt"
	"strings"
)

// eachLine calls do with the cells of each line of a table: a head, and then
// lines with as many cells as it, separated by tabulators. Its errors name the
// line.
func eachLine(text, head string, do func(cells []string) error) error {
	rest, ok := strings.CutPrefix(text, head)
	if !ok {
		return fmt.Errorf("line 1: expected %q", head)
	}
	columns := strings.Split(strings.TrimSuffix(head, "\n"), "\t")
	line := 1
	for text := range strings.Lines(rest) {
		line++
		cells := strings.Split(strings.TrimSuffix(text, "\n"), "\t")
		if len(cells) != len(columns) {
			return fmt.Errorf("line %d: %d columns, expected %s", line, len(cells), strings.Join(columns, ", "))
		}
		if err := do(cells); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	return nil
}
