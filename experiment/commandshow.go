package experiment

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/report"
)

// showBeside is show, with what has no place in CSV and its kin on standard
// error.
func (f *compareFlags) showBeside(c *cobra.Command, s *Sweep, results []*Result, format report.Format, u *Unfinished) error {
	err := f.show(c.OutOrStdout(), s, results, format, u)
	cli.SayBeside(c, format, slices.Concat(s.Record().UnusedNotes(), warnings(results)))
	return err
}

// sayPart writes, instead of a table, which part of all points is kept.
func (f *compareFlags) sayPart(out io.Writer, results []*Result, all int) error {
	kept := slices.DeleteFunc(slices.Clone(results), (*Result).limited)
	err := f.resume.SayPart(out, len(kept), all, pointNoun)
	if n := len(results) - len(kept); n > 0 {
		err = errors.Join(err, fmt.Errorf("a limit has ended %d more, which are not kept", n))
	}
	return err
}

// Finished returns err. Before that it shows the measured points, if err is an
// *Unfinished: a signal or limit has ended the sweep, or some points have
// failed.
func Finished(err error, show func(u *Unfinished) error) error {
	u := (*Unfinished)(nil)
	if !errors.As(err, &u) || len(u.Measured()) == 0 {
		return err
	}
	return errors.Join(err, show(u))
}

// chosen returns the table that the user sees: the one of --table, or the one of
// the format.
func (f *compareFlags) chosen(s *Sweep, results []*Result, all *report.Table, format report.Format) (*report.Table, error) {
	name := f.table
	if format == report.JSONFormat {
		return all, nil // documents have every table
	}
	if name == "" && slices.Contains([]report.Format{report.CSVFormat, report.NDJSONFormat, report.ParquetFormat}, format) {
		name = s.grid.experiment.View.Programs
	}
	if d := s.grid.experiment.detail(name); d != nil {
		t, err := detailTable(s, results, d, true)
		if err != nil {
			return nil, err
		}
		t.Origin = s.record
		if format == report.TextFormat && !f.all {
			return seenBy(s, d, t)
		}
		return t, nil
	}
	if name != "" {
		all.Further = nil
	}
	if format == report.TextFormat && !f.all {
		return s.Summary(all)
	}
	if format == report.MarkdownFormat && !f.all {
		all.Further = slices.DeleteFunc(all.Further, func(t report.Further) bool { return t.Len() == 0 })
	}
	return all, nil
}

// show writes the table of a sweep. u is not nil if only part of it was
// measured.
func (f *compareFlags) show(out io.Writer, s *Sweep, results []*Result, format report.Format, u *Unfinished) error {
	all, err := sweepTable(s, results, f.all || format == report.JSONFormat)
	if err != nil {
		return err
	}
	t, err := f.chosen(s, results, all, format)
	if err != nil {
		return err
	}
	t.Notes = slices.Concat(t.Notes, s.Notes(results))
	if u != nil { // neither an answer nor a picture
		t.Answer, t.Cut = []string{cli.PartOf(u)}, u.Cut()
		return t.Write(out, format)
	}
	t.Answer, t.Cut = s.Answer(results), cutOf(results)
	if f.paged(format) && len(results) == 1 {
		err = f.made.Page(out, results[0], slices.Concat(s.idle, s.record.UnusedNotes(), s.record.Lines()))
	} else {
		err = t.Write(out, format)
	}
	if err != nil || f.plot == "" || t.Cut != "" {
		return err
	}
	p := s.Plot()
	if n := len(results) - len(asExpected(results)); n > 0 {
		p.Caption = strings.TrimPrefix(p.Caption+" Not as expected: "+pointNoun.Of(n)+".", " ")
	}
	return all.PlotFile(f.plot, p)
}
