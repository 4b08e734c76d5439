package portals

import "github.com/spinsim/spinsim/internal/poison"

// trigKind is what a triggered operation does.
type trigKind uint8

const (
	trigTransfer trigKind = iota
	trigCTSet
	trigCTInc
	trigAppend
	trigUnlink
)

// triggered is an operation that waits for a counter.
type triggered struct {
	mark  poison.Mark
	kind  trigKind
	xfer  transfer
	ct    Handle
	value CTEvent
	entry *entry // append: the entry to link
	me    Handle // unlink: the entry to unlink
}

// trigRef is an element of a counter's heap: lower threshold first, then the
// order of issue.
type trigRef struct {
	threshold uint64
	seq       uint64
	op        *triggered
}

func (a trigRef) before(b trigRef) bool {
	return a.threshold < b.threshold || a.threshold == b.threshold && a.seq < b.seq
}

func (c *ct) push(r trigRef) {
	c.heap = append(c.heap, r)
	i := len(c.heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !r.before(c.heap[parent]) {
			break
		}
		c.heap[i] = c.heap[parent]
		i = parent
	}
	c.heap[i] = r
}

func (c *ct) pop() *triggered {
	op := c.heap[0].op
	last := c.heap[len(c.heap)-1]
	c.heap[len(c.heap)-1] = trigRef{}
	c.heap = c.heap[:len(c.heap)-1]
	n := len(c.heap)
	i := 0
	for child := 1; child < n; child = 2*i + 1 {
		if child+1 < n && c.heap[child+1].before(c.heap[child]) {
			child++
		}
		if !c.heap[child].before(last) {
			break
		}
		c.heap[i] = c.heap[child]
		i = child
	}
	if n > 0 {
		c.heap[i] = last
	}
	return op
}

// newTriggered checks the counter and the limit.
func (ni *NI) newTriggered(fn string, trigCT Handle, kind trigKind) (*ct, *triggered, error) {
	c, err := ni.ctOf(fn, trigCT)
	if err != nil {
		return nil, nil, err
	}
	if ni.triggeredCount >= ni.limits.MaxTriggeredOps {
		return nil, nil, exhaustedLimit(ErrNoSpace, "max_triggered_ops", ni.limits.MaxTriggeredOps)
	}
	t := ni.trigPool.get()
	t.kind = kind
	return c, t, nil
}

// wait queues t on c, or fires it at once when c is there already.
func (ni *NI) wait(c *ct, t *triggered, threshold uint64) {
	ni.triggeredCount++
	if c.total() >= threshold {
		ni.fire(t)
		ni.drain()
		return
	}
	ni.sequence++
	c.push(trigRef{threshold, ni.sequence, t})
}

func (ni *NI) freeTriggered(t *triggered) {
	if t.mark.Release("portals: a triggered operation"); poison.On {
		*t = triggered{mark: t.mark}
	}
	ni.trigPool.put(t)
}

func (ni *NI) fire(t *triggered) {
	t.mark.Live("portals: a triggered operation")
	ni.triggeredCount--
	ni.ready = append(ni.ready, t)
}

// drain performs what has fired, in the order of firing, including what that
// fires in turn.
func (ni *NI) drain() {
	if ni.draining || len(ni.ready) == 0 {
		return
	}
	ni.draining = true
	done := 0
	for done < len(ni.ready) { // grows on the way
		t := ni.ready[done]
		done++
		ni.perform(t)
		ni.freeTriggered(t)
	}
	clear(ni.ready)
	ni.ready = ni.ready[:0]
	ni.draining = false
}

func (ni *NI) perform(t *triggered) {
	t.mark.Live("portals: a triggered operation")
	if ni.tracer != nil {
		ni.trace(TraceRecord{What: TraceTriggered, Text: t.describe()})
	}
	switch t.kind {
	case trigTransfer:
		ni.launch(&t.xfer, true)
	case trigCTSet:
		if c := ni.cts.get(t.ct); c != nil {
			ni.setCT(c, t.value)
		}
	case trigCTInc:
		if c := ni.cts.get(t.ct); c != nil {
			ni.setCT(c, CTEvent{c.value.Success + t.value.Success, c.value.Failure + t.value.Failure})
		}
	case trigAppend:
		e := t.entry
		t.entry = nil
		ni.linkTriggered(e)
	case trigUnlink:
		ni.unlinkTriggered(t.me)
	}
}

func (t *triggered) describe() string {
	switch t.kind {
	case trigCTSet:
		return "ct-set"
	case trigCTInc:
		return "ct-inc"
	case trigAppend:
		return "me-append"
	case trigUnlink:
		return "me-unlink"
	default:
		return t.xfer.kind.String()
	}
}

func (ni *NI) cancelTriggered(c *ct) {
	for len(c.heap) > 0 {
		t := c.pop()
		ni.triggeredCount--
		switch t.kind {
		case trigTransfer:
			ni.mdUnref(t.xfer.putMD)
			ni.mdUnref(t.xfer.getMD)
		case trigAppend:
			ni.freeEntry(t.entry)
			t.entry = nil
		case trigCTSet, trigCTInc, trigUnlink:
		}
		ni.freeTriggered(t)
	}
}

func (ni *NI) trigger(fn string, x *transfer, trigCT Handle, threshold uint64) error {
	if err := ni.check(fn, x); err != nil {
		return err
	}
	c, t, err := ni.newTriggered(fn, trigCT, trigTransfer)
	if err != nil {
		return err
	}
	ni.hold(x)
	t.xfer = *x
	ni.wait(c, t, threshold)
	return nil
}

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

func (ni *NI) triggerCT(fn string, kind trigKind, h Handle, value CTEvent, trigCT Handle, threshold uint64) error {
	if _, err := ni.ctOf(fn, h); err != nil {
		return err
	}
	c, t, err := ni.newTriggered(fn, trigCT, kind)
	if err != nil {
		return err
	}
	t.ct, t.value = h, value
	ni.wait(c, t, threshold)
	return nil
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
