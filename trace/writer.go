package trace

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spinsim/spinsim/internal/file"
	"github.com/spinsim/spinsim/internal/seal"
	"github.com/spinsim/spinsim/sim"
)

// Format is a file format.
type Format int

// Formats of a [Writer].
const (
	Perfetto   Format = iota // protobuf trace packets
	ChromeJSON               // the Trace Event Format of Chrome's about:tracing
)

// Scale is the scale of the time axis.
type Scale int

// Scales of the time axis; see the package comment.
const (
	Nanoseconds Scale = iota // rounded down to the viewer's unit
	Picoseconds              // magnified 1000 times: a picosecond is drawn as a nanosecond
)

// DefaultWindow is the default number of events held back for sorting.
const DefaultWindow = 1 << 16

// Memory is the approximate memory of a timeline during writing, in bytes: the
// held events. It does not depend on the run. The rest is in the file.
const Memory = DefaultWindow * 256

// Options change how a timeline is written. The zero value is the default.
type Options struct {
	Scale  Scale
	Window int // events held back for sorting; 0: DefaultWindow
	// folders of which one must hold a file, links followed; nil: it may be
	// anywhere
	Below []string
}

// Names of the arguments that hold the exact time, in picoseconds.
const (
	keyStart  = "start_ps"
	keyLength = "dur_ps"
	keyAt     = "at_ps"
)

// magnified marks the process names of timelines with the scale [Picoseconds].
const magnified = " (1 ns is 1 ps)"

// encoder encodes events. Its methods append to dst and never fail.
type encoder interface {
	header(dst []byte) []byte
	process(dst []byte, p *process) []byte
	line(dst []byte, l *lane) []byte
	counterLine(dst []byte, c *counter) []byte
	begin(dst []byte, l *lane, e *event) []byte
	end(dst []byte, l *lane, at sim.Time) []byte
	instant(dst []byte, l *lane, e *event) []byte
	counter(dst []byte, c *counter, e *event) []byte
	// footer appends the end, with the text of a seal; "": none.
	footer(dst []byte, mark string) []byte
}

type eventKind uint8

const (
	spanEvent eventKind = iota
	instantEvent
	counterEvent
)

// event is one call of the tracer.
type event struct {
	from, to sim.Time
	seq      uint64
	kind     eventKind
	track    *track
	name     string
	flows    [2]uint64 // 0: none
	args     []sim.Arg
	value    float64
}

// before orders events so that an outer slice precedes its inner slices.
func (e *event) before(o *event) bool {
	if e.from != o.from {
		return e.from < o.from
	}
	if e.to != o.to {
		return e.to > o.to
	}
	return e.seq < o.seq
}

// ending is the end of a slice, not yet written.
type ending struct {
	to   sim.Time
	seq  uint64 // number of the start, in writing order
	lane *lane
}

// before orders endings so that an inner slice ends before the outer one.
func (e ending) before(o ending) bool {
	if e.to != o.to {
		return e.to < o.to
	}
	return e.seq > o.seq
}

// Writer records a timeline. It implements [sim.Tracer]. Like an engine, only
// one goroutine at a time may use it. The tracer's methods cannot return
// errors: the first error is stored, and [Writer.Close] returns it. It may come
// from the file, or from a span that ends before it begins. After an error the
// writer records nothing.
type Writer struct {
	registry
	enc     encoder
	kind    seal.Kind
	mark    *seal.Mark   // nil: no seal
	sealed  *seal.Writer // below out
	out     *bufio.Writer
	zip     *gzip.Writer // of a file from [Create]
	file    *file.Writer
	buf     []byte
	window  int
	held    heap[*event]
	open    heap[ending]
	reached sim.Time // start of the latest event written in order
	calls   uint64
	begun   uint64
	err     error
}

var _ sim.Tracer = (*Writer)(nil)

// New returns a writer of the given format onto w. It does not close w.
func New(w io.Writer, format Format, opts Options) *Writer {
	names := registry{processes: map[processKey]*process{}, groups: map[string]int32{}, tracks: map[trackKey]*track{}}
	t := &Writer{registry: names, sealed: seal.NewWriter(w), window: opts.Window}
	t.out = bufio.NewWriterSize(t.sealed, 1<<16)
	if t.window <= 0 {
		t.window = DefaultWindow
	}
	if format == ChromeJSON {
		t.enc, t.kind = newChrome(opts.Scale), seal.Chrome
	} else {
		t.enc, t.kind = newPerfetto(opts.Scale), seal.Perfetto
	}
	t.write(t.enc.header(nil))
	return t
}

// Extensions lists the file name extensions of [Create].
const Extensions = ".pftrace, .perfetto-trace, .json; each also with .gz"

// Create begins to write a file. [Writer.Close] gives it its name; until then
// an older file stays. The extension selects the format: Perfetto for .pftrace
// and .perfetto-trace, Chrome for .json. Each is compressed if .gz follows.
// Another extension is an error, and no file is made.
func Create(name string, opts Options) (*Writer, error) {
	format, zipped, err := formatOf(name)
	if err != nil {
		return nil, err
	}
	var out *file.Writer
	if opts.Below == nil {
		out, err = file.Create(name)
	} else {
		out, err = file.CreateBelow(opts.Below, name)
	}
	if err != nil {
		return nil, fmt.Errorf("timeline: %w", err)
	}
	if !zipped {
		w := New(out, format, opts)
		w.file = out
		return w, nil
	}
	zip := gzip.NewWriter(out)
	w := New(zip, format, opts)
	w.file, w.zip = out, zip
	return w, nil
}

// CheckName returns the error that Create would return for the extension of a
// name, or nil.
func CheckName(name string) error {
	_, _, err := formatOf(name)
	return err
}

// formatOf returns the format for the extension of a name.
func formatOf(name string) (format Format, zipped bool, err error) {
	plain, zipped := strings.CutSuffix(name, ".gz")
	switch {
	case strings.HasSuffix(plain, ".pftrace"), strings.HasSuffix(plain, ".perfetto-trace"):
		return Perfetto, zipped, nil
	case strings.HasSuffix(plain, ".json"):
		return ChromeJSON, zipped, nil
	}
	return format, false, fmt.Errorf("timeline %s: unknown kind of file, want a name that ends in one of %s", name, Extensions)
}

// Track implements [sim.Tracer]. Groups are drawn in the order of their first
// use, and the members of a group by id.
func (w *Writer) Track(group string, groupID int, name string) sim.TrackID {
	t := w.track(w.registry.process(group, groupID), name)
	if t.handle < 0 {
		t.handle = sim.TrackID(len(w.byID))
		w.byID = append(w.byID, t)
	}
	return t.handle
}

// Describe records facts about the whole timeline, such as its origin. They are
// an instant at time 0 on a line of their own, above all lines that are named
// later.
func (w *Writer) Describe(facts ...sim.Arg) {
	w.Instant(w.Track("about", 0, "provenance"), "provenance", 0, 0, facts...)
}

// Span implements [sim.Tracer].
func (w *Writer) Span(t sim.TrackID, name string, from, to sim.Time, flow uint64, args ...sim.Arg) {
	if from < 0 || to < from {
		w.fail("span %q of %s: from %v to %v is not a stretch of time", name, w.byID[t].path, from, to)
		return
	}
	e := &event{kind: spanEvent, track: w.byID[t], name: name, from: from, to: to}
	e.flows, e.args = flows(flow, args)
	w.hold(e)
}

// flows returns the flows of a span or an instant, and the other arguments.
func flows(flow uint64, args []sim.Arg) (all [2]uint64, rest []sim.Arg) {
	all[0] = flow
	for _, a := range args {
		if a.Key == sim.CauseKey {
			all[1] = uint64(a.Num)
		} else {
			rest = append(rest, a)
		}
	}
	return all, rest
}

// Instant implements [sim.Tracer].
func (w *Writer) Instant(t sim.TrackID, name string, at sim.Time, flow uint64, args ...sim.Arg) {
	if at < 0 {
		w.fail("instant %q of %s: %v is before the start", name, w.byID[t].path, at)
		return
	}
	e := &event{kind: instantEvent, track: w.byID[t], name: name, from: at, to: at}
	e.flows, e.args = flows(flow, args)
	w.hold(e)
}

// Counter implements [sim.Tracer]. The value must be finite.
func (w *Writer) Counter(t sim.TrackID, name string, at sim.Time, value float64) {
	if at < 0 || math.IsNaN(value) || math.IsInf(value, 0) {
		w.fail("counter %q of %s: %v at %v cannot be drawn", name, w.byID[t].path, value, at)
		return
	}
	w.hold(&event{kind: counterEvent, track: w.byID[t], name: name, from: at, to: at, value: value})
}

// Close writes the held events. If [Create] began the file, Close gives it its
// name. Close returns the writer's first error; then there is no file, or the
// older one.
func (w *Writer) Close() error {
	for len(w.held) > 0 {
		w.release(w.held.pop())
	}
	w.closeUntil(sim.MaxTime)
	err := w.end()
	if err == nil && w.zip != nil {
		err = w.zip.Close()
	}
	if err != nil {
		w.Discard()
		return fmt.Errorf("timeline: %w", err)
	}
	w.err = errors.New("closed")
	if w.file == nil {
		return nil
	}
	if err := w.file.Commit(); err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	return nil
}

// end writes the end of the file, with its seal.
func (w *Writer) end() error {
	if w.mark == nil {
		w.write(w.enc.footer(w.buf[:0], ""))
	}
	if w.err != nil {
		return w.err
	}
	if err := w.out.Flush(); err != nil || w.mark == nil {
		return err
	}
	return w.sealed.Seal(*w.mark, w.enc.footer(w.buf[:0], w.mark.String()))
}

// Seal makes [Writer.Close] seal the file: see [Pcapng.Seal].
func (w *Writer) Seal(program, record, cut string) {
	w.mark = &seal.Mark{Kind: w.kind, Program: program, Record: record, Cut: cut}
}

// Discard ends the writer instead of [Writer.Close]. It leaves no file, or the
// older one.
func (w *Writer) Discard() {
	w.fail("discarded")
	if w.file != nil {
		_ = w.file.Discard() // the file is not wanted
	}
}

func (w *Writer) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

func (w *Writer) write(b []byte) {
	w.buf = b[:0]
	if w.err != nil {
		return
	}
	_, w.err = w.out.Write(b)
}

// hold keeps e until no earlier event is expected.
func (w *Writer) hold(e *event) {
	if w.err != nil {
		return
	}
	e.seq = w.calls
	w.calls++
	w.held.push(e)
	if len(w.held) > w.window {
		w.release(w.held.pop())
	}
}

// release writes e, after the ends of the slices that end by its start.
func (w *Writer) release(e *event) {
	if e.from >= w.reached {
		w.closeUntil(e.from)
		w.reached = e.from
	}
	dst := w.buf[:0]
	switch e.kind {
	case counterEvent:
		c := w.registry.counter(e.track, e.name)
		if !c.described {
			c.described = true
			dst = w.enc.counterLine(w.describeAbove(dst, c.track), c)
		}
		dst = w.enc.counter(dst, c, e)
	case instantEvent:
		dst = w.enc.instant(w.describe(dst, &e.track.main), &e.track.main, e)
	case spanEvent:
		dst = w.span(dst, e)
	}
	w.write(dst)
}

func (w *Writer) span(dst []byte, e *event) []byte {
	if e.from < w.reached {
		l := w.lateLaneFor(e.track, e.from)
		l.free = e.to
		dst = w.enc.begin(w.describe(dst, l), l, e)
		return w.enc.end(dst, l, e.to)
	}
	l := w.laneFor(e.track, e.to)
	l.open = append(l.open, e.to)
	w.begun++
	w.open.push(ending{e.to, w.begun, l})
	return w.enc.begin(w.describe(dst, l), l, e)
}

// closeUntil writes the ends of the slices that end at or before at.
func (w *Writer) closeUntil(at sim.Time) {
	for len(w.open) > 0 && w.open[0].to <= at {
		end := w.open.pop()
		end.lane.open = end.lane.open[:len(end.lane.open)-1]
		w.write(w.enc.end(w.buf[:0], end.lane, end.to))
	}
}

// describe appends the descriptions of l and its ancestors, once each.
func (w *Writer) describe(dst []byte, l *lane) []byte {
	if l.described {
		return dst
	}
	l.described = true
	return w.enc.line(w.describeAbove(dst, l.track), l)
}

func (w *Writer) describeAbove(dst []byte, t *track) []byte {
	if t.parent != nil {
		return w.describe(dst, &t.parent.main)
	}
	if !t.process.described {
		t.process.described = true
		dst = w.enc.process(dst, t.process)
	}
	return dst
}
