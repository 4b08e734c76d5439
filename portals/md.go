package portals

import (
	"math/bits"

	"github.com/spinsim/spinsim/internal/used"
)

// md is a memory descriptor. refs counts the operations that still need it.
type md struct {
	handle Handle
	opts   MDOptions
	region Region
	eq, ct Handle
	refs   int
}

// descriptors are the memory descriptors of an interface.
type descriptors struct{ all table[md] }

func (s *descriptors) check(fn, side string, h Handle, off, n uint64) error {
	m := s.all.get(h)
	if m == nil {
		return invalid(fn, "%s memory descriptor handle %#x names nothing", side, uint32(h))
	}
	end, carry := bits.Add64(off, n, 0)
	if carry != 0 || end > m.region.Length {
		return invalid(fn, "%d bytes at offset %d of a %s memory descriptor of %d", n, off, side, m.region.Length)
	}
	return nil
}

// hold keeps a descriptor, if h names one, from being released.
func (s *descriptors) hold(h Handle) {
	if m := s.all.get(h); m != nil {
		m.refs++
	}
}

// unhold undoes a hold.
func (s *descriptors) unhold(h Handle) {
	if m := s.all.get(h); m != nil {
		m.refs--
	}
}

// MDBind (PtlMDBind) makes a memory descriptor. It does not touch the memory,
// so a descriptor may cover the whole address space. Errors: ErrNoInit,
// ErrArgInvalid; ErrNoSpace if max_mds descriptors are bound.
func (ni *Objects) MDBind(d *MD) (Handle, error) {
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
	if d.EQ != EQNone && ni.queues.all.get(d.EQ) == nil {
		return InvalidHandle, invalid("MDBind", "event queue handle %#x names nothing", uint32(d.EQ))
	}
	if d.CT != CTNone && ni.counters.all.get(d.CT) == nil {
		return InvalidHandle, invalid("MDBind", "counter handle %#x names nothing", uint32(d.CT))
	}
	ni.proc.used.Add(used.Descriptor)
	if ni.mds.all.live >= ni.limits.MaxMDs {
		return InvalidHandle, exhaustedLimit(ErrNoSpace, "max_mds", ni.limits.MaxMDs)
	}
	m := &md{opts: d.Options, region: r, eq: d.EQ, ct: d.CT}
	m.handle = ni.mds.all.add(m)
	return m.handle, nil
}

// MDRelease (PtlMDRelease) releases a memory descriptor. Errors: ErrNoInit,
// ErrArgInvalid; ErrInUse while an operation, also a triggered one, needs it.
func (ni *Objects) MDRelease(h Handle) error {
	if ni.dead {
		return ErrNoInit
	}
	m := ni.mds.all.get(h)
	if m == nil {
		return invalid("MDRelease", "memory descriptor handle %#x names nothing", uint32(h))
	}
	if m.refs > 0 {
		return ErrInUse
	}
	ni.mds.all.remove(h)
	return nil
}

// wantsAck reports whether an acknowledgement would have an effect at the
// initiator. Otherwise none is requested (Portals 4.x §3.15).
func (m *md) wantsAck(ack AckReq) bool {
	counts := m.opts&OptMDEventCTAck != 0 && m.ct != CTNone
	return counts && ack != NoAck || ack == Ack && m.eq != EQNone
}
