package portals

import (
	"math/bits"
)

// state has the objects of an interface. NI and Port work on it. Its methods
// are common to both: names, entries, events, counters, triggered operations
// and the outbox.
//
// The fields that every message needs at its target come first, side by side.
// The fields of counters and of the outbox follow.
type state struct {
	dead       bool
	draining   bool
	witness    witness
	recent     [2]*pt // the entries of the latest requests, of even and of odd index
	deliveries *deliveryPool
	counters   counters

	memory  Memory // of the process
	proc    *Process
	ni      *NI
	port    *Port
	kind    NIKind
	uid     uint32
	names   addressBook
	outbox  outbox
	pending pendingTable
	mds     descriptors

	limits  *Limits // that other interfaces may have, too
	pts     []*pt   // up to the largest index that was allocated
	handle  Handle
	refs    int
	bundles int
	entries table[entry]
	queues  queues

	entryPool  pool[entry]
	headerPool pool[unexpected]
	claimPool  pool[claim]

	unexpectedCount int
	status          [srCount]uint64
}

// newNI allocates NI and Port of an interface together.
func newNI(p *Process, kind NIKind, limits *Limits) *NI {
	both := &struct {
		port Port
		ni   NI
	}{}
	st := &both.port.state
	both.ni.state = st
	st.ni, st.port = &both.ni, &both.port
	st.deliveries, st.outbox.spare = &p.cfg.Spare.deliveries, &p.cfg.Spare.ops
	st.proc, st.kind, st.refs, st.limits = p, kind, 1, limits
	st.names = addressBook{self: p.id, logical: kind.Logical()}
	st.pending.first = max(1, p.node.generations[kind])
	st.memory, st.uid = p.cfg.Memory, p.cfg.UID
	st.witness = witness{ni: st.ni, hooks: &p.cfg.Hooks, tracer: p.cfg.Tracer}
	st.queues.witness, st.counters.witness = st.witness, st.witness
	st.handle = makeHandle(KindNI, kind, p.serials[kind])
	p.serials[kind]++
	salt := uint32(mix(uint64(p.id.NID)<<32|uint64(p.id.PID), uint64(p.serials[kind]))) & serialMask
	st.entries.init(KindME, kind, salt)
	st.mds.all.init(KindMD, kind, salt)
	st.queues.all.init(KindEQ, kind, salt)
	st.counters.all.init(KindCT, kind, salt)
	if kind.Logical() && p.cfg.Map != nil {
		st.names.setMap(p.cfg.Map)
	}
	return st.ni
}

func (st *state) ctOf(fn string, h Handle) (*ct, error) {
	if st.dead {
		return nil, ErrNoInit
	}
	c := st.counters.all.get(h)
	if c == nil {
		return nil, invalid(fn, "counter handle %#x names nothing", uint32(h))
	}
	return c, nil
}

func (st *state) eqOf(fn string, h Handle) (*eq, error) {
	if st.dead {
		return nil, ErrNoInit
	}
	q := st.queues.all.get(h)
	if q == nil {
		return nil, invalid(fn, "event queue handle %#x names nothing", uint32(h))
	}
	return q, nil
}

// lives reports whether h is a live object of this interface.
func (st *state) lives(h Handle) bool {
	switch h.Kind() {
	case KindNI:
		return h == st.handle
	case KindEQ:
		return st.queues.all.get(h) != nil
	case KindCT:
		return st.counters.all.get(h) != nil
	case KindMD:
		return st.mds.all.get(h) != nil
	case KindLE, KindME:
		return st.entries.get(h) != nil
	case KindNone:
	}
	return false
}

// mix hashes 128 bits to 64: a folded multiplication for each half.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9)
	hi, lo = bits.Mul64(hi^lo^b, 0x94d049bb133111eb)
	return hi ^ lo
}

func (st *state) ptAt(fn string, index uint32) (*pt, error) {
	if st.dead {
		return nil, ErrNoInit
	}
	if index >= uint32(len(st.pts)) || st.pts[index] == nil {
		return nil, invalid(fn, "portal table index %d is not allocated", index)
	}
	return st.pts[index], nil
}
