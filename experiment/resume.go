package experiment

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
	measure      bool // measure the points that the folder lacks
	share        checkpoint.Part
}

// Register adds the flags to a command.
func (f *ResumeFlags) Register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.resume, "resume", "", "keep each result in a `FOLDER` as soon as it is there, and do not measure again what it has")
	flags.StringVar(&f.part, "part", "", "measure one of several `PARTS` of the points only, such as 3/16, into the folder of --resume: no table is shown")
	flags.BoolVar(&f.measure, "measure-missing", true, "with --resume, measure what the folder lacks; =false names it, and ends with status 1")
	flags.BoolVar(&f.List, "points", false, "list the points, and measure nothing")
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

// shownMissing is how many missing points are named. The others are counted.
const shownMissing = 20

// Missing is the error of a command that may measure nothing, if the folder
// lacks the points names, of all. nil: it lacks none, or they are measured.
func (f *ResumeFlags) Missing(names []string, all int, one, many string) error {
	if f.measure || len(names) == 0 {
		return nil
	}
	text := fmt.Sprintf("%d of %s are not in %s:", len(names), plural(all, one, many), f.resume)
	for _, name := range names[:min(len(names), shownMissing)] {
		text += "\n  " + name
	}
	if more := len(names) - shownMissing; more > 0 {
		text += fmt.Sprintf("\n  and %d more", more)
	}
	return errors.New(text + "\nmeasure them by their parts, or here with --measure-missing")
}

// MeasuresMissing reports whether points that the folder lacks are measured.
func (f *ResumeFlags) MeasuresMissing() bool { return f.measure }

// Given reports whether any of the flags is given.
func (f *ResumeFlags) Given() bool { return f.List || f.resume != "" || f.part != "" }

// Parted reports whether only a part is measured.
func (f *ResumeFlags) Parted() bool { return f.part != "" }

// Has reports whether the part has the point with a number, from 0.
func (f *ResumeFlags) Has(number int) bool { return f.share.Has(number) }

// SayPart writes, instead of a table, how many of all points are in the folder.
func (f *ResumeFlags) SayPart(out io.Writer, these, all int, one, many string) error {
	_, err := fmt.Fprintf(out, "part %s: %d of %s are in %s\n", f.part, these, plural(all, one, many), f.resume)
	return err
}

// listPoints writes the points that a sweep would measure.
func listPoints(out io.Writer, points []*Point) error {
	for _, p := range points {
		if _, err := fmt.Fprintln(out, p); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, plural(len(points), "point", "points"))
	return err
}

// shared lists the points of the part.
func (f *ResumeFlags) shared(points []*Point) (these []*Point) {
	for i, p := range points {
		if f.Has(i) {
			these = append(these, p)
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
		fmt.Fprintf(errs, "%s: of what the folder of --resume has, %s of other points, or by another spinsim\n", command, plural(n, "result is", "results are"))
	}
}
