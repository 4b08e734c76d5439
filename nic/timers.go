package nic

import (
	"github.com/spinsim/spinsim/hpu"
	"github.com/spinsim/spinsim/sim"
)

// timer is a message to self at a later moment. Its program may cancel it.
type timer struct {
	sim.Timer
	issue *issue  // nil: it is free
	owner *Memory // the program's memory
	round uint32  // counts its uses, to recognize a handle of an earlier use
	index uint32
	taken bool // a handler has cancelled it, perhaps at a time still to come
}

// A timer handle has the timer's index in the lower bits and its round above.
const (
	timerBits  = 20 // nic.handler_commands is at most 2^20
	timerRound = 1<<(31-timerBits) - 1
)

// setTimer lets a message to self leave at time at. It returns the timer's
// handle.
func (d *act) setTimer(i *issue, owner *Memory, at sim.Time) int64 {
	var t *timer
	if k := len(d.idleTimers) - 1; k >= 0 {
		t, d.idleTimers = d.idleTimers[k], d.idleTimers[:k]
	} else {
		t = &timer{index: uint32(len(d.timers))}
		d.timers = append(d.timers, t)
	}
	t.issue, t.owner, t.taken = i, owner, false
	i.timer = t
	t.Init(d.engine, d.id, kindIssue, i)
	t.Set(at)
	return int64(t.index | t.round<<timerBits)
}

// timerOf finds the timer of a program's handle; nil: there is none.
func (d *act) timerOf(handle uint64, owner *Memory) *timer {
	index, round := handle&(1<<timerBits-1), uint32(handle>>timerBits)
	if index >= uint64(len(d.timers)) {
		return nil
	}
	if t := d.timers[index]; t.issue != nil && t.owner == owner && t.round == round {
		return t
	}
	return nil
}

// freeTimer ends the use of a timer that has expired or was cancelled.
func (d *act) freeTimer(t *timer) {
	t.issue.timer = nil
	t.issue, t.owner = nil, nil
	t.round = (t.round + 1) & timerRound
	d.idleTimers = append(d.idleTimers, t)
}

// cancelLater cancels a timer at the handler's own time.
func (d *act) cancelLater(r *run, handle uint64, at sim.Time) int64 {
	owner := r.task.in.handlers.memory
	t := d.timerOf(handle, owner)
	if t == nil || t.taken {
		return hpu.Invalid
	}
	t.taken = true
	i := d.core.issue()
	i.act, i.a, i.owner = hpu.OpTimerCancel, handle, owner
	d.post(at, kindIssue, 0, i)
	return hpu.OK
}

// cancel cancels a timer, unless it has expired. The message is dropped without
// events.
func (d *act) cancel(handle uint64, owner *Memory) {
	t := d.timerOf(handle, owner)
	if t == nil {
		return
	}
	t.Stop()
	i := t.issue
	d.freeTimer(t)
	d.commands--
	if i.completes != nil {
		i.completes.operationEnded(0, 0)
	}
	d.trace.forget(i.op)
	i.ni.Port.Cancel(i.op)
	d.core.releaseIssue(i)
}
