package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/spinsim/spinsim/internal/file"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write manual pages, one for each command",
		Long: `Man writes the --help text of every command as a page for man(1). It creates the folder if necessary:

  spinsim man ~/.local/share/man/man1
  man spinsim-compare-bcast`,
		Args: exactArguments("FOLDER"),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := writeManual(rootCommand(), args[0])
			if err != nil {
				return badInput(err)
			}
			fmt.Fprintf(c.OutOrStdout(), "%d pages in %s\n", n, args[0])
			return nil
		},
	}
}

// writeManual writes the pages of a command and of its subcommands, and returns
// how many.
func writeManual(c *cobra.Command, folder string) (pages int, err error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return 0, err
	}
	if c.Hidden || c.IsAdditionalHelpTopicCommand() {
		return 0, nil
	}
	page, err := manualPage(c)
	if err != nil {
		return 0, err
	}
	if err := file.Write(filepath.Join(folder, manualName(c)+".1"), page); err != nil {
		return 0, err
	}
	pages = 1
	for _, sub := range c.Commands() {
		n, err := writeManual(sub, folder)
		if err != nil {
			return 0, err
		}
		pages += n
	}
	return pages, nil
}

func manualName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manualPage returns the page of a command in roff. It has the version instead
// of a date, so that the same spinsim always writes the same bytes.
func manualPage(c *cobra.Command) ([]byte, error) {
	of := *c // its text becomes Markdown
	of.Long = markdown(c.Long)
	of.DisableAutoGenTag = true
	var page bytes.Buffer
	header := &doc.GenManHeader{Section: "1", Date: &time.Time{}, Source: "spinsim " + thisBuild().String(), Manual: "spinsim"}
	if err := doc.GenMan(&of, header, &page); err != nil {
		return nil, err
	}
	return bytes.Replace(page.Bytes(), []byte(`"Jan 0001"`), []byte(`""`), 1), nil
}

// markup escapes characters of help texts that have a meaning in Markdown.
var markup = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, "`", "\\`", "[", `\[`, "#", `\#`)

// asItIs reports whether a line of a help text is a command or a row of a list.
func asItIs(line string) bool { return strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t") }

// markdown turns a help text into Markdown.
func markdown(text string) string {
	var out strings.Builder
	before := ""
	for line := range strings.SplitSeq(text, "\n") {
		as := asItIs(line)
		if as != asItIs(before) && before != "" && line != "" {
			out.WriteString("\n")
		}
		if before = line; as {
			out.WriteString("    " + line + "\n")
		} else {
			out.WriteString(markup.Replace(line) + "\n")
		}
	}
	return out.String()
}
