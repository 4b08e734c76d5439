package experiment

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/internal/visible"
	"github.com/spinsim/spinsim/profile"
	"github.com/spinsim/spinsim/report"
)

// Rerunner makes the document of a record again. folder is the folder of the old
// document: it may have files that are not where they were. notes tell the
// reader about changes that are no errors.
type Rerunner func(ctx context.Context, r *provenance.Record, folder string, stdin io.Reader) (document []byte, notes []string, err error)

// Rerun makes the command that makes a result again and compares it. long is
// its manual. build is this program.
func Rerun(long string, build provenance.Build, again Rerunner) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "rerun RESULTS.json",
		Short: "Make a result again from its record, and compare",
		Long:  long,
		Args:  cli.ExactArguments("RESULTS.json"),
		RunE:  func(c *cobra.Command, args []string) error { return rerun(c, args[0], output, build, again) },
	}
	c.Flags().StringVarP(&output, "output", "o", "", "write the new document to a `FILE`, even if it differs")
	return c
}

// RerunAny makes documents of any experiment of the list again.
func RerunAny(list []*Experiment) Rerunner {
	return func(ctx context.Context, r *provenance.Record, folder string, stdin io.Reader) (document []byte, notes []string, err error) {
		e, err := FindIn(list, strings.TrimPrefix(r.Command, CommandPrefix))
		if err != nil {
			return nil, nil, cli.BadInput(fmt.Errorf("provenance.command: %w", err))
		}
		return RerunOne(e)(ctx, r, folder, stdin)
	}
}

// RerunOne makes documents of one experiment again, for example an experiment
// from the record's inputs.
func RerunOne(e *Experiment) Rerunner {
	return func(ctx context.Context, r *provenance.Record, folder string, _ io.Reader) (document []byte, notes []string, err error) {
		s, notes, err := RerunSweep(r, e, func(path string) ([]byte, error) { return file.ReadRegular(FileBeside(folder, path), file.MaxData) })
		if err != nil {
			return nil, notes, cli.BadInput(err)
		}
		s.Workers = cli.Workers()
		s.MemoryLimit = cli.MemoryLimit(ctx)
		t, err := tableOf(ctx, s)
		if err != nil {
			return nil, notes, err
		}
		var out bytes.Buffer
		err = t.Write(&out, report.JSONFormat)
		return out.Bytes(), notes, err
	}
}

// here is bad input for a wrong document, but not for one whose points need more
// memory than this machine has.
func here(err error) error {
	if errors.As(err, new(*MemoryError)) {
		return err
	}
	return cli.BadInput(err)
}

// tableOf runs a sweep or a waterfall.
func tableOf(ctx context.Context, s *Sweep) (*report.Table, error) {
	if s.Falls() {
		w, err := s.Waterfall(s.Profiles[0], s.Profiles[1])
		if err != nil {
			return nil, here(err)
		}
		if err := w.Run(ctx, nil); err != nil {
			return nil, err
		}
		return w.Table()
	}
	points, err := s.Points()
	if err != nil {
		return nil, here(err)
	}
	results, err := s.Run(ctx, points, nil)
	cut := ""
	if u := (*Unfinished)(nil); errors.As(err, &u) && ctx.Err() == nil { // the rest fail as before
		results, cut, err = u.Measured(), u.Cut(), nil
	}
	if err != nil {
		return nil, err
	}
	if s.OverOpen && cut == "" {
		o, err := newOverOpen(s)
		if err == nil {
			err = o.measure(ctx, io.Discard, s, results)
		}
		if err != nil {
			return nil, err
		}
	}
	t, err := s.Table(results)
	if err == nil {
		t.Answer, t.Cut = s.Answer(results), cmp.Or(cut, cutOf(results))
	}
	return t, err
}

// FileBeside returns the path of a file: name, or in the folder if it is only
// there.
func FileBeside(folder, name string) string {
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) && folder != "" && !filepath.IsAbs(name) {
		if beside := filepath.Join(folder, name); beside != name {
			if _, err := os.Stat(beside); err == nil {
				return beside
			}
		}
	}
	return name
}

// shownDifferences is how many differences are listed. The others are counted.
const shownDifferences = 20

func rerun(c *cobra.Command, name, output string, build provenance.Build, again Rerunner) error {
	was, err := file.Read(name, file.MaxData)
	if err != nil {
		return cli.BadInput(err)
	}
	r, err := provenance.Read(was)
	if err != nil {
		return cli.BadInput(fmt.Errorf("%s: %w", name, err))
	}
	if err := older(r, build); err != nil {
		return cli.BadInput(fmt.Errorf("%s: %w", name, err))
	}
	out := c.OutOrStdout()
	is, notes, err := again(c.Context(), r, filepath.Dir(name), c.InOrStdin())
	for i := range r.Profiles {
		changed := r.Profiles[i].Verify()
		if changed == nil || !r.Repeatable() {
			continue
		}
		more := []string{changed.Error() + ", and taken"}
		if other := (*provenance.OtherProfileError)(nil); errors.As(changed, &other) {
			// a profile that cannot be read is an error of the run
			if lines, err := other.Changes(); err == nil {
				more = append(more, lines...)
			}
		}
		notes = append(more, notes...)
	}
	cut, broken := seal.CheckObject(was)
	if changed := (*seal.ChangedError)(nil); errors.As(broken, &changed) {
		notes = append([]string{name + ": " + changed.Error()}, notes...)
	}
	if cut != "" {
		notes = append([]string{name + ": cut: " + cut}, notes...)
	}
	if !build.Same(r.Build) {
		notes = append([]string{fmt.Sprintf("%s is by spinsim %s; this is %s", name, r.Build, build)}, notes...)
	}
	for i, note := range notes {
		notes[i] = visible.Line(note) // names in the document
	}
	if err != nil && len(notes) > 0 {
		return fmt.Errorf("%s: %w\n%s", name, err, strings.Join(notes, "\n")) // perhaps the cause
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
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

// older returns an error that lists what the profiles of a result lack because
// the spinsim that wrote it was older.
func older(r *provenance.Record, build provenance.Build) error {
	var errs []error
	for i := range r.Profiles {
		_, err := r.Profiles[i].Load()
		if missing := (*profile.MissingError)(nil); errors.As(err, &missing) {
			errs = append(errs, fmt.Errorf("its profile %s has no %s: it was written by spinsim %s, which had no such thing yet; rerun it with that version, this is %s",
				r.Profiles[i].Name, strings.Join(missing.Paths, ", "), r.Build, build))
		}
	}
	return errors.Join(errs...)
}

// compareDocuments writes whether two documents are the same. It is an error if
// not.
func compareDocuments(out io.Writer, name string, was, is []byte) error {
	if bytes.Equal(was, is) {
		fmt.Fprintf(out, "%s: the same %d bytes\n", name, len(is))
		return nil
	}
	list, err := provenance.Differences(was, is)
	if err != nil {
		return cli.BadInput(fmt.Errorf("%s: %w", name, err))
	}
	if !slices.ContainsFunc(list, func(d provenance.Difference) bool { return d.Was != "" || !slices.Contains(seal.Fields, d.Where) }) && len(list) > 0 {
		fmt.Fprintf(out, "%s: the same values; it has no seal (%s), the document of --output has one\n", name, seal.Field)
		return nil
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
		fmt.Fprintln(out, visible.Line(d.String()))
	}
	return errors.New(plural(len(list), "value differs", "values differ"))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
