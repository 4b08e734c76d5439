package portals

// TriggeredPut (PtlTriggeredPut) is Put once the counter's successes and
// failures together reach threshold. The buffer is read then. Errors: those of
// Put; ErrNoSpace with max_triggered_ops pending.
func (ni *NI) TriggeredPut(mdh Handle, localOffset, length uint64, ack AckReq, target ID, ptIndex uint32,
	matchBits, remoteOffset, userPtr, hdrData uint64, trigCT Handle, threshold uint64,
) error {
	x := transfer{
		kind: OpPut, putMD: mdh, putOff: localOffset, length: length, ack: ack, target: target, pt: ptIndex,
		matchBits: matchBits, remoteOffset: remoteOffset, userPtr: userPtr, hdrData: hdrData,
	}
	return ni.trigger("TriggeredPut", &x, trigCT, threshold)
}

// TriggeredGet (PtlTriggeredGet) is Get once the counter reaches threshold.
// Errors: those of Get; ErrNoSpace with max_triggered_ops pending.
func (ni *NI) TriggeredGet(mdh Handle, localOffset, length uint64, target ID, ptIndex uint32,
	matchBits, remoteOffset, userPtr uint64, trigCT Handle, threshold uint64,
) error {
	x := transfer{
		kind: OpGet, getMD: mdh, getOff: localOffset, length: length, target: target, pt: ptIndex,
		matchBits: matchBits, remoteOffset: remoteOffset, userPtr: userPtr,
	}
	return ni.trigger("TriggeredGet", &x, trigCT, threshold)
}

// TriggeredAtomic (PtlTriggeredAtomic) is Atomic once the counter reaches
// threshold. Errors: those of Atomic; ErrNoSpace with max_triggered_ops pending.
func (ni *NI) TriggeredAtomic(mdh Handle, localOffset, length uint64, ack AckReq, target ID, ptIndex uint32,
	matchBits, remoteOffset, userPtr, hdrData uint64, op AtomicOp, typ Datatype, trigCT Handle, threshold uint64,
) error {
	x := transfer{
		kind: OpAtomic, putMD: mdh, putOff: localOffset, length: length, ack: ack, target: target, pt: ptIndex,
		matchBits: matchBits, remoteOffset: remoteOffset, userPtr: userPtr, hdrData: hdrData, op: op, typ: typ,
	}
	return ni.trigger("TriggeredAtomic", &x, trigCT, threshold)
}

// TriggeredFetchAtomic (PtlTriggeredFetchAtomic) is FetchAtomic once the
// counter reaches threshold. Errors: those of FetchAtomic; ErrNoSpace with
// max_triggered_ops pending.
func (ni *NI) TriggeredFetchAtomic(getMD Handle, getOffset uint64, putMD Handle, putOffset, length uint64,
	target ID, ptIndex uint32, matchBits, remoteOffset, userPtr, hdrData uint64, op AtomicOp, typ Datatype,
	trigCT Handle, threshold uint64,
) error {
	x := transfer{
		kind: OpFetchAtomic, getMD: getMD, getOff: getOffset, putMD: putMD, putOff: putOffset, length: length,
		target: target, pt: ptIndex, matchBits: matchBits, remoteOffset: remoteOffset, userPtr: userPtr,
		hdrData: hdrData, op: op, typ: typ,
	}
	return ni.trigger("TriggeredFetchAtomic", &x, trigCT, threshold)
}

// TriggeredSwap (PtlTriggeredSwap) is Swap once the counter reaches threshold;
// the operand is taken at the call. Errors: those of Swap; ErrNoSpace with
// max_triggered_ops pending.
func (ni *NI) TriggeredSwap(getMD Handle, getOffset uint64, putMD Handle, putOffset, length uint64,
	target ID, ptIndex uint32, matchBits, remoteOffset, userPtr, hdrData uint64, operand []byte, op AtomicOp,
	typ Datatype, trigCT Handle, threshold uint64,
) error {
	x := transfer{
		kind: OpSwap, getMD: getMD, getOff: getOffset, putMD: putMD, putOff: putOffset, length: length,
		target: target, pt: ptIndex, matchBits: matchBits, remoteOffset: remoteOffset, userPtr: userPtr,
		hdrData: hdrData, op: op, typ: typ, operandLen: len(operand),
	}
	copy(x.operand[:], operand)
	return ni.trigger("TriggeredSwap", &x, trigCT, threshold)
}

// TriggeredCTInc (PtlTriggeredCTInc) is CTInc once the counter trigCT reaches
// threshold. Errors: those of CTInc; ErrNoSpace with max_triggered_ops pending.
func (ni *NI) TriggeredCTInc(h Handle, increment CTEvent, trigCT Handle, threshold uint64) error {
	if increment.Success != 0 && increment.Failure != 0 {
		return invalid("TriggeredCTInc", "increment of both success and failure")
	}
	return ni.triggerCT("TriggeredCTInc", trigCTInc, h, increment, trigCT, threshold)
}

// TriggeredCTSet (PtlTriggeredCTSet) is CTSet once the counter trigCT reaches
// threshold. Errors: those of CTSet; ErrNoSpace with max_triggered_ops pending.
func (ni *NI) TriggeredCTSet(h Handle, value CTEvent, trigCT Handle, threshold uint64) error {
	return ni.triggerCT("TriggeredCTSet", trigCTSet, h, value, trigCT, threshold)
}

// TriggeredMEAppend (PtlTriggeredMEAppend) is MEAppend once the counter reaches
// threshold. The entry counts against max_entries from the call on and has its
// handle at once; until it is linked MEUnlink returns ErrInUse for it. An
// append that fails at its time, because the list is full or events have no
// room, posts LINK with DROPPED, whatever the entry's options say; with the
// portal table entry the queue is gone too, and nobody is told.
// Errors: those of MEAppend; ErrNoSpace with max_triggered_ops pending.
func (ni *NI) TriggeredMEAppend(ptIndex uint32, m *ME, list List, userPtr uint64, trigCT Handle, threshold uint64) (Handle, error) {
	if _, err := ni.ctOf("TriggeredMEAppend", trigCT); err != nil {
		return InvalidHandle, err
	}
	if ni.triggeredCount >= ni.limits.MaxTriggeredOps {
		return InvalidHandle, exhaustedLimit(ErrNoSpace, "max_triggered_ops", ni.limits.MaxTriggeredOps)
	}
	e, _, err := ni.newEntry("TriggeredMEAppend", ptIndex, m, list, userPtr, KindME)
	if err != nil {
		return InvalidHandle, err
	}
	c, t, err := ni.newTriggered("TriggeredMEAppend", trigCT, trigAppend)
	if err != nil {
		ni.freeEntry(e)
		return InvalidHandle, err
	}
	h := e.handle
	t.entry = e
	ni.wait(c, t, threshold)
	return h, nil
}

// TriggeredMEUnlink (PtlTriggeredMEUnlink) is MEUnlink once the counter reaches
// threshold. An entry that is in use then takes no further messages and goes
// when its last message and unexpected header have gone; an entry that no
// longer exists is left alone. Errors: those of MEUnlink but ErrInUse;
// ErrNoSpace with max_triggered_ops pending.
func (ni *NI) TriggeredMEUnlink(h Handle, trigCT Handle, threshold uint64) error {
	if ni.dead {
		return ErrNoInit
	}
	if ni.entries.get(h) == nil || h.Kind() != KindME {
		return invalid("TriggeredMEUnlink", "match list entry handle %#x names nothing", uint32(h))
	}
	c, t, err := ni.newTriggered("TriggeredMEUnlink", trigCT, trigUnlink)
	if err != nil {
		return err
	}
	t.me = h
	ni.wait(c, t, threshold)
	return nil
}
