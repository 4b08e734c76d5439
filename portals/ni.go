package portals

import "math/bits"

// NI is a network interface (Portals 4.x §3.6): the root of all objects. After
// the last NIFini its methods return ErrNoInit, and what still arrives for it
// is dropped.
type NI struct {
	proc    *Process
	kind    NIKind
	handle  Handle
	refs    int
	bundles int
	dead    bool
	limits  Limits
	tracer  Tracer
	self    ID // physical identifier, and rank on logical interfaces
	rankMap []ID
	mapped  bool

	pts     []*pt
	entries table[entry]
	mds     table[md]
	eqs     table[eq]
	cts     table[ct]
	eqsMade int
	ctsMade int

	entryPool   pool[entry]
	headerPool  pool[unexpected]
	claimPool   pool[claim]
	trigPool    pool[triggered]
	opPool      pool[Op]
	delivPool   pool[Delivery]
	pending     []pendingOp
	pendingFree []uint32

	unexpectedCount int
	triggeredCount  int
	outbox          outbox
	ready           []*triggered // fired, waiting for their turn
	draining        bool
	sequence        uint64
	status          [srCount]uint64
}

func newNI(p *Process, kind NIKind, limits Limits) *NI {
	ni := &NI{proc: p, kind: kind, refs: 1, limits: limits, tracer: p.cfg.Tracer, self: p.id}
	ni.handle = makeHandle(KindNI, kind, p.serials[kind])
	p.serials[kind]++
	salt := uint32(mix(uint64(p.id.NID)<<32|uint64(p.id.PID), uint64(p.serials[kind]))) & serialMask
	ni.entries.init(KindME, kind, salt)
	ni.mds.init(KindMD, kind, salt)
	ni.eqs.init(KindEQ, kind, salt)
	ni.cts.init(KindCT, kind, salt)
	ni.pts = make([]*pt, limits.MaxPTIndex+1)
	if kind.Logical() && p.cfg.Map != nil {
		ni.setMap(p.cfg.Map)
	}
	return ni
}

// Process returns the process the interface belongs to.
func (ni *NI) Process() *Process { return ni.proc }

// Kind returns which of the four interfaces it is.
func (ni *NI) Kind() NIKind { return ni.kind }

// Options returns the options that NIInit opens it with.
func (ni *NI) Options() NIOptions {
	o := OptNINoMatching
	if ni.kind.Matching() {
		o = OptNIMatching
	}
	if ni.kind.Logical() {
		return o | OptNILogical
	}
	return o | OptNIPhysical
}

// Handle returns the interface's handle, the same number in every process that
// opened its interfaces equally often.
func (ni *NI) Handle() Handle { return ni.handle }

// Limits returns the limits granted.
func (ni *NI) Limits() Limits { return ni.limits }

// NIFini (PtlNIFini) undoes one NIInit; the last one releases every object.
// Errors: ErrNoInit.
func (ni *NI) NIFini() error {
	if ni.dead {
		return ErrNoInit
	}
	if ni.refs--; ni.refs == 0 {
		ni.shutdown()
	}
	return nil
}

// shutdown forgets every object. Operations already in the outbox still leave.
func (ni *NI) shutdown() {
	ni.dead = true
	ni.refs = 0
	for i := range ni.pending {
		ni.pending[i].used = false
		ni.pending[i].gen++
	}
	ni.ready = nil
	ni.proc.closed(ni)
	ni.interrupted(InvalidHandle)
}

// NIStatus (PtlNIStatus) reads a status register.
// Errors: ErrNoInit, ErrArgInvalid.
func (ni *NI) NIStatus(r StatusRegister) (uint64, error) {
	if ni.dead {
		return 0, ErrNoInit
	}
	if r >= srCount {
		return 0, invalid("NIStatus", "status register %d, there are %d", r, srCount)
	}
	return ni.status[r], nil
}

// UID (PtlGetUid) returns the user id of the process. Errors: ErrNoInit.
func (ni *NI) UID() (uint32, error) {
	if ni.dead {
		return 0, ErrNoInit
	}
	return ni.proc.cfg.UID, nil
}

// ID (PtlGetId) returns the name of the process on this interface: NID and PID,
// or the rank. Errors: ErrNoInit; ErrArgInvalid on a logical interface whose map
// does not contain the process.
func (ni *NI) ID() (ID, error) {
	if ni.dead {
		return ID{}, ErrNoInit
	}
	if !ni.kind.Logical() {
		return ni.self, nil
	}
	if ni.self.Rank == RankAny {
		return ID{}, invalid("GetId", "process %v has no rank", ni.self)
	}
	return RankID(ni.self.Rank), nil
}

// PhysID (PtlGetPhysId) returns NID and PID on any interface. Errors: ErrNoInit.
func (ni *NI) PhysID() (ID, error) {
	if ni.dead {
		return ID{}, ErrNoInit
	}
	return PhysID(ni.self.NID, ni.self.PID), nil
}

// SetMap (PtlSetMap) sets the map from ranks to physical identifiers. Errors:
// ErrNoInit; ErrArgInvalid on a physical interface or for an empty map;
// ErrIgnored when the run-time system fixed the map.
func (ni *NI) SetMap(mapping []ID) error {
	if ni.dead {
		return ErrNoInit
	}
	if !ni.kind.Logical() {
		return invalid("SetMap", "the interface is physical")
	}
	if len(mapping) == 0 {
		return invalid("SetMap", "the map is empty")
	}
	if ni.proc.cfg.Map != nil {
		return ErrIgnored
	}
	ni.setMap(mapping)
	return nil
}

func (ni *NI) setMap(mapping []ID) {
	ni.rankMap = make([]ID, len(mapping))
	ni.self.Rank = RankAny
	ni.mapped = true
	for rank, id := range mapping {
		ni.rankMap[rank] = ID{NID: id.NID, PID: id.PID, Rank: uint32(rank)}
		if id.NID == ni.self.NID && id.PID == ni.self.PID && ni.self.Rank == RankAny {
			ni.self.Rank = uint32(rank)
		}
	}
}

// GetMap (PtlGetMap) copies the map into dst as far as it fits and returns its
// full size. Errors: ErrNoInit; ErrArgInvalid on a physical interface.
func (ni *NI) GetMap(dst []ID) (int, error) {
	if ni.dead {
		return 0, ErrNoInit
	}
	if !ni.kind.Logical() {
		return 0, invalid("GetMap", "the interface is physical")
	}
	for i := range min(len(dst), len(ni.rankMap)) {
		dst[i] = PhysID(ni.rankMap[i].NID, ni.rankMap[i].PID)
	}
	return len(ni.rankMap), nil
}

// target translates the name an initiator gives into a physical one.
func (ni *NI) target(id ID) (ID, bool) {
	if ni.kind.Logical() {
		if uint64(id.Rank) >= uint64(len(ni.rankMap)) {
			return ID{}, false
		}
		return ni.rankMap[id.Rank], true
	}
	if id.NID == NIDAny || id.PID == PIDAny {
		return ID{}, false
	}
	return PhysID(id.NID, id.PID), true
}

// StartBundle (PtlStartBundle) hints that a group of operations begins; calls
// nest. Errors: ErrNoInit.
func (ni *NI) StartBundle() error {
	if ni.dead {
		return ErrNoInit
	}
	ni.bundles++
	return nil
}

// EndBundle (PtlEndBundle) ends one StartBundle. Errors: ErrNoInit;
// ErrArgInvalid without a matching StartBundle.
func (ni *NI) EndBundle() error {
	if ni.dead {
		return ErrNoInit
	}
	if ni.bundles == 0 {
		return invalid("EndBundle", "no bundle is open")
	}
	ni.bundles--
	return nil
}

// Bundling reports whether a bundle is open: a transport may then delay what
// the host queues.
func (ni *NI) Bundling() bool { return ni.bundles > 0 }

// AtomicSync (PtlAtomicSync) makes host accesses to memory touched by atomics
// safe. Atomics are applied in place, so there is nothing to wait for here.
// Errors: ErrNoInit.
func (ni *NI) AtomicSync() error {
	if ni.dead {
		return ErrNoInit
	}
	return nil
}

// names reports whether h is a live object of this interface.
func (ni *NI) names(h Handle) bool {
	switch h.Kind() {
	case KindNI:
		return h == ni.handle
	case KindEQ:
		return ni.eqs.get(h) != nil
	case KindCT:
		return ni.cts.get(h) != nil
	case KindMD:
		return ni.mds.get(h) != nil
	case KindLE, KindME:
		return ni.entries.get(h) != nil
	case KindNone:
	}
	return false
}

func (ni *NI) interrupted(h Handle) {
	if f := ni.proc.cfg.Hooks.Interrupted; f != nil {
		f(ni, h)
	}
}

// mix hashes 128 bits to 64: a folded multiplication for each half.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9)
	hi, lo = bits.Mul64(hi^lo^b, 0x94d049bb133111eb)
	return hi ^ lo
}
