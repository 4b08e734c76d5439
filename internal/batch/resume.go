package batch

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/spinsim/spinsim/internal/checkpoint"
	"github.com/spinsim/spinsim/internal/cli"
)

// ResumeFlags are the flags of commands whose points can be kept and shared
// out.
type ResumeFlags struct {
	List bool // list the points that would be measured, and measure nothing

	resume, part string
	measure      bool // measure what the folder lacks
	share        checkpoint.Part
}

// Register adds the flags to a command.
func (f *ResumeFlags) Register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.resume, "resume", "", "keep each result at once in a `FOLDER`, and reuse the results in it")
	flags.StringVar(&f.part, "part", "", "measure only one of several `PARTS` of the points, such as 3/16, into the folder of --resume; shows no table")
	flags.BoolVar(&f.measure, "measure-missing", true, "with --resume, measure missing points; =false names them and ends with status 1")
	flags.BoolVar(&f.List, "points", false, "list the points and measure nothing")
}

// Check checks the flags. traced: an output is wanted that only a measurement
// can make.
func (f *ResumeFlags) Check(traced bool) (err error) {
	if f.part != "" {
		if f.share, err = checkpoint.ParsePart(f.part); err != nil {
			return fmt.Errorf("--part: %w", err)
		}
	}
	switch {
	case f.part != "" && f.resume == "":
		return errors.New("--part: its results are kept in the folder of --resume, which is not given")
	case !f.measure && (f.resume == "" || f.part != ""):
		return errors.New("--measure-missing=false: shows what the folder of --resume has: expected --resume, and no --part")
	case f.resume != "" && traced:
		return errors.New("--resume: timelines, captures and loads of links are of what is measured now: expected it without --trace, --pcap and --links")
	}
	return nil
}

// Open opens the folder; nil if none is wanted. Everything else must be checked
// before.
func (f *ResumeFlags) Open() (*checkpoint.Folder, error) {
	if f.resume == "" {
		return nil, nil //nolint:nilnil // nothing is kept
	}
	if !f.measure { // this creates no folder
		if _, err := os.Stat(f.resume); err != nil {
			return nil, cli.BadInput(fmt.Errorf("--resume: %w", err))
		}
	}
	folder, err := checkpoint.Open(f.resume, f.share)
	if err != nil {
		return nil, cli.BadInput(fmt.Errorf("--resume: %w", err))
	}
	return folder, nil
}

// shownMissing is how many missing results are named. The others are counted.
const shownMissing = 20

// Missing returns an error if nothing may be measured and the folder of a batch
// lacks results. name is the name of a measurement in a list.
func Missing[R any](f *ResumeFlags, b *Batch[R], name func(number int) string) error {
	if f.measure {
		return nil
	}
	_, results, err := b.kept()
	if err != nil {
		return err
	}
	missing, text := 0, ""
	for i, r := range results {
		if r != nil {
			continue
		}
		if missing++; missing <= shownMissing {
			text += "\n  " + name(i)
		}
	}
	if missing == 0 {
		return nil
	}
	if more := missing - shownMissing; more > 0 {
		text += fmt.Sprintf("\n  and %d more", more)
	}
	return fmt.Errorf("%d of %s are not in %s:%s\nmeasure them by their parts, or here with --measure-missing", missing, b.Noun.Of(b.Count), f.resume, text)
}

// Whole reports whether a table of all measurements is shown: neither a part
// of them nor none is measured.
func (f *ResumeFlags) Whole() bool { return f.part == "" && !f.List && f.measure }

// Given reports whether any of the flags is given.
func (f *ResumeFlags) Given() bool { return f.List || f.resume != "" || f.part != "" }

// Parted reports whether only a part is measured.
func (f *ResumeFlags) Parted() bool { return f.part != "" }

// SayPart writes, instead of a table, how many of all results are in the folder.
func (f *ResumeFlags) SayPart(out io.Writer, these, all int, of Noun) error {
	_, err := fmt.Fprintf(out, "part %s: %s has %d of %s\n", f.part, f.resume, these, of.Of(all))
	return err
}

// WriteList lists n measurements by their names.
func WriteList(out io.Writer, n int, name func(number int) string, of Noun) error {
	for i := range n {
		if _, err := fmt.Fprintln(out, name(i)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, of.Of(n))
	return err
}

// Share lists the measurements of the part.
func Share[T any](f *ResumeFlags, all []T) (these []T) {
	for i, one := range all {
		if f.share.Has(i) {
			these = append(these, one)
		}
	}
	return these
}

// NoteOthers notes that a folder has results of other sweeps.
func (f *ResumeFlags) NoteOthers(errs io.Writer, command string, folder *checkpoint.Folder) {
	if folder == nil || f.Parted() { // a part's folder has other parts
		return
	}
	if n := folder.Others(); n > 0 {
		fmt.Fprintf(errs, "%s: of what the folder of --resume has, %s of other points, or by another spinsim\n", command, Noun{"result is", "results are"}.Of(n))
	}
}
