package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/page"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/reports"
	"github.com/spinsim/spinsim/internal/seal"
)

// reportCommand makes a page of results.
func reportCommand() *cobra.Command {
	var output, title string
	c := &cobra.Command{
		Use:   "report RESULTS.json... -o FILE.html",
		Short: "Make a page of results: answers, tables, plots, published numbers, provenance",
		Long: `Report reads documents that commands wrote with --format json and writes one self-contained HTML file. It needs no network and no other file. The
page begins with the answer and the picture with the published points. Tables follow, which a click on a heading sorts, then the deviations from publications. All columns
and the profile with the source of every value are folded. The end has the commands that make the result again, and the hashes of its inputs.

  spinsim compare bcast --format json > bcast.json
  spinsim report bcast.json -o report.html

Report measures nothing; it shows the content of the documents. - is the standard input, and as FILE the standard output.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactArguments("RESULTS.json")(c, args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return writeReport(c, args, output, title) },
	}
	c.Flags().StringVarP(&output, "output", "o", "", "write the page to a `FILE`; - is the standard output")
	c.Flags().StringVar(&title, "title", "", "title of the page: `TEXT`")
	return c
}

func writeReport(c *cobra.Command, names []string, output, title string) error {
	if output == "" {
		return badInput(errors.New("-o: not given, expected a FILE for the page, or - for the standard output"))
	}
	if err := spare(output, names); err != nil {
		return badInput(err)
	}
	var results []*reports.Result
	for _, name := range names {
		one, err := readResult(c, name)
		if err != nil {
			return badInput(err)
		}
		results = append(results, one)
	}
	mark := seal.Mark{Kind: seal.HTML, Program: thisBuild().String()}
	if len(results) == 1 { // what the run has made has this record, too
		mark.Record = results[0].Record
	}
	return writePage(c.OutOrStdout(), output, reports.Page(title, thisBuild(), results), mark)
}

// writePage writes a page with its seal to a file, or to the standard output.
func writePage(out io.Writer, name string, p *page.Page, mark seal.Mark) error {
	var text bytes.Buffer
	if err := page.Write(&text, p); err != nil {
		return err
	}
	sealed := mark.Below(text.Bytes(), "<!-- ", " -->\n")
	if name == "-" {
		_, err := out.Write(sealed)
		return err
	}
	to, err := file.Create(name)
	if err != nil {
		return badInput(fmt.Errorf("-o: %w", err))
	}
	if _, err := to.Write(sealed); err != nil {
		return errors.Join(err, to.Discard())
	}
	return to.Commit()
}

// spare refuses to overwrite a document with the page that is made from it.
func spare(output string, names []string) error {
	page, err := os.Stat(output)
	if err != nil || !page.Mode().IsRegular() {
		return nil //nolint:nilerr // a missing file cannot be lost
	}
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && os.SameFile(page, info) {
			return fmt.Errorf("-o: %s is one of the results, expected another FILE", output)
		}
	}
	return nil
}

// readResult makes a section of a document.
func readResult(c *cobra.Command, name string) (*reports.Result, error) {
	var document []byte
	var err error
	called := name
	if name == "-" {
		called = "standard input"
		document, err = file.ReadFrom(c.InOrStdin(), called, file.MaxData)
	} else {
		document, err = file.Read(name, file.MaxData)
	}
	if err != nil {
		return nil, err
	}
	folder := filepath.Dir(name)
	s := &reports.Source{
		Program: "spinsim",
		Of:      func(r *provenance.Record) (*experiment.Experiment, error) { return experimentOf(c, r, folder) },
		Read: func(path string) ([]byte, error) {
			return file.ReadRegular(experiment.FileBeside(folder, path), file.MaxModule)
		},
	}
	r, err := s.Section(called, document)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", called, err)
	}
	return r, nil
}

// experimentOf returns the experiment of a record, or nil if it has none.
func experimentOf(c *cobra.Command, r *provenance.Record, folder string) (*experiment.Experiment, error) {
	if e, err := madeOf(r, folder, c.InOrStdin()); e != nil || err != nil {
		return e, err
	}
	if !strings.HasPrefix(r.Command, experiment.CommandPrefix) {
		return nil, nil //nolint:nilnil // of none
	}
	e, err := experiment.FindIn(experiment.All(), strings.TrimPrefix(r.Command, experiment.CommandPrefix))
	if err != nil {
		return nil, fmt.Errorf("provenance.command: %w", err)
	}
	return e, nil
}
