package portals

import "github.com/spinsim/spinsim/internal/used"

// pt is a portal table entry: 192 bytes, so that it begins a cache line. Its
// first 64 have the fields that every message needs.
type pt struct {
	index    uint32
	opts     PTOptions
	eq       Handle
	disabled bool
	open     int       // deliveries not finished
	priority entryList // begins with what it found last
	overflow *entryList
	headers  *headerList // nil, as overflow: there has never been one
}

// admits reports whether an entry of a list allows the user of a message.
func (p *pt) admits(h *Header) bool {
	for _, l := range [...]*entryList{&p.priority, p.overflow} {
		if l == nil {
			continue
		}
		for n := l.head; n != nil; n = n.next {
			if n.entry.allowsUser(h) {
				return true
			}
		}
	}
	return false
}

// list returns a list to add to, or one that has something.
func (p *pt) list(l List) *entryList {
	if l != OverflowList {
		return &p.priority
	}
	if p.overflow == nil {
		p.overflow = new(entryList)
	}
	return p.overflow
}

// PTAlloc (PtlPTAlloc) allocates a portal table entry: the requested one, or
// for PTAny the free one of lowest index. Errors: ErrNoInit, ErrArgInvalid,
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
	ni.proc.used.Add(used.Table)
	if index == PTAny {
		index = 0
		for ; index < uint32(len(ni.pts)) && ni.pts[index] != nil; index++ {
		}
		if uint64(index) > uint64(ni.limits.MaxPTIndex) {
			return 0, ErrPTFull
		}
	}
	if uint64(index) > uint64(ni.limits.MaxPTIndex) {
		return 0, invalid("PTAlloc", "index %d, largest is %d", index, ni.limits.MaxPTIndex)
	}
	for uint32(len(ni.pts)) <= index {
		ni.pts = append(ni.pts, nil)
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

// PTFree (PtlPTFree) frees a portal table entry. Errors: ErrNoInit,
// ErrArgInvalid; ErrInUse while it has entries, unexpected headers or messages
// in delivery.
func (ni *Objects) PTFree(index uint32) error {
	p, err := ni.ptAt("PTFree", index)
	if err != nil {
		return err
	}
	if p.open > 0 || p.priority.n > 0 || p.overflow != nil && p.overflow.n > 0 || p.headers != nil && p.headers.n > 0 {
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

// PTDisable (PtlPTDisable) makes a portal table entry refuse messages. It posts
// no event. The standard's call returns when all messages in delivery are
// complete and their events are posted: the caller repeats PTIdle until then.
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

// PTIdle is one step of the wait of PtlPTDisable. It returns nil if no message
// is in delivery at the portal table entry. ErrInUse means that the caller
// waits for the PTIdle hook. Other errors: ErrNoInit, ErrArgInvalid, ErrAborted
// after Abort.
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

// PTBusy returns the number of messages in delivery at a portal table entry, 0
// if the index is not allocated.
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

// PTOptions returns the options of a portal table entry, 0 if it is not
// allocated.
func (ni *Objects) PTOptions(index uint32) PTOptions {
	if index >= uint32(len(ni.pts)) || ni.pts[index] == nil {
		return 0
	}
	return ni.pts[index].opts
}
