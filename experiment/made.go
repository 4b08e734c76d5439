package experiment

import (
	"errors"
	"fmt"
	"io"

	"github.com/spinsim/spinsim/internal/cli"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/report"
)

// Made is an experiment that was made from a file.
type Made struct {
	*Experiment

	Inputs []provenance.Input
	Given  map[string]string // see Sweep.Given
	Below  []string          // folders that its timeline must be in; nil: any

	// Page writes what people see of a single point, in place of its table. below
	// are lines for its end: notes and the record. nil: there is the table.
	Page func(out io.Writer, r *Result, below []string) error
	// Begin is called before the points are measured. page: people will see the page.
	// nil: nothing needs to know.
	Begin func(page bool)
	// Alone is what needs a single point, and its page, such as a flag; "":
	// nothing.
	Alone string
	// Judged: the error of Page says whether the point is as expected, and not what
	// the point says of itself.
	Judged bool
	// Output describes a file of the run, for its record: the flag that names it,
	// its name, "" for none, and what writes it. cut is what has ended the run
	// early, for the file's seal. nil: there is none.
	Output func(of *Record) (flag, name string, write func(cut string) error)
}

func (m *Made) begin(page bool) {
	if m.Begin != nil {
		m.Begin(page)
	}
}

// paged reports whether people see a single point as its page.
func (f *compareFlags) paged(format report.Format) bool {
	return f.made.Page != nil && format == report.TextFormat && f.table == "" && !f.all
}

// alone is the error of a single point, which needs no name where it has a page.
func (f *compareFlags) alone(points int, err error) error {
	if one, is := errors.AsType[*pointError](err); is && points == 1 && f.made.Page != nil {
		return one.err
	}
	return err
}

// unjudged is the error of a point, unless its page judges it.
func (f *compareFlags) unjudged(err error) error {
	if f.made.Judged {
		return nil
	}
	return err
}

// checkAlone refuses what needs a page where there is none.
func (f *compareFlags) checkAlone(points []*Point, format report.Format) error {
	switch what := f.made.Alone; {
	case what == "":
	case len(points) > 1:
		return cli.BadInput(fmt.Errorf("%s: shows one run, but there are %d", what, len(points)))
	case !f.paged(format) || f.resume.Parted():
		return cli.BadInput(fmt.Errorf("%s: shows a run as a text, without --format, --table, --all and --part", what))
	}
	return nil
}
