package breakdown

import (
	"math"
	"slices"

	"github.com/spinsim/spinsim/sim"
)

// Part is a part of the time of an operation.
type Part int

// The parts, in the order in which a message passes them.
const (
	Post    Part = iota // a core posts the operation
	Fetch               // the NIC reads the data of the message from host memory
	Wire                // a packet waits for the link, takes it, and crosses the network
	Match               // the NIC looks up the message's entry
	Wait                // a handler waits for a processor
	Handler             // a handler computes
	// data crosses to or from host memory at the receiver, for a packet or
	// for its handler
	Deposit
	Event   // the record of the message's end becomes visible
	Look    // a core looks at that record
	Compute // a core does other work for the operation: matches, copies, computes
	// the operating system: page faults, pins, interrupts, tasklets,
	// switches between programs
	System
	Disk  // storage reads or writes
	Timer // a program or a handler waits for its own timer
	Other // the cause is not known
	Parts // number of parts
)

// Times are the times of the parts.
type Times [Parts]sim.Time

// Sum returns the sum of all times.
func (t *Times) Sum() (sum sim.Time) {
	for _, d := range t {
		sum += d
	}
	return sum
}

// partNames and partHelp are the names and the descriptions of the parts.
var (
	partNames = [Parts]string{"post", "fetch", "wire", "match", "wait", "handler", "deposit", "record", "look", "compute", "os", "disk", "timer", "other"}
	partHelp  = [Parts]string{
		"a core posts operations on the way to the end of the operation",
		"the NIC reads the data of a message from host memory",
		"a packet waits for the link of its node, takes it, and crosses the network to the last byte",
		"the NIC looks for the message's entry, and for those of packets behind the header",
		"a handler that could run waits for a processor",
		"a handler computes, whatever comes of it",
		"data crosses between host memory and the NIC that receives, for a packet or for its handler, waiting for the bus included",
		"from the last of the data and of the handlers until the record of the message's end is visible to the host",
		"a core looks at that record, or at a counter",
		"a core does something else that the operation waits for: matching, copying, computing, another program",
		"the operating system works for it: brings absent pages in, pins memory, handles interrupts, gives the core to another program; or accesses of the NIC wait for that",
		"storage reads or writes, for a file or for pages that are not in memory; commands before it included",
		"a program or a handler waits for a time that it has set: a time-out, the pause behind an RNR NACK, a sleep",
		"nothing that one can follow",
	}
)

// String returns the name of the part.
func (p Part) String() string { return partNames[p] }

// Help describes the part in a clause.
func (p Part) Help() string { return partHelp[p] }

// Add adds other times.
func (t *Times) Add(more *Times) {
	for i, d := range more {
		t[i] += d
	}
}

// Divide divides the times by n, at least 1. The results add up to the sum
// divided by n, rounded down to a picosecond. To achieve this, each running sum
// is divided and rounded.
func (t *Times) Divide(n int) {
	sum, before := sim.Time(0), sim.Time(0)
	for i, d := range t {
		sum += d
		t[i] = sum/sim.Time(n) - before
		before += t[i]
	}
}

// walk goes back from the end of an operation to its beginning. Each step
// assigns the time between its old and its new position to one part. So no time
// is left out or counted twice, whatever the record contains.
type walk struct {
	*Record
	times    *Times
	from, at sim.Time
	steps    int
}

// place is the position of a walk: the event at walk.at. It returns the
// previous position.
type place func(w *walk) place

// maxSteps is the maximum number of steps of a walk without progress in time.
// After that the rest goes to Other.
const maxSteps = 1 << 20

// Path divides the time between from and to among the parts, and adds it to
// times. A program of node rank continued at to. The walk follows what it had
// waited for, and what that had waited for, back to the beginning. process is
// the name of the program; "": any.
func (r *Record) Path(times *Times, rank int, process string, from, to sim.Time) {
	w := &walk{Record: r, times: times, from: from, at: to}
	next := w.host(int32(rank), process)
	for next != nil && w.at > w.from && w.steps < maxSteps {
		w.steps++
		next = next(w)
	}
	w.take(Other, w.from)
}

// take assigns the time from back to the present position to a part.
func (w *walk) take(p Part, back sim.Time) {
	back = max(back, w.from)
	if back < w.at {
		w.times[p] += w.at - back
		w.at = back
		w.steps = 0
	}
}

// host is a program that continues at the present moment. It has worked until
// now, or an event woke it, or another program had its core. If none of these
// is known, it has slept.
func (w *walk) host(rank int32, process string) place {
	return func(w *walk) place {
		n := w.node(rank)
		before, last := n.workBefore(w.at, process)
		if before >= 0 && last.to == w.at {
			w.take(last.part, last.from)
			return w.host(rank, last.process)
		}
		if e := n.latest(w.at); e >= 0 && n.ends[e].at == w.at {
			return w.ended(rank, e)
		}
		if next := w.device(n); next != nil {
			return next
		}
		// it waited for its core or for the operating system
		if found, other := n.workBefore(w.at, ""); found >= 0 && other.to == w.at {
			w.take(other.part, other.from)
			return w.host(rank, other.process)
		}
		if before < 0 {
			return nil
		}
		p := Other
		if _, due := slices.BinarySearch(n.timers, w.at); due {
			p = Timer
		}
		w.take(p, last.to)
		return w.host(rank, last.process)
	}
}

// device returns the cause, other than NIC and cores, why a program or the
// operating system continues at the present moment: storage, the management
// network, or an access to an absent page. It is nil if there is none.
func (w *walk) device(n *nodeRecord) place {
	if i := lastAt(n.disks, w.at, func(c *command) sim.Time { return c.to }); i >= 0 {
		c := n.disks[i]
		return func(w *walk) place {
			w.take(Disk, c.from)
			return w.host(n.rank, c.process)
		}
	}
	if i := lastAt(n.frames, w.at, func(f *frame) sim.Time { return f.to }); i >= 0 {
		f := n.frames[i]
		return func(w *walk) place {
			w.take(Wire, f.from)
			return w.host(f.source, "")
		}
	}
	if i := lastAt(n.faults, w.at, func(f *fault) sim.Time { return f.at }); i >= 0 {
		m := w.messages[n.faults[i].flow]
		switch {
		case m == nil:
			return nil
		case m.source == n.rank && m.target != n.rank:
			return w.issued(m, Fetch)
		}
		return w.marked(m, len(m.marks), Deposit)
	}
	return nil
}

// lastAt returns the index of the last element at a time, or -1. The list is in
// the order of times.
func lastAt[T any](list []T, at sim.Time, of func(*T) sim.Time) int {
	i, _ := slices.BinarySearchFunc(list, at, func(x T, t sim.Time) int {
		if of(&x) <= t {
			return -1
		}
		return 1
	})
	if i--; i >= 0 && of(&list[i]) == at {
		return i
	}
	return -1
}

// workBefore returns the last work of a program that had ended at a time.
func (n *nodeRecord) workBefore(at sim.Time, process string) (int, work) {
	i, _ := slices.BinarySearchFunc(n.work, at, func(k work, t sim.Time) int {
		if k.to <= t {
			return -1
		}
		return 1
	})
	for i--; i >= 0; i-- {
		if process == "" || n.work[i].process == process {
			return i, n.work[i]
		}
	}
	return -1, work{}
}

// ended is an end at a node.
func (w *walk) ended(rank int32, i int) place {
	e := w.node(rank).ends[i]
	if e.of.Handler != sim.NoHandler {
		return w.task(e.of, all)
	}
	m := w.messages[e.of.Flow]
	switch {
	case m == nil:
		return nil
	case e.sent:
		w.take(Event, m.sent)
		return w.issued(m, Fetch)
	}
	return w.marked(m, len(m.marks), Event)
}

// marked is a stage of a message that follows one of its first marks: the
// latest mark up to now.
func (w *walk) marked(m *message, marks int, p Part) place {
	best := -1
	for i := range m.marks[:marks] {
		if k := &m.marks[i]; k.at <= w.at && (best < 0 || k.at >= m.marks[best].at) {
			best = i
		}
	}
	if best < 0 {
		return w.issued(m, Other)
	}
	k := m.marks[best]
	w.take(p, k.at)
	switch {
	case k.of.Handler != sim.NoHandler && k.landed:
		w.take(Deposit, k.from)
		return w.task(k.of, all)
	case k.of.Handler != sim.NoHandler:
		return w.task(k.of, all)
	case k.landed:
		found := m.packets[k.of.Packet].found
		if end := w.headerEnd(k.of); end > found && end <= w.at { // it waited for the header handler
			w.take(Deposit, end)
			return w.task(sim.Task{Flow: k.of.Flow}, all)
		}
		w.take(Deposit, found)
	}
	return w.passed(m, k.of.Packet)
}

func (w *walk) headerEnd(t sim.Task) sim.Time {
	if h := w.tasks[sim.Task{Flow: t.Flow}]; h != nil {
		return h.segments[len(h.segments)-1].to
	}
	return 0
}

// passed is a packet whose entry was found.
func (w *walk) passed(m *message, i int32) place {
	p := m.packets[i]
	w.take(Match, p.arrived)
	w.take(Wire, p.ready)
	return w.issued(m, Fetch)
}

// issued is a message whose data is being read, or was read.
func (w *walk) issued(m *message, p Part) place {
	if m.source < 0 {
		return nil
	}
	w.take(p, m.made)
	switch m.because {
	case sim.OfHandler:
		// a step of the walk, because a record may have causes in a circle
		if m.by.Handler == sim.NoHandler {
			return func(w *walk) place { return w.issued(w.message(m.by.Flow), Fetch) }
		}
		w.take(w.held(m), m.asked)
		return func(w *walk) place { return w.task(m.by, all) }
	case sim.OfEnd:
		if m.end >= 0 {
			return w.ended(m.source, m.end)
		}
	}
	return w.host(m.source, "")
}

// held returns the part for an operation's wait after its handler requested it:
// Deposit if data had to land, otherwise Timer.
func (w *walk) held(m *message) Part {
	if of := w.messages[m.by.Flow]; of != nil {
		for i := range of.marks {
			if k := &of.marks[i]; k.landed && k.at == m.made {
				return Deposit
			}
		}
	}
	return Timer
}

// all selects all segments of a handler.
const all = math.MaxInt

// task is a handler that has reached the present moment in one of its first
// segments.
func (w *walk) task(t sim.Task, segments int) place {
	h := w.tasks[t]
	if h == nil {
		return w.found(t)
	}
	k := min(segments, len(h.segments)) - 1
	for k >= 0 && h.segments[k].from > w.at {
		k--
	}
	if k < 0 {
		return w.found(t)
	}
	s := h.segments[k]
	w.take(Timer, s.to) // effects after the segment's end
	w.take(Handler, s.from)
	if k == 0 {
		return w.queued(t)
	}
	before := h.segments[k-1].to
	switch s.why {
	case sim.ForReply:
		if e := w.reply(t, before); e != nil {
			return e
		}
		w.take(Wire, before)
	case sim.ForEgress:
		w.take(Wire, before)
	case sim.ForOthers:
		w.take(Wait, before)
	default:
		w.take(Deposit, before)
	}
	return func(w *walk) place { return w.task(t, k) }
}

// reply returns the message whose end let a handler continue that had stopped
// at a time, or nil if it is not known.
func (w *walk) reply(t sim.Task, stopped sim.Time) place {
	m := w.messages[t.Flow]
	if m == nil || m.target < 0 {
		return nil
	}
	n := w.node(m.target)
	e := n.latest(w.at)
	if e < 0 || n.ends[e].at <= stopped || n.ends[e].of.Flow == t.Flow {
		return nil
	}
	w.take(Wait, n.ends[e].at)
	return w.ended(m.target, e)
}

// queued is a handler at its beginning. It waited for a processor since its
// packet was found, or since the previous handler ended.
func (w *walk) queued(t sim.Task) place {
	m := w.messages[t.Flow]
	if m == nil {
		return nil
	}
	switch t.Handler {
	case completionTask:
		marks := 0
		for marks < len(m.marks) && m.marks[marks].of != t {
			marks++
		}
		return w.marked(m, marks, Wait)
	case payloadTask:
		if end := w.headerEnd(t); end > w.passage(m, t).found && end <= w.at {
			w.take(Wait, end)
			return w.task(sim.Task{Flow: t.Flow}, all)
		}
	}
	return w.found(t)
}

// Handlers of a message.
const (
	payloadTask    = 1
	completionTask = 2
)

func (w *walk) passage(m *message, t sim.Task) passage {
	if int(t.Packet) < len(m.packets) {
		return m.packets[t.Packet]
	}
	return passage{}
}

// found is a handler that could begin as soon as its packet was found.
func (w *walk) found(t sim.Task) place {
	m := w.messages[t.Flow]
	if m == nil || int(t.Packet) >= len(m.packets) {
		return nil
	}
	w.take(Wait, m.packets[t.Packet].found)
	return w.passed(m, t.Packet)
}
