package portals

// Sent tells the interface that the source memory of an operation is reusable,
// or, with fail, that it could not be delivered. For a request that carries
// data it posts SEND; for the reply to a get it completes the delivery at the
// target. Call it once per operation, before Release.
func (ni *NI) Sent(op *Op, fail FailType) {
	if op.state != opTaken {
		panic("portals: Sent of an Op that is not with the transport")
	}
	op.state = opSent
	switch {
	case op.delivery != nil:
		d := op.delivery
		op.delivery = nil
		if fail != NIOK {
			d.outcome = fail
		}
		d.owner.complete(d)
	case op.Header.Kind.request():
		ni.requestSent(op.Header.Ref, fail)
	}
	ni.drain()
}

func (ni *NI) requestSent(ref uint64, fail FailType) {
	p := ni.pendingAt(ref)
	if p == nil {
		return
	}
	ni.postSend(p, fail)
	if fail != NIOK && p.waiting && !p.replying {
		ni.answerLost(p, fail)
	}
	ni.settlePending(p, ref)
}

// postSend posts SEND once.
func (ni *NI) postSend(p *pendingOp, fail FailType) {
	if p.sent {
		return
	}
	p.sent = true
	ev := Event{Type: EventSend, Fail: fail, UserPtr: p.userPtr, RLength: p.length, MLength: p.length}
	if fail != NIOK {
		ev.MLength = 0
	}
	ni.initiatorEvent(p.putMD, &ev, p.length, OptMDEventCTSend, true)
}

// answerLost ends the wait for an answer that will not come. A put whose SEND
// failed has no ACK (Portals 4.x §3.15.2); a get has nothing but its REPLY.
func (ni *NI) answerLost(p *pendingOp, fail FailType) {
	p.waiting = false
	if p.kind.fetches() {
		ev := Event{Type: EventReply, Fail: fail, UserPtr: p.userPtr, RLength: p.length}
		ni.initiatorEvent(p.getMD, &ev, 0, OptMDEventCTReply, true)
	}
}

// Lost tells the initiator's interface that the answer to a request it sent
// will never come, although the request left: ACK or REPLY follow with fail.
// h is the request's header.
func (ni *NI) Lost(h *Header, fail FailType) {
	p := ni.pendingAt(h.Ref)
	if p == nil || !p.waiting || p.replying {
		return
	}
	ni.postSend(p, NIOK)
	if p.kind.fetches() {
		ni.answerLost(p, fail)
	} else {
		ni.acked(p, fail, 0, 0, PriorityList)
	}
	ni.settlePending(p, h.Ref)
	ni.drain()
}

// Acked takes an acknowledgement. One that nobody waits for any more is
// ignored.
func (ni *NI) Acked(h *Header) {
	p := ni.pendingAt(h.Ref)
	if h.Kind != OpAck || p == nil || !p.waiting || p.kind.fetches() {
		return
	}
	// Remote completion implies local completion.
	ni.postSend(p, NIOK)
	ni.acked(p, h.Fail, h.MLength, h.RemoteOffset, h.List)
	ni.settlePending(p, h.Ref)
	ni.drain()
}

func (ni *NI) acked(p *pendingOp, fail FailType, mlength, offset uint64, list List) {
	p.waiting = false
	ev := Event{
		Type: EventAck, Fail: fail, List: list, UserPtr: p.userPtr, RLength: p.length, MLength: mlength,
		RemoteOffset: offset,
	}
	if p.ack == OCAck {
		// Operation completed: counted as one success whatever happened.
		if m := ni.mds.get(p.putMD); m != nil && m.opts&OptMDEventCTAck != 0 {
			ni.count(m.ct, 1, 0)
		}
		return
	}
	ni.initiatorEvent(p.putMD, &ev, mlength, OptMDEventCTAck, p.ack == Ack)
}

// ReplyTo takes the header of a reply and says where its data goes: Write lands
// it and Finish posts REPLY. The delivery of a reply nobody waits for any more
// is not Matched and takes no data; it must be finished like any other.
func (ni *NI) ReplyTo(h *Header) *Delivery {
	d := ni.newDelivery(h)
	p := ni.pendingAt(h.Ref)
	if h.Kind != OpReply || p == nil || !p.waiting || p.replying || !p.kind.fetches() {
		d.Fail = NIDropped
		return d
	}
	ni.postSend(p, NIOK)
	d.Offset, d.Cookie, d.UserPtr = p.getOff, p.cookie, p.userPtr
	d.Fail, d.List = h.Fail, h.List
	d.region = p.dest
	if m := ni.mds.get(p.getMD); m != nil && !p.issued {
		d.region = m.region
	}
	if h.Fail == NIOK {
		d.matched = true
		d.MLength = min(h.MLength, p.length)
	}
	d.Handle = p.getMD
	p.replying, d.reply = true, true
	ni.drain()
	return d
}

// finishReply posts REPLY.
func (ni *NI) finishReply(d *Delivery, o Outcome) {
	if p := ni.pendingAt(d.Header.Ref); p != nil && d.reply {
		fail := d.failure(o)
		ev := Event{
			Type: EventReply, Fail: fail, List: d.List, UserPtr: p.userPtr, RLength: p.length,
			MLength: o.Delivered, RemoteOffset: d.Header.RemoteOffset,
		}
		p.waiting = false
		ni.initiatorEvent(p.getMD, &ev, o.Delivered, OptMDEventCTReply, true)
		ni.settlePending(p, d.Header.Ref)
	}
	ni.freeDelivery(d)
	ni.drain()
}
