package portals

// TraceKind is what a TraceRecord tells.
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

// Verdict is why an entry does or does not take a request.
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

// String says it in words.
func (v Verdict) String() string { return nameOf(verdictNames, int(v)) }

// TraceRecord is one step of an explanation. Pointers are valid during the call
// only.
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

// Tracer is told what happens and why. A trace changes nothing but the time the
// simulator takes.
type Tracer interface {
	Trace(ni *NI, r *TraceRecord)
}

func (st *state) trace(r TraceRecord) {
	if st.traced {
		st.emit(r)
	}
}

func (st *state) emit(r TraceRecord) { st.tracer.Trace(st.ni, &r) }

func (st *state) traceEvent(k TraceKind, q Handle, ev *Event) {
	if st.traced {
		st.emitEvent(k, q, *ev)
	}
}

func (st *state) emitEvent(k TraceKind, q Handle, ev Event) {
	st.emit(TraceRecord{What: k, Handle: q, Event: &ev, PT: ev.PTIndex})
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
