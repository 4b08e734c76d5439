package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/identify"
	"github.com/spinsim/spinsim/ledger"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
)

// identifyFlags are the flags of identify.
type identifyFlags struct {
	output  string
	longest float64
	cli.LimitFlags
}

// identifyCommand finds out which answers to open questions the numbers of a
// publication support.
func identifyCommand() *cobra.Command {
	var f identifyFlags
	c := &cobra.Command{
		Use:   "identify PUBLICATION",
		Short: "Find out which answers to a publication's open questions its numbers support",
		Long: `Publications leave open what a simulator has to choose. Identify measures the rows of the ledger that are predicted, or follow from others, with each admissible
alternative alone, and prints what it moves. Then it looks for the few changes that bring the rows nearest, repeats the search without the rows of each experiment to see how near
these come, and names alternatives with which a row stays far whatever the other answers are. For those that remain it names a number that would tell them apart.

  spinsim identify part
  spinsim identify part -o part        keeps every measurement, so that the same command goes on after an interruption

The folder gets effects.csv, with a row for each number that an alternative moves.` + limitsHelp,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: publicationNames(),
		RunE:      func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	flags := c.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "keep measurements and tables in a `FOLDER`")
	flags.Float64Var(&f.longest, "longest", 1, "leave out rows whose measurement takes more than this many `SECONDS`")
	f.Register(c, "each measurement", false)
	return c
}

func (f *identifyFlags) run(c *cobra.Command, args []string) error {
	if err := exactArguments("PUBLICATION")(c, args); err != nil {
		return err
	}
	p, err := experiment.FindPublication(args[0])
	if err != nil {
		return badInput(err)
	}
	questions, err := ledger.Questions(p.Name)
	if err != nil {
		return err
	}
	if questions == nil {
		return badInput(fmt.Errorf("identify: %s: no open questions are known", p.Name))
	}
	if !(f.longest > 0) {
		return badInput(fmt.Errorf("--longest: %v, expected seconds, more than 0", f.longest))
	}
	var kept *checkpoint.Folder
	if f.output != "" {
		if err := f.checkOutput(); err != nil {
			return badInput(err)
		}
		if kept, err = checkpoint.Open(filepath.Join(f.output, "points"), checkpoint.Part{}); err != nil {
			return badInput(fmt.Errorf("-o: %w", err))
		}
		defer kept.Close() //nolint:errcheck // every result is already in its file
	}
	ctx, cancel := f.Context(c)
	defer cancel()
	study := &identify.Study{Questions: questions}
	left := f.choose(p, study)
	if study.Today, err = todays(p, questions); err != nil {
		return err
	}
	study.Measure = func(ctx context.Context, settings [][]string) ([]identify.Outcome, error) {
		return f.measure(ctx, c, p, study, settings, kept)
	}
	v, err := study.Run(ctx)
	if err != nil {
		return err
	}
	if f.output != "" {
		var text strings.Builder
		if err := effectsTable(v).Write(&text, report.CSVFormat); err != nil {
			return err
		}
		if err := file.Write(filepath.Join(f.output, "effects.csv"), []byte(text.String())); err != nil {
			return err
		}
	}
	return found(c.OutOrStdout(), p, study, v, left)
}

// checkOutput finds errors in the folder before anything is measured.
func (f *identifyFlags) checkOutput() error {
	if err := os.MkdirAll(f.output, 0o755); err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	if err := file.Check(filepath.Join(f.output, "effects.csv")); err != nil {
		return fmt.Errorf("-o: %w", err)
	}
	return nil
}

// choose picks the rows of the study, and counts what is left out because it
// takes too long.
func (f *identifyFlags) choose(p *experiment.Publication, study *identify.Study) (left int) {
	measured := ledger.AllMeasured()
	for _, e := range p.Experiments {
		for _, r := range e.Ledger {
			row, ok := ledger.Find(r.ID)
			if !ok || row.Same != "" || row.Class != ledger.Predicted && row.Class != ledger.Checked {
				continue
			}
			if m := measured[r.ID]; m == nil || m.Seconds > f.longest {
				left++
				continue
			}
			study.Rows = append(study.Rows, identify.Row{Row: row, Experiment: e.Name})
		}
	}
	return left
}

// todays are the numbers of ranges in the profiles of a publication, as far as
// they have the unit of the range.
func todays(p *experiment.Publication, questions []ledger.Question) (map[string]float64, error) {
	all := map[string]float64{}
	for _, e := range p.Experiments {
		for _, name := range e.DefaultProfiles() {
			d, err := profile.Load(name)
			if err != nil {
				return nil, err
			}
			content, err := d.Content()
			if err != nil {
				return nil, err
			}
			values, err := profile.Values(content, d.Origin)
			if err != nil {
				return nil, err
			}
			for _, q := range questions {
				for i := range q.Alternatives {
					r, err := q.Alternatives[i].Range()
					if err != nil || r == nil {
						continue
					}
					at := slices.IndexFunc(values, func(v profile.Value) bool { return v.Path == r.Path })
					if _, known := all[r.Path]; known || at < 0 {
						continue
					}
					if x, ok := r.Number(values[at].Value); ok {
						all[r.Path] = x
					}
				}
			}
		}
	}
	return all, nil
}

// measure measures the rows of a study with settings.
func (f *identifyFlags) measure(ctx context.Context, c *cobra.Command, p *experiment.Publication, study *identify.Study, settings [][]string, kept *checkpoint.Folder) ([]identify.Outcome, error) {
	limits, memory, workers, err := f.Bounds(c)
	if err != nil {
		return nil, err
	}
	want := func(id string) bool {
		return slices.ContainsFunc(study.Rows, func(r identify.Row) bool { return r.ID == id })
	}
	outcomes := make([]identify.Outcome, len(settings))
	progress := cli.NewProgress(c.ErrOrStderr(), p.Name, len(settings))
	defer progress.Stop()
	for i, set := range settings {
		a := answers{set: set, accepted: map[string]error{}}
		plan, err := experiment.PlanLedger(p.Experiments, want, func(s *experiment.Sweep) error {
			s.Build, s.Limits, s.MemoryLimit, s.Workers = thisBuild(), limits, memory, workers
			return a.apply(s)
		})
		if err == nil {
			err = a.check()
		}
		if err == nil {
			err = plan.Run(ctx, kept, nil)
		}
		progress.Step()
		if ctx.Err() != nil {
			return nil, err
		}
		var list []ledger.Measured
		if err == nil {
			list, err = plan.Measured()
		}
		if outcomes[i].Err = err; err != nil {
			continue
		}
		outcomes[i].Ours, outcomes[i].Other = map[string]ledger.Ours{}, plan.Others()
		for _, m := range list {
			outcomes[i].Ours[m.ID] = m.Ours
		}
	}
	return outcomes, nil
}

// answers are assignments to profiles and axes.
type answers struct {
	set      []string
	accepted map[string]error // by profile and assignment
	taken    bool             // a sweep has taken one
}

// apply changes values in a sweep whose profiles have them, and axes that the
// row does not choose.
func (a *answers) apply(s *experiment.Sweep) error {
	for _, one := range a.set {
		name, value, _ := strings.Cut(one, "=")
		switch {
		case strings.Contains(name, ".") && a.fits(s.Profiles, one):
			s.Overrides, a.taken = append(s.Overrides, one), true
		case strings.Contains(name, "."): // for other devices of the publication
		case s.Open(name):
			if err := s.Choose(name, value); err != nil {
				return err
			}
			a.taken = true
		}
	}
	return nil
}

// fits reports whether all profiles accept an assignment.
func (a *answers) fits(profiles []string, one string) bool {
	for _, name := range profiles {
		key := name + " " + one
		if _, known := a.accepted[key]; !known {
			_, a.accepted[key] = profile.Load(name, one)
		}
		if a.accepted[key] != nil {
			return false
		}
	}
	return true
}

// check returns an error if no sweep has taken any of the assignments.
func (a *answers) check() error {
	if a.taken || len(a.set) == 0 {
		return nil
	}
	for _, err := range a.accepted { //lint:maporder all say why it is not possible
		if err != nil {
			return err
		}
	}
	return errors.New("no experiment has such a value")
}

// effectsTable has a row for each row of the ledger that an alternative moves.
func effectsTable(v *identify.Verdict) *report.Table {
	t := report.New(
		report.Column{Name: "question"}, report.Column{Name: "alternative"}, report.Column{Name: "set"}, report.Column{Name: "row"},
		report.Column{Name: "factor", Kind: report.Number, Help: "of ours, against today's; none for a claim"},
		report.Column{Name: "distance", Kind: report.Share, Help: "of the row then"}, report.Column{Name: "today", Kind: report.Share, Help: "distance of the row today"},
	)
	for _, e := range v.Effects {
		for _, m := range e.Moved {
			t.Add(e.Question, e.Alternative, strings.Join(e.Set, " "), m.Row, known(m.Factor), known(m.Then), known(m.Before))
		}
	}
	return t
}

// alternativesTable has a row for each alternative that moves something.
func alternativesTable(study *identify.Study, v *identify.Verdict) *report.Table {
	t := report.New(
		report.Column{Name: "question"}, report.Column{Name: "alternative"},
		report.Column{Name: "mean", Kind: report.Share, Help: "distance of all rows"},
		report.Column{Name: "moved", Kind: report.Count, Help: "rows by more than 3%"}, report.Column{Name: "nearer", Kind: report.Count}, report.Column{Name: "farther", Kind: report.Count},
		report.Column{Name: "most", Help: "the row that it moves most"}, report.Column{Name: "factor", Kind: report.Ratio, Help: "of ours there"}, report.Column{Name: "what"},
	)
	t.Title = "What each alternative moves alone"
	var still, no []string
	for _, e := range v.Effects {
		if e.Err != nil {
			line, _, _ := strings.Cut(e.Err.Error(), "\n")
			no = append(no, e.Question+" "+e.Alternative+" is not possible: "+line)
			continue
		}
		if len(e.Moved) == 0 {
			still = append(still, e.Question+" "+e.Alternative)
			continue
		}
		nearer, farther := 0, 0
		for _, m := range e.Moved {
			if m.Then < m.Before {
				nearer++
			} else if m.Then > m.Before {
				farther++
			}
		}
		what := ""
		for _, q := range study.Questions {
			if q.ID == e.Question {
				what = q.What
			}
		}
		t.Add(e.Question, e.Alternative, e.Distance, len(e.Moved), nearer, farther, e.Moved[0].Row, known(e.Moved[0].Factor), what)
	}
	if len(still) > 0 {
		t.Notes = append(t.Notes, "No row moves by more than 3% with "+strings.Join(still, "; ")+".")
	}
	t.Notes = append(t.Notes, no...)
	return t
}

// found prints what was found, the answer first.
func found(out io.Writer, p *experiment.Publication, study *identify.Study, v *identify.Verdict, left int) error {
	t := alternativesTable(study, v)
	t.Answer = []string{fmt.Sprintf("%s: %d rows; numbers are %s off in the median with today's answers, and %s with the changes below.", p.Title, len(study.Rows), share(v.Before.Median), share(v.Fitted.Median))}
	if !math.IsNaN(v.LeftOut.Median) {
		t.Answer = append(t.Answer, fmt.Sprintf("Rows of an experiment that the search does not see are %s off, and a tenth of them more than %s.", share(v.LeftOut.Median), share(v.LeftOut.P90)))
	}
	if left > 0 {
		t.Answer = append(t.Answer, fmt.Sprintf("%d rows are left out, because they take longer (--longest) or are not measured.", left))
	}
	for _, s := range v.Path {
		t.Notes = append(t.Notes, fmt.Sprintf("Change: %s %s, then the mean distance is %s.", s.Question, s.Alternative, share(s.Distance)))
	}
	for _, x := range v.Excluded {
		t.Notes = append(t.Notes, fmt.Sprintf("Excluded: %s %s: row %s stays %s off whatever the other answers are; with %s it is %s.", x.Question, x.Alternative, x.Row, share(x.Best), x.Instead, share(x.Then)))
	}
	for _, x := range v.Separate {
		t.Notes = append(t.Notes, fmt.Sprintf("To measure: %s would tell %s %s from today's: %.2f times as much.", x.Number, x.Question, x.Alternative, x.Factor))
	}
	t.Notes = append(t.Notes, fmt.Sprintf("%d settings were measured. The mean distance is exp of the mean logarithm less 1; a claim that does not hold counts as 100%%.", v.Measured))
	return t.Write(out, report.TextFormat)
}

// share writes a share in a sentence.
func share(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }
