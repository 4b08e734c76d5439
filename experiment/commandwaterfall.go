package experiment

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/report"
)

// fall measures a waterfall.
func (f *compareFlags) fall(c *cobra.Command, s *Sweep, format report.Format) error {
	switch {
	case len(f.waterfall) != 2:
		return cli.BadInput(fmt.Errorf("--waterfall: %d profiles, expected two: FROM,TO", len(f.waterfall)))
	case c.Flags().Changed("profile"):
		return cli.BadInput(errors.New("--waterfall names the profiles itself: --profile does not go with it"))
	case f.breakdown || f.samples.name != "":
		return cli.BadInput(errors.New("--waterfall: its steps are of the value that answers: neither --breakdown nor --samples goes with it"))
	case f.plot != "":
		return cli.BadInput(errors.New("--plot: a waterfall has no picture"))
	case f.open:
		return cli.BadInput(fmt.Errorf("--over-open: %w", errAlone))
	case !f.resume.Whole():
		return cli.BadInput(errors.New("--waterfall: its points belong together: none of --part, --points and --measure-missing=false goes with it"))
	}
	w, err := s.Waterfall(f.waterfall[0], f.waterfall[1])
	if err != nil {
		return f.Unfit("--waterfall: ", err)
	}
	folder, err := f.resume.Open()
	if err != nil {
		return err
	}
	defer folder.Close() //nolint:errcheck // every result is in its file
	w.Keep(folder)
	ctx, cancel := f.Context(c)
	defer cancel()
	progress := cli.NewProgress(c.ErrOrStderr(), s.grid.experiment.Name, w.Points())
	err = w.Run(ctx, progress.Step)
	progress.Stop()
	if u := (*Unfinished)(nil); errors.As(err, &u) && len(w.Steps) > 0 {
		cli.Shows(ctx)
		return errors.Join(err, f.showFall(c.OutOrStdout(), s, w, format, u))
	}
	if err != nil {
		return err
	}
	return f.showFall(c.OutOrStdout(), s, w, format, nil)
}

// showFall writes the measured steps. u is not nil if only some were measured.
func (f *compareFlags) showFall(out io.Writer, s *Sweep, w *Waterfall, format report.Format, u *Unfinished) error {
	t, err := w.Table()
	if err != nil {
		return err
	}
	if format == report.TextFormat && !f.all {
		t = w.Summary()
	}
	t.Title = fmt.Sprintf("%s, from %s to %s: what each group of parameters is worth", s.grid.experiment.Name, w.From, w.To)
	if t.Notes = w.Notes(); u != nil {
		t.Answer, t.Cut = []string{cli.PartOf(u)}, u.Cut()
	}
	return t.Write(out, format)
}
