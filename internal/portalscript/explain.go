package portalscript

import (
	"fmt"
	"io"

	"github.com/spinsim/spinsim/portals"
)

// tracer prints explanations. It is the world, seen as a portals.Tracer.
type tracer world

// Step is one step of an explanation.
type Step struct {
	Process int // of the script, from 0
	Text    string
	Record  *portals.TraceRecord        // valid during the call only
	Name    func(portals.Handle) string // names of the process's objects
}

// Explain runs a script as if "explain on" were its first line. If tell is not
// nil, it gets every step, and out gets only the output of the script itself.
func Explain(text string, out io.Writer, tell func(*Step)) error {
	return run(text, &world{out: out, device: Device, nodes: map[uint32]*portals.Node{}, explain: true, tell: tell})
}

// Trace implements portals.Tracer.
func (t *tracer) Trace(ni *portals.NI, r *portals.TraceRecord) {
	if !t.explain {
		return
	}
	var f *iface
	for _, g := range t.ifaces {
		if g.ni == ni {
			f = g
		}
	}
	if f == nil {
		return
	}
	line := StepText(ni, f.nameOf, r)
	switch {
	case line == "" || t.err != nil:
	case t.tell != nil:
		t.tell(&Step{Process: f.owner.index, Text: line, Record: r, Name: f.nameOf})
	default:
		_, t.err = fmt.Fprintf(t.out, "  %d %s\n", f.owner.index, line)
	}
}

// StepText returns a line for a step of an interface. Steps that belong to a
// request are indented.
func StepText(ni *portals.NI, nameOf func(portals.Handle) string, r *portals.TraceRecord) string {
	switch r.What {
	case portals.TraceRequest:
		h := r.Header
		return fmt.Sprintf("%v from %v: pt %d, bits %#x, %d bytes, offset %d", h.Kind, nameOfProcess(ni, h.Initiator), h.PT,
			h.MatchBits, h.RLength, int64(h.RemoteOffset)) // negative rather than beyond 2^63
	case portals.TraceExamined:
		return fmt.Sprintf("  %v entry %s: %v", r.List, nameOf(r.Handle), r.Verdict)
	case portals.TraceMatched:
		d := r.Delivery
		return fmt.Sprintf("  delivered into %s at offset %d: %d of %d bytes", nameOf(r.Handle), int64(d.Offset), d.MLength,
			d.Header.RLength)
	case portals.TraceRefused:
		return fmt.Sprintf("  not delivered: %v", r.Delivery.Fail)
	case portals.TraceHeaderQueued:
		return fmt.Sprintf("  unexpected header queued: bits %#x", r.Header.MatchBits)
	case portals.TraceHeaderTaken:
		return fmt.Sprintf("  unexpected header taken: bits %#x", r.Header.MatchBits)
	case portals.TraceEvent:
		return fmt.Sprintf("  event in %s: %s", nameOf(r.Handle), eventText(ni, r.Event))
	case portals.TraceEventLost:
		return fmt.Sprintf("  no room in %s for: %s", nameOf(r.Handle), eventText(ni, r.Event))
	case portals.TraceCounter:
		return fmt.Sprintf("  counter %s: success %d, failure %d", nameOf(r.Handle), r.Counter.Success, r.Counter.Failure)
	case portals.TraceTriggered:
		return fmt.Sprintf("  triggered: %s", r.Text)
	case portals.TraceOpQueued:
		return fmt.Sprintf("  queued: %v to %v", r.Header.Kind, nameOfProcess(ni, r.Header.Target))
	case portals.TracePTDisabled:
		return fmt.Sprintf("  portal table entry %d disabled", r.PT)
	case portals.TracePTEnabled:
		return fmt.Sprintf("  portal table entry %d enabled", r.PT)
	}
	return ""
}
