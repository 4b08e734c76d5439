package portals

// queues are the event queues of an interface.
type queues struct {
	all     table[eq]
	made    int
	witness witness
}

// post posts an event without a promised slot.
func (s *queues) post(h Handle, ev *Event) {
	q := s.all.get(h)
	if q == nil {
		return
	}
	if !q.room(1) {
		s.witness.traceEvent(TraceEventLost, h, ev)
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
	s.posted(h, ev)
}

// postPromised posts an event into a slot promised at Receive.
func (s *queues) postPromised(h Handle, ev *Event) {
	q := s.all.get(h)
	if q == nil {
		return
	}
	q.promised--
	q.push(ev, false)
	s.posted(h, ev)
}

func (s *queues) unpromise(h Handle, n int) {
	if q := s.all.get(h); q != nil {
		q.promised -= n
	}
}

// postDisabled posts PT_DISABLED. It always has room, because the queue grows
// by at most one slot for every PTEnable of the host.
func (s *queues) postDisabled(p *pt) {
	q := s.all.get(p.eq)
	if q == nil {
		return
	}
	ev := Event{Type: EventPTDisabled, Fail: NIPTDisabled, PTIndex: p.index}
	q.extra++
	q.push(&ev, true)
	s.posted(p.eq, &ev)
}

func (s *queues) posted(h Handle, ev *Event) {
	s.witness.traceEvent(TraceEvent, h, ev)
	if f := s.witness.hooks.EventPosted; f != nil {
		f(s.witness.ni, h)
	}
}

// promise reserves an event queue slot for a later event, if p has flow control
// and the queue has room.
func (s *queues) promise(p *pt) bool {
	q := s.all.get(p.eq)
	if q == nil || p.opts&OptPTFlowCtrl == 0 || !q.room(1) {
		return false
	}
	q.promised++
	return true
}

// promiseFor reserves the slots for a message: its communication event, and
// AUTO_UNLINK and AUTO_FREE of an entry that it uses up.
func (s *queues) promiseFor(p *pt, e *entry, d *Delivery, unlinks bool) bool {
	q := s.all.get(p.eq)
	if q == nil {
		return true
	}
	comm, unlink := 0, 0
	if e.opts&OptMEEventCommDisable == 0 && (e.opts&OptMEEventSuccessDisable == 0 || e.spin != nil) {
		comm = 1
	}
	if unlinks && e.opts&OptMEEventUnlinkDisable == 0 {
		unlink = 1
		if e.list == OverflowList {
			unlink = 2
		}
	}
	if !q.room(comm + unlink) {
		return false
	}
	q.promised += comm + unlink
	if comm > 0 {
		d.flags |= deliverySlot
	}
	e.slots += int32(unlink)
	return true
}

// delivered posts the communication event of a message.
func (s *queues) delivered(d *Delivery) {
	e := d.entry
	if e.opts&OptMEEventCommDisable != 0 || d.outcome == NIOK && e.opts&OptMEEventSuccessDisable != 0 {
		if d.is(deliverySlot) {
			s.unpromise(d.pt.eq, 1)
		}
		return
	}
	ev := eventOf(d.Header, deliveredEvent[d.kind])
	ev.Fail, ev.List, ev.UserPtr, ev.MLength = d.outcome, d.List, e.userPtr, d.landed
	ev.Start = e.region.Addr(d.Offset)
	if d.is(deliverySlot) {
		s.postPromised(d.pt.eq, &ev)
	} else {
		s.post(d.pt.eq, &ev)
	}
}

// exhausted ends a message for which a resource was exhausted. With flow
// control it disables p and posts one PT_DISABLED event, unless the entry has
// disabled that event.
func (s *queues) exhausted(p *pt, opts EntryOptions) FailType {
	if p.opts&OptPTFlowCtrl == 0 {
		return NIDropped
	}
	p.disabled = true
	s.witness.trace(TraceRecord{What: TracePTDisabled, PT: p.index})
	if opts&OptMEEventFlowCtrlDisable == 0 {
		s.postDisabled(p)
	}
	return NIPTDisabled
}
