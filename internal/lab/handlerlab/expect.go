package handlerlab

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/internal/file"
)

// Compare compares the plain text of a report with the expected text of a file.
// The error names the file and the first line that differs. Blanks at the ends
// of lines, and carriage returns, do not count.
func Compare(name string, want, got []byte) error {
	w, g := textLines(want), textLines(got)
	for i := range max(len(w), len(g)) {
		switch {
		case i >= len(w):
			return fmt.Errorf("%s:%d: expected no more lines, got:\n  %s", name, i+1, g[i])
		case i >= len(g):
			return fmt.Errorf("%s:%d: expected:\n  %s\nbut there is nothing more", name, i+1, w[i])
		case w[i] != g[i]:
			return fmt.Errorf("%s:%d: expected:\n  %s\ngot:\n  %s", name, i+1, w[i], g[i])
		}
	}
	return nil
}

// textLines splits a text into lines and drops characters that people do not
// see.
func textLines(b []byte) []string {
	var lines []string
	for line := range bytes.Lines(b) {
		lines = append(lines, strings.TrimRight(string(line), " \t\r\n"))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// CompareFile writes a report with the options of text and compares it with a
// file.
func CompareFile(name string, r *Report, text Text) error {
	want, err := file.Read(name, file.MaxData)
	if err != nil {
		return err
	}
	var got bytes.Buffer
	if err := text.Write(&got, r); err != nil {
		return err
	}
	return Compare(name, want, got.Bytes())
}
