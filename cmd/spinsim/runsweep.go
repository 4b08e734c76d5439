package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/lab/scenario"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/report"
)

// runSweep are the runs of a scenario with every combination of the values of lists.
type runSweep struct {
	lists      *scenario.Lists // nil: one run
	sweep      scenario.Sweep  // Columns, Values and Labels
	variations []scenario.Variation
	combined   int                // how many combinations of parameters: the first of variations
	given      []scenario.Given   // parameters with one value
	folder     *checkpoint.Folder // of results; nil: none are kept
}

// of leaves the runs of a part.
func (s *runSweep) of(part experiment.ResumeFlags, plans []*scenario.Plan) (these []*scenario.Plan) {
	all := s.sweep
	s.sweep = scenario.Sweep{Columns: all.Columns}
	for i, p := range plans {
		if part.Has(i) {
			these = append(these, p)
			s.sweep.Values, s.sweep.Labels = append(s.sweep.Values, all.Values[i]), append(s.sweep.Labels, all.Labels[i])
		}
	}
	return these
}

// maxRuns is how many runs a sweep of a scenario may have, whose results are
// held until all are done.
const maxRuns = 100_000

// newRunSweep reads NAME=VALUE and PATH=VALUE. What has one value becomes one of the options.
func newRunSweep(o *scenario.Options, params, set []string) (*runSweep, error) {
	s := &runSweep{variations: []scenario.Variation{{}}}
	s.sweep.Values, s.sweep.Labels = [][]any{nil}, []string{""}
	base := scenario.Variation{Parameters: make(map[string]string)}
	for _, param := range params {
		name, text, given := strings.Cut(param, "=")
		name = strings.TrimSpace(name)
		list, several, err := experiment.NewList(name, text)
		switch {
		case !given || text == "":
			return nil, fmt.Errorf("--param: %q, expected NAME=VALUE", param)
		case err != nil:
			return nil, fmt.Errorf("--param: %s: %w", name, err)
		case !several:
			base.Parameters[name] = list.Texts[0]
			s.given = append(s.given, scenario.Given{Column: list.Column, Value: list.Values[0]})
			continue
		}
		lists := s.several()
		lists.Parameters = append(lists.Parameters, param)
		if err := s.cross(name, list, func(v *scenario.Variation, text string) { v.Parameters[name] = text }); err != nil {
			return nil, err
		}
	}
	s.combined = len(s.variations)
	for _, one := range set {
		path, text, _ := strings.Cut(one, "=")
		path = strings.TrimSpace(path)
		list, several, err := experiment.NewList(path, text)
		if err != nil {
			return nil, fmt.Errorf("--set: %s: %w", path, err)
		}
		if !several {
			base.Set = append(base.Set, one)
			continue
		}
		lists := s.several()
		lists.Set = append(lists.Set, one)
		if err := s.cross(path, list, func(v *scenario.Variation, text string) { v.Set = append(v.Set, path+"="+text) }); err != nil {
			return nil, err
		}
	}
	*o = o.With(base)
	return s, nil
}

// record says what the results are made from. load makes the plan of a run;
// here a parameter has its value, and a field of the profile is as it is.
func (s *runSweep) record(load func(run int, v scenario.Variation) (*scenario.Plan, error)) (*provenance.Record, error) {
	return scenario.RecordSweep(*s.lists, s.combined, func(i int) (*scenario.Plan, error) {
		return load(i, scenario.Variation{Parameters: s.variations[i].Parameters})
	})
}

// several are the lists, of which there is one at least.
func (s *runSweep) several() *scenario.Lists {
	if s.lists == nil {
		s.lists = &scenario.Lists{}
	}
	return s.lists
}

// cross combines the runs so far with the values of one list more; its values vary slowest.
func (s *runSweep) cross(name string, list *experiment.List, give func(v *scenario.Variation, text string)) error {
	if len(s.variations)*len(list.Values) > maxRuns {
		return fmt.Errorf("%s: more than %d runs", name, maxRuns)
	}
	was := *s
	column := list.Column
	for slices.ContainsFunc(was.sweep.Columns, func(c report.Column) bool { return c.Name == column.Name }) {
		column.Name = "set_" + column.Name
	}
	s.sweep = scenario.Sweep{Columns: append(was.sweep.Columns, column)}
	s.variations = nil
	for i, text := range list.Texts {
		for k := range was.variations {
			v := scenario.Variation{}.And(was.variations[k])
			give(&v, text)
			s.variations = append(s.variations, v)
			s.sweep.Values = append(s.sweep.Values, append(slices.Clone(was.sweep.Values[k]), list.Values[i]))
			s.sweep.Labels = append(s.sweep.Labels, strings.TrimPrefix(was.sweep.Labels[k]+", "+name+" "+text, ", "))
		}
	}
	return nil
}

// plans makes the plan of each run. The error is the first.
func (s *runSweep) plans(load func(run int, v scenario.Variation) (*scenario.Plan, error)) (list []*scenario.Plan, err error) {
	for i, v := range s.variations {
		p, err := load(i, v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.sweep.Labels[i], err)
		}
		list = append(list, p)
	}
	return list, nil
}

// one is the result of a run: that which is kept, or else of carrying it out.
func (s *runSweep) one(ctx context.Context, i int, p *scenario.Plan) (r *scenario.Result, err error) {
	if s.folder != nil {
		if r, err = p.Kept(s.folder); err != nil {
			return nil, err
		}
	}
	if r == nil {
		if r, err = p.Run(ctx, nil); r == nil {
			return nil, err
		}
		if s.folder != nil {
			if err := p.Keep(s.folder, s.sweep.Labels[i], r); err != nil {
				return nil, &notKept{err}
			}
		}
	}
	r.Given = s.given
	r.Origin, err = p.Record()
	return r, err
}

// missing is the error of a sweep that is to measure nothing, if a run is not kept.
func (s *runSweep) missing(f experiment.ResumeFlags, plans []*scenario.Plan) error {
	if f.MeasuresMissing() {
		return nil
	}
	var names []string
	for i, p := range plans {
		r, err := p.Kept(s.folder)
		if err != nil {
			return err
		}
		if r == nil {
			names = append(names, s.sweep.Labels[i])
		}
	}
	return f.Missing(names, len(plans), "run", "runs")
}

// notKept is why no more results can be kept: that of a full disk.
type notKept struct{ error }

// unfinishedRuns is the error of a sweep of which some runs have no result.
type unfinishedRuns struct {
	have, of int
	err      error // why
}

// Error says why, and how far it came.
func (u *unfinishedRuns) Error() string { return fmt.Sprintf("%v\n%s", u.err, u.Progress()) }

// Unwrap returns the cause.
func (u *unfinishedRuns) Unwrap() error { return u.err }

// Progress says how many runs were made.
func (u *unfinishedRuns) Progress() string {
	return fmt.Sprintf("%d of %d runs were measured", u.have, u.of)
}

// Shown reports whether there is something to show.
func (u *unfinishedRuns) Shown() bool { return u.have > 0 }

// run carries all plans out, several at a time. Failures of scenarios are in
// the results; where a run has none, the error is *unfinishedRuns. A run that
// fails does not end the others.
func (s *runSweep) run(ctx context.Context, plans []*scenario.Plan, workers int, done func()) error {
	results := make([]*scenario.Result, len(plans))
	failures := make([]error, len(plans))
	next := make(chan int, len(plans))
	for i := range plans {
		next <- i
	}
	close(next)
	var full atomic.Bool
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				if ctx.Err() != nil || full.Load() {
					return
				}
				results[i], failures[i] = s.one(ctx, i, plans[i])
				if disk := (*notKept)(nil); errors.As(failures[i], &disk) {
					full.Store(true)
				}
				done()
			}
		})
	}
	wg.Wait()
	s.sweep.Results = results
	u := &unfinishedRuns{of: len(plans), err: context.Cause(ctx)}
	for i, r := range results {
		if r != nil {
			u.have++
		}
		if failures[i] != nil && u.err == nil {
			failures[i] = fmt.Errorf("%s: %w", s.sweep.Labels[i], failures[i])
		}
	}
	if u.have == u.of {
		return nil
	}
	if u.err == nil {
		u.err = experiment.Failed(failures)
	}
	return u
}

// sweep runs a scenario with every combination of values, and shows one long
// table for each of its own.
func (f *runFlags) sweep(c *cobra.Command, file string, o scenario.Options, s *runSweep) error {
	if f.traced() {
		return badInput(fmt.Errorf("--trace, --links and --pcap follow one run, but there are %d", len(s.variations)))
	}
	o = f.needed(file, o, s)
	plans, err := s.plans(func(_ int, v scenario.Variation) (*scenario.Plan, error) {
		p, _, err := f.load(file, o.With(v))
		return p, err
	})
	if err != nil {
		return badInput(err)
	}
	workers := cli.Workers()
	for i, p := range plans {
		runs := min(workers, len(plans))
		need := p.Memory() * int64(runs)
		if err := f.Memory.Check(fmt.Sprintf("%s: %s: ranks: %d with their memories", file, s.sweep.Labels[i], p.Ranks()), need); err != nil {
			return err
		}
		p.Bound(f.Memory.Beside(need, runs))
	}
	if f.resume.List {
		_, err := fmt.Fprintf(c.OutOrStdout(), "%s\n%d runs\n", strings.Join(s.sweep.Labels, "\n"), len(plans))
		return err
	}
	var format report.Format
	record, err := s.record(func(_ int, v scenario.Variation) (p *scenario.Plan, err error) {
		p, format, err = f.load(file, o.With(v))
		return p, err
	})
	if err != nil {
		return badInput(err)
	}
	if err = s.open(f.resume, plans); err != nil {
		return err
	}
	defer s.folder.Close() //nolint:errcheck // every result is in its file
	ctx, cancel := f.Context(c)
	defer cancel()
	these := s.of(f.resume, plans)
	bar := cli.NewProgress(c.ErrOrStderr(), c.Name(), len(these))
	later, stop := cli.ShowLater(ctx)
	defer stop()
	err = s.run(ctx, these, workers, func() { later(); bar.Step() })
	bar.Stop()
	if u := (*unfinishedRuns)(nil); errors.As(err, &u) && u.have == 0 && ctx.Err() == nil {
		return u.err
	} else if errors.As(err, &u) && u.have == 0 {
		return err
	}
	if f.resume.Parted() {
		return errors.Join(f.sayPart(c, s, len(plans)), err)
	}
	f.resume.NoteOthers(c.ErrOrStderr(), c.Root().Name(), s.folder)
	result := s.sweep.Result()
	result.Origin = record
	return errors.Join(result.Write(c.OutOrStdout(), format), result.Err(), err)
}

// open opens the folder of results. It is an error if runs are missing there
// and none is to be made.
func (s *runSweep) open(f experiment.ResumeFlags, plans []*scenario.Plan) (err error) {
	if s.folder, err = f.Open(); err != nil {
		return err
	}
	if err = s.missing(f, plans); err != nil {
		err = errors.Join(err, s.folder.Close())
	}
	return err
}

// needed are options with the first value of each field that has several, if
// the profile is none without them, such as a torus without lengths: all runs
// have these before their own.
func (f *runFlags) needed(file string, o scenario.Options, s *runSweep) scenario.Options {
	first := s.variations[0]
	if _, _, err := f.load(file, o.With(scenario.Variation{Parameters: first.Parameters})); err == nil {
		return o
	}
	if _, _, err := f.load(file, o.With(first)); err != nil {
		return o // it is said of the run
	}
	o.Set = slices.Concat(o.Set, first.Set)
	return o
}

// sayPart says in the place of a table what of a part is kept; all is how many
// runs there are in all parts.
func (f *runFlags) sayPart(c *cobra.Command, s *runSweep, all int) error {
	ended, cut := 0, 0
	for _, r := range s.sweep.Results {
		switch {
		case r != nil && r.Incomplete:
			cut++
		case r != nil:
			ended++
		}
	}
	err := f.resume.SayPart(c.OutOrStdout(), ended, all, "run", "runs")
	if cut > 0 {
		err = errors.Join(err, fmt.Errorf("a limit has ended %d more, which are not kept", cut))
	}
	return err
}
