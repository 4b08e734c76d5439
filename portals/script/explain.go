package script

import (
	"fmt"

	"github.com/spinsim/spinsim/portals"
)

// tracer prints explanations. It is the world seen as a portals.Tracer.
type tracer world

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
	if line := explainText(f, r); line != "" && t.err == nil {
		_, t.err = fmt.Fprintf(t.out, "  %d %s\n", f.owner.index, line)
	}
}

func explainText(f *iface, r *portals.TraceRecord) string {
	switch r.What {
	case portals.TraceRequest:
		h := r.Header
		return fmt.Sprintf("%v from %v: pt %d, bits %#x, %d bytes, offset %d", h.Kind, nameOfProcess(f, h.Initiator), h.PT,
			h.MatchBits, h.RLength, h.RemoteOffset)
	case portals.TraceExamined:
		return fmt.Sprintf("  %v entry %s: %v", r.List, f.nameOf(r.Handle), r.Verdict)
	case portals.TraceMatched:
		d := r.Delivery
		return fmt.Sprintf("  delivered into %s at offset %d: %d of %d bytes", f.nameOf(r.Handle), d.Offset, d.MLength,
			d.Header.RLength)
	case portals.TraceRefused:
		return fmt.Sprintf("  not delivered: %v", r.Delivery.Fail)
	case portals.TraceHeaderQueued:
		return fmt.Sprintf("  unexpected header queued: bits %#x", r.Header.MatchBits)
	case portals.TraceHeaderTaken:
		return fmt.Sprintf("  unexpected header taken: bits %#x", r.Header.MatchBits)
	case portals.TraceEvent:
		return fmt.Sprintf("  event in %s: %s", f.nameOf(r.Handle), eventText(f, r.Event))
	case portals.TraceEventLost:
		return fmt.Sprintf("  no room in %s for: %s", f.nameOf(r.Handle), eventText(f, r.Event))
	case portals.TraceCounter:
		return fmt.Sprintf("  counter %s: success %d, failure %d", f.nameOf(r.Handle), r.Counter.Success, r.Counter.Failure)
	case portals.TraceTriggered:
		return fmt.Sprintf("  triggered: %s", r.Text)
	case portals.TraceOpQueued:
		return fmt.Sprintf("  queued: %v to %v", r.Header.Kind, nameOfProcess(f, r.Header.Target))
	case portals.TracePTDisabled:
		return fmt.Sprintf("  portal table entry %d disabled", r.PT)
	case portals.TracePTEnabled:
		return fmt.Sprintf("  portal table entry %d enabled", r.PT)
	}
	return ""
}
