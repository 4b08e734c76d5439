package portals

// count adds to the counter h, if it lives. What that triggers runs at the end
// of the call in progress.
func (st *state) count(h Handle, success, failure uint64) {
	if h == CTNone {
		return
	}
	if c := st.cts.get(h); c != nil {
		st.setCT(c, CTEvent{c.value.Success + success, c.value.Failure + failure})
	}
}

// setCT changes a value and moves what it fires to the ready queue.
func (st *state) setCT(c *ct, value CTEvent) {
	c.value = value
	if st.traced {
		st.trace(TraceRecord{What: TraceCounter, Handle: c.handle, Counter: value})
	}
	if f := st.proc.cfg.Hooks.CounterChanged; f != nil {
		f(st.ni, c.handle)
	}
	for len(c.heap) > 0 && c.heap[0].threshold <= c.total() {
		st.fire(c.pop())
	}
}

// countEntry counts a communication or overflow event of an entry.
func (st *state) countEntry(opts EntryOptions, c Handle, counting EntryOptions, fail FailType, mlength uint64) {
	switch {
	case c == CTNone || opts&counting == 0:
	case fail != NIOK:
		st.count(c, 0, 1)
	case opts&OptMEEventCTBytes != 0:
		st.count(c, mlength, 0)
	default:
		st.count(c, 1, 0)
	}
}

// postEvent posts an event nobody promised a slot.
func (st *state) postEvent(h Handle, ev *Event) {
	q := st.eqs.get(h)
	if q == nil {
		return
	}
	if !q.room(1) {
		st.traceEvent(TraceEventLost, h, ev)
		if q.flowPTs > 0 || q.n == 0 {
			q.gap = true
			return
		}
		q.dropHead()
		q.push(ev, false)
		q.ring[q.head].gap = true
	} else {
		q.push(ev, false)
	}
	st.posted(h, ev)
}

// postPromised posts an event into a slot promised at Receive.
func (st *state) postPromised(h Handle, ev *Event) {
	q := st.eqs.get(h)
	if q == nil {
		return
	}
	q.promised--
	q.push(ev, false)
	st.posted(h, ev)
}

func (st *state) unpromise(h Handle, n int) {
	if q := st.eqs.get(h); q != nil {
		q.promised -= n
	}
}

// postPTDisabled posts PT_DISABLED, for which there is always room: the queue
// grows by at most one slot for every PTEnable of the host.
func (st *state) postPTDisabled(p *pt) {
	q := st.eqs.get(p.eq)
	if q == nil {
		return
	}
	ev := Event{Type: EventPTDisabled, Fail: NIPTDisabled, PTIndex: p.index}
	q.extra++
	q.push(&ev, true)
	st.posted(p.eq, &ev)
}

func (st *state) posted(h Handle, ev *Event) {
	st.traceEvent(TraceEvent, h, ev)
	if f := st.proc.cfg.Hooks.EventPosted; f != nil {
		f(st.ni, h)
	}
}

// initiatorEvent posts SEND, ACK or REPLY on a descriptor and counts it.
func (st *state) initiatorEvent(h Handle, ev *Event, bytes uint64, counting MDOptions, full bool) {
	m := st.mds.get(h)
	if m == nil {
		return
	}
	if ev.Fail == NIOK && m.opts&OptMDEventSuccessDisable != 0 ||
		ev.Type == EventSend && m.opts&OptMDEventSendDisable != 0 {
		full = false
	}
	if full {
		st.postEvent(m.eq, ev)
	}
	if m.opts&counting == 0 {
		return
	}
	switch {
	case ev.Fail != NIOK:
		st.count(m.ct, 0, 1)
	case m.opts&OptMDEventCTBytes != 0:
		st.count(m.ct, bytes, 0)
	default:
		st.count(m.ct, 1, 0)
	}
}

// promiseSlot holds one event queue slot for an event that has to wait, if p has
// flow control and the queue has room.
func (st *state) promiseSlot(p *pt) bool {
	q := st.eqs.get(p.eq)
	if q == nil || p.opts&OptPTFlowCtrl == 0 || !q.room(1) {
		return false
	}
	q.promised++
	return true
}
