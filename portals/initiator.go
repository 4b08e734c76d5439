package portals

// Sent reports that the source memory of an operation may be reused, or, with
// fail, that the operation could not be delivered. For a request with data it
// posts SEND. For the reply to a get it completes the delivery at the target.
// Call it once for each operation, before Release.
func (port *Port) Sent(op *Op, fail FailType) {
	if op.state != opTaken {
		panic("portals: Sent of an Op that is not with the transport")
	}
	op.state = opSent
	switch {
	case op.delivery != nil:
		d := op.delivery
		op.delivery = nil
		if fail != NIOK {
			d.outcome, d.landed = fail, 0
		}
		port.complete(d)
	case op.Header.Kind.request():
		port.requestSent(op.Header.Ref, fail)
	}
	port.drain()
}

// Cancel gives back a request that will not be sent. The request has no events.
func (port *Port) Cancel(op *Op) {
	if op.state != opTaken {
		panic("portals: Cancel of an Op that is not with the transport") //lint:panic programmer's mistake
	}
	op.state = opSent
	if p := port.pending.at(op.Header.Ref); p != nil {
		p.sent, p.waiting = true, false
		port.settlePending(p, op.Header.Ref)
	}
	port.drain()
	port.Release(op)
}

func (port *Port) requestSent(ref uint64, fail FailType) {
	p := port.pending.at(ref)
	if p == nil {
		return
	}
	port.postSend(p, fail)
	if fail != NIOK && p.waiting && !p.replying {
		port.answerLost(p, fail)
	}
	port.settlePending(p, ref)
}

// postSend posts SEND once.
func (port *Port) postSend(p *pendingOp, fail FailType) {
	if p.sent {
		return
	}
	p.sent = true
	ev := Event{Type: EventSend, Fail: fail, UserPtr: p.userPtr, RLength: p.length, MLength: p.length}
	if fail != NIOK {
		ev.MLength = 0
	}
	port.initiatorEvent(p.putMD, &ev, p.length, OptMDEventCTSend, true)
}

// answerLost ends the wait for an answer that will not come. The failure is
// reported by REPLY or by the requested ACK. So a program that waits for one of
// them, in a queue or at a counter, need not look at SEND, which descriptors
// may have disabled.
func (port *Port) answerLost(p *pendingOp, fail FailType) {
	p.waiting = false
	ev := Event{Type: EventAck, Fail: fail, UserPtr: p.userPtr, RLength: p.length}
	if p.kind.fetches() {
		ev.Type = EventReply
		port.initiatorEvent(p.getMD, &ev, 0, OptMDEventCTReply, true)
		return
	}
	// It is unknown whether the operation has completed at the target. That is
	// a failure for OC_ACK, too.
	port.initiatorEvent(p.putMD, &ev, 0, OptMDEventCTAck, p.ack == Ack)
}

// Lost reports to the initiator that the answer to a request will never come,
// although the request has left. ACK or REPLY follow with fail. h is the
// request's header.
func (port *Port) Lost(h *Header, fail FailType) {
	p := port.pending.at(h.Ref)
	if p == nil || !p.waiting || p.replying {
		return
	}
	port.postSend(p, NIOK)
	port.answerLost(p, fail)
	port.settlePending(p, h.Ref)
	port.drain()
}

// Acked takes an acknowledgement. It is ignored if its request is complete.
func (port *Port) Acked(h *Header) {
	p := port.pending.at(h.Ref)
	if h.Kind != OpAck || p == nil || !p.waiting || p.kind.fetches() {
		return
	}
	// Remote completion implies local completion.
	port.postSend(p, NIOK)
	port.acked(p, h.Fail, h.MLength, h.RemoteOffset, h.List)
	port.settlePending(p, h.Ref)
	port.drain()
}

func (port *Port) acked(p *pendingOp, fail FailType, mlength, offset uint64, list List) {
	p.waiting = false
	ev := Event{
		Type: EventAck, Fail: fail, List: list, UserPtr: p.userPtr, RLength: p.length, MLength: mlength,
		RemoteOffset: offset,
	}
	if p.ack == OCAck {
		// OC_ACK counts one success, whatever the result.
		if m := port.mds.all.get(p.putMD); m != nil && m.opts&OptMDEventCTAck != 0 {
			port.counters.count(m.ct, 1, 0)
		}
		return
	}
	port.initiatorEvent(p.putMD, &ev, mlength, OptMDEventCTAck, p.ack == Ack)
}

// ReplyTo takes the header of a reply and returns the delivery of its data.
// Write stores the data and Finish posts REPLY. If the request is complete, the
// delivery is not Matched and takes no data. Finish it like any other, and do
// not change the header before.
func (port *Port) ReplyTo(h *Header) *Delivery {
	d := port.deliveries.take(h)
	p := port.pending.at(h.Ref)
	if h.Kind != OpReply || p == nil || !p.waiting || p.replying || !p.kind.fetches() {
		d.Fail = NIDropped
		return d
	}
	port.postSend(p, NIOK)
	d.Offset, d.Fail, d.List = p.getOff, h.Fail, h.List
	d.reply = reply{descriptor: p.getMD, cookie: p.cookie}
	if p.issued {
		d.reply.region = p.dest
	} else if m := port.mds.all.get(p.getMD); m != nil {
		d.reply.region = m.region
	}
	d.flags |= deliveryReply
	if h.Fail == NIOK {
		d.flags |= deliveryMatched
		d.MLength = min(h.MLength, p.length)
	}
	p.replying = true
	port.drain()
	return d
}

// finishReply posts REPLY.
func (port *Port) finishReply(d *Delivery, o Outcome) {
	if p := port.pending.at(d.Header.Ref); p != nil && d.is(deliveryReply) {
		fail := d.failure(o)
		ev := Event{
			Type: EventReply, Fail: fail, List: d.List, UserPtr: p.userPtr, RLength: p.length,
			MLength: o.Delivered, RemoteOffset: d.Header.RemoteOffset,
		}
		p.waiting = false
		port.initiatorEvent(p.getMD, &ev, o.Delivered, OptMDEventCTReply, true)
		port.settlePending(p, d.Header.Ref)
	}
	port.deliveries.release(d)
	port.drain()
}

// initiatorEvent posts SEND, ACK or REPLY on a descriptor and counts it.
func (port *Port) initiatorEvent(h Handle, ev *Event, bytes uint64, counting MDOptions, full bool) {
	m := port.mds.all.get(h)
	if m == nil {
		return
	}
	if ev.Fail == NIOK && m.opts&OptMDEventSuccessDisable != 0 ||
		ev.Type == EventSend && m.opts&OptMDEventSendDisable != 0 {
		full = false
	}
	if full {
		port.queues.post(m.eq, ev)
	}
	if m.opts&counting == 0 {
		return
	}
	switch {
	case ev.Fail != NIOK:
		port.counters.count(m.ct, 0, 1)
	case m.opts&OptMDEventCTBytes != 0:
		port.counters.count(m.ct, bytes, 0)
	default:
		port.counters.count(m.ct, 1, 0)
	}
}
