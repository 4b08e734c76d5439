package nic

import (
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/portals"
	"github.com/spinsim/spinsim/sim"
)

// timer is a message to self at a later moment, or a message at each multiple
// of a period. Its program may cancel it.
type timer struct {
	sim.Timer
	// the next message; nil: the timer is free, or it was cancelled while its
	// last message was being handled
	issue *issue
	owner *Memory // the program's memory
	round uint32  // counts its uses, to recognize a handle of an earlier use
	index uint32
	taken bool // a handler has cancelled it, perhaps at a time still to come
	act   *act

	// If it is periodic:
	period sim.Time // 0: it expires once
	next   sim.Time // the first expiry that no message stands for: start + k·period
	// how many expiries the message that is being handled stands for; 0: there
	// is none. No other message leaves before it has ended, so that a late
	// handler finds a count and not a queue.
	stands int64
	again  portals.HandlerOp // the message
}

// A timer handle has the timer's index in the lower bits and its round above.
const (
	timerBits  = 20 // nic.handler_commands is at most 2^20
	timerRound = 1<<(31-timerBits) - 1
)

// handle is the handler's name for the timer.
func (t *timer) handle() int64 { return int64(t.index | t.round<<timerBits) }

// timers are all timers of a NIC, by their indices.
type timers struct {
	all    []*timer
	idle   []*timer // free ones
	missed int64    // expiries of periodic timers that had no message of their own
}

// take returns a timer for a message to self.
func (s *timers) take(i *issue, owner *Memory, d *act) *timer {
	var t *timer
	if k := len(s.idle) - 1; k >= 0 {
		t, s.idle = s.idle[k], s.idle[:k]
	} else {
		t = &timer{index: uint32(len(s.all)), act: d}
		s.all = append(s.all, t)
	}
	t.issue, t.owner, t.taken = i, owner, false
	i.timer = t
	return t
}

// find finds the timer of a program's handle; nil: there is none.
func (s *timers) find(handle uint64, owner *Memory) *timer {
	index, round := handle&(1<<timerBits-1), uint32(handle>>timerBits)
	if index >= uint64(len(s.all)) {
		return nil
	}
	if t := s.all[index]; t.issue != nil && t.owner == owner && t.round == round {
		return t
	}
	return nil
}

// give ends the use of a timer that has expired or was cancelled.
func (s *timers) give(t *timer) {
	t.issue, t.owner, t.period, t.stands = nil, nil, 0, 0
	t.round = (t.round + 1) & timerRound
	s.idle = append(s.idle, t)
}

// timerAt sets a timer to a time, and then to each period after it. A time
// before at, the handler's own, has passed: the timer expires at once.
func (d *act) timerAt(r *run, a *hpu.Action, at sim.Time) int64 {
	if a.A > uint64(at+MaxTime) || a.B > uint64(MaxTime) || a.B > 0 && a.Desc.Options&optCompleteEntry != 0 {
		return hpu.Invalid
	}
	start, period := sim.Time(a.A), sim.Time(a.B)
	ho, result := d.checked(r, a.Op, &a.Desc)
	if result == hpu.OK {
		result = d.issueOp(r, a.Op, &a.Desc, &ho, max(at, start))
	}
	if result >= hpu.OK && period > 0 {
		t := d.timers.find(uint64(result), r.task.in.handlers.memory)
		t.next, t.period, t.again = start, period, ho
		d.trace.by(r, t, at)
	}
	return result
}

// expiries is how many expiries of a periodic timer the message stands for; 0:
// it is no such message.
func (in *inbound) expiries() int64 {
	if t := in.frame.timer; t != nil {
		return t.stands
	}
	return 0
}

// passed is how many expiries before a time have no message.
func (t *timer) passed(now sim.Time) int64 {
	if now <= t.next {
		return 0
	}
	return int64((now - t.next + t.period - 1) / t.period)
}

// expire lets the message of a periodic timer leave. The message stands for all
// expiries since the message before. The timer ends with its program.
func (t *timer) expire() {
	if t.owner.freed {
		t.cancel()
		return
	}
	d, i := t.act, t.issue
	t.stands = 1 + int64((d.now()-t.next)/t.period)
	t.next = t.next.Later(sim.Time(t.stands) * t.period)
	d.timers.missed += t.stands - 1
	t.issue = t.reissue(i)
	d.trace.expired(t, i.op)
	o := d.out.prepare(i.ni, i.op, i)
	o.frame.Self, o.frame.timer = true, t
	d.out.start(o)
	d.core.releaseIssue(i)
}

// reissue issues the message that follows the one of i. It is issued now and
// not when it leaves, so that its memory descriptor stays in use. Without an
// interface the timer ends, and the result is nil.
func (t *timer) reissue(i *issue) *issue {
	d := t.act
	d.out.drain()
	next, ho := d.core.issue(), &t.again
	if len(i.data) > 0 {
		next.data, next.page = d.core.keep(i.data)
		ho.Data = next.data
	}
	if i.ni.Port.Issue(ho) != nil {
		d.core.releaseIssue(next)
		return nil
	}
	next.act, next.ni, next.op, next.timer = i.act, i.ni, i.ni.Port.NextOp(), t
	next.op.Cause = i.op.Cause
	return next
}

// expiryEnded arms a periodic timer again when its message has been handled. An
// expiry at this moment has a message.
func (t *timer) expiryEnded() {
	t.stands = 0
	if t.issue == nil {
		t.act.requests.command(t.owner, -1)
		t.act.timers.give(t)
		return
	}
	t.Init(t.act.engine, t.act.id, kindIssue, t.issue)
	t.Set(t.next + sim.Time(t.passed(t.act.now()))*t.period)
}

// cancelLater cancels a timer at the handler's own time.
func (d *act) cancelLater(r *run, handle uint64, at sim.Time) int64 {
	owner := r.task.in.handlers.memory
	t := d.timers.find(handle, owner)
	if t == nil || t.taken {
		return hpu.Invalid
	}
	t.taken = true
	i := d.core.issue()
	i.act, i.a, i.owner = hpu.OpTimerCancel, handle, owner
	d.post(at, kindIssue, 0, i)
	return hpu.OK
}

// cancel drops the next message of a timer, without events. Its last one may
// still be handled: then the timer is free after that.
func (t *timer) cancel() {
	t.Stop()
	d, i := t.act, t.issue
	d.trace.forget(t)
	if t.period > 0 {
		d.timers.missed += t.passed(d.now())
	}
	if t.issue = nil; t.stands == 0 {
		d.requests.command(t.owner, -1)
		d.timers.give(t)
	}
	if i.completes != nil {
		i.completes.operationEnded(0, 0)
	}
	d.trace.forget(i.op)
	i.ni.Port.Cancel(i.op)
	d.core.releaseIssue(i)
}
