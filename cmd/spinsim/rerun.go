package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/provenance"
	"github.com/spinsim/spinsim/report"
	"github.com/spinsim/spinsim/scenario"
)

func rerunCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "rerun RESULTS.json",
		Short: "Make a result again from what it says of itself, and compare",
		Long: `Rerun reads a document that compare, run, goal run or goal proxies wrote with --format json, makes the result again from its
"provenance", and compares: the bytes must be the same. If they are not, it names every value that differs by row and column, and the
exit status is 1.

The document holds all it takes: profiles with their whole content, the scenario, the seed, and every input that is not long. Of long inputs
and of handler modules of your own it has the path and the hash: they must be where they were, seen from this folder or from that of the
document, and unchanged. Another version of spinsim, of one of its profiles or of a built-in handler is said and does not keep it from running.`,
		Args: exactArguments("RESULTS.json"),
		RunE: func(c *cobra.Command, args []string) error { return rerun(c, args[0], output) },
	}
	c.Flags().StringVarP(&output, "output", "o", "", "write the new document to a `FILE`, also if it differs")
	return c
}

// shownDifferences is how many differences are listed; the others are counted.
const shownDifferences = 20

func rerun(c *cobra.Command, name, output string) error {
	was, err := file.Read(name, file.MaxData)
	if err != nil {
		return badInput(err)
	}
	r, err := provenance.Read(was)
	if err != nil {
		return badInput(fmt.Errorf("%s: %w", name, err))
	}
	out := c.OutOrStdout()
	is, notes, err := again(c.Context(), r, repeating(r, filepath.Dir(name), c.InOrStdin()))
	for i := range r.Profiles {
		if changed := r.Profiles[i].Verify(); changed != nil {
			notes = append([]string{changed.Error() + ", and taken"}, notes...)
		}
	}
	if now := thisBuild(); !now.Same(r.Build) {
		notes = append([]string{fmt.Sprintf("%s is by spinsim %s; this is %s", name, r.Build, now)}, notes...)
	}
	if err != nil && len(notes) > 0 {
		return fmt.Errorf("%w\n%s", err, strings.Join(notes, "\n")) // which may be why
	}
	if err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintln(out, note)
	}
	if output != "" {
		if err := file.Write(output, is); err != nil {
			return err
		}
	}
	return compareDocuments(out, name, was, is)
}

// again makes the document anew.
func again(ctx context.Context, r *provenance.Record, m *making) (document []byte, notes []string, err error) {
	var out bytes.Buffer
	switch {
	case strings.HasPrefix(r.Command, "compare "):
		notes, err = compareAgain(ctx, r, m, &out)
	case r.Command == "run":
		notes, err = runAgain(ctx, r, m, &out)
	case r.Command == goalRunName:
		f := goalRunFlags{}
		schedule, e := f.restore(r)
		if e != nil {
			return nil, nil, badInput(e)
		}
		notes = m.otherHandlers()
		err = f.make(ctx, m, schedule, true, &out)
	case r.Command == goalProxiesName:
		f := proxyFlags{}
		if e := f.restore(r); e != nil {
			return nil, nil, badInput(e)
		}
		notes = m.otherHandlers()
		err = f.make(ctx, m, report.JSONFormat, &out)
	default:
		return nil, nil, badInput(fmt.Errorf("results of %q cannot be made again: expected those of compare, run, goal run or goal proxies", r.Command))
	}
	return out.Bytes(), notes, err
}

func compareAgain(ctx context.Context, r *provenance.Record, m *making, out io.Writer) (notes []string, err error) {
	s, notes, err := experiment.RepeatSweep(r, func(path string) ([]byte, error) { return m.read(path, file.MaxModule) })
	if err != nil {
		return notes, badInput(err)
	}
	if s.Falls {
		w, err := s.Waterfall(s.Profiles[0], s.Profiles[1])
		if err != nil {
			return notes, badInput(err)
		}
		if err := w.Run(ctx, nil); err != nil {
			return notes, err
		}
		t, err := w.Table()
		if err != nil {
			return notes, err
		}
		return notes, t.Write(out, report.JSONFormat)
	}
	points, err := s.Points()
	if err != nil {
		return notes, badInput(err)
	}
	results, err := s.Run(ctx, points, nil)
	if err != nil {
		return notes, err
	}
	t, err := s.Table(results)
	if err != nil {
		return notes, err
	}
	return notes, t.Write(out, report.JSONFormat)
}

// runAgain makes the result of a scenario. One that failed is a result like others.
func runAgain(ctx context.Context, r *provenance.Record, m *making, out io.Writer) (notes []string, err error) {
	p, notes, err := scenario.PlanOf(r, m.read)
	if err != nil {
		return notes, badInput(err)
	}
	record, err := p.Record()
	if err != nil {
		return notes, err
	}
	result, err := p.Run(ctx, nil)
	if result == nil {
		return notes, err
	}
	result.Origin = record
	return notes, result.Write(out, report.JSONFormat)
}

// compareDocuments says whether two documents are the same.
func compareDocuments(out io.Writer, name string, was, is []byte) error {
	if bytes.Equal(was, is) {
		fmt.Fprintf(out, "%s: the same %d bytes\n", name, len(is))
		return nil
	}
	list, err := provenance.Differences(was, is)
	if err != nil {
		return badInput(fmt.Errorf("%s: %w", name, err))
	}
	if len(list) == 0 {
		fmt.Fprintf(out, "%s: the same values, laid out differently\n", name)
		return nil
	}
	for i, d := range list {
		if i == shownDifferences {
			fmt.Fprintf(out, "and %d more\n", len(list)-i)
			break
		}
		fmt.Fprintln(out, d)
	}
	return errors.New(plural(len(list), "value differs", "values differ"))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
