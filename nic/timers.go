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

// handle is the handler's name for the timer.
func (t *timer) handle() int64 { return int64(t.index | t.round<<timerBits) }

// timers are all timers of a NIC, by their indices.
type timers struct {
	all  []*timer
	idle []*timer // free ones
}

// take returns a timer for a message to self.
func (s *timers) take(i *issue, owner *Memory) *timer {
	var t *timer
	if k := len(s.idle) - 1; k >= 0 {
		t, s.idle = s.idle[k], s.idle[:k]
	} else {
		t = &timer{index: uint32(len(s.all))}
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
	t.issue.timer = nil
	t.issue, t.owner = nil, nil
	t.round = (t.round + 1) & timerRound
	s.idle = append(s.idle, t)
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

// cancel cancels a timer, unless it has expired. The message is dropped without
// events.
func (d *act) cancel(handle uint64, owner *Memory) {
	t := d.timers.find(handle, owner)
	if t == nil {
		return
	}
	t.Stop()
	i := t.issue
	d.timers.give(t)
	d.requests.commands--
	if i.completes != nil {
		i.completes.operationEnded(0, 0)
	}
	d.trace.forget(i.op)
	i.ni.Port.Cancel(i.op)
	d.core.releaseIssue(i)
}
