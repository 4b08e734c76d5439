package runtime

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spinsim/spinsim/nic"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// Forever is the time-out of a poll that waits as long as it takes (PTL_TIME_FOREVER).
const Forever sim.Time = -1

// Not the handles of anything: what a process is parked for that has no single handle.
const (
	// it looks again at every event and count of its interfaces
	anyHandle    = ^portals.Handle(0) - iota
	memoryHandle // a change of HPU memory
	// at the end of every last message of a disabled portal table entry
	idleHandle
)

// EQWait (PtlEQWait, Portals 4.x §3.13.8) returns the next event of a queue. A
// core that finds one has looked at it for the poll time; while there is none
// it spins. ErrEQDropped comes together with the event that follows the gap;
// ErrAborted after Abort, ErrArgInvalid when the queue is freed meanwhile,
// ErrNoInit when the interface is shut down.
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
// counter have reached test, or when a failure has been counted. ErrAborted
// after Abort, ErrArgInvalid when the counter is freed meanwhile, ErrNoInit
// when the interface is shut down.
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

// EQPoll (PtlEQPoll, Portals 4.x §3.13.9) waits for an event on any of the
// queues, up to timeout, and returns it with the index of its queue. ErrEQEmpty
// when the time is over, otherwise errors as EQWait.
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

// EQWaitOrCT returns true as soon as a queue has an event, which stays there,
// or false when a counter reaches test before that. It is EQPoll and CTPoll at
// once: a core spins on both and, when one comes, has looked at it for the poll
// time, which EQWait charges for an event. Errors as CTWait.
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

// EQWaitOrOther returns true as soon as a queue has an event, which stays
// there, or false when a counter of another of the process's interfaces reaches
// test before that. It takes no look: whoever acts on what there is does.
// Errors as CTWait.
func (ni *NI) EQWaitOrOther(eq portals.Handle, other *NI, ct portals.Handle, test uint64) (event bool, err error) {
	for ni.core.EQLen(eq) == 0 {
		other.one.handle[0], other.one.test[0] = ct, test
		if _, _, err := other.core.CTPoll(other.one.handle[:], other.one.test[:]); !errors.Is(err, portals.ErrCTNoneReached) {
			return false, err
		}
		ni.one.handle[0] = eq
		ni.parkUntil(ni.one.handle[:], nil, Forever, 0)
	}
	return true, nil
}

// CTPoll (PtlCTPoll, Portals 4.x §3.14.6) waits until one of the counters has
// reached its test or counted a failure, up to timeout, and returns its value
// and index. ErrCTNoneReached when the time is over, otherwise errors as
// CTWait.
func (ni *NI) CTPoll(cts []portals.Handle, tests []uint64, timeout sim.Time) (portals.CTEvent, int, error) {
	return ni.CTPollAt(cts, tests, timeout, ni.proc.node.cluster.profile.Host.Poll)
}

// CTPollAt is CTPoll for what a look takes another time of, at least 0: a
// register of the interface, or a line that it has written into a cache.
func (ni *NI) CTPollAt(cts []portals.Handle, tests []uint64, timeout, look sim.Time) (portals.CTEvent, int, error) {
	deadline := ni.proc.Now() + timeout
	for {
		v, which, err := ni.core.CTPoll(cts, tests)
		if !errors.Is(err, portals.ErrCTNoneReached) || !ni.parkUntil(cts, tests, timeout, deadline) {
			ni.proc.compute(look, "poll")
			return v, which, err
		}
	}
}

// PTDisable (PtlPTDisable, Portals 4.x §3.7.3) makes a portal table entry
// refuse messages and returns when those under way are through, the handlers
// they run included, and their events are posted: none comes afterwards. If
// there were any the core has then looked at the end of the last for the poll
// time. ErrAborted when Abort is called meanwhile; the entry stays disabled.
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
func (ni *NI) looked() { ni.proc.compute(ni.proc.node.cluster.profile.Host.Poll, "poll") }

// await is what a process is parked for, kept for the report of a run that is stuck.
type await struct {
	ni      *NI
	test    uint64           // of a wait for a counter
	handles []portals.Handle // of a poll
	tests   []uint64         // of a poll of counters, nil for queues
	index   uint32           // of a portal table entry
	memory  *nic.Memory      // of the HPUs, with offset and bytes
	offset  uint64
	bytes   int
}

// park waits for a change of a queue or counter, or what else the handle stands for.
func (p *Proc) park(h portals.Handle) {
	p.waits = h
	p.thread.Spin("an interface")
	p.waits = portals.InvalidHandle
}

// parkUntil waits for any change of the process's interfaces; false: the time was over first.
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
	p.waits = anyHandle
	woken := p.thread.SpinUntil("an interface", deadline)
	p.waits = portals.InvalidHandle
	return woken
}

// waitingFor says what the process is parked for, how far that has come, whose
// it is, and what may have been lost that it waits for.
func (p *Proc) waitingFor() string {
	what := p.parkedFor()
	if id, err := p.nis[0].core.PhysID(); err == nil && what != "" {
		what += p.node.cluster.mayWaitFor(int(id.NID), id.PID)
	}
	return what
}

func (p *Proc) parkedFor() string {
	w := &p.wait
	switch {
	case p.waits == portals.InvalidHandle:
		return ""
	case p.waits == memoryHandle:
		return fmt.Sprintf("a change of %d bytes at offset %d of HPU memory of %s of rank %d", w.bytes, w.offset, w.memory.Name(), p.Rank())
	case p.waits == idleHandle:
		return fmt.Sprintf("portal table entry %d of %s (messages under way: %d)", w.index, w.ni.owner(), w.ni.Objects().PTBusy(w.index))
	case p.waits == anyHandle && len(w.handles) == 0:
		return "nothing: it polls no queue and no counter"
	case p.waits == anyHandle:
		return w.any() + " of " + w.ni.owner()
	case p.waits.Kind() == portals.KindCT:
		return w.ni.Objects().Title(p.waits) + " of " + w.ni.owner() + w.ni.progress(p.waits, w.test)
	}
	return "an event on " + w.ni.Objects().Title(p.waits) + " of " + w.ni.owner()
}

// anyShown is how many of the objects of a poll a report names.
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

// progress says how far a counter is: it has no failures, which would end the
// wait. If it has reached its test, a limit has ended the run before the
// program could see it.
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

// owner says whose an interface is: the rank, and the process and the interface
// where that has several.
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
