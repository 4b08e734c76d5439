package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/experiment"
	"github.com/spinsim/spinsim/report"
)

// fall measures the way from one profile to another.
func (f *compareFlags) fall(c *cobra.Command, s *experiment.Sweep, format report.Format) error {
	switch {
	case len(f.waterfall) != 2:
		return badInput(fmt.Errorf("--waterfall: %d profiles, expected two: FROM,TO", len(f.waterfall)))
	case c.Flags().Changed("profile"):
		return badInput(errors.New("--waterfall names the profiles itself: --profile does not go with it"))
	case f.plot != "":
		return badInput(errors.New("--plot: a waterfall has no picture"))
	}
	if f.ranks != "" && !c.Flags().Changed("ranks") {
		s.Ranks = s.Ranks[len(s.Ranks)-1:] // a table of one block for each size
	}
	w, err := s.Waterfall(f.waterfall[0], f.waterfall[1])
	if err != nil {
		return badInput(fmt.Errorf("--waterfall: %w", err))
	}
	progress := newProgress(c.ErrOrStderr(), s.Benchmark.Name, w.Points())
	err = w.Run(c.Context(), progress.step)
	progress.stop()
	if err != nil {
		return err
	}
	t, err := w.Table()
	if err != nil {
		return err
	}
	if format == report.TextFormat && !f.all {
		t = w.Summary()
	}
	t.Title = fmt.Sprintf("%s, from %s to %s: what each group of parameters is worth", s.Benchmark.Name, w.From, w.To)
	t.Notes = w.Notes()
	return t.Write(c.OutOrStdout(), format)
}
