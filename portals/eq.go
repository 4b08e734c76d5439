package portals

import "github.com/spinsim/spinsim/internal/used"

// eq is an event queue: a ring that grows up to its capacity. Slots promised to
// messages during their delivery are reserved for them.
//
// Without a flow-controlled portal table entry, a queue is circular: a new
// event overwrites the oldest (Portals 4.x §3.13.3). A queue with flow control
// keeps its old events, because they belong to accepted messages, and loses a
// new event without a promised slot. In both cases the next event after the gap
// comes with ErrEQDropped.
type eq struct {
	handle   Handle
	title    title
	capacity uint64 // slots asked for
	ring     []eqSlot
	head, n  int
	promised int
	extra    int  // PT_DISABLED events in the queue: they use no ordinary slot
	flowPTs  int  // flow-controlled portal table entries attached
	gap      bool // events were lost after the newest one
	passed   int  // polls that preferred a queue of lower index
}

type eqSlot struct {
	ev    Event
	gap   bool // events were lost before this one
	extra bool // PT_DISABLED: not counted against the capacity
}

const (
	firstEQSlots = 8
	// maxEQSlots bounds the memory that a caller can make the simulator
	// allocate.
	maxEQSlots = 1 << 30
	// pollPatience is how often EQPoll may prefer a queue of lower index to
	// another queue with an event. CTPoll does the same for counters that have
	// reached their tests.
	pollPatience = 8
)

// EQAlloc (PtlEQAlloc) makes an event queue of at least count events, and at
// least one. Errors: ErrNoInit; ErrNoSpace if there are max_eqs queues, or no
// machine could hold so many events.
func (ni *Objects) EQAlloc(count uint64) (Handle, error) {
	if ni.dead {
		return InvalidHandle, ErrNoInit
	}
	ni.proc.used.Add(used.Queue)
	if ni.queues.all.live >= ni.limits.MaxEQs {
		return InvalidHandle, exhaustedLimit(ErrNoSpace, "max_eqs", ni.limits.MaxEQs)
	}
	if count > maxEQSlots {
		return InvalidHandle, ErrNoSpace
	}
	q := &eq{capacity: max(count, 1), title: title{number: ni.queues.made}}
	ni.queues.made++
	q.handle = ni.queues.all.add(q)
	return q.handle, nil
}

// EQFree (PtlEQFree) frees an event queue. Later events of descriptors and
// portal table entries that still name it are discarded, and waits for it are
// interrupted. Errors: ErrNoInit, ErrArgInvalid.
func (ni *Objects) EQFree(h Handle) error {
	if _, err := ni.eqOf("EQFree", h); err != nil {
		return err
	}
	ni.queues.all.remove(h)
	ni.witness.interrupted(h)
	return nil
}

// EQGet (PtlEQGet) takes the oldest event. Errors: ErrNoInit, ErrArgInvalid,
// ErrEQEmpty; ErrEQDropped, together with an event, if events before it were
// lost.
func (ni *Objects) EQGet(h Handle) (Event, error) {
	q, err := ni.eqOf("EQGet", h)
	if err != nil {
		return Event{}, err
	}
	return q.take()
}

// EQPoll is one step of PtlEQPoll, and of PtlEQWait for a single queue. It
// takes the oldest event of the first queue that has one, and returns the
// queue's index. If a queue of higher index has an event too, EQPoll passes
// over it a few times at most. ErrEQEmpty means that the caller waits for the
// EventPosted hook or its time-out. Other errors: ErrNoInit; ErrEQDropped as
// EQGet; ErrAborted after Abort; ErrArgInvalid if a handle names no queue, for
// example because the queue was freed during the wait.
func (ni *NI) EQPoll(hs []Handle) (Event, int, error) {
	if ni.proc.aborted {
		return Event{}, 0, ErrAborted
	}
	if ni.dead {
		return Event{}, 0, ErrNoInit
	}
	first, starved := -1, -1
	for i, h := range hs {
		q, err := ni.eqOf("EQPoll", h)
		if err != nil {
			return Event{}, 0, err
		}
		if q.n == 0 {
			continue
		}
		if first < 0 {
			first = i
		}
		if starved < 0 && q.passed >= pollPatience {
			starved = i
		}
	}
	if first < 0 {
		return Event{}, 0, ErrEQEmpty
	}
	which := first
	if starved >= 0 {
		which = starved
	}
	for i, h := range hs {
		if q := ni.queues.all.get(h); i != which && q.n > 0 {
			q.passed++
		}
	}
	q := ni.queues.all.get(hs[which])
	q.passed = 0
	ev, err := q.take()
	return ev, which, err
}

// EQLen returns the number of events in a queue, 0 if the handle names none.
func (ni *Objects) EQLen(h Handle) int {
	if q := ni.queues.all.get(h); q != nil {
		return q.n
	}
	return 0
}

func (q *eq) dropHead() {
	s := &q.ring[q.head]
	if s.extra {
		q.extra--
	}
	q.head++
	if q.head == len(q.ring) {
		q.head = 0
	}
	q.n--
}

// room reports whether n more ordinary events can be promised.
func (q *eq) room(n int) bool {
	return uint64(q.n-q.extra+q.promised+n) <= q.capacity
}

func (q *eq) push(ev *Event, extra bool) {
	if q.n == len(q.ring) {
		bigger := make([]eqSlot, max(firstEQSlots, 2*len(q.ring)))
		for i := range q.n {
			bigger[i] = q.ring[(q.head+i)%len(q.ring)]
		}
		q.ring, q.head = bigger, 0
	}
	i := q.head + q.n
	if i >= len(q.ring) {
		i -= len(q.ring)
	}
	s := &q.ring[i]
	s.ev, s.gap, s.extra = *ev, q.gap, extra
	q.gap = false
	q.n++
}

func (q *eq) take() (Event, error) {
	if q.n == 0 {
		return Event{}, ErrEQEmpty
	}
	s := &q.ring[q.head]
	ev, gap := s.ev, s.gap
	q.dropHead()
	if gap {
		return ev, ErrEQDropped
	}
	return ev, nil
}
