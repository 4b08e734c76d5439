package sim

// Timer is an event that can be postponed, stopped and set again, as often as
// needed. At most one valid event of it is in the queue. A stopped event
// changes nothing: even the present time stays. The zero value needs Init.
type Timer struct {
	eng        *Engine
	owner      ID
	kind       Kind
	p          any
	due        Time
	set        bool
	queued     bool   // an event of the present generation is in the queue
	posted     Time   // time of that event
	generation uint64 // of that event; older ones are void
}

// Init sets the event of the timer: owner posts it to itself.
func (t *Timer) Init(e *Engine, owner ID, k Kind, p any) {
	*t = Timer{eng: e, owner: owner, kind: k, p: p, generation: t.generation + 1}
}

// Set makes the event come at time at, which is not in the past, and at no
// other time. Among the events of one time its place is by the time of posting:
// when the timer was last set to an earlier time than before, or when its
// former time came.
func (t *Timer) Set(at Time) {
	t.due, t.set = at, true
	if !t.queued || at < t.posted {
		t.post()
	}
}

// Stop cancels the event.
func (t *Timer) Stop() { t.set = false }

// Due returns when the event comes. False: it does not come.
func (t *Timer) Due() (Time, bool) { return t.due, t.set }

func (t *Timer) post() {
	t.generation++
	t.queued, t.posted = true, t.due
	t.eng.Post(t.due, t.owner, t.owner, kindTimer, t.generation, 0, t)
}

// void reports whether ev, an event of the timer, does nothing.
func (t *Timer) void(ev *Event) bool { return ev.A != t.generation || !t.set || t.due > ev.Time }

// expire handles an event of a timer.
func (e *Engine) expire(ev *Event) {
	t := ev.P.(*Timer)
	if ev.A != t.generation {
		return
	}
	t.queued = false
	if t.void(ev) {
		if t.set {
			t.post()
		}
		return
	}
	t.set = false
	e.now = ev.Time
	e.handled++
	ev.Kind, ev.A, ev.P = t.kind, 0, t.p
	e.actors[t.owner].Handle(ev)
}
