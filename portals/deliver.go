package portals

import "github.com/spinsim/spinsim/internal/used"

// Acknowledge answers the initiator of an open delivery before its end, with
// the given fail type. It is for a handler that acknowledges itself: Finish
// then sends no acknowledgement. Acknowledge does nothing for requests that
// need no acknowledgement or whose answer carries data.
func (port *Port) Acknowledge(d *Delivery, fail FailType) {
	d.mark.Live("portals: a delivery")
	if !d.is(deliveryOpen) || d.kind.fetches() || !d.is(deliveryDue) {
		return
	}
	d.outcome, d.landed = fail, d.MLength
	port.answer(d)
	d.flags &^= deliveryDue
}

// Receive matches the header of a request and decides everything about its
// delivery: entry, list, offset, truncation, unlinking, unexpected header, flow
// control, violations (Portals 4.x §2.2). It never fails: a message without a
// place is a Delivery that is not Matched. Finish every Delivery, and do not
// change the header before.
func (port *Port) Receive(h *Header) *Delivery {
	d := port.deliveries.take(h)
	if port.witness.tracer != nil {
		port.witness.trace(TraceRecord{What: TraceRequest, Header: h, PT: h.PT})
	}
	if d.Fail = port.match(d); d.Fail != NIOK {
		port.refuse(d)
	} else if port.witness.tracer != nil {
		port.witness.trace(TraceRecord{What: TraceMatched, PT: h.PT, Delivery: d, Handle: d.Handle()})
	}
	return d
}

// refuse counts a message that is not delivered.
func (port *Port) refuse(d *Delivery) {
	switch d.Fail {
	case NIPermViolation:
		port.status[SRPermissionViolations]++
	case NIOpViolation:
		port.status[SROperationViolations]++
	default:
		port.status[SRDropCount]++
	}
	if port.witness.tracer != nil {
		port.witness.trace(TraceRecord{What: TraceRefused, PT: d.Header.PT, Delivery: d})
	}
}

func (port *Port) match(d *Delivery) FailType {
	h := d.Header
	if port.dead || !h.Kind.request() {
		return NIDropped
	}
	p := port.recent[h.PT&1]
	if p == nil || p.index != h.PT {
		if h.PT >= uint32(len(port.pts)) || port.pts[h.PT] == nil {
			return NIDropped
		}
		p = port.pts[h.PT]
		port.recent[h.PT&1] = p
	}
	if p.disabled {
		return NIPTDisabled
	}
	// The device has its own limits, whatever the initiator was granted.
	if h.Kind.isAtomic() && (h.RLength > port.proc.device.atomic(h.Kind) || checkAtomic(h.Kind, h.Op, h.Type, h.RLength) != "") {
		return NIOpViolation
	}
	if port.witness.tracer != nil {
		port.witness.explain(p, h)
	}
	list, e := PriorityList, p.priority.find(h)
	if e == nil && p.overflow != nil {
		list, e = OverflowList, p.overflow.find(h)
	}
	if e == nil {
		if port.Stranger != nil && port.Stranger(h.UID) && !p.admits(h) {
			return NIPermViolation
		}
		return port.queues.exhausted(p, 0)
	}
	e.mark.Live("portals: an entry")
	if !e.allowsUser(h) {
		return NIPermViolation
	}
	if !e.allowsOp(h) {
		return NIOpViolation
	}
	leavesHeader := list == OverflowList && e.opts&OptMEUnexpectedHdrDisable == 0
	port.proc.used.AddIf(leavesHeader, used.Unexpected)
	if leavesHeader && port.unexpectedCount >= port.limits.MaxUnexpectedHeaders {
		return port.queues.exhausted(p, e.opts)
	}
	return port.accept(p, e, d, list, leavesHeader)
}

// accept commits a message to an entry, if the event queue has room.
func (port *Port) accept(p *pt, e *entry, d *Delivery, list List, leavesHeader bool) FailType {
	h := d.Header
	off := e.offsetFor(h)
	mlength := uint64(0)
	if off < e.region.Length {
		mlength = min(h.RLength, e.region.Length-off)
	}
	if h.Kind.isAtomic() {
		mlength -= mlength % uint64(h.Type.Size())
	}
	local := e.opts&OptMEManageLocal != 0
	unlinks := e.opts&OptMEUseOnce != 0 || local && e.region.Length-off-mlength < e.minFree
	if p.opts&OptPTFlowCtrl != 0 && !port.queues.promiseFor(p, e, d, unlinks) {
		return port.queues.exhausted(p, e.opts)
	}
	d.flags |= deliveryMatched
	d.pt, d.entry, d.List, d.Spin, d.Offset, d.MLength = p, e, list, e.spin, off, mlength
	e.open++
	p.open++
	if local {
		e.offset = off + mlength
		d.flags |= deliveryOrdered
		d.older = e.lastOpen
		if e.lastOpen == nil {
			e.firstOpen = d
		} else {
			e.lastOpen.newer = d
		}
		e.lastOpen = d
	}
	if leavesHeader {
		d.header = port.newHeader(p, e, h, off, mlength)
	}
	if unlinks {
		e.autoUnlink()
	}
	if h.Kind == OpFetchAtomic || h.Kind == OpSwap {
		if uint64(cap(d.old)) < mlength {
			d.old = make([]byte, mlength)
		}
		d.old = d.old[:mlength]
		// handlers may take the data and leave the memory alone: nobody gets
		// values of another message
		clear(d.old)
	}
	return NIOK
}

// Write stores bytes of a message; off is their offset in the message. A put or
// reply is copied, an atomic is applied in place. Packets may come in any
// order, but those of an atomic must begin at multiples of the datatype's size.
// Write ignores bytes beyond MLength. If memory is inaccessible, the message
// fails with SEGV. Write returns how many bytes have landed, and whether these
// are all bytes up to MLength.
func (port *Port) Write(d *Delivery, off uint64, data []byte) (landed int, ok bool) {
	d.mark.Live("portals: a delivery")
	if !d.is(deliveryMatched) || off >= d.MLength {
		return 0, false
	}
	data = data[:min(uint64(len(data)), d.MLength-off)]
	landed = len(data)
	switch d.kind {
	case OpPut, OpReply:
		landed = writeMem(port.memory, d.Region(), d.Offset+off, data)
	case OpAtomic, OpFetchAtomic, OpSwap:
		landed = d.applyAtomic(port.memory, off, data)
	case OpGet, OpAck:
	}
	if landed < len(data) {
		d.flags |= deliverySegv
	}
	return landed, landed == len(data)
}

// Finish completes a delivery. It posts the communication event, counts,
// unlinks automatically, queues the acknowledgement or reply in the outbox, and
// then runs triggered operations (Portals 4.x §3.13.1). A get is complete only
// when its reply has been sent: Finish queues the reply, and Sent posts the
// event. On an entry that manages its offset, events come in the order of
// matching: a message that finishes early waits for the older ones. Do not use
// the Delivery afterwards, unless the outcome is pending.
func (port *Port) Finish(d *Delivery, o Outcome) {
	d.mark.Live("portals: a delivery")
	if !d.is(deliveryOpen) {
		panic("portals: Finish of a Delivery that is finished")
	}
	if o.Pending {
		d.keepHeader()
		if d.is(deliveryOrdered) && !port.dead { // it does not hold up the messages after it
			d.leaveOrder()
			port.completeReady(d.entry)
		}
		port.drain()
		return
	}
	if d.kind == OpReply {
		port.finishReply(d, o)
		return
	}
	d.outcome, d.landed = d.failure(o), o.Delivered
	if port.dead && d.Matched() {
		d.flags &^= deliveryMatched
		d.outcome, d.landed = NIDropped, 0
	}
	if o.Waits && d.Matched() && d.outcome == NIOK {
		d.flags |= deliveryWaits
		d.entry.note = o.Note
	}
	switch {
	case !d.Matched():
		port.answer(d)
		port.deliveries.release(d)
	case d.kind == OpGet:
		d.keepHeader()
		if d.outcome == NIOK && !port.readable(d) {
			d.outcome, d.landed = NISegv, 0
		}
		port.answer(d)
	default:
		port.complete(d)
	}
	port.drain()
}

// readable reports whether a get can read its memory. It checks only entries
// that may name inaccessible memory.
func (port *Port) readable(d *Delivery) bool {
	if port.limits.Features&FeatureTargetBindInaccessible == 0 || d.entry.opts&OptMEIsAccessible != 0 {
		return true
	}
	return accessible(port.memory, d.Region(), d.Offset, d.MLength, false)
}

// complete completes a delivery now or, on a locally managed entry, when the
// older ones are complete.
func (port *Port) complete(d *Delivery) {
	if port.dead {
		port.deliveries.release(d)
		return
	}
	if d.is(deliveryOrdered) {
		d.flags |= deliveryFinished
		if d.older != nil {
			d.keepHeader()
		}
		port.completeReady(d.entry)
		return
	}
	port.completeNow(d)
}

// completeReady completes the oldest deliveries of a locally managed entry, up
// to the first that is not finished.
func (port *Port) completeReady(e *entry) {
	for d := e.firstOpen; d != nil && d.is(deliveryFinished); {
		next := d.newer
		d.leaveOrder()
		port.completeNow(d)
		d = next
	}
}

func (port *Port) completeNow(d *Delivery) {
	e, p := d.entry, d.pt
	e.mark.Live("portals: an entry")
	waits := d.is(deliveryWaits) && d.outcome == NIOK
	if !waits {
		port.queues.delivered(d)
		if e.opts&OptMEEventCTComm != 0 {
			port.counters.countEntry(e.opts, e.ct, OptMEEventCTComm, d.outcome, d.landed)
		}
	} else if d.is(deliverySlot) {
		port.queues.unpromise(p.eq, 1)
	}
	if d.List == OverflowList && d.header != nil {
		port.headerDone(p, d.header, d.outcome, d.landed)
	}
	e.open--
	if e.waits = waits && e.opts&OptMEUseOnce != 0; e.waits {
		port.relink(p, e)
	}
	port.settle(e)
	if d.kind != OpGet {
		port.answer(d)
	}
	port.deliveries.release(d)
	p.open--
	if p.open == 0 && p.disabled {
		if f := port.witness.hooks.PTIdle; f != nil {
			f(port.ni, p.index)
		}
	}
}

// relink puts an entry back into its place if a message has used it up without
// completing it. It then serves another message: one that has left a header
// meanwhile, or the next.
func (port *Port) relink(p *pt, e *entry) {
	if e.state != entryUnlinked {
		return
	}
	port.queues.unpromise(p.eq, int(e.slots))
	e.slots = 0
	if e.list == PriorityList && p.headers.nextMatch(e, nil) != nil && port.roomForMatches(p, e) && port.takeMatches(p, e) {
		e.waits = false
		if e.claims > 0 && e.opts&OptMEEventUnlinkDisable == 0 && port.queues.promise(p) {
			e.slots++
		}
		return
	}
	e.state = entryLinked
	p.list(e.list).add(e)
}

// WaitingEntry is an entry that is used once and waits for another message,
// because handlers of the previous one asked for it (Outcome.Waits).
type WaitingEntry struct {
	PT      uint32
	UserPtr uint64
	Note    uint64 // of the message before
}

// WaitingEntries reports all waiting entries, in the order of the portal table
// and of the lists.
func (port *Port) WaitingEntries(report func(WaitingEntry)) {
	for _, p := range port.pts {
		for _, list := range []List{PriorityList, OverflowList} {
			if p == nil || port.dead || list == OverflowList && p.overflow == nil {
				continue
			}
			for n := p.list(list).head; n != nil; n = n.next {
				if n.entry.waits {
					report(WaitingEntry{p.index, n.entry.userPtr, n.entry.note})
				}
			}
		}
	}
}

// eventOf fills in the fields of an event that come from a request's header.
func eventOf(h *Header, t EventType) Event {
	ev := Event{
		Type: t, PTIndex: h.PT, HdrData: h.HdrData, MatchBits: h.MatchBits, RLength: h.RLength,
		RemoteOffset: h.RemoteOffset, UID: h.UID, Initiator: h.Initiator,
	}
	if h.Kind.isAtomic() {
		ev.AtomicOp, ev.AtomicType = h.Op, h.Type
	}
	return ev
}

// answer queues the acknowledgement or reply of a delivery, if one is due.
func (port *Port) answer(d *Delivery) {
	if !d.is(deliveryDue) {
		return
	}
	h := d.Header
	op := port.outbox.make()
	op.Header = *h
	r := &op.Header
	r.Kind = OpAck
	r.Initiator, r.Target = h.Target, h.Initiator
	r.Fail, r.List, r.MLength = d.outcome, d.List, d.landed
	r.RemoteOffset = d.Offset
	if h.Kind.fetches() {
		r.Kind = OpReply
		r.MLength = min(d.landed, d.MLength)
		if d.outcome != NIOK {
			r.MLength = 0
		}
		op.length = r.MLength
		switch {
		case h.Kind == OpGet && d.Matched():
			op.source, op.offset, op.delivery = d.entry.region, d.Offset, d
		case len(d.old) > 0 && op.length > 0:
			copy(op.keep(int(op.length)), d.old)
		}
	}
	port.queue(op)
}
