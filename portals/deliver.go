package portals

import "github.com/spinsim/spinsim/internal/poison"

// Delivery is a message under delivery: a request between Receive and the final
// Finish, or a reply between ReplyTo and Finish. Deliveries of one interface
// may be open at the same time and finish in any order.
type Delivery struct {
	mark    poison.Mark
	Header  Header   // the message's header
	Fail    FailType // why it is not delivered; NIOK when it is
	List    List     // list it matched in
	Handle  Handle   // entry it matched; reply: the get's descriptor
	UserPtr uint64   // user pointer of the entry; reply: of the operation
	Offset  uint64   // where it lands in the entry or descriptor
	MLength uint64   // bytes to land, after truncation
	Spin    *Spin    // handlers of the entry, nil for none
	Cookie  uint64   // reply: HandlerOp.Cookie of the operation, 0 for host operations

	owner    *NI
	matched  bool
	reply    bool
	open     bool
	pt       *pt
	entry    *entry
	region   Region
	header   *unexpected
	old      []byte // previous values, fetching atomics
	buf      []byte // recycled storage of old
	segv     bool
	slot     bool // an event queue slot is promised
	ordered  bool // locally managed: in the entry's order of matching
	finished bool // and waiting for older deliveries
	outcome  FailType
	landed   uint64
	older    *Delivery
	newer    *Delivery
}

// Matched reports whether the message has a place to go. If not, Fail says why,
// and Finish answers the initiator.
func (d *Delivery) Matched() bool { return d.matched }

// Region returns the memory of the entry (reply: of the descriptor), whole.
// Offsets of handlers count from its beginning.
func (d *Delivery) Region() *Region {
	d.mark.Live("portals: a delivery")
	return &d.region
}

// Segments iterates over the host memory of n bytes of the message from offset
// off in the message. It ends with MLength.
func (d *Delivery) Segments(off, n uint64) SegIter {
	if off >= d.MLength {
		return SegIter{}
	}
	return d.region.Segments(d.Offset+off, min(n, d.MLength-off))
}

// Done is the outcome of a message delivered as its header says: MLength bytes,
// and the failure of the delivery if there is one.
func (d *Delivery) Done() Outcome { return Outcome{Delivered: d.MLength, Fail: d.Fail} }

// Outcome is how the delivery of a message ended.
type Outcome struct {
	Delivered uint64   // bytes really delivered; reported as mlength
	Fail      FailType // NIOK, or what the communication event reports
	// Pending: the entry is not completed by this message; the communication
	// event, the counters and the answer wait for a second Finish of the same
	// delivery (sPIN'17 §2, the _PENDING return codes).
	Pending bool
}

func (ni *NI) newDelivery(h *Header) *Delivery {
	d := ni.delivPool.get()
	*d = Delivery{Header: *h, owner: ni, open: true, buf: d.buf}
	return d
}

func (ni *NI) freeDelivery(d *Delivery) {
	d.open, d.matched = false, false
	d.entry, d.pt, d.header, d.Spin, d.old = nil, nil, nil, nil, nil
	d.region.IOVec = nil
	if d.mark.Release("portals: a delivery"); poison.On {
		*d = Delivery{mark: d.mark}
	}
	ni.delivPool.put(d)
}

// failure is the fail type to report.
func (d *Delivery) failure(o Outcome) FailType {
	switch {
	case o.Fail != NIOK:
		return o.Fail
	case d.segv:
		return NISegv
	}
	return d.Fail
}

// Receive matches the header of a request and decides everything about its
// delivery: entry, list, offset, truncation, unlinking, unexpected header, flow
// control, violations (Portals 4.x §2.2). It never fails: a message that is not
// delivered is a Delivery that is not Matched. Every Delivery must be finished.
func (ni *NI) Receive(h *Header) *Delivery {
	d := ni.newDelivery(h)
	if ni.tracer != nil {
		ni.trace(TraceRecord{What: TraceRequest, Header: &d.Header, PT: h.PT})
	}
	d.Fail = ni.match(d)
	if d.Fail != NIOK {
		ni.refuse(d)
	} else if ni.tracer != nil {
		ni.trace(TraceRecord{What: TraceMatched, PT: h.PT, Delivery: d, Handle: d.Handle})
	}
	return d
}

// refuse counts a message that is not delivered.
func (ni *NI) refuse(d *Delivery) {
	switch d.Fail {
	case NIPermViolation:
		ni.status[SRPermissionViolations]++
	case NIOpViolation:
		ni.status[SROperationViolations]++
	default:
		ni.status[SRDropCount]++
	}
	if ni.tracer != nil {
		ni.trace(TraceRecord{What: TraceRefused, PT: d.Header.PT, Delivery: d})
	}
}

func (ni *NI) match(d *Delivery) FailType {
	h := &d.Header
	if ni.dead || h.PT >= uint32(len(ni.pts)) || ni.pts[h.PT] == nil || !h.Kind.request() {
		return NIDropped
	}
	p := ni.pts[h.PT]
	if p.disabled {
		return NIPTDisabled
	}
	if h.Kind.isAtomic() && (h.RLength > ni.atomicLimit(h.Kind) || checkAtomic(h.Kind, h.Op, h.Type, h.RLength) != "") {
		return NIOpViolation
	}
	if ni.tracer != nil {
		ni.explain(p, h)
	}
	list, e := PriorityList, p.priority.find(h)
	if e == nil {
		list, e = OverflowList, p.overflow.find(h)
	}
	if e == nil {
		return ni.exhausted(p, 0)
	}
	e.mark.Live("portals: an entry")
	if !e.allowsUser(h) {
		return NIPermViolation
	}
	if !e.allowsOp(h) {
		return NIOpViolation
	}
	leavesHeader := list == OverflowList && e.opts&OptMEUnexpectedHdrDisable == 0
	if leavesHeader && ni.unexpectedCount >= ni.limits.MaxUnexpectedHeaders {
		return ni.exhausted(p, e.opts)
	}
	return ni.accept(p, e, d, list, leavesHeader)
}

// atomicLimit bounds what an initiator may ask of this device, whatever limits
// its own interface was granted.
func (ni *NI) atomicLimit(kind OpKind) uint64 {
	if kind == OpAtomic {
		return ni.proc.cfg.Device.MaxAtomicSize
	}
	return ni.proc.cfg.Device.MaxFetchAtomicSize
}

// exhausted is the fate of a message for which something has run out.
func (ni *NI) exhausted(p *pt, opts EntryOptions) FailType {
	if p.opts&OptPTFlowCtrl == 0 {
		return NIDropped
	}
	ni.flowControl(p, opts)
	return NIPTDisabled
}

func (e *entry) allowsUser(h *Header) bool { return e.uid == UIDAny || e.uid == h.UID }

func (e *entry) allowsOp(h *Header) bool {
	need := OptMEOpPut
	switch h.Kind {
	case OpGet:
		need = OptMEOpGet
	case OpFetchAtomic, OpSwap:
		need = OptMEOpPut | OptMEOpGet
	}
	return e.opts&need == need
}

// accept commits a message to an entry, if the event queue has room.
func (ni *NI) accept(p *pt, e *entry, d *Delivery, list List, leavesHeader bool) FailType {
	h := &d.Header
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
	if p.opts&OptPTFlowCtrl != 0 && !ni.promise(p, e, d, unlinks) {
		return ni.exhausted(p, e.opts)
	}
	d.matched, d.pt, d.entry, d.List = true, p, e, list
	d.Handle, d.UserPtr, d.Spin = e.handle, e.userPtr, e.spin
	d.Offset, d.MLength, d.region = off, mlength, e.region
	e.open++
	p.open++
	if local {
		e.offset = off + mlength
		d.ordered, d.older = true, e.lastOpen
		if e.lastOpen == nil {
			e.firstOpen = d
		} else {
			e.lastOpen.newer = d
		}
		e.lastOpen = d
	}
	if leavesHeader {
		d.header = ni.newHeader(p, e, h, off, mlength)
	}
	if unlinks {
		ni.autoUnlink(e)
	}
	if h.Kind == OpFetchAtomic || h.Kind == OpSwap {
		if uint64(cap(d.buf)) < mlength {
			d.buf = make([]byte, mlength)
		}
		d.old = d.buf[:mlength]
		clear(d.old) // handlers may take the data and leave the memory alone: nobody gets values of another message
	}
	return NIOK
}

// promise takes the event queue slots the message will need: its communication
// event, and AUTO_UNLINK and AUTO_FREE of the entry it uses up.
func (ni *NI) promise(p *pt, e *entry, d *Delivery, unlinks bool) bool {
	q := ni.eqs.get(p.eq)
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
	d.slot = comm > 0
	e.slots += int32(unlink)
	return true
}

// Write lands bytes of a message: off is their offset in the message. A put or
// reply is copied, an atomic is applied in place. Packets may come in any
// order; those of an atomic must begin at multiples of the datatype. What lies
// past MLength is ignored. Inaccessible memory makes the message fail with
// SEGV.
func (ni *NI) Write(d *Delivery, off uint64, data []byte) {
	d.mark.Live("portals: a delivery")
	if !d.matched || off >= d.MLength {
		return
	}
	data = data[:min(uint64(len(data)), d.MLength-off)]
	ok := true
	switch d.Header.Kind {
	case OpPut, OpReply:
		ok = writeMem(ni.proc.cfg.Memory, &d.region, d.Offset+off, data)
	case OpAtomic, OpFetchAtomic, OpSwap:
		ok = ni.applyAtomic(d, off, data)
	case OpGet, OpAck:
	}
	if !ok {
		d.segv = true
	}
}

// Finish completes a delivery: communication event, counters, AUTO_UNLINK, then
// the acknowledgement or reply into the outbox, then what the counters
// triggered (Portals 4.x §3.13.1). A get is complete only when its reply has
// been sent: Finish queues the reply and Sent posts the event. On an entry with
// a locally managed offset events come in the order of matching: a message that
// finishes early waits for the older ones. Unless the outcome is pending the
// Delivery must not be used afterwards.
func (ni *NI) Finish(d *Delivery, o Outcome) {
	d.mark.Live("portals: a delivery")
	if !d.open {
		panic("portals: Finish of a Delivery that is finished")
	}
	if o.Pending {
		ni.setAside(d)
		ni.drain()
		return
	}
	if d.Header.Kind == OpReply {
		ni.finishReply(d, o)
		return
	}
	d.outcome, d.landed = d.failure(o), o.Delivered
	if ni.dead && d.matched {
		d.matched, d.outcome, d.landed = false, NIDropped, 0
	}
	switch {
	case !d.matched:
		ni.answer(d)
		ni.freeDelivery(d)
	case d.Header.Kind == OpGet:
		if d.outcome == NIOK && !ni.readable(d) {
			d.outcome, d.landed = NISegv, 0
		}
		ni.answer(d)
	default:
		ni.complete(d)
	}
	ni.drain()
}

// readable reports whether the memory that a get asks for can be read. Only
// entries that may name inaccessible memory are looked at.
func (ni *NI) readable(d *Delivery) bool {
	if ni.limits.Features&FeatureTargetBindInaccessible == 0 || d.entry.opts&OptMEIsAccessible != 0 {
		return true
	}
	return accessible(ni.proc.cfg.Memory, &d.region, d.Offset, d.MLength)
}

// setAside takes a pending delivery out of the order of its entry, so that the
// messages after it are not held up.
func (ni *NI) setAside(d *Delivery) {
	if !d.ordered || ni.dead {
		return
	}
	ni.leaveOrder(d)
	ni.completeReady(d.entry)
}

func (ni *NI) leaveOrder(d *Delivery) {
	e := d.entry
	if d.older == nil {
		e.firstOpen = d.newer
	} else {
		d.older.newer = d.newer
	}
	if d.newer == nil {
		e.lastOpen = d.older
	} else {
		d.newer.older = d.older
	}
	d.older, d.newer, d.ordered = nil, nil, false
}

// complete completes a delivery now or, on a locally managed entry, when the
// older ones are complete.
func (ni *NI) complete(d *Delivery) {
	if ni.dead {
		ni.freeDelivery(d)
		return
	}
	if d.ordered {
		d.finished = true
		ni.completeReady(d.entry)
		return
	}
	ni.completeNow(d)
}

// completeReady completes the oldest deliveries of a locally managed entry as
// far as they are finished.
func (ni *NI) completeReady(e *entry) {
	for d := e.firstOpen; d != nil && d.finished; {
		next := d.newer
		ni.leaveOrder(d)
		ni.completeNow(d)
		d = next
	}
}

func (ni *NI) completeNow(d *Delivery) {
	e, p := d.entry, d.pt
	e.mark.Live("portals: an entry")
	ni.commEvent(d)
	ni.countEntry(e.opts, e.ct, OptMEEventCTComm, d.outcome, d.landed)
	if d.header != nil {
		ni.headerDone(p, d.header, d.outcome, d.landed)
	}
	e.open--
	ni.settle(e)
	if d.Header.Kind != OpGet {
		ni.answer(d)
	}
	ni.freeDelivery(d)
	ni.messageOver(p)
}

func (ni *NI) commEvent(d *Delivery) {
	e := d.entry
	if e.opts&OptMEEventCommDisable != 0 || d.outcome == NIOK && e.opts&OptMEEventSuccessDisable != 0 {
		if d.slot {
			ni.unpromise(d.pt.eq, 1)
		}
		return
	}
	ev := eventOf(&d.Header, deliveredEvent[d.Header.Kind])
	ev.Fail, ev.List, ev.UserPtr, ev.MLength = d.outcome, d.List, e.userPtr, d.landed
	ev.Start = d.region.Addr(d.Offset)
	if d.slot {
		ni.postPromised(d.pt.eq, &ev)
	} else {
		ni.postEvent(d.pt.eq, &ev)
	}
}

// eventOf fills in what an event takes from a request's header.
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

// countEntry counts a communication or overflow event of an entry.
func (ni *NI) countEntry(opts EntryOptions, c Handle, counting EntryOptions, fail FailType, mlength uint64) {
	switch {
	case c == CTNone || opts&counting == 0:
	case fail != NIOK:
		ni.count(c, 0, 1)
	case opts&OptMEEventCTBytes != 0:
		ni.count(c, mlength, 0)
	default:
		ni.count(c, 1, 0)
	}
}

// answer queues the acknowledgement or reply of a delivery, if one is due.
func (ni *NI) answer(d *Delivery) {
	h := &d.Header
	if !h.Kind.request() || !h.Kind.fetches() && (h.AckReq == NoAck || h.AckReq >= ackCount) {
		return
	}
	op := ni.newOp()
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
		case h.Kind == OpGet && d.matched:
			op.source, op.offset, op.delivery = d.region, d.Offset, d
		case d.old != nil && op.length > 0:
			copy(op.keep(int(op.length)), d.old)
		}
	}
	ni.queue(op)
}
