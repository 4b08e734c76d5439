package portals

import (
	"math/bits"
)

// state is the objects and books of an interface. Both faces work on it; its
// methods are what they have in common: names, entries, events, counters,
// triggered operations and what is queued to leave.
//
// What every message needs at its target is side by side at the beginning; what
// counters and what leaves need follows.
type state struct {
	dead      bool
	draining  bool
	fired     bool   // ready has something
	traced    bool   // there is a tracer
	recent    [2]*pt // the entries of the latest requests, of even and of odd index
	delivPool *pool[Delivery]
	cts       table[ct]

	memory  Memory // of the process
	proc    *Process
	ni      *NI
	port    *Port
	kind    NIKind
	uid     uint32
	self    ID // physical identifier, and rank on logical interfaces
	outbox  outbox
	pending pendingTable
	mds     table[md]

	limits  Limits
	tracer  Tracer
	pts     []*pt
	rankMap []ID
	mapped  bool
	handle  Handle
	refs    int
	bundles int
	entries table[entry]
	eqs     table[eq]
	eqsMade int
	ctsMade int

	entryPool  pool[entry]
	headerPool pool[unexpected]
	claimPool  pool[claim]
	trigPool   pool[triggered]

	unexpectedCount int
	triggeredCount  int
	ready           []*triggered // fired, waiting for their turn
	sequence        uint64
	status          [srCount]uint64
}

// newNI makes both faces of an interface in one piece of memory.
func newNI(p *Process, kind NIKind, limits Limits) *NI {
	both := &struct {
		port Port
		ni   NI
	}{}
	st := &both.port.state
	both.ni.state = st
	st.ni, st.port = &both.ni, &both.port
	st.delivPool, st.outbox.spare = &p.cfg.Spare.deliveries, &p.cfg.Spare.ops
	st.proc, st.kind, st.refs, st.limits, st.self = p, kind, 1, limits, p.id
	st.pending.first = max(1, p.node.generations[kind])
	st.memory, st.uid = p.cfg.Memory, p.cfg.UID
	st.tracer, st.traced = p.cfg.Tracer, p.cfg.Tracer != nil
	st.handle = makeHandle(KindNI, kind, p.serials[kind])
	p.serials[kind]++
	salt := uint32(mix(uint64(p.id.NID)<<32|uint64(p.id.PID), uint64(p.serials[kind]))) & serialMask
	st.entries.init(KindME, kind, salt)
	st.mds.init(KindMD, kind, salt)
	st.eqs.init(KindEQ, kind, salt)
	st.cts.init(KindCT, kind, salt)
	st.pts = make([]*pt, limits.MaxPTIndex+1)
	if kind.Logical() && p.cfg.Map != nil {
		st.setMap(p.cfg.Map)
	}
	return st.ni
}

func (st *state) ctOf(fn string, h Handle) (*ct, error) {
	if st.dead {
		return nil, ErrNoInit
	}
	c := st.cts.get(h)
	if c == nil {
		return nil, invalid(fn, "counter handle %#x names nothing", uint32(h))
	}
	return c, nil
}

func (st *state) eqOf(fn string, h Handle) (*eq, error) {
	if st.dead {
		return nil, ErrNoInit
	}
	q := st.eqs.get(h)
	if q == nil {
		return nil, invalid(fn, "event queue handle %#x names nothing", uint32(h))
	}
	return q, nil
}

func (st *state) setMap(mapping []ID) {
	st.rankMap = make([]ID, len(mapping))
	st.self.Rank = RankAny
	st.mapped = true
	for rank, id := range mapping {
		st.rankMap[rank] = ID{NID: id.NID, PID: id.PID, Rank: uint32(rank)}
		if id.NID == st.self.NID && id.PID == st.self.PID && st.self.Rank == RankAny {
			st.self.Rank = uint32(rank)
		}
	}
}

// target translates the name an initiator gives into a physical one.
func (st *state) target(id ID) (ID, bool) {
	if st.kind.Logical() {
		if uint64(id.Rank) >= uint64(len(st.rankMap)) {
			return ID{}, false
		}
		return st.rankMap[id.Rank], true
	}
	if id.NID == NIDAny || id.PID == PIDAny {
		return ID{}, false
	}
	return PhysID(id.NID, id.PID), true
}

// names reports whether h is a live object of this interface.
func (st *state) names(h Handle) bool {
	switch h.Kind() {
	case KindNI:
		return h == st.handle
	case KindEQ:
		return st.eqs.get(h) != nil
	case KindCT:
		return st.cts.get(h) != nil
	case KindMD:
		return st.mds.get(h) != nil
	case KindLE, KindME:
		return st.entries.get(h) != nil
	case KindNone:
	}
	return false
}

func (st *state) interrupted(h Handle) {
	if f := st.proc.cfg.Hooks.Interrupted; f != nil {
		f(st.ni, h)
	}
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
