package portals

// TraceKind is the kind of a TraceRecord.
type TraceKind uint8

// Kinds of trace record, with the fields that are set.
const (
	TraceRequest      TraceKind = iota // a request arrived: Header, PT
	TraceExamined                      // an entry was compared with it: Handle, List, Verdict, Text
	TraceMatched                       // it is accepted: Delivery, Handle
	TraceRefused                       // it is not delivered: Delivery
	TraceHeaderQueued                  // an unexpected header was queued: Header
	TraceHeaderTaken                   // an unexpected header was taken: Header
	TraceEvent                         // an event was posted: Handle (queue), Event
	TraceEventLost                     // an event found no room: Handle (queue), Event
	TraceCounter                       // a counter changed: Handle, Counter
	TraceTriggered                     // a triggered operation fired: Text
	TraceOpQueued                      // an operation entered the outbox: Header
	TracePTDisabled                    // a portal table entry was disabled: PT
	TracePTEnabled                     // a portal table entry was enabled: PT
)

// Verdict is the reason why an entry takes or does not take a request.
type Verdict uint8

// Verdicts. The last three stop the search.
const (
	VerdictBits  Verdict = iota // match bits differ
	VerdictID                   // another initiator
	VerdictFit                  // NO_TRUNCATE and the request does not fit
	VerdictUser                 // matches, but the user id is not allowed
	VerdictOp                   // matches, but the operation is not allowed
	VerdictMatch                // matches
)

var verdictNames = []string{
	"bits differ", "other initiator", "does not fit", "matches, user not allowed", "matches, operation not allowed", "matches",
}

// String returns the verdict in words.
func (v Verdict) String() string { return nameOf(verdictNames, int(v)) }

// TraceRecord is one step of an explanation. Pointers are valid only during the
// call.
type TraceRecord struct {
	What     TraceKind
	PT       uint32
	Handle   Handle
	List     List
	Verdict  Verdict
	UserPtr  uint64 // of the entry examined
	Counter  CTEvent
	Header   *Header
	Delivery *Delivery
	Event    *Event
	Text     string
}

// Tracer receives every step, with its reason. A trace changes only the time
// that the simulator takes.
type Tracer interface {
	Trace(ni *NI, r *TraceRecord)
}

// witness reports the steps of an interface to the owner of its process and to
// the tracer.
type witness struct {
	ni     *NI // it is about
	hooks  *Hooks
	tracer Tracer // nil: no trace
}

func (w *witness) trace(r TraceRecord) {
	if w.tracer != nil {
		w.emit(r)
	}
}

func (w *witness) emit(r TraceRecord) { w.tracer.Trace(w.ni, &r) }

func (w *witness) traceEvent(k TraceKind, q Handle, ev *Event) {
	if w.tracer != nil {
		w.emitEvent(k, q, *ev)
	}
}

func (w *witness) emitEvent(k TraceKind, q Handle, ev Event) {
	w.emit(TraceRecord{What: k, Handle: q, Event: &ev, PT: ev.PTIndex})
}

func (w *witness) interrupted(h Handle) {
	if f := w.hooks.Interrupted; f != nil {
		f(w.ni, h)
	}
}

// explain walks the lists as a device without an index would. It reports the
// verdict on every entry up to the one that decides.
func (w *witness) explain(p *pt, h *Header) {
	id := initiatorKey(h)
	for _, list := range []List{PriorityList, OverflowList} {
		for n := p.list(list).head; n != nil; n = n.next {
			v := n.entry.verdict(h, id)
			w.trace(TraceRecord{
				What: TraceExamined, PT: p.index, Handle: n.entry.handle, List: list, Verdict: v,
				UserPtr: n.entry.userPtr,
			})
			if v >= VerdictUser {
				return
			}
		}
	}
}

func (e *entry) verdict(h *Header, id uint64) Verdict {
	switch {
	case (h.MatchBits^e.matchBits)&^e.ignoreBits != 0:
		return VerdictBits
	case id&e.idMask != e.idKey:
		return VerdictID
	case e.opts&OptMENoTruncate != 0 && !e.fits(h):
		return VerdictFit
	case !e.allowsUser(h):
		return VerdictUser
	case !e.allowsOp(h):
		return VerdictOp
	}
	return VerdictMatch
}
