package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/internal/capture"
	"github.com/spinsim/spinsim/internal/provenance"
	"github.com/spinsim/spinsim/runtime"
	"github.com/spinsim/spinsim/sim"
	"github.com/spinsim/spinsim/trace"
)

// RunFiles are the files that a run writes beside its result. End gives all of
// them their names when the run is over. If a signal, a limit or a lack of
// memory has cut off the run, a file would look complete. So older files of the
// names stay, and the error names the files that are missing. Only a timeline
// is written even if a limit has cut off the run, since it shows the limit.
type RunFiles struct {
	// folders of which one must hold the timeline, links followed; nil: it may
	// be anywhere
	Below []string

	timeline *trace.Writer      // nil: none
	of       *provenance.Record // of the timeline
	drawn    string             // flag and name of the timeline
	list     []runFile
}

// runFile is a file that is written when the run has ended.
type runFile struct {
	called string // flag and name
	failed bool   // also written if the run has failed, because it shows why
	write  func(cut string) error
}

// Trace begins a timeline in the file that a flag names. of is the run's
// record. The tracer is nil if there is no name.
func (f *RunFiles) Trace(flag, name string, of *provenance.Record) (sim.Tracer, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // nobody draws
	}
	w, err := trace.Create(name, trace.Options{Below: f.Below})
	if err != nil {
		return nil, BadInput(fmt.Errorf("%s: %w", flag, err))
	}
	w.Describe(of.Args()...)
	f.timeline, f.of, f.drawn = w, of, flag+" "+name
	return w, nil
}

// Add adds a file that shows the events of the run, if it has a name. write
// writes it, even if the run has failed: cut says why, for the seal.
func (f *RunFiles) Add(flag, name string, write func(cut string) error) {
	if name != "" {
		f.list = append(f.list, runFile{flag + " " + name, true, write})
	}
}

// Network adds the captured packets of a run, and the loads of its links. of is
// the run's record.
func (f *RunFiles) Network(links *LinksFlag, captured *CaptureFlags, of *provenance.Record) {
	if captured != nil {
		f.Add("--pcap", captured.name, func(cut string) error { return captured.write(of, cut) })
	}
	f.Add("--links", links.name, func(cut string) error { return links.write(of, cut) })
}

// Result adds a file with the result of the run, if it has a name. write writes
// it; nil: others do. If the run has failed it is not written.
func (f *RunFiles) Result(flag, name string, write func() error) {
	if name != "" {
		one := runFile{called: flag + " " + name}
		if write != nil {
			one.write = func(string) error { return write() }
		}
		f.list = append(f.list, one)
	}
}

// End writes the files. ran is the error of the run, and ctx its context. It
// returns ran with the names of the files that are not written, and the errors
// of the files.
func (f *RunFiles) End(ctx context.Context, ran error) error {
	var (
		limit   *sim.LimitError
		place   *capture.PlaceError
		input   InputError
		network *runtime.NetworkError
	)
	limited := errors.As(ran, &limit)
	cut := limited || ran != nil && ctx.Err() != nil
	why := CutBy(ran)
	var left []string
	errs := []error{nil}
	switch {
	case f.timeline == nil:
	case cut && !limited:
		f.timeline.Discard()
		left = append(left, f.drawn)
	case limited:
		f.timeline.Instant(f.timeline.Track("run", 0, "limit"), "incomplete: stopped by the limit of "+limit.Limit, limit.At, 0)
		fallthrough
	default:
		program, hash, err := f.of.Seal()
		f.timeline.Seal(program, hash, why)
		errs = append(errs, err, f.timeline.Close())
	}
	switch {
	case errors.As(ran, &place):
		return BadInput(errors.Join(append(errs, fmt.Errorf("--pcap-at: %w", place))...))
	case errors.As(ran, &input), errors.As(ran, &network): // nothing ran, so no file is missing
		return errors.Join(append(errs, ran)...)
	}
	for _, one := range f.list {
		switch {
		case cut || ran != nil && !one.failed:
			left = append(left, one.called)
		case one.write != nil:
			errs = append(errs, one.write(why))
		}
	}
	if errs[0] = ran; len(left) > 0 {
		errs[0] = &leftError{ran, left}
	}
	return errors.Join(errs...)
}

// leftError is the error of a run, with the files that are not written.
type leftError struct {
	err   error
	files []string
}

// Error is the error of the run and the names of the files.
func (l *leftError) Error() string { return l.err.Error() + "\n" + l.note() }

// Unwrap returns the error of the run.
func (l *leftError) Unwrap() error { return l.err }

func (l *leftError) note() string {
	return "not written, what older files of the names hold stays: " + strings.Join(l.files, ", ")
}

// leftOf names the files that a cut-off command has not written, behind a
// separator: the files in its error, or else the files of e.left. "": none.
func leftOf(err error, e *ending, separator string) string {
	if left := (*leftError)(nil); errors.As(err, &left) {
		return separator + left.note()
	}
	return e.left(separator)
}
