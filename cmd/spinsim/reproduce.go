package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/reports"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/report"
)

// reproduceFlags are the flags of reproduce.
type reproduceFlags struct {
	full, list bool
	output     string
	only       []string
	cli.LimitFlags
}

// reproduceCommand measures the numbers of a publication.
func reproduceCommand() *cobra.Command {
	var f reproduceFlags
	c := &cobra.Command{
		Use:   "reproduce PUBLICATION -o FOLDER",
		Short: "Repeat the measurements of a publication, and make a page with the published numbers",
		Long: `Reproduce runs the experiments of a publication. It shows every published number beside ours, with the deviation, and marks those that set a parameter and
those that are predicted. Without --full it takes a minute or two, and names what it leaves out. --list gives the times with --full.

  spinsim reproduce --list
  spinsim reproduce spin17 -o spin17
  spinsim reproduce spin17@2026-11 -o then        with the profiles of that month

The folder gets report.html and the document of each experiment; spinsim rerun makes the result of a document again. All processors but one measure points. Each result is kept
at once in the folder points, so the same command continues after an interruption. With a FILE.html only the page is written, and results are kept in FILE.points
until then.` + limitsHelp,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: publicationNames(),
		RunE:      func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	flags := c.Flags()
	flags.BoolVar(&f.full, "full", false, "measure everything in the publication")
	flags.BoolVar(&f.list, "list", false, "list the publications with their experiments, and measure nothing")
	flags.StringVarP(&f.output, "output", "o", "", "write page and documents into a `FOLDER`, or only the page into a FILE.html")
	flags.StringSliceVar(&f.only, "only", nil, "measure only these experiments: `NAMES` separated by commas")
	f.Register(c)
	return c
}

func publicationNames() (names []string) {
	for _, p := range experiment.Publications() {
		names = append(names, p.Name+"\t"+p.Title)
	}
	return names
}

func (f *reproduceFlags) run(c *cobra.Command, args []string) error {
	if f.list {
		if len(args) > 0 || f.output != "" {
			return badInput(errors.New("--list: lists all publications: neither a name nor -o goes with it"))
		}
		return listPublications(c.OutOrStdout())
	}
	if err := exactArguments("PUBLICATION")(c, args); err != nil {
		return err
	}
	p, err := experiment.FindPublication(args[0])
	if err != nil {
		return badInput(err)
	}
	if err := f.checkOutput(); err != nil {
		return badInput(err)
	}
	chosen, err := f.plan(c, p)
	if err != nil {
		return f.Unfit("", err)
	}
	rows, err := f.rows(c, p)
	if err != nil {
		return f.Unfit("", err)
	}
	if err := f.checkFiles(chosen); err != nil {
		return badInput(err)
	}
	folder := filepath.Join(f.output, "points")
	if f.page() {
		folder = strings.TrimSuffix(f.output, ".html") + ".points"
	}
	kept, err := checkpoint.Open(folder, checkpoint.Part{})
	if err != nil {
		return badInput(fmt.Errorf("-o: %w", err))
	}
	defer kept.Close() //nolint:errcheck // every result is already in its file
	r := &reports.Reproduction{Publication: p, Full: f.full, Only: f.only}
	ctx, cancel := f.Context(c)
	defer cancel()
	var files cli.RunFiles
	files.Result("-o", f.output, nil) // write writes it
	if err := files.End(ctx, f.measure(ctx, c, chosen, rows, kept, r)); err != nil {
		return err
	}
	return f.write(c.OutOrStdout(), r, folder)
}

// checkOutput finds errors in the place of the results before anything is
// measured.
func (f *reproduceFlags) checkOutput() error {
	switch f.output {
	case "":
		return errors.New("-o: not given, expected a FOLDER for page and documents, or a FILE.html")
	case "-":
		return errors.New("-o: -, but a page and its documents are files: expected a FOLDER, or a FILE.html")
	}
	if info, err := os.Stat(f.output); err == nil && f.page() && info.IsDir() {
		return fmt.Errorf("-o: %s is a folder, expected a FILE.html, or a FOLDER of another name", f.output)
	}
	return nil
}

// checkFiles finds files that cannot be written before anything is measured.
func (f *reproduceFlags) checkFiles(chosen []*planned) error {
	files := []string{f.output}
	if !f.page() {
		if info, err := os.Stat(f.output); err != nil || !info.IsDir() {
			return nil //nolint:nilerr // the place of kept points reports it
		}
		files[0] = filepath.Join(f.output, "report.html")
		for _, one := range chosen {
			files = append(files, filepath.Join(f.output, one.run.Name(f.full)+".json"))
		}
	}
	var errs []error
	for _, name := range files {
		if err := file.Check(name); err != nil {
			errs = append(errs, fmt.Errorf("-o: %w", err))
		}
	}
	return errors.Join(errs...)
}

// page reports whether the user wants a page only.
func (f *reproduceFlags) page() bool { return filepath.Ext(f.output) == ".html" }

// listPublications lists the publications.
func listPublications(out io.Writer) error {
	t := report.New(report.Column{Name: "publication"}, report.Column{Name: "minutes", Kind: report.Count}, report.Column{Name: "experiments"}, report.Column{Name: "title"})
	for _, p := range experiment.Publications() {
		var names []string
		for i := range p.Runs {
			names = append(names, p.Runs[i].Name(true))
		}
		t.Add(p.Name, p.Minutes, strings.Join(names, " "), p.Title)
	}
	t.Notes = []string{"The minutes are about those of --full on one processor; without it, it is one or two."}
	return t.Write(out, report.TextFormat)
}

// planned is a run to be made.
type planned struct {
	run    *experiment.PublicationRun
	sweep  *experiment.Sweep
	points []*experiment.Point
	falls  *experiment.Waterfall // in place of points; nil: none
}

// plan returns what to measure, or the errors in it.
func (f *reproduceFlags) plan(c *cobra.Command, p *experiment.Publication) (chosen []*planned, err error) {
	known := map[string]bool{}
	for i := range p.Runs {
		known[p.Runs[i].Experiment] = true
	}
	only := map[string]bool{}
	for _, name := range f.only {
		if !known[name] {
			return nil, fmt.Errorf("--only: %q, expected experiments of %s; see spinsim reproduce --list", name, p.Name)
		}
		only[name] = true
	}
	for i := range p.Runs {
		run := &p.Runs[i]
		choice := run.Choice(f.full)
		if choice.Skip || len(only) > 0 && !only[run.Experiment] {
			continue
		}
		one := &planned{run: run}
		if one.sweep, err = run.Sweep(f.full); err != nil {
			return nil, err
		}
		one.sweep.Build = thisBuild()
		if one.sweep.Limits, one.sweep.MemoryLimit, one.sweep.Workers, err = f.Bounds(c); err != nil {
			return nil, err
		}
		if choice.Waterfall != "" {
			from, to, _ := strings.Cut(choice.Waterfall, ",")
			if one.falls, err = one.sweep.Waterfall(from, to); err != nil {
				return nil, err
			}
		} else if one.points, err = one.sweep.Points(); err != nil {
			return nil, err
		}
		chosen = append(chosen, one)
	}
	return chosen, nil
}

// rows plans to measure the rows of the ledger that the experiments answer:
// without --full those that take a second or less.
func (f *reproduceFlags) rows(c *cobra.Command, p *experiment.Publication) (*experiment.LedgerPlan, error) {
	limits, memory, workers, err := f.Bounds(c)
	if err != nil {
		return nil, err
	}
	var list []*experiment.Experiment
	for _, e := range p.Experiments {
		if len(f.only) == 0 || slices.Contains(f.only, e.Name) {
			list = append(list, e)
		}
	}
	known := ledger.AllMeasured()
	want := func(id string) bool { return f.full || known[id] != nil && known[id].Seconds <= 1 }
	return experiment.PlanLedger(list, want, func(s *experiment.Sweep) error {
		s.Build, s.Limits, s.MemoryLimit, s.Workers = thisBuild(), limits, memory, workers
		for i := range s.Profiles {
			var err error
			if s.Profiles[i], err = p.Dated(s.Profiles[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// measure makes the results, one experiment after the other, and the numbers for
// the rows of the ledger. The points of an experiment run in parallel.
func (f *reproduceFlags) measure(ctx context.Context, c *cobra.Command, chosen []*planned, rows *experiment.LedgerPlan, kept *checkpoint.Folder, r *reports.Reproduction) (err error) {
	total := rows.Points()
	for _, one := range chosen {
		total += len(one.points)
		if one.falls != nil {
			total += one.falls.Points()
		}
	}
	progress := cli.NewProgress(c.ErrOrStderr(), r.Publication.Name, total)
	defer progress.Stop()
	for _, one := range chosen {
		result, err := one.measure(ctx, kept, progress.Step)
		if err != nil {
			return err
		}
		result.ID = one.run.Name(f.full)
		r.Results = append(r.Results, result)
	}
	if err := rows.Run(ctx, kept, progress.Step); err != nil {
		return err
	}
	r.Measured, err = rows.Measured()
	return err
}

// measure makes a result and its document.
func (p *planned) measure(ctx context.Context, kept *checkpoint.Folder, step func()) (*reports.Result, error) {
	if p.falls != nil {
		p.falls.Keep(kept)
		if err := p.falls.Run(ctx, step); err != nil {
			return nil, err
		}
		return reports.OfWaterfall("spinsim", p.falls)
	}
	p.sweep.Checkpoint = kept
	results, err := p.sweep.Run(ctx, p.points, step)
	if err != nil {
		return nil, err
	}
	return reports.OfSweep("spinsim", p.sweep, results, len(p.points))
}

// write writes the documents and the page, and prints every number.
func (f *reproduceFlags) write(out io.Writer, r *reports.Reproduction, points string) error {
	where := f.output
	if !f.page() {
		where = filepath.Join(f.output, "report.html")
		for _, one := range r.Results {
			name := one.ID + ".json"
			if err := file.Write(filepath.Join(f.output, name), one.Document); err != nil {
				return err
			}
			one.From = name
		}
	}
	page, err := r.Page(thisBuild())
	if err == nil {
		err = writePage(out, where, page, seal.Mark{Kind: seal.HTML, Program: thisBuild().String()})
	}
	if err != nil {
		return err
	}
	numbers, err := r.Table()
	if err != nil {
		return err
	}
	if numbers.Len() > 0 {
		err = numbers.Write(out, report.TextFormat)
	} else {
		_, err = fmt.Fprintln(out, strings.Join(numbers.Answer, "\n"))
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "\n%s has it all.\n", where); err != nil {
		return err
	}
	if f.page() {
		return os.RemoveAll(points)
	}
	return nil
}
