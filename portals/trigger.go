package portals

import (
	"github.com/spinsim/spinsim/internal/poison"
	"github.com/spinsim/spinsim/internal/used"
)

// trigKind is the kind of a triggered operation.
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
func (st *state) newTriggered(fn string, trigCT Handle, kind trigKind) (*ct, *triggered, error) {
	c, err := st.ctOf(fn, trigCT)
	if err != nil {
		return nil, nil, err
	}
	st.proc.used.Add(used.Triggered)
	if st.counters.pending >= st.limits.MaxTriggeredOps {
		return nil, nil, exhaustedLimit(ErrNoSpace, "max_triggered_ops", st.limits.MaxTriggeredOps)
	}
	t := st.counters.pool.get()
	t.kind = kind
	return c, t, nil
}

// drain performs the operations that have fired, in order, including those that
// they fire in turn.
func (st *state) drain() {
	if st.draining || !st.counters.fired {
		return
	}
	st.draining = true
	done := 0
	for done < len(st.counters.ready) { // grows on the way
		t := st.counters.ready[done]
		done++
		st.perform(t)
		st.counters.free(t)
	}
	clear(st.counters.ready)
	st.counters.ready = st.counters.ready[:0]
	st.draining, st.counters.fired = false, false
}

func (st *state) perform(t *triggered) {
	t.mark.Live("portals: a triggered operation")
	if st.witness.tracer != nil {
		st.witness.trace(TraceRecord{What: TraceTriggered, Text: t.describe()})
	}
	switch t.kind {
	case trigTransfer:
		st.launch(&t.xfer, true)
	case trigCTSet:
		if c := st.counters.all.get(t.ct); c != nil {
			st.counters.set(c, t.value)
		}
	case trigCTInc:
		if c := st.counters.all.get(t.ct); c != nil {
			st.counters.set(c, CTEvent{c.value.Success + t.value.Success, c.value.Failure + t.value.Failure})
		}
	case trigAppend:
		e := t.entry
		t.entry = nil
		st.linkTriggered(e)
	case trigUnlink:
		st.unlinkTriggered(t.me)
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

func (st *state) cancelTriggered(c *ct) {
	for len(c.heap) > 0 {
		t := c.pop()
		st.counters.pending--
		switch t.kind {
		case trigTransfer:
			st.mds.unhold(t.xfer.putMD)
			st.mds.unhold(t.xfer.getMD)
		case trigAppend:
			st.freeEntry(t.entry)
			t.entry = nil
		case trigCTSet, trigCTInc, trigUnlink:
		}
		st.counters.free(t)
	}
}

func (st *state) trigger(fn string, x *transfer, trigCT Handle, threshold uint64) error {
	if err := st.check(fn, x); err != nil {
		return err
	}
	c, t, err := st.newTriggered(fn, trigCT, trigTransfer)
	if err != nil {
		return err
	}
	st.mds.hold(x.putMD)
	st.mds.hold(x.getMD)
	t.xfer = *x
	st.counters.wait(c, t, threshold)
	st.drain()
	return nil
}

func (st *state) triggerCT(fn string, kind trigKind, h Handle, value CTEvent, trigCT Handle, threshold uint64) error {
	if _, err := st.ctOf(fn, h); err != nil {
		return err
	}
	c, t, err := st.newTriggered(fn, trigCT, kind)
	if err != nil {
		return err
	}
	t.ct, t.value = h, value
	st.counters.wait(c, t, threshold)
	st.drain()
	return nil
}
