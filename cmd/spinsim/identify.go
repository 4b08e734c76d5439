package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/identify"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/report"
)

// identifyFlags are the flags of identify.
type identifyFlags struct {
	resume, format, plot    string
	measured, device, asked string
	only                    []string
	longest                 time.Duration
	cli.LimitFlags
}

// identifyCommand finds out which answers to open questions the numbers of a
// publication support.
func identifyCommand() *cobra.Command {
	var f identifyFlags
	c := &cobra.Command{
		Use:   "identify [PUBLICATION]",
		Short: "Find out which answers to open questions published numbers support, or your own",
		Long: `Publications leave open what a simulator has to choose. Identify measures the rows of the ledger that are predicted, or follow from others, with each admissible
alternative alone, and prints what it moves. Then it looks for the few changes that bring the rows nearest, one after the other and from 16 settings at most that a design draws, in which
any three answers occur together; it repeats the search without the rows of each experiment to see how near
these come, and names alternatives with which a row stays far in every setting that was measured. For those that remain it names a number that would tell them apart.

  spinsim identify part
  spinsim identify part --resume part       keeps every measurement, so that the same command goes on after an interruption
  spinsim identify part --format csv        a row for each row of the ledger that an alternative moves
  spinsim identify part --plot part.svg     draws these: a line for each alternative, a column for each row of the ledger

A device of your own is calibrated with a table of measurements. Columns are separated by tabulators:

  spinsim identify --profile my.yaml --measured my.tsv --questions open.tsv

  my.tsv     experiment, of, column, value, unit, precision (exact, about, read); of is "axis=value" or "path=value", separated by blanks
  open.tsv   question, what, alternative, set, source; set is "path=value", or a range "path=1us..4us"; the first alternative of a question sets nothing

Without --questions it is asked what publications leave open about the experiments in the table.` + limitsHelp,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: publicationNames(),
		RunE:      func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	flags := c.Flags()
	flags.StringVar(&f.resume, "resume", "", "keep each result at once in a `FOLDER`, and reuse the results in it")
	flags.StringVar(&f.format, "format", "table", "table, csv, json, ndjson, markdown or parquet")
	flags.StringVar(&f.plot, "plot", "", "draw which alternative moves which row: `FILE.svg` or FILE.png")
	flags.StringVar(&f.measured, "measured", "", "your measurements, in place of a publication's: a `FILE`")
	flags.StringVar(&f.device, "profile", "", "with --measured: the profile of your device, a `NAME` or file")
	flags.StringVar(&f.asked, "questions", "", "your questions, in place of a publication's: a `FILE`")
	flags.StringSliceVar(&f.only, "only", nil, "only these questions: `NAMES` separated by commas")
	flags.DurationVar(&f.longest, "longest", time.Second, "leave out rows of the ledger whose measurement takes more than this `DURATION`")
	f.Register(c)
	return c
}

// identification is what is identified.
type identification struct {
	name, title string
	experiments []*experiment.Experiment
	study       identify.Study
	left        int      // rows that are left out because they take too long
	some        bool     // the user has chosen questions
	unused      []string // values of the user's rows that no point has used
	record      provenance.Record
	known       experiment.Known
	published   map[string]bool           // names of numbers that rows of the ledger have
	bound       func(s *experiment.Sweep) // sets the limits
}

func (f *identifyFlags) run(c *cobra.Command, args []string) error {
	if f.longest <= 0 {
		return badInput(fmt.Errorf("--longest: %v, expected more than 0", f.longest))
	}
	format, err := parseFormat(f.format)
	if err != nil {
		return err
	}
	if f.plot != "" {
		if err := report.CheckImage(f.plot); err != nil {
			return badInput(fmt.Errorf("--plot: %w", err))
		}
	}
	id, err := f.identification(c, args)
	if err != nil {
		return err
	}
	limits, memory, workers, err := f.Bounds(c)
	if err != nil {
		return badInput(err)
	}
	id.bound = func(s *experiment.Sweep) { s.Limits, s.MemoryLimit, s.Workers = limits, memory, workers }
	id.record.Build, id.record.Command = thisBuild(), "identify"
	if id.study.Today, err = todays(id); err != nil {
		return badInput(err)
	}
	var kept *checkpoint.Folder
	if f.resume != "" {
		if kept, err = checkpoint.Open(f.resume, checkpoint.Part{}); err != nil {
			return badInput(fmt.Errorf("--resume: %w", err))
		}
		defer kept.Close() //nolint:errcheck // every result is already in its file
	}
	ctx, cancel := f.Context(c)
	defer cancel()
	id.study.Measure = func(ctx context.Context, settings [][]string) ([]identify.Outcome, error) {
		return f.measure(ctx, c, id, settings, kept)
	}
	v, err := id.study.Run(ctx)
	var files cli.RunFiles
	files.Result("--plot", f.plot, func() error { return id.heat(v).DrawFile(f.plot) })
	if err = files.End(ctx, err); err != nil {
		return err
	}
	return found(id, v, format).Write(c.OutOrStdout(), format)
}

// measure measures the rows of a study with settings.
func (f *identifyFlags) measure(ctx context.Context, c *cobra.Command, id *identification, settings [][]string, kept *checkpoint.Folder) ([]identify.Outcome, error) {
	if id.published == nil {
		var err error
		if id.published, err = experiment.PublishedNames(id.experiments); err != nil {
			return nil, err
		}
	}
	outcomes := make([]identify.Outcome, len(settings))
	plans := id.plans(settings, outcomes)
	if err := f.ahead(ctx, c, id, plans, kept); err != nil && ctx.Err() == nil {
		return nil, err
	}
	for i, plan := range plans {
		if plan == nil {
			continue
		}
		err := context.Cause(ctx)
		if err == nil {
			err = plan.Run(ctx, kept, nil)
		}
		if ctx.Err() != nil {
			if u := (*experiment.Unfinished)(nil); errors.As(err, &u) {
				err = u.Err // how many points of one setting are measured helps nobody
			}
			if f.resume == "" {
				err = fmt.Errorf("%w; with --resume FOLDER it would go on from here", err)
			}
			return nil, err
		}
		var list []ledger.Measured
		if err == nil {
			list, err = plan.Measured()
		}
		if outcomes[i].Err = err; err != nil {
			continue
		}
		if len(settings[i]) == 0 && f.measured != "" {
			id.unused = plan.Unused()
		}
		outcomes[i].Other, outcomes[i].Ours = plan.Others(id.published), map[string]ledger.Ours{}
		for _, m := range list {
			outcomes[i].Ours[m.ID] = m.Ours
		}
	}
	return outcomes, nil
}

// plans plans to measure the rows with settings. A setting that is not possible
// has an error in its outcome, and no plan.
func (id *identification) plans(settings [][]string, outcomes []identify.Outcome) []*experiment.LedgerPlan {
	want := func(row string) bool {
		return slices.ContainsFunc(id.study.Rows, func(r identify.Row) bool { return r.ID == row })
	}
	plans := make([]*experiment.LedgerPlan, len(settings))
	for i, set := range settings {
		a := experiment.Assignments{Set: set}
		plan, err := experiment.PlanLedger(id.experiments, want, func(s *experiment.Sweep) error {
			id.bound(s)
			return a.Apply(s)
		})
		if err == nil {
			err = a.Err()
		}
		if outcomes[i].Err = err; err == nil {
			plan.Reuse(&id.known)
			plans[i] = plan
		}
	}
	return plans
}

// ahead measures the points of plans that are not known yet.
func (f *identifyFlags) ahead(ctx context.Context, c *cobra.Command, id *identification, plans []*experiment.LedgerPlan, kept *checkpoint.Folder) error {
	plans = slices.DeleteFunc(slices.Clone(plans), func(p *experiment.LedgerPlan) bool { return p == nil })
	var progress *cli.Progress
	defer func() {
		if progress != nil {
			progress.Stop()
		}
	}()
	return id.known.Ahead(ctx, plans, kept, func(points int) func() {
		progress = cli.NewProgress(c.ErrOrStderr(), id.name, points)
		return progress.Step
	})
}
