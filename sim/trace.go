package sim

// TrackID names one line of a timeline.
type TrackID int32

// Arg is a named value of a span or an instant: the text if there is one, else
// the number.
type Arg struct {
	Key  string
	Num  int64
	Text string
}

// CauseKey is the key of an argument whose number is a second flow: the cause
// of a span or an instant.
const CauseKey = "cause"

// Tracer records a timeline. Package trace implements it. Models call it only
// inside `if eng.Tracing()`, so that a run without one allocates nothing.
// Recording must never change a result.
//
// A flow ties spans and instants of different tracks together (a message on its
// way through the nodes); 0 is no flow.
type Tracer interface {
	// Track returns the line name of the group (for instance "Rank", 3,
	// "NIC.HPU[1]"). It makes the line on the first call.
	Track(group string, groupID int, name string) TrackID
	// Span records that name lasted from from to to on t.
	Span(t TrackID, name string, from, to Time, flow uint64, args ...Arg)
	// Instant records that name happened at at on t.
	Instant(t TrackID, name string, at Time, flow uint64, args ...Arg)
	// Counter records that from at on the counter name of t has the given value.
	Counter(t TrackID, name string, at Time, value float64)
}

// SetTracer makes t record the run; nil turns recording off.
func (e *Engine) SetTracer(t Tracer) { e.tracer, e.tracing = t, t != nil }

// Tracing reports whether a tracer is set. It guards every call to a tracer.
func (e *Engine) Tracing() bool { return e.tracing }

// Tracer returns the tracer, nil if there is none.
func (e *Engine) Tracer() Tracer { return e.tracer }
