package runtime

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/internal/used"
	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// Forever is the time-out of a poll without a time-out (PTL_TIME_FOREVER).
const Forever sim.Time = -1

// Values that are no object's handle: a process parks on them when it waits for
// no single object.
const (
	// wakes at every event and count of the process's interfaces
	anyHandle    = ^portals.Handle(0) - iota
	memoryHandle // wakes at a change of HPU memory
	// wakes at the end of the last message of a disabled portal table entry
	idleHandle
)

// EQWait (PtlEQWait, Portals 4.x §3.13.8) returns the next event of a queue.
// The core spins until there is one, and then takes the poll time to look at
// it. Errors: ErrEQDropped together with the first event after a gap;
// ErrAborted after Abort; ErrArgInvalid if the queue is freed meanwhile;
// ErrNoInit if the interface is shut down.
func (ni *NI) EQWait(eq portals.Handle) (portals.Event, error) {
	for {
		ev, _, err := ni.core.EQPoll([]portals.Handle{eq})
		if !errors.Is(err, portals.ErrEQEmpty) {
			ni.looked()
			return ev, err
		}
		ni.proc.wait.ni = ni
		ni.proc.park(eq)
	}
}

// CTWait (PtlCTWait, Portals 4.x §3.14.5) returns when the successes of a
// counter reach test, or when a failure is counted. Errors: ErrAborted after
// Abort; ErrArgInvalid if the counter is freed meanwhile; ErrNoInit if the
// interface is shut down.
func (ni *NI) CTWait(ct portals.Handle, test uint64) (portals.CTEvent, error) {
	for {
		v, _, err := ni.core.CTPoll([]portals.Handle{ct}, []uint64{test})
		if !errors.Is(err, portals.ErrCTNoneReached) {
			ni.looked()
			return v, err
		}
		ni.proc.wait.ni, ni.proc.wait.test = ni, test
		ni.proc.park(ct)
	}
}

// EQPoll (PtlEQPoll, Portals 4.x §3.13.9) waits up to timeout for an event on
// any of the queues. It returns the event and the index of its queue.
// ErrEQEmpty: the time-out passed. Other errors as EQWait.
func (ni *NI) EQPoll(eqs []portals.Handle, timeout sim.Time) (portals.Event, int, error) {
	deadline := ni.proc.Now() + timeout
	for {
		ev, which, err := ni.core.EQPoll(eqs)
		if !errors.Is(err, portals.ErrEQEmpty) || !ni.parkUntil(eqs, nil, timeout, deadline) {
			ni.looked()
			return ev, which, err
		}
	}
}

// EQWaitOrCT returns true when a queue has an event, and leaves the event
// there. It returns false when a counter reaches test first. It is EQPoll and
// CTPoll at once: the core spins on both. For the counter it takes the poll
// time; for an event EQWait takes it later. Errors as CTWait.
func (ni *NI) EQWaitOrCT(eq, ct portals.Handle, test uint64) (event bool, err error) {
	for ni.core.EQLen(eq) == 0 {
		if _, _, err := ni.core.CTPoll([]portals.Handle{ct}, []uint64{test}); !errors.Is(err, portals.ErrCTNoneReached) {
			ni.looked()
			return false, err
		}
		ni.parkUntil([]portals.Handle{eq, ct}, nil, Forever, 0)
	}
	return true, nil
}

// Counter is a counter of an interface of the process, and the successes that
// somebody waits for.
type Counter struct {
	NI   *NI
	CT   portals.Handle
	Test uint64
}

// EQWaitOrOther returns -1 when a queue has an event, and leaves the event
// there. It returns the index of a counter that reaches its test first. It
// takes no poll time: the caller pays when it handles the event or the count.
// Errors as CTWait.
func (ni *NI) EQWaitOrOther(eq portals.Handle, others ...Counter) (which int, err error) {
	for ni.core.EQLen(eq) == 0 {
		if i, err := reached(others); !errors.Is(err, portals.ErrCTNoneReached) {
			return i, err
		}
		ni.one.handle[0] = eq
		ni.parkUntil(ni.one.handle[:], nil, Forever, 0)
	}
	return -1, nil
}

// reached returns the first counter that has reached its test.
func reached(list []Counter) (int, error) {
	for i, c := range list {
		c.NI.one.handle[0], c.NI.one.test[0] = c.CT, c.Test
		if _, _, err := c.NI.core.CTPoll(c.NI.one.handle[:], c.NI.one.test[:]); !errors.Is(err, portals.ErrCTNoneReached) {
			return i, err
		}
	}
	return 0, portals.ErrCTNoneReached
}

// CTPollOrOther is CTPollAt without a time for the look. It also returns, with
// ErrCTNoneReached, when one of the other counters reaches its test.
func (ni *NI) CTPollOrOther(cts []portals.Handle, tests []uint64, timeout sim.Time, others ...Counter) error {
	deadline := ni.proc.Now() + timeout
	for {
		if _, _, err := ni.core.CTPoll(cts, tests); !errors.Is(err, portals.ErrCTNoneReached) {
			return err
		}
		_, err := reached(others)
		if err == nil {
			return portals.ErrCTNoneReached
		}
		if !errors.Is(err, portals.ErrCTNoneReached) || !ni.parkUntil(cts, tests, timeout, deadline) {
			return err
		}
	}
}

// CTPoll (PtlCTPoll, Portals 4.x §3.14.6) waits up to timeout until one of the
// counters reaches its test or counts a failure. It returns the value and index
// of that counter. ErrCTNoneReached: the time-out passed. Other errors as
// CTWait.
func (ni *NI) CTPoll(cts []portals.Handle, tests []uint64, timeout sim.Time) (portals.CTEvent, int, error) {
	return ni.CTPollAt(cts, tests, timeout, ni.proc.Reads(used.Look).Host.Poll)
}

// CTPollAt is CTPoll where a look takes the time look, at least 0, instead of
// the poll time. For example, the counter is a register of the interface, or a
// cache line that the interface has written.
func (ni *NI) CTPollAt(cts []portals.Handle, tests []uint64, timeout, look sim.Time) (portals.CTEvent, int, error) {
	deadline := ni.proc.Now() + timeout
	for {
		v, which, err := ni.core.CTPoll(cts, tests)
		if !errors.Is(err, portals.ErrCTNoneReached) || !ni.parkUntil(cts, tests, timeout, deadline) {
			ni.proc.thread.Run(look, "poll")
			return v, which, err
		}
	}
}

// PTDisable (PtlPTDisable, Portals 4.x §3.7.3) makes a portal table entry
// refuse messages. It returns after the messages in flight and their handlers
// have ended and their events are posted; no event comes later. If there were
// any, the core takes the poll time to see the end of the last. ErrAborted:
// Abort was called meanwhile; the entry stays disabled.
func (ni *NI) PTDisable(index uint32) error {
	if err := ni.core.PTDisable(index); err != nil {
		return err
	}
	err := ni.core.PTIdle(index)
	if err == nil {
		return nil
	}
	for ; errors.Is(err, portals.ErrInUse); err = ni.core.PTIdle(index) {
		ni.proc.wait.ni, ni.proc.wait.index = ni, index
		ni.proc.park(idleHandle)
	}
	ni.looked()
	return err
}

// looked takes the time of one look at a completion.
func (ni *NI) looked() { ni.proc.thread.Run(ni.proc.Reads(used.Look).Host.Poll, "poll") }

// await is what a parked process waits for. The report of a stuck run prints it.
type await struct {
	handle  portals.Handle // queue or counter; portals.InvalidHandle: it does not wait
	ni      *NI
	test    uint64           // of a wait on a counter
	handles []portals.Handle // of a poll
	tests   []uint64         // of a poll of counters, nil for queues
	index   uint32           // of a portal table entry
	memory  *nic.Memory      // HPU memory, with offset and bytes
	offset  uint64
	bytes   int
}

// park waits for a change of the queue, the counter or the special handle h.
func (p *Proc) park(h portals.Handle) {
	p.wait.handle = h
	p.thread.Spin("an interface")
	p.wait.handle = portals.InvalidHandle
}

// parkUntil waits for any change of the process's interfaces. It returns false
// if the deadline comes first.
func (ni *NI) parkUntil(hs []portals.Handle, tests []uint64, timeout, deadline sim.Time) bool {
	p := ni.proc
	p.wait.ni, p.wait.handles, p.wait.tests = ni, hs, tests
	if timeout < 0 {
		p.park(anyHandle)
		return true
	}
	if p.Now() >= deadline {
		return false
	}
	p.wait.handle = anyHandle
	woken := p.thread.SpinUntil("an interface", deadline)
	p.wait.handle = portals.InvalidHandle
	return woken
}

// waitingFor describes what the process waits for, its progress, its owner, and
// messages whose loss may explain the wait.
func (p *Proc) waitingFor() string {
	what := p.wait.describe(p.Rank())
	if id, err := p.nis[0].core.PhysID(); err == nil && what != "" {
		what += p.node.cluster.mayWaitFor(int(id.NID), id.PID)
	}
	return what
}

// describe names what a process of a rank waits for; "": it does not wait.
func (w *await) describe(rank int) string {
	switch {
	case w.handle == portals.InvalidHandle:
		return ""
	case w.handle == memoryHandle:
		return fmt.Sprintf("a change of %d bytes at offset %d of HPU memory of %s of rank %d", w.bytes, w.offset, w.memory.Name(), rank)
	case w.handle == idleHandle:
		return fmt.Sprintf("portal table entry %d of %s (messages under way: %d)", w.index, w.ni.owner(), w.ni.Objects().PTBusy(w.index))
	case w.handle == anyHandle && len(w.handles) == 0:
		return "nothing: it polls no queue and no counter"
	case w.handle == anyHandle:
		return w.any() + " of " + w.ni.owner()
	case w.handle.Kind() == portals.KindCT:
		return w.ni.Objects().Title(w.handle) + " of " + w.ni.owner() + w.ni.progress(w.handle, w.test)
	}
	return "an event on " + w.ni.Objects().Title(w.handle) + " of " + w.ni.owner()
}

// anyShown is how many objects of a poll a report names.
const anyShown = 4

// any names the objects of a poll.
func (w *await) any() string {
	var all []string
	for i, h := range w.handles {
		if i == anyShown {
			all = append(all, fmt.Sprintf("%d more", len(w.handles)-i))
			break
		}
		text := w.ni.Objects().Title(h)
		if w.tests != nil {
			text += w.ni.progress(h, w.tests[i])
		}
		all = append(all, text)
	}
	text := strings.Join(all, " or ")
	if w.tests == nil {
		return "an event on " + text
	}
	return text
}

// progress describes how far a counter is. The counter has no failures: a
// failure would end the wait. If it has reached its test, a limit ended the run
// before the program saw it.
func (ni *NI) progress(ct portals.Handle, test uint64) string {
	v, err := ni.Objects().CTGet(ct)
	if err != nil {
		return ""
	}
	if v.Success >= test {
		return fmt.Sprintf(" (threshold %d, reached, but the program has not gone on yet)", test)
	}
	return fmt.Sprintf(" (threshold %d, at %d)", test, v.Success)
}

// owner describes the owner of an interface: the rank, and the process and the
// interface if there are several.
func (ni *NI) owner() string {
	p := ni.proc
	text := fmt.Sprintf("rank %d", p.Rank())
	if len(p.node.procs) > 1 {
		text += " " + p.name
	}
	if len(p.nis) > 1 {
		text = ni.Objects().Options().String() + " interface of " + text
	}
	return text
}
