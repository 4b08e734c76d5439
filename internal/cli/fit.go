package cli

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/report"
)

// fitHelp breaks help texts for terminals that are narrower than their lines.
func fitHelp(root *cobra.Command) {
	whole := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		out := c.OutOrStdout()
		Fit(out, func(to io.Writer) {
			c.SetOut(to)
			whole(c, args)
			c.SetOut(out)
		})
	})
}

// Fit breaks the output of write into lines that fit the terminal, between
// words. For other writers it changes nothing. Errors are left to the writer.
func Fit(out io.Writer, write func(to io.Writer)) {
	narrow, is := out.(report.Narrow)
	if !is || narrow.Columns() == 0 {
		write(out)
		return
	}
	var text bytes.Buffer
	write(&text)
	paragraph := ""
	for line := range strings.Lines(text.String()) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case paragraph == "":
			paragraph = line
		case utf8.RuneCountInString(paragraph) > narrow.Columns() && prose(paragraph) && prose(line):
			paragraph += " " + line
		default:
			fmt.Fprintln(out, broken(paragraph, narrow.Columns()))
			paragraph = line
		}
		if paragraph == "" {
			fmt.Fprintln(out)
		}
	}
	fmt.Fprint(out, broken(paragraph, narrow.Columns()))
	if paragraph != "" {
		fmt.Fprintln(out)
	}
}

// prose reports whether a line belongs to a paragraph, and not to a list or
// table.
func prose(line string) bool { return line != "" && description.FindString(line) == "" }

// description matches the part of a line before its last column: the name of a
// flag or a command, or the indentation of a paragraph.
var description = regexp.MustCompile(`^(?: {2,}\S.*?\S? {2,}|\S+ {2,}(?:\S+ {2,})*| *)`)

// broken breaks a line. The rest goes on below its last column.
func broken(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	indent := utf8.RuneCountInString(description.FindString(line))
	if indent > width/2 {
		indent = width / 8
	}
	var out strings.Builder
	used := 0
	for word := range strings.SplitAfterSeq(line, " ") {
		length := utf8.RuneCountInString(strings.TrimRight(word, " "))
		if used+length > width && used > indent {
			out.WriteString("\n" + strings.Repeat(" ", indent))
			used = indent
		}
		out.WriteString(word)
		used += utf8.RuneCountInString(word)
	}
	lines := strings.Split(out.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
