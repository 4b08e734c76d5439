package portals

import "github.com/spinsim/spinsim/internal/used"

// Triggered is an operation (Portals 4.x §3.16: PtlTriggeredPut,
// PtlTriggeredGet, PtlTriggeredAtomic, PtlTriggeredFetchAtomic,
// PtlTriggeredSwap, PtlTriggeredCTInc, PtlTriggeredCTSet and
// PtlTriggeredMEUnlink) that begins when the sum of the counter's successes and
// failures reaches threshold. A put reads its buffer then; a swap takes its
// operand at the call.
//
// MEUnlink of an entry that is then in use stops further messages. The entry
// goes after its last message and unexpected header. If it no longer exists,
// nothing happens. Errors: those of the operation, except ErrInUse for an
// entry; ErrNoSpace if max_triggered_ops are pending.
func (ni *Objects) Triggered(op Operation, ct Handle, threshold uint64) error {
	switch op := op.(type) {
	case Put:
		x := op.transfer()
		return ni.trigger("TriggeredPut", &x, ct, threshold)
	case Get:
		x := op.transfer()
		return ni.trigger("TriggeredGet", &x, ct, threshold)
	case Atomic:
		x := op.transfer()
		return ni.trigger("TriggeredAtomic", &x, ct, threshold)
	case FetchAtomic:
		x := op.transfer()
		return ni.trigger("TriggeredFetchAtomic", &x, ct, threshold)
	case Swap:
		x := op.transfer()
		return ni.trigger("TriggeredSwap", &x, ct, threshold)
	case CTInc:
		if op.Increment.Success != 0 && op.Increment.Failure != 0 {
			return invalid("TriggeredCTInc", "increment of both success and failure")
		}
		return ni.triggerCT("TriggeredCTInc", trigCTInc, op.CT, op.Increment, ct, threshold)
	case CTSet:
		return ni.triggerCT("TriggeredCTSet", trigCTSet, op.CT, op.Value, ct, threshold)
	case MEUnlink:
		return ni.triggerUnlink(op.ME, ct, threshold)
	}
	return invalid("Triggered", "no operation")
}

func (ni *Objects) triggerUnlink(h, trigCT Handle, threshold uint64) error {
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
	ni.counters.wait(c, t, threshold)
	ni.drain()
	return nil
}

// TriggeredMEAppend (PtlTriggeredMEAppend) is MEAppend when the counter reaches
// threshold. The entry counts against max_entries and has its handle from the
// call on; until it is linked, MEUnlink returns ErrInUse for it. If the append
// fails at its time, because the list is full or events have no room, it posts
// LINK with DROPPED, whatever options the entry has. If the portal table entry
// no longer exists, there is no event, because the queue is unknown. Errors:
// those of MEAppend; ErrNoSpace if max_triggered_ops are pending.
func (ni *NI) TriggeredMEAppend(ptIndex uint32, m *ME, list List, userPtr uint64, trigCT Handle, threshold uint64) (Handle, error) {
	if _, err := ni.ctOf("TriggeredMEAppend", trigCT); err != nil {
		return InvalidHandle, err
	}
	ni.proc.used.Add(used.Triggered)
	if ni.counters.pending >= ni.limits.MaxTriggeredOps {
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
	ni.counters.wait(c, t, threshold)
	ni.drain()
	return h, nil
}
