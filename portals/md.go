package portals

// md is a memory descriptor. refs counts the operations that still need it.
type md struct {
	handle Handle
	opts   MDOptions
	region Region
	eq, ct Handle
	refs   int
}

// MDBind (PtlMDBind) makes a memory descriptor. The memory is not touched: a
// descriptor may cover all of the address space. Errors: ErrNoInit,
// ErrArgInvalid; ErrNoSpace with max_mds descriptors bound.
func (ni *NI) MDBind(d *MD) (Handle, error) {
	if ni.dead {
		return InvalidHandle, ErrNoInit
	}
	if d.Options&^optMDAll != 0 {
		return InvalidHandle, invalid("MDBind", "options %#x, unknown bits", uint32(d.Options))
	}
	r, err := ni.region("MDBind", d.Start, d.Length, d.IOVec, d.Options&OptMDIOVec != 0)
	if err != nil {
		return InvalidHandle, err
	}
	if d.EQ != EQNone && ni.eqs.get(d.EQ) == nil {
		return InvalidHandle, invalid("MDBind", "event queue handle %#x names nothing", uint32(d.EQ))
	}
	if d.CT != CTNone && ni.cts.get(d.CT) == nil {
		return InvalidHandle, invalid("MDBind", "counter handle %#x names nothing", uint32(d.CT))
	}
	if ni.mds.live >= ni.limits.MaxMDs {
		return InvalidHandle, exhaustedLimit(ErrNoSpace, "max_mds", ni.limits.MaxMDs)
	}
	m := &md{opts: d.Options, region: r, eq: d.EQ, ct: d.CT}
	m.handle = ni.mds.add(m)
	return m.handle, nil
}

// MDRelease (PtlMDRelease) releases a memory descriptor. Errors: ErrNoInit,
// ErrArgInvalid; ErrInUse while an operation, triggered ones included, needs it.
func (ni *NI) MDRelease(h Handle) error {
	if ni.dead {
		return ErrNoInit
	}
	m := ni.mds.get(h)
	if m == nil {
		return invalid("MDRelease", "memory descriptor handle %#x names nothing", uint32(h))
	}
	if m.refs > 0 {
		return ErrInUse
	}
	ni.mds.remove(h)
	return nil
}

// region checks and builds the memory of a descriptor or entry.
func (ni *NI) region(fn string, start, length uint64, iov []IOVec, vector bool) (Region, error) {
	if !vector {
		if iov != nil {
			return Region{}, invalid(fn, "vectors without the IOVEC option")
		}
		r, ok := contiguous(start, length)
		if !ok {
			return Region{}, invalid(fn, "memory of %d bytes at %#x wraps around", length, start)
		}
		return r, nil
	}
	if len(iov) > ni.limits.MaxIOVecs {
		return Region{}, invalid(fn, "%d vectors, largest number is %d", len(iov), ni.limits.MaxIOVecs)
	}
	r, ok := vectored(iov)
	if !ok {
		return Region{}, invalid(fn, "vectors wrap around")
	}
	return r, nil
}

func (ni *NI) mdUnref(h Handle) {
	if m := ni.mds.get(h); m != nil {
		m.refs--
	}
}

// initiatorEvent posts SEND, ACK or REPLY on a descriptor and counts it.
func (ni *NI) initiatorEvent(h Handle, ev *Event, bytes uint64, counting MDOptions, full bool) {
	m := ni.mds.get(h)
	if m == nil {
		return
	}
	if ev.Fail == NIOK && m.opts&OptMDEventSuccessDisable != 0 ||
		ev.Type == EventSend && m.opts&OptMDEventSendDisable != 0 {
		full = false
	}
	if full {
		ni.postEvent(m.eq, ev)
	}
	if m.opts&counting == 0 {
		return
	}
	switch {
	case ev.Fail != NIOK:
		ni.count(m.ct, 0, 1)
	case m.opts&OptMDEventCTBytes != 0:
		ni.count(m.ct, bytes, 0)
	default:
		ni.count(m.ct, 1, 0)
	}
}
