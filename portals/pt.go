package portals

// pt is a portal table entry. What every message needs is in its first 64 bytes.
type pt struct {
	index    uint32
	opts     PTOptions
	eq       Handle
	disabled bool
	open     int       // deliveries not finished
	priority entryList // begins with what it found last
	overflow entryList
	headers  headerList // 448 bytes in all: it begins a cache line
}

func (p *pt) list(l List) *entryList {
	if l == OverflowList {
		return &p.overflow
	}
	return &p.priority
}

// PTAlloc (PtlPTAlloc) allocates a portal table entry: the one asked for, or
// with PTAny the free one of lowest index. Errors: ErrNoInit, ErrArgInvalid,
// ErrPTFull, ErrPTInUse, ErrPTEQNeeded.
func (ni *Objects) PTAlloc(options PTOptions, eq Handle, index uint32) (uint32, error) {
	if ni.dead {
		return 0, ErrNoInit
	}
	if options&^optPTAll != 0 {
		return 0, invalid("PTAlloc", "options %#x, unknown bits", uint32(options))
	}
	q := ni.queues.all.get(eq)
	if eq != EQNone && q == nil {
		return 0, invalid("PTAlloc", "event queue handle %#x names nothing", uint32(eq))
	}
	if options&OptPTFlowCtrl != 0 && q == nil {
		return 0, ErrPTEQNeeded
	}
	if index == PTAny {
		index = 0
		for ; index < uint32(len(ni.pts)) && ni.pts[index] != nil; index++ {
		}
		if index == uint32(len(ni.pts)) {
			return 0, ErrPTFull
		}
	}
	if index >= uint32(len(ni.pts)) {
		return 0, invalid("PTAlloc", "index %d, largest is %d", index, ni.limits.MaxPTIndex)
	}
	if ni.pts[index] != nil {
		return 0, ErrPTInUse
	}
	ni.pts[index] = &pt{index: index, opts: options, eq: eq, disabled: options&OptPTAllocDisabled != 0}
	if options&OptPTFlowCtrl != 0 {
		q.flowPTs++
	}
	return index, nil
}

// PTFree (PtlPTFree) releases a portal table entry. Errors: ErrNoInit,
// ErrArgInvalid; ErrInUse while entries, unexpected headers or messages in
// delivery are attached to it.
func (ni *Objects) PTFree(index uint32) error {
	p, err := ni.ptAt("PTFree", index)
	if err != nil {
		return err
	}
	if p.open > 0 || p.priority.n > 0 || p.overflow.n > 0 || p.headers.n > 0 {
		return ErrInUse
	}
	if q := ni.queues.all.get(p.eq); q != nil && p.opts&OptPTFlowCtrl != 0 {
		q.flowPTs--
	}
	ni.pts[index], ni.recent[index&1] = nil, nil
	return nil
}

// PTEnable (PtlPTEnable) makes a portal table entry accept messages. Errors:
// ErrNoInit, ErrArgInvalid.
func (ni *Objects) PTEnable(index uint32) error {
	p, err := ni.ptAt("PTEnable", index)
	if err != nil {
		return err
	}
	p.disabled = false
	ni.witness.trace(TraceRecord{What: TracePTEnabled, PT: index})
	return nil
}

// PTDisable (PtlPTDisable) makes a portal table entry refuse messages; it posts
// no event. The standard's call returns when the messages being delivered are
// complete and their events posted: the caller repeats PTIdle until it says so.
// Errors: ErrNoInit, ErrArgInvalid.
func (ni *NI) PTDisable(index uint32) error {
	p, err := ni.ptAt("PTDisable", index)
	if err != nil {
		return err
	}
	p.disabled = true
	ni.witness.trace(TraceRecord{What: TracePTDisabled, PT: index})
	return nil
}

// PTIdle is one step of the wait of PtlPTDisable: nil when no message is being
// delivered through a portal table entry. ErrInUse tells the caller to wait for
// the PTIdle hook. Other errors: ErrNoInit, ErrArgInvalid, ErrAborted after
// Abort.
func (ni *NI) PTIdle(index uint32) error {
	p, err := ni.ptAt("PTDisable", index)
	switch {
	case err != nil:
		return err
	case p.open == 0:
		return nil
	case ni.proc.aborted:
		return ErrAborted
	}
	return ErrInUse
}

// PTBusy returns how many messages are being delivered through a portal table
// entry; 0 for an index that is not allocated.
func (ni *Objects) PTBusy(index uint32) int {
	if index >= uint32(len(ni.pts)) || ni.pts[index] == nil {
		return 0
	}
	return ni.pts[index].open
}

// PTEnabled reports whether a portal table entry is allocated and accepts
// messages.
func (ni *Objects) PTEnabled(index uint32) bool {
	return index < uint32(len(ni.pts)) && ni.pts[index] != nil && !ni.pts[index].disabled
}

// PTOptions returns the options a portal table entry was allocated with, 0 when
// it is not allocated.
func (ni *Objects) PTOptions(index uint32) PTOptions {
	if index >= uint32(len(ni.pts)) || ni.pts[index] == nil {
		return 0
	}
	return ni.pts[index].opts
}
